use super::*;

#[test]
fn writers_over_their_share_write_while_the_pool_sleeps() {
    // 113 requests of 24 KB last 7 ms at 410 MB/s; a sleep lasts 100. A pool alone would starve the disks.
    let queue = Queue { nr_requests: 128, request_kib: 24, batch: 32, at_submission: false };
    let speed = |variant| {
        let setting = Setting { queue, cpu_ms_per_mb: 1.0, file_bytes: 1_000_000_000 };
        let ran = run_one(variant, setting, 1).unwrap();
        assert!(ran.samples.len() > PLOTTED && !ran.offsets.is_empty());
        ran.row.metrics.get("throughput_mb_per_s").and_then(serde_json::Value::as_f64).unwrap()
    };
    let (plain, blocking) = (speed(&Variant::PLAIN), speed(&Variant::FLUSHERS));
    assert!((plain / blocking - 1.0).abs() < 0.05, "{plain} {blocking}");
}
