use super::*;
use crate::machine::Queue;

fn ends(variant: &Variant, passes: Passes) -> [f64; 2] {
    let queue = Queue { nr_requests: 128, request_kib: 512, batch: 32, at_submission: false, is_sorted: true };
    let row =
        run_one(variant, DiskQueue { queue, cache_kib: DISK_CACHE_KIB }, passes, MEMORY_BYTES, 20_000, 1).unwrap();
    ["a_ends_s", "b_ends_s"].map(|metric| row.metrics.get(metric).and_then(serde_json::Value::as_f64).unwrap())
}

#[test]
fn two_passes_take_half_the_time_of_one() {
    for variant in [&Variant::PDFLUSH, &Variant::FLUSHERS] {
        let (one, two) = (ends(variant, Passes::One), ends(variant, Passes::Two));
        let about = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 0.05;
        assert!(about(one[1], 2.0 * one[0]) && about(two[1], one[0]), "{}: {one:?} {two:?}", variant.name);
    }
}

#[test]
fn under_the_flush_budget_little_is_left_for_a_sync() {
    for passes in [Passes::One, Passes::Two] {
        // The budget allows a second of each disk's time to be dirty.
        assert!(ends(&Variant::AFFLUX, passes)[1] < 1.0, "{passes:?}");
    }
}

#[test]
fn the_rows_say_what_the_syncs_waited() {
    let queue = Queue { nr_requests: 128, request_kib: 512, batch: 32, at_submission: false, is_sorted: true };
    let row =
        run_one(&Variant::AFFLUX, DiskQueue { queue, cache_kib: DISK_CACHE_KIB }, Passes::Two, MEMORY_BYTES, 20_000, 1)
            .unwrap();
    let of = |disk: &str| row.metrics.get("delays").unwrap()[disk]["sync"].clone();
    let ends = ["a_ends_s", "b_ends_s"].map(|name| row.metrics.get(name).and_then(serde_json::Value::as_f64).unwrap());
    for (disk, end_s) in ["0", "1"].iter().zip(ends) {
        let waited = of(disk);
        assert_eq!(waited["count"], 1, "{waited}");
        assert!((waited["max_ms"].as_f64().unwrap() / 1e3 - end_s).abs() < 0.01, "{waited} {end_s}");
    }
}
