#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

#[test]
fn a_row_says_what_each_job_waited_for() {
    let request = Request { quick: true, ..Request::default() };
    let plan = plan(&request).unwrap();
    let (group, rate) = (&plan.groups[0], &plan.rates[0]);
    let side = simulated::run(group, rate, plan.memory_bytes, None).unwrap();
    let row = row(group, rate, &plan, &side, Source::Simulated, None);
    let delays = row.metrics.get("delays").unwrap();
    let sync = &delays["synced"]["sync"];
    assert_eq!(sync["count"], side.jobs[0].sync.ops, "{delays}");
    assert!(sync["total_ms"].as_f64() > Some(1.0) && sync["p99_ms"].as_f64() <= sync["max_ms"].as_f64(), "{delays}");
}
