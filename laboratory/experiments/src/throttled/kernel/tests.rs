#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

/// The waits of the writer and of its sync are those that the engine told.
#[test]
fn a_writer_waits_for_its_share_and_syncs_once() {
    let rate = Rate { text: "25MB".to_owned(), bytes_per_s: 25_000_000 };
    let form = Form { name: "small", max_bytes: 0, limit_bytes: None };
    let written = simulate(&form, &rate, 12, KernelOfRun { dirty_limit_bytes: 1_000_000_000, hz: 250 }).unwrap();
    let waited = written.delays["writer"].clone();
    assert!(waited["throttle"]["average_ms"].as_f64().unwrap() > 1.0, "{waited}");
    assert_eq!(waited["sync"]["count"], 1, "{waited}");
    let (longest_ms, sync_ms) = (waited["sync"]["max_ms"].as_f64().unwrap(), written.sync_ns as f64 / 1e6);
    assert!((longest_ms - sync_ms).abs() < 1.0, "{waited}, and the job waited {sync_ms} ms");
}
