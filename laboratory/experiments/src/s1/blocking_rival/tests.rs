use super::*;
use crate::machine::Queue;

#[test]
fn a_pool_starves_beside_a_writer_that_waits_and_a_flusher_does_not() {
    let queue = Queue { nr_requests: 128, request_kib: 64, batch: 1, at_submission: false, is_sorted: true };
    let run = |beside, rival| {
        let row = run_one(beside, rival, DiskQueue { queue, cache_kib: DISK_CACHE_KIB }, MEMORY_BYTES, 1).unwrap();
        let of = |name: &str| row.metrics.get(name).and_then(serde_json::Value::as_f64).unwrap();
        (of("share_beside_rival"), of("share_of_rival"), of("throughput_mb_per_s"))
    };
    // Alone, the pool keeps the disk busy. So it is at work when it starves beside the rival.
    let (own, rival, alone) = run(RivalWriteback::Pool, false);
    assert!((own - 1.0).abs() < 1e-9 && rival == 0.0 && alone > 60.0, "{own}, {rival}, {alone} MB/s");
    let (pool, rival, _) = run(RivalWriteback::Pool, true);
    assert!(pool < 0.15 && pool + rival > 0.999, "{pool}, {rival}");
    let (flusher, rival, _) = run(RivalWriteback::BlockingFlusher, true);
    assert!((0.3..0.7).contains(&flusher) && flusher + rival > 0.999, "{flusher}, {rival}");
}
