use super::*;
use crate::machine::Queue;

fn of(
    variant: &Variant,
    begun: WritingTrigger,
    nr_requests: u64,
    request_kib: u64,
    cache_kib: u64,
    metric: &str,
) -> f64 {
    let queue = Queue { nr_requests, request_kib, batch: 32, at_submission: false, is_sorted: true };
    let row = run_one(variant, DiskQueue { queue, cache_kib }, begun, MEMORY_BYTES, 20_000, 1).unwrap();
    row.metrics.get(metric).and_then(serde_json::Value::as_f64).unwrap()
}

fn share_of_b(variant: &Variant, nr_requests: u64, request_kib: u64) -> f64 {
    of(variant, WritingTrigger::Background, nr_requests, request_kib, DISK_CACHE_KIB, "share_of_b")
}

#[test]
fn a_is_exhausted_first_only_where_its_queue_takes_it_whole() {
    // 82 MB in a queue of 128 MB, and in one of 8 MB.
    assert!(share_of_b(&Variant::PDFLUSH, 2048, 64) < 0.1);
    assert!(share_of_b(&Variant::PDFLUSH, 128, 64) > 0.3);
}

#[test]
fn with_flushers_both_have_the_same() {
    assert!((share_of_b(&Variant::FLUSHERS, 2048, 64) - 0.5).abs() < 0.05);
}

#[test]
fn a_plain_sleep_over_short_queues_takes_what_the_disks_caches_do_not_hide() {
    let ends = |variant, cache_kib| of(variant, WritingTrigger::Background, 128, 24, cache_kib, "b_ends_s");
    // 113 requests of 24 KiB last a third of a sleep at 82 MB/s.
    assert!(ends(&Variant::PLAIN, 0) > 2.0 * ends(&Variant::FLUSHERS, 0));
    assert!(ends(&Variant::PLAIN, DISK_CACHE_KIB) < 1.5 * ends(&Variant::FLUSHERS, DISK_CACHE_KIB));
}

#[test]
fn a_file_that_congestion_stopped_keeps_its_age_if_no_younger_one_waits() {
    let ends = |variant| of(variant, WritingTrigger::Periodic, 128, 24, DISK_CACHE_KIB, "b_ends_s");
    let (pool, flushers) = (ends(&Variant::PDFLUSH), ends(&Variant::FLUSHERS));
    assert!(pool < 1.5 * flushers, "{pool} {flushers}");
}

#[test]
fn who_is_begun_later_ends_later() {
    let ends = |variant, metric| of(variant, WritingTrigger::Background, 2048, 64, DISK_CACHE_KIB, metric);
    let [first, second] = ["a_ends_s", "b_ends_s"].map(|metric| ends(&Variant::PDFLUSH, metric));
    // B begins when all of A has been submitted, at 2.5 ms of a CPU a megabyte.
    assert!(second > first + 0.1, "{first} {second}");
    let [first, second] = ["a_ends_s", "b_ends_s"].map(|metric| ends(&Variant::FLUSHERS, metric));
    assert!((second - first).abs() < 0.05, "{first} {second}");
}
