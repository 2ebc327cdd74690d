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

#[test]
fn clones_of_a_job_become_one_line_with_exact_totals() {
    let row = |name: &str, took_ns: &[u64]| {
        let mut row = Recorder::new(name, "disk".to_owned(), &[]);
        row.clones = 1;
        took_ns.iter().for_each(|ns| {
            row.moves[1].record(1_000, 1_000 + ns, 4096);
        });
        row.error("write: no space".to_owned());
        Arc::new(Mutex::new(row))
    };
    // The fast clone has nearly all calls, so that the median of all is its own and no mean of medians.
    let rows = [row("a", &[10; 99]), row("a", &[500; 3]), row("a", &[]), row("b", &[7])];
    let groups = grouped(&rows.each_ref(), 0);
    let [a, b] = &groups[..] else { panic!("{groups:?}") };
    assert_eq!((a.clones, a.write.ops, a.write.bytes), (3, 102, 102 * 4096));
    let latency = &a.write.latency;
    assert_eq!((latency.min_ns, latency.max_ns, latency.percentiles_ns[0]), (10, 500, (50.0, 10)));
    assert_eq!((latency.mean_ns, a.elapsed_ns), ((990 + 1500) / 102, 500));
    assert_eq!(a.errors, [("write: no space".to_owned(), 3)]);
    assert_eq!((b.clones, b.write.latency.max_ns), (1, 7));
    assert!(grouped(&rows.each_ref()[2..], 0).is_empty(), "each has a line of its own already");
    assert_eq!(grouped(&rows.each_ref(), 1).len(), 3, "the first is no job");
}
