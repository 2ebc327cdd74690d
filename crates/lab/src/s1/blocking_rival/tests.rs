use super::*;

#[test]
fn a_pool_starves_beside_a_writer_that_waits_and_a_flusher_does_not() {
    let queue = Queue { nr_requests: 128, request_kib: 64, batch: 1, at_submission: false };
    let share = |beside| {
        let row = run_one(beside, queue, 1).unwrap();
        row.metrics.get("share_beside_rival").and_then(serde_json::Value::as_f64).unwrap()
    };
    let (pool, flusher) = (share(Beside::Pool), share(Beside::BlockingFlusher));
    assert!(pool < 0.15, "{pool}");
    assert!((0.3..0.7).contains(&flusher), "{flusher}");
}
