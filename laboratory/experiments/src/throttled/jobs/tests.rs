#![allow(clippy::unwrap_used, reason = "tests")]

use afflux_workloads::simulation::JobOutcome;

use super::*;
use crate::experiment::tests::given;
use crate::throttled::THROTTLED;

#[test]
fn a_row_says_what_each_job_waited_for() {
    let plan = plan(&Request { quick: true, ..given(&THROTTLED, &[]) }).unwrap();
    let (group, rate) = (&plan.groups[0], &plan.rates[0]);
    let side = simulated::run(group, rate, plan.memory_bytes, None).unwrap();
    let row = row(group, rate, &plan, &side, FigureSource::Simulated, None);
    let delays = row.metrics.get("delays").unwrap();
    let sync = &delays["synced"]["sync"];
    assert_eq!(sync["count"], side.jobs[0].sync.ops, "{delays}");
    assert!(sync["total_ms"].as_f64() > Some(1.0) && sync["p99_ms"].as_f64() <= sync["max_ms"].as_f64(), "{delays}");
}

#[test]
fn the_answer_has_the_largest_of_all_distances() {
    let plan = plan(&Request { quick: true, ..given(&THROTTLED, &[]) }).unwrap();
    let (group, rate) = (&plan.groups[0], &plan.rates[0]);
    let side = |bytes, sync_ns| {
        let mut job = JobOutcome { elapsed_ns: 1_000_000_000, ..JobOutcome::default() };
        job.write.bytes = bytes;
        job.sync.ops = 1;
        job.sync.latency.mean_ns = sync_ns;
        let delays = serde_json::json!({});
        Side { jobs: vec![job], looks: Vec::new(), limit_bytes: 1, disk_bytes: 0, delays }
    };
    let measured =
        |simulated: Side, measured: Side| row(group, rate, &plan, &measured, FigureSource::Measured, Some(&simulated));
    let real = || side(25_000_000, 1_000_000);
    let rows = [measured(side(24_000_000, 1_200_000), real()), measured(side(25_250_000, 1_000_000), real())];
    let answer = answer(&rows);
    let missed: Vec<Check> = checks(&rows).into_iter().filter(|check| !check.met).collect();
    assert_eq!(missed.len(), 1, "a sync that is a fifth off: {missed:?}");
    assert!(
        answer.contains("Over 2 runs") && answer.contains("within 4.0 %") && answer.ends_with("within 20.0 %."),
        "{answer}"
    );
}
