#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::json;

use super::*;
use crate::experiment::Request;
use crate::experiment::tests::given;
use crate::s4::S4;

#[test]
fn the_seeds_figures_stand_beside_its_own_load() {
    let plan = |size: &str| Plan::read(&Request { measured: true, ..given(&S4, &[("size", size)]) }).unwrap();
    let rate = |size| {
        published::mean_rate(&plan(size), Threshold::Centisecs(100))
            .get("rate_mb_per_s")
            .and_then(serde_json::Value::as_f64)
    };
    assert_eq!((rate("1GB").map(f64::round), rate("2GB")), (Some(10.0), None));
}

#[test]
fn what_a_server_says_is_read_by_name() {
    let device = json!({
        "dirty_bytes": 7, "background_threshold_bytes": 5, "write_bandwidth_bytes_per_s": null, "name": "vda",
    });
    let report = json!({ "is": "report", "devices": [device], "counters": { "nr_written": 3, "other": 1 } });
    let (look, counts) = reports::of_report(&report).unwrap();
    assert_eq!((look.dirty_bytes, look.background_threshold_bytes, look.write_bandwidth_bytes_per_s), (7, 5, None));
    let moved = moved(&Counts::from([("nr_written".to_owned(), 1)]), &counts);
    assert!(moved.contains(&("nr_written", 2)) && moved.contains(&("sync_requests", 0)), "{moved:?}");
    assert!(reports::of_report(&json!({ "devices": [], "counters": {} })).is_none(), "before the first file");
}
