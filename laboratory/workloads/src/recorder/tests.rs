use super::*;

#[test]
fn extremes_and_means_are_exact_and_percentiles_near() {
    let mut recorder = Recorder::default();
    for at in 1..=10_000_u64 {
        recorder.moves[1].record(at * 1_000_000, at * 1_000_000 + at * 1000, 4096);
    }
    let outcome = recorder.outcome();
    let OperationOutcome { bytes, ops, elapsed_ns, latency, .. } = outcome.write;
    assert_eq!((bytes, ops, elapsed_ns), (40_960_000, 10_000, 9_999_000_000 + 10_000_000));
    assert_eq!((latency.min_ns, latency.mean_ns, latency.max_ns), (1000, 5_000_500, 10_000_000));
    for (percentile, value) in latency.percentiles_ns {
        let exact = percentile * 100_000.0;
        assert!((value as f64 - exact).abs() <= exact / 900.0, "{percentile}: {value} and not {exact}");
    }
    assert_eq!(outcome.read.ops, 0);
    assert!(outcome.read.latency.percentiles_ns.is_empty());
}

#[test]
fn errors_are_counted_by_what_they_are() {
    let mut recorder = Recorder::default();
    for what in ["write: no space", "read: broken", "write: no space"] {
        recorder.error(what.to_owned());
    }
    assert_eq!(recorder.outcome().errors, [("write: no space".to_owned(), 2), ("read: broken".to_owned(), 1)]);
}
