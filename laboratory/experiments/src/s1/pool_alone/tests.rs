use super::*;
use crate::machine::{MB, Queue};

fn speeds(nr_requests: u64, request_kib: u64, cache_kib: u64) -> (f64, f64) {
    let queue = Queue { nr_requests, request_kib, batch: 32, at_submission: false, is_sorted: true };
    let speed = |variant: &Variant| {
        let row = run_one(variant, DiskQueue { queue, cache_kib }, MEMORY_BYTES, 40_000, 1).unwrap();
        let share = row.metrics.get("pdflush_share").and_then(serde_json::Value::as_f64).unwrap();
        assert_eq!(share, if variant.name == Variant::PLAIN.name { 1.0 } else { 0.0 }, "nobody else writes");
        row.metrics.get("throughput_mb_per_s").and_then(serde_json::Value::as_f64).unwrap()
    };
    (speed(&Variant::PLAIN), speed(&Variant::FLUSHERS))
}

#[test]
fn a_sleep_longer_than_queue_and_caches_last_starves_the_disks() {
    // 113 requests of 24 KiB last 7 ms.
    let (plain, blocking) = speeds(128, 24, 0);
    assert!(plain < 0.15 * blocking, "{plain} {blocking}");
}

#[test]
fn the_disks_caches_hide_a_sleep() {
    // Five times 8 MiB last 100 ms.
    let (plain, blocking) = speeds(128, 24, DISK_CACHE_KIB);
    assert!(plain > 0.8 * blocking, "{plain} {blocking}");
}

#[test]
fn a_long_queue_needs_no_cache() {
    // 1,793 requests of 64 KiB last 290 ms.
    let (plain, blocking) = speeds(2048, 64, 0);
    assert!(plain > 0.97 * blocking, "{plain} {blocking}");
}

#[test]
fn counted_is_what_lies_between_a_quarter_and_the_last_twentieth() {
    const PAGES_EACH: u64 = 40_000;
    /// The rate of the platters: five disks of 82 MB/s.
    const PLATTERS_MB_PER_S: f64 = 410.0;
    let queue = Queue { nr_requests: 128, request_kib: 64, batch: 32, at_submission: false, is_sorted: true };
    let row = run_one(&Variant::FLUSHERS, DiskQueue { queue, cache_kib: DISK_CACHE_KIB }, MEMORY_BYTES, PAGES_EACH, 1)
        .unwrap();
    let rate = row.metrics.get("throughput_mb_per_s").and_then(serde_json::Value::as_f64).unwrap();
    // Until the caches are full, the disks accept data at the rate of their interfaces; after it, at the rate of the
    // platters.
    assert!((0.95 * PLATTERS_MB_PER_S..=1.01 * PLATTERS_MB_PER_S).contains(&rate), "{row}");
    let written = row.metrics.get("software").unwrap()["nr_written"].as_u64().unwrap() as f64;
    let expected = 0.7 * 2.0 * PAGES_EACH as f64;
    // Both ends of the count are seen at the next look.
    let look = rate * MB * (LOOK_NS as f64 / 1e9) / PAGE_BYTES as f64;
    assert!((written - expected).abs() <= 2.0 * look, "{written} of {expected}, {look} a look: {row}");
}
