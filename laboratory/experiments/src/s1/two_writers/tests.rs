use super::*;
use crate::machine::Queue;

fn ran(variant: &Variant, queue: Queue, cache_kib: u64) -> Ran {
    let setting = Setting {
        queue: DiskQueue { queue, cache_kib },
        cpu_ms_per_mb: 1.0,
        file_bytes: 2_000_000_000,
        memory_bytes: MEMORY_BYTES,
    };
    run_one(variant, setting, 1).unwrap()
}

fn of(ran: &Ran, name: &str) -> f64 {
    ran.row.metrics.get(name).and_then(serde_json::Value::as_f64).unwrap()
}

#[test]
fn a_long_queue_loses_nothing_to_polling_but_fullness() {
    let queue = Queue { nr_requests: 2048, request_kib: 64, batch: 32, at_submission: false, is_sorted: true };
    let [polled, blocked] = [&Variant::PLAIN, &Variant::FLUSHERS].map(|variant| ran(variant, queue, DISK_CACHE_KIB));
    assert!(polled.samples.len() > PLOTTED && !polled.offsets.is_empty());
    let rates = [&polled, &blocked].map(|ran| of(ran, "throughput_mb_per_s"));
    assert!((rates[0] / rates[1] - 1.0).abs() < 0.02, "{rates:?}");
    let fullness = [&polled, &blocked].map(|ran| of(ran, "queue_fullness_mean"));
    assert!(fullness[0] < 0.9 && fullness[1] > 0.95, "{fullness:?}");
}

#[test]
fn writers_over_their_share_write_while_the_pool_sleeps() {
    // The queue lasts 7 ms, a sleep 100, and the disks have no cache: the pool alone gets 7 % of their rate.
    let queue = Queue { nr_requests: 128, request_kib: 24, batch: 32, at_submission: false, is_sorted: true };
    let [polled, blocked] = [&Variant::PLAIN, &Variant::FLUSHERS].map(|variant| ran(variant, queue, 0));
    assert!(of(&polled, "pdflush_share") < 0.5, "{}", polled.row);
    let rates = [&polled, &blocked].map(|ran| of(ran, "throughput_mb_per_s"));
    assert!(rates[0] > 0.6 * rates[1] && rates[0] < 0.95 * rates[1], "{rates:?}");
}

#[test]
fn what_was_submitted_interleaved_costs_a_reader() {
    let queue = |at_submission| Queue { nr_requests: 128, request_kib: 24, batch: 1, at_submission, is_sorted: true };
    let [chunks, pieces] = [false, true].map(|it| ran(&Variant::PDFLUSH, queue(it), DISK_CACHE_KIB));
    let rates = [&chunks, &pieces].map(|ran| of(ran, "read_mb_per_s"));
    assert!(rates[1] < 0.9 * rates[0], "{rates:?}");
}

#[test]
fn the_engines_own_policy_has_the_stripe_and_more_than_flushers_where_disks_have_no_cache() {
    let queue =
        |nr_requests, request_kib| Queue { nr_requests, request_kib, batch: 32, at_submission: false, is_sorted: true };
    for (queue, cache_kib, least) in [
        (queue(2048, 64), DISK_CACHE_KIB, 0.98),
        (queue(128, 64), DISK_CACHE_KIB, 0.97),
        (queue(128, 24), DISK_CACHE_KIB, 0.97),
        (queue(128, 24), 0, 1.2),
    ] {
        let [own, kernel] = [&Variant::AFFLUX, &Variant::FLUSHERS].map(|variant| ran(variant, queue, cache_kib));
        let rates = [&own, &kernel].map(|ran| of(ran, "throughput_mb_per_s"));
        assert!(rates[0] >= least * rates[1], "{rates:?} with {} requests, cache {cache_kib} KiB", queue.nr_requests);
    }
}
