#![allow(clippy::unwrap_used, reason = "tests")]

use afflux_report::terminal::Terminal;
use afflux_report::{Fields, FigureSource};

use super::*;

fn row(race: &str, repeat: u64, variant: &str, metrics: &[(&str, f64)]) -> Row {
    let of = |fields: Fields, (name, value): &(&str, f64)| fields.with(*name, *value);
    Row {
        experiment: "writeback-real".to_owned(),
        variant: variant.to_owned(),
        params: Fields::new().with("race", race).with("repeat", repeat),
        metrics: metrics.iter().fold(Fields::new(), of),
        published: Fields::new(),
        source: FigureSource::Measured,
    }
}

#[test]
fn goals_are_judged_by_the_median_and_for_the_engine_alone() {
    let repeat = |(at, (own, kernel)): (usize, (f64, f64))| {
        let of =
            |variant, sync, late| row("full-speed", at as u64, variant, &[("sync_s", sync), ("write_p999_ms", late)]);
        [of("kernel", kernel, 20.0), of("afflux", own, 7.0)]
    };
    let rows = [(1.1, 154.0), (1.3, 150.0), (1.15, 160.0)].into_iter().enumerate().flat_map(repeat).collect();
    let findings = findings(rows, &[], Vec::new(), None);
    assert_eq!(findings.answer, "Goals of the engine: 1 of 2 are met.");
    let [goals, race] = [0, 1].map(|at| findings.tables[at].text(Terminal::PLAIN));
    assert!(goals.contains("sync_s at most 1.2") && goals.contains("1.150") && goals.contains("missed*"), "{goals}");
    assert!(race.contains("154.00 (150.00 to 160.00)") && race.contains("1.15 (1.10 to 1.30)"), "{race}");
    assert_eq!(findings.tables.len(), 2, "what was not raced has no table");
}

#[test]
fn a_share_is_of_the_run_in_the_same_repeat() {
    let repeat = |(at, (raw, own)): (usize, (f64, f64))| {
        let of = |variant, rate| row("direct", at as u64, variant, &[("mb_per_s", rate)]);
        [of("O_DIRECT", raw), of("afflux", own)]
    };
    let rows = [(1000.0, 990.0), (4000.0, 3800.0)].into_iter().enumerate().flat_map(repeat).collect();
    let text = findings(rows, &[], Vec::new(), None).tables[1].text(Terminal::PLAIN);
    assert!(text.contains("97.0 (95.0 to 99.0)"), "{text}");
}
