//! The chosen and computed parameters of s3 have their intended effect, by the experiment's rows.

#![allow(clippy::unwrap_used, reason = "a test crate, also outside its test functions")]

use afflux_experiments::{Request, Watch, experiment};
use afflux_report::Row;

#[derive(Default)]
struct Rows(Vec<Row>);

impl Watch for Rows {
    fn row(&mut self, row: &Row) {
        self.0.push(row.clone());
    }
    fn step(&mut self, _: &str, _: f64) {}
}

/// All files are read whole.
fn rows(options: &[(&str, &str)]) -> Vec<Row> {
    let (experiment, mut rows) = (experiment("s3").unwrap(), Rows::default());
    let words = options.iter().map(|(name, value)| format!("--{name}={value}"));
    let options = experiment.command().no_binary_name(true).get_matches_from(words.chain(["--full".to_owned()]));
    experiment.run(&Request { quick: false, measured: false, options }, &mut rows).unwrap();
    rows.0
}

fn of(row: &Row, name: &str) -> f64 {
    row.params.get(name).or_else(|| row.metrics.get(name)).and_then(serde_json::Value::as_f64).unwrap()
}

#[test]
fn readahead_fails_because_free_counts_lag() {
    let base = |drift: &[(&str, &str)]| {
        let load = [
            ("readers", "250"),
            ("cpus", "2"),
            ("memory", "768MiB"),
            ("file-size", "8MiB"),
            ("start", "evenly"),
            ("variants", "base"),
        ];
        rows(&[&load[..], drift].concat()).remove(0)
    };
    let [none, computed, most] = ["0", "48", "100"].map(|frames| base(&[("drift", frames)]));
    // Failures of readahead alone, without those of slabs.
    let failures = [&none, &computed, &most].map(|row| of(row, "nr_alloc_fail") - of(row, "slab_alloc_fail"));
    assert_eq!([&none, &computed, &most].map(|row| of(row, "drift_frames")), [0.0, 48.0, 100.0]);
    assert!(20.0 * failures[0] < failures[1] && 2.0 * failures[1] < failures[2], "{failures:?}");
    // The kernel's formula is the default: 16 for these CPUs and this memory.
    assert_eq!(base(&[]).metrics, base(&[("drift", "16")]).metrics);
}

/// The kernel's caches are scanned for twice the share of their 28 objects that was scanned of all pages, and scan 128
/// objects at a time.
#[test]
fn caches_are_scanned_in_proportion_to_the_pages_that_are() {
    let load = [
        ("readers", "20"),
        ("cpus", "2"),
        ("memory", "64MiB"),
        ("file-size", "192MiB"),
        ("start", "evenly"),
        ("variants", "wmark-high,time-limit-100ms"),
    ];
    // 85 of 100 frames are for pages, and nine tenths of these or more have one.
    let page_frames = f64::from(64 << 20) / 4096.0 * 0.85;
    for row in rows(&load) {
        let scanned = of(&row, "pgscan_direct") + of(&row, "pgscan_kswapd");
        let rounds = of(&row, "slabs_scanned") / 128.0;
        let expected = 2.0 * scanned * 28.0 / page_frames / 128.0;
        assert!((expected.floor()..=expected / 0.9).contains(&rounds), "{rounds}, {expected}: {row}");
    }
}
