use serde_json::Value;

use super::super::written::by_second;
use super::*;

fn machine(others_bytes: Vec<u64>, filling_bytes: Vec<u64>) -> Surroundings {
    Surroundings { dirty_limit_bytes: 1_000_000_000, hz: 250, filling_bytes, others_bytes, late_p99_ns: 0 }
}

#[test]
fn others_write_what_they_wrote_when_they_wrote_it() {
    let jobs = others(&machine(vec![0, 5_000_000, 10, 70_000], Vec::new()));
    let told: Vec<_> = jobs.iter().map(|job| (job.start_delay_ns, job.rate_bytes[1], job.size)).collect();
    assert_eq!(told, [(1_000_000_000, 5_000_000, 77 << 16), (3_000_000_000, 70_000, 2 << 16)]);
}

/// If other programs write too, the device's share is smaller, so its writer is throttled earlier.
#[test]
fn what_others_write_costs_the_writer() {
    let rate = Rate { text: "25MB".to_owned(), bytes_per_s: 25_000_000 };
    let form = Form { name: "small", max_bytes: 0, limit_bytes: None };
    let seconds = 12;
    let run = |others: u64| {
        let machine = machine(vec![others; (BEFORE_S + seconds) as usize], vec![80_000_000; 10]);
        let written = simulate(&form, &rate, seconds, &machine).unwrap();
        let waited = written.delays.as_ref().unwrap()["writer"].clone();
        (by_second(&written, seconds), waited, written.sync_ns)
    };
    let ((alone, waited, sync_ns), (beside, waited_beside, _)) = (run(0), run(50_000_000));
    assert!((350.0..=401.0).contains(&alone[0]), "as fast as memory fills: {alone:?}");
    let throttled = |by_second: &[f64]| by_second[2] + by_second[3];
    assert!(throttled(&beside) < 0.6 * throttled(&alone), "{alone:?} {beside:?}");
    let pause_ms = |waited: &Value| waited["throttle"]["average_ms"].as_f64().unwrap();
    assert!(pause_ms(&waited_beside) > 1.1 * pause_ms(&waited), "{waited} {waited_beside}");
    assert_eq!(waited["sync"]["count"], 1, "{waited}");
    let longest_ms = waited["sync"]["max_ms"].as_f64().unwrap();
    assert!((longest_ms - sync_ns as f64 / 1e6).abs() < 1.0, "{waited}, and the job waited {sync_ns} ns");
}
