use super::*;

fn class(megabytes: u64, times_ms: &[(u64, u64)]) -> OfClass {
    let mut latencies = Latencies::default();
    for (count, ms) in times_ms {
        (0..*count).for_each(|_| latencies.add(ms * 1_000_000));
    }
    OfClass { bytes: megabytes * 1_000_000, elapsed: Duration::from_secs(2), latencies }
}

fn of(metrics: &Fields, name: &str) -> f64 {
    metrics.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

#[test]
fn a_run_has_rates_and_waits_of_all_and_of_each_of_two_classes() {
    // Of 1,000 calls 500 took 1 ms, 480 took 2, 15 took 4 and 5 took 8.
    let classes = vec![class(100, &[(500, 1), (480, 2)]), class(300, &[(15, 4), (5, 8)])];
    let ran = Ran { classes, elapsed: Duration::from_secs(4), dirty_bytes_max: 7_000_000, delays: None };
    let metrics = ran.metrics();
    let exact =
        ["mb_per_s", "accepted_mb_per_s", "first_accepted_mb_per_s", "second_accepted_mb_per_s", "dirty_mb_max"];
    assert_eq!(exact.map(|name| of(&metrics, name)), [100.0, 200.0, 50.0, 150.0, 7.0]);
    // A percentile is at most a 32nd above the truth.
    let times = ["write_p50_ms", "write_p99_ms", "write_p999_ms", "write_max_ms", "first_write_p999_ms"];
    let times = times.map(|name| of(&metrics, name));
    for (found, expected) in times.into_iter().zip([1.0, 4.0, 8.0, 8.0, 2.0]) {
        assert!((1.0..=33.0 / 32.0).contains(&(found / expected)), "{times:?}");
    }
    let one =
        Ran { classes: vec![class(8, &[(1, 1)])], elapsed: Duration::from_secs(1), dirty_bytes_max: 0, delays: None };
    assert!(one.metrics().names().all(|name| !name.starts_with("second")));
}
