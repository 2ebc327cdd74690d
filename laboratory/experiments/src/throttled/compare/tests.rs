use super::*;

fn side(dirty: &[(f64, u64)]) -> Side {
    let looks = dirty.iter().map(|&(at_s, dirty_bytes)| Look { at_s, dirty_bytes, accepted_bytes: 0 });
    Side { jobs: Vec::new(), looks: looks.collect(), limit_bytes: 1000, disk_bytes: 0, delays: serde_json::json!({}) }
}

#[test]
fn dirty_bytes_are_compared_at_the_same_instants_whatever_the_looks() {
    let often = side(&[(0.0, 0), (0.5, 0), (1.0, 500), (1.5, 500), (2.0, 500)]);
    let seldom = side(&[(0.0, 0), (1.0, 500), (2.0, 500)]);
    assert_eq!(dirty_deviation(&often, &seldom), (0.0, 0.0));
    let later = side(&[(0.0, 0), (1.5, 500), (2.0, 500)]);
    let (mean, most) = dirty_deviation(&often, &later);
    // They are half of the limit apart at 5 of 21 instants.
    assert!((mean - 0.5 * 5.0 / 21.0).abs() < 1e-9 && most == 0.5, "{mean} {most}");
}

#[test]
fn a_run_that_goes_on_longer_is_apart_for_that_long() {
    let long = side(&[(0.0, 1000), (2.0, 0)]);
    let short = side(&[(0.0, 1000), (1.0, 0)]);
    let (mean, most) = dirty_deviation(&long, &short);
    assert!(mean > 0.4 && mean < 0.6 && most == 1.0, "{mean} {most}");
}

#[test]
fn a_deviation_is_that_from_the_measured_figure() {
    assert!((deviation(110.0, 100.0) - 0.1).abs() < 1e-12);
    assert_eq!(deviation(1.0, 0.0), 0.0);
}

#[test]
fn figures_are_of_the_longest_job_and_of_the_first_that_syncs() {
    use afflux_workloads::simulation::{JobOutcome, OperationOutcome};
    let syncs = |ops, p50, p99| {
        let mut operations = OperationOutcome { ops, ..OperationOutcome::default() };
        operations.latency.percentiles_ns = vec![(50.0, p50), (99.0, p99)];
        operations
    };
    let job = |elapsed_ns, sync, closing_sync| JobOutcome {
        elapsed_ns,
        write: OperationOutcome { bytes: 30_000_000, ..OperationOutcome::default() },
        sync,
        closing_sync,
        ..JobOutcome::default()
    };
    let none = OperationOutcome::default;
    let of = |jobs, names: [&str; 3]| {
        let figures = Side { jobs, ..side(&[]) }.figures();
        names.map(|name| figures.get(name).and_then(Value::as_f64))
    };
    let jobs = vec![
        job(1_000_000_000, none(), none()),
        job(3_000_000_000, syncs(5, 1_000_000, 2_000_000), syncs(1, 9_000_000, 9_000_000)),
        job(2_000_000_000, syncs(7, 3_000_000, 4_000_000), none()),
    ];
    let both = of(jobs.clone(), ["elapsed_s", "throughput_mb_per_s", "syncs"]);
    assert_eq!(both, [Some(3.0), Some(30.0), Some(5.0)]);
    let names = ["syncs", "sync_p50_ms", "sync_p99_ms"];
    assert_eq!(of(jobs, names), [Some(5.0), Some(1.0), Some(2.0)]);
    let closing = of(vec![job(1_000_000_000, none(), syncs(1, 9_000_000, 9_000_000))], names);
    assert_eq!(closing, [Some(1.0), Some(9.0), Some(9.0)], "where nothing else was synced");
}
