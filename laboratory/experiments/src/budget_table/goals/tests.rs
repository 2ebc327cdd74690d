#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

fn cell(law: &str, load: &str, device: &str, metrics: Fields) -> Cell {
    let params = Fields::new().with("load", load).with("device", device);
    Cell { row: row("budget", law, params, metrics, Fields::new()), backlogs_ns: Vec::new() }
}

fn found(rows: &[Row], metric: &str) -> String {
    let of = rows.iter().find(|row| text(row, "metric") == metric).unwrap();
    of.metrics.get("goal").unwrap().as_str().unwrap().to_owned()
}

#[test]
fn a_goal_is_met_or_missed_by_the_budget_s_own_row() {
    let hundred = |law, percent: f64| {
        let metrics = Fields::new().with("percent_of_raw", percent).with("backlog_s", 4.0).with("limit_s", 3.0);
        cell(law, "100-streams", "hdd", metrics)
    };
    let rows_of = |percent| rows(&[hundred("linux-6.1", 99.0), hundred("budget", percent)]);
    assert_eq!(found(&rows_of(90.0), "percent_of_raw"), "met");
    assert_eq!(found(&rows_of(89.9), "percent_of_raw"), "missed");
    // 3 s and an eighth, and 100 allowances of 11.5 ms.
    assert_eq!(found(&rows_of(90.0), "backlog_s"), "met");
    assert!(rows(&[hundred("linux-6.1", 1.0)]).is_empty(), "nothing is asked of others");
}

#[test]
fn a_burst_that_was_given_up_misses() {
    let metrics = Fields::new().with("times_alone", serde_json::Value::Null);
    let rows = rows(&[cell("budget", "burst-beside-hung", "ssd", metrics)]);
    assert_eq!(found(&rows, "times_alone"), "missed");
}
