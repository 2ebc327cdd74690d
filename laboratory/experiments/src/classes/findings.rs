//! The tables and charts of the four loads.
//!
//! Owns: the columns, a run beside the buffered one of its repeat.
//! Does not own: the figures (`load`), the published ones (`published`).
//! Invariants: figures side by side are from the same medium and the same repeats.

use afflux_report::{Quantity, Row};

use super::plan::Plan;
use super::published::{self, Form};
use crate::experiment::Findings;
use crate::host::busy;
use crate::labels::{Cells, Label};
use crate::machine::rounded;
use crate::views::{Along, ChartView, Pick, TableView, View, Within};

const NAMES: &[&str] = &["place", "load", "size_bytes", "block_bytes", "memory_bytes", "kernel"];

const fn bars(title: &'static str, rows: Pick) -> ChartView {
    let (figure, along) = (("mb_per_s", 1e6), Along::Groups(&["place"]));
    ChartView { title, rows, label: "written", quantity: Quantity::DataRate, figure, within: Within::Rows, along }
}

const VIEW: View = View {
    tables: &[
        TableView::of(
            "Written until durable",
            NAMES,
            &[
                ("MB/s", "mb_per_s", 0),
                ("to buffered, %", "to_buffered_percent", 0),
                ("accepted, MB/s", "accepted_mb_per_s", 0),
                ("p50, ms", "write_p50_ms", 3),
                ("p99.9, ms", "write_p999_ms", 2),
                ("longest, ms", "write_max_ms", 1),
                ("dirty at most, MB", "dirty_mb_max", 0),
            ],
            "Medians of the repeats, least to most.",
        ),
        TableView::of(
            "Two writers of different classes",
            NAMES,
            &[
                ("first, MB/s", "first_accepted_mb_per_s", 0),
                ("second, MB/s", "second_accepted_mb_per_s", 0),
                ("first p99.9, ms", "first_write_p999_ms", 2),
                ("second p99.9, ms", "second_write_p999_ms", 2),
            ],
            "",
        ),
    ],
    charts: &[
        bars("One writer until durable", &[("load", "one")]),
        bars("Four writers until durable", &[("load", "four")]),
        bars("32 files until durable", &[("load", "files")]),
    ],
    text: include_str!("findings.md"),
    facts: &[],
    labels: LABELS,
};

/// The origins of the figures.
pub(super) const LABELS: &[Cells] = &[Cells::of(Label::PutIn, "the loads", &["load", "size_bytes", "block_bytes"])];

pub(super) fn findings(plan: &Plan, mut rows: Vec<Row>, load: Option<(f64, usize)>) -> Findings {
    let rate = |row: &Row| row.metrics.get("mb_per_s").and_then(serde_json::Value::as_f64);
    let buffered: Vec<Row> = rows.iter().filter(|row| row.variant == "buffered").cloned().collect();
    for row in &mut rows {
        let base = buffered.iter().find(|base| base.params == row.params).and_then(rate);
        let share = rate(row).zip(base).map(|(own, base)| rounded(100.0 * own / base.max(1e-9), 1));
        row.metrics.push("to_buffered_percent", share);
    }
    let mut findings = VIEW.findings(&rows);
    findings.tables.push(published::table());
    findings.says.extend(Form::of(&plan.release).map(|form| form.about().to_owned()));
    findings.says.extend(busy(load));
    findings
}
