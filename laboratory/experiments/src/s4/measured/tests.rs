#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::experiment::{Findings, Request};

#[derive(Default)]
struct CollectedRows(Vec<Row>);

impl Watch for CollectedRows {
    fn row(&mut self, row: &Row) {
        self.0.push(row.clone());
    }
    fn step(&mut self, _: &str, _: f64) {}
}

fn plan(pairs: &[(&str, &str)]) -> Plan {
    let given = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Plan::read(&Request { given, measured: true, ..Request::default() }).unwrap()
}

#[test]
fn without_root_our_server_is_measured_behind_limiters_of_this_process() {
    // High rates keep the test short; the limiters have tests of their own for their rates.
    let plan = plan(&[
        ("limiters", "process"),
        ("link", "10Gbit"),
        ("disk-rate", "50MB"),
        ("size", "4MB"),
        ("client-window", "2MB"),
        ("memory", "64MB"),
        ("centisecs", "0,1"),
        ("samples", "2"),
    ]);
    let mut kept = CollectedRows::default();
    // Another user may have taken a predictable name.
    let guessed = std::env::temp_dir().join(format!("afflux-s4-{}", std::process::id()));
    std::fs::create_dir(&guessed).unwrap();
    std::fs::write(guessed.join("others"), "").unwrap();
    let outcome = run(&plan, false, &mut kept, 0.0).unwrap();
    let names: Vec<_> =
        std::fs::read_dir(&guessed).map(|names| names.map(|it| it.unwrap().file_name()).collect()).unwrap();
    std::fs::remove_dir_all(&guessed).unwrap();
    assert_eq!(names, ["others"]);
    assert_eq!((outcome.copies.len(), kept.0.len(), outcome.notes.len()), (4, 4, 1));
    assert!(outcome.notes[0].contains("as asked for") && outcome.notes[0].contains("nfs-ganesha is not measured"));
    // The second round has the reverse order.
    let order: Vec<_> = kept.0.iter().map(|row| row.params.get("centisecs").unwrap().clone()).collect();
    assert_eq!(order, [0, 1, 1, 0].map(Value::from));
    for row in &kept.0 {
        assert_eq!(row.params.get("limiters"), Some(&json!("process")));
        assert_eq!(row.metrics.get("commits"), Some(&json!(2)));
        // Four million bytes are 977 pages; some are written again, because they were not whole the first time.
        let written = row.metrics.get("nr_written").and_then(Value::as_u64).unwrap();
        assert!((977..=1200).contains(&written), "{row}");
        assert!(row.metrics.get("write_bandwidth_bytes_per_s").is_some(), "{row}");
        // At 50 MB a second, no copy of 4 MB is durable sooner.
        assert!(row.metrics.get("elapsed_ns").and_then(Value::as_u64).unwrap() >= 80_000_000, "{row}");
    }
}

#[test]
fn copies_of_a_server_make_one_line_and_what_is_not_shown_stays_last() {
    let plan = plan(&[]);
    let begun = Instant::now();
    let copy = |subject, sample, seconds| Measured {
        subject,
        limiters: "kernel",
        sample,
        file_bytes: 1_000_000_000,
        times: Times { begun, elapsed: Duration::from_secs(seconds), commits: Vec::new() },
        looks: Vec::new(),
        counted: Vec::new(),
    };
    let (ganesha, knob) = (Subject::Ganesha, Subject::Knob(100));
    let copies = vec![copy(ganesha, 1, 120), copy(knob, 1, 100), copy(knob, 2, 80), copy(ganesha, 2, 130)];
    let mut findings = Findings { says: vec!["Shown.".to_owned(), "Not shown.".to_owned()], ..Findings::default() };
    crate::s4::findings::add_measured(&mut findings, &plan, &Outcome { copies, notes: Vec::new() });
    let table = findings.tables[0].text(afflux_report::terminal::Terminal::PLAIN);
    for words in [
        "nfs-ganesha     -        2    8.01     7.69, 8.33",
        "afflux        100        2   11.25   10.00, 12.50",
        "+40.4 %        +24.6 %",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    assert_eq!((findings.says.len(), findings.says[2].as_str()), (3, "Not shown."));
    assert!(findings.answer.contains("+40.4 % more than nfs-ganesha"), "{}", findings.answer);
    assert!(findings.answer.starts_with("Measured: "), "{}", findings.answer);
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
