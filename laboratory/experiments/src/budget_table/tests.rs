#![allow(clippy::unwrap_used, reason = "tests")]

use super::findings::{figure, text};
use super::*;
use crate::experiment::tests::{Reported, asked, given};

fn run(pairs: &[(&str, &str)]) -> (Reported, Findings) {
    let request = Request { quick: true, ..given(&BUDGET_TABLE, pairs) };
    let mut kept = Reported::default();
    let findings = BUDGET_TABLE.run(&request, &mut kept).unwrap();
    (kept, findings)
}

fn of(kept: &Reported, law: &str, metric: &str) -> f64 {
    let row = kept.rows.iter().find(|row| row.experiment == "budget" && row.variant == law).unwrap();
    figure(row, metric).unwrap()
}

#[test]
fn a_quick_run_has_two_laws_and_the_first_device_of_each_load() {
    let cases = |pairs: &[(&str, &str)]| {
        Plan::read(&Request { quick: true, ..given(&BUDGET_TABLE, pairs) }).unwrap().cases.len()
    };
    assert_eq!((cases(&[("loads", "stream")]), cases(&[("loads", "stream"), ("devices", "each")])), (2, 2 * 8));
    assert_eq!(cases(&[("loads", "stream"), ("laws", "budget")]), 1);
}

#[test]
fn a_stream_has_a_row_a_law_and_limits_are_what_they_say() {
    let laws = ("laws", "budget,linux-6.1,zfs-like,hard");
    let (kept, findings) =
        run(&[("loads", "stream"), laws, ("devices", "25MB/s"), ("seconds", "12"), ("memory", "512MiB")]);
    let laws: Vec<&str> =
        kept.rows.iter().filter(|row| row.experiment == "budget").map(|row| row.variant.as_str()).collect();
    assert_eq!(laws, ["budget", "linux-6.1", "zfs-like", "hard"]);
    for law in laws {
        let percent = of(&kept, law, "percent_of_raw");
        assert!((90.0..=101.0).contains(&percent), "{law}: {percent}");
    }
    // 64 MiB are 2.7 s of such a disk; a fifth of the memory is 4.3 s.
    let [hard, linux] = ["hard", "linux-6.1"].map(|law| of(&kept, law, "backlog_s"));
    assert!((2.3..=3.0).contains(&hard), "{hard}");
    assert!((3.0..=5.0).contains(&linux), "{linux}");
    assert!((2.3..=3.0).contains(&of(&kept, "hard", "sync_all_s")));
    assert!(kept.rows.iter().any(|row| row.experiment == "budget-goals" && text(row, "metric") == "write_p999_ms"));
    assert!(kept.done.is_sorted() && kept.done.last() == Some(&1.0));
    assert_eq!((findings.tables.len(), findings.figures.len(), findings.says.len()), (2, 3, 2));
    assert!(findings.answer.starts_with("Goals of the flush budget"), "{}", findings.answer);
}

#[test]
fn a_hung_neighbour_stops_whoever_shares_its_limit() {
    let (kept, _) = run(&[("loads", "burst-beside-hung"), ("laws", "budget,hard"), ("memory", "512MiB")]);
    assert!((0.9..=1.5).contains(&of(&kept, "budget", "times_alone")), "{}", of(&kept, "budget", "times_alone"));
    let hard = kept.rows.iter().find(|row| row.variant == "hard").unwrap();
    assert!(hard.metrics.get("beside_s").unwrap().is_null(), "{hard}");
}

#[test]
fn what_is_not_known_is_refused_with_what_is() {
    for (option, value, wanted) in
        [("laws", "bsd", "zfs-like"), ("loads", "noise", "three-sizes"), ("devices", "tape", "usb")]
    {
        let error = asked(&BUDGET_TABLE, &[(option, value)]).unwrap_err().to_string();
        assert!(error.contains(value) && error.contains(wanted), "{error}");
    }
}
