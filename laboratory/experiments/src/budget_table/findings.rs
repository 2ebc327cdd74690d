//! The findings of the table: the tables and charts of its rows, and the backlog over time.
//!
//! Owns: the columns of each load, the plots. Does not own: the figures, the goals.
//! Invariants: a figure has the same title under all loads.

use afflux_report::{Axis, Plot, Quantity, Row, Series, Shape};
use clap::ValueEnum;
use serde_json::Value;

use super::laws::Law;
use crate::experiment::Findings;
use crate::labels::{Cells, Label};
use crate::options::Named;
use crate::pick::fits;
use crate::views::{Along, ChartView, Check, Column, Pick, TableView, View, Within, add_checks};

/// Most points in one line of a plot.
const POINTS_MAX: usize = 600;

const STREAM: &[Column] = &[
    ("of raw, %", "percent_of_raw", 1),
    ("backlog, s", "backlog_s", 2),
    ("write p99.9, ms", "write_p999_ms", 1),
    ("longest, ms", "write_max_ms", 0),
    ("sync of all, s", "sync_all_s", 2),
    ("drained", "drained", 0),
];
const SYNCS: &[Column] =
    &[("fsync p50, ms", "fsync_p50_ms", 1), ("longest, ms", "fsync_max_ms", 0), ("of raw, %", "percent_of_raw", 1)];
const LIGHT: &[Column] = &[("light p50, ms", "light_p50_ms", 2), ("longest, ms", "light_max_ms", 1)];
const SIZES: &[Column] = &[
    ("Jain's index", "jain_of_bytes", 4),
    ("4 KiB, MB", "mb_of_4k", 0),
    ("64 KiB, MB", "mb_of_64k", 0),
    ("1 MiB, MB", "mb_of_1m", 0),
];
const BURST: &[Column] = &[("times alone", "times_alone", 2), ("alone, s", "alone_s", 2), ("beside, s", "beside_s", 2)];
const REWRITE: &[Column] = &[
    ("written per accepted", "written_per_accepted", 3),
    ("written per dirtied", "written_per_dirtied", 3),
    ("backlog, s", "backlog_s", 2),
];
const fn load(caption: &'static str, rows: Pick, columns: &'static [Column]) -> TableView {
    TableView::of(caption, &["device", "seconds", "memory_bytes", "seed"], columns, "").only(rows)
}

const fn bars(title: &'static str, rows: Pick, label: &'static str, figure: &'static str) -> ChartView {
    let (quantity, along) = (Quantity::Plain(label), Along::Groups(&["device"]));
    ChartView { title, rows, label: "of a law", quantity, figure: (figure, 1.0), within: Within::Rows, along }
}

const VIEW: View = View {
    tables: &[
        load("stream", &[("load", "stream")], STREAM),
        load("4 streams", &[("load", "4-streams")], STREAM),
        load("100 streams", &[("load", "100-streams")], STREAM),
        load("random writes", &[("load", "random")], STREAM),
        load("stream and random writes", &[("load", "stream-and-random")], STREAM),
        load("fsync of 4 KiB beside a stream", &[("load", "fsync-beside")], SYNCS),
        load("light writer beside a stream", &[("load", "light-beside")], LIGHT),
        load("writes of three sizes", &[("load", "three-sizes")], SIZES),
        load("burst beside a full disk", &[("load", "burst-beside-full")], BURST),
        load("burst beside a hung disk", &[("load", "burst-beside-hung")], BURST),
        load("rewritten within 0.8 s", &[("load", "rewrite-0.8s")], REWRITE),
        load("rewritten within 8 s", &[("load", "rewrite-8s")], REWRITE),
    ],
    charts: &[
        bars("stream: written, of the device's own rate", &[("load", "stream")], "%", "percent_of_raw"),
        bars("stream: one write in a thousand takes longer", &[("load", "stream")], "ms", "write_p999_ms"),
        bars("100 streams: written, of the device's own rate", &[("load", "100-streams")], "%", "percent_of_raw"),
        bars("100 streams: one write in a thousand takes longer", &[("load", "100-streams")], "ms", "write_p999_ms"),
        bars("random: written, of the device's own rate", &[("load", "random")], "%", "percent_of_raw"),
        bars("random: one write in a thousand takes longer", &[("load", "random")], "ms", "write_p999_ms"),
    ],
    text: include_str!("findings.md"),
    facts: &[
        ("missed", |rows| missed(rows).map(|missed| missed.len().to_string())),
        ("goals", |rows| goals(rows).map(|goals| goals.len().to_string())),
        ("missed_which", |rows| missed(rows).filter(|missed| !missed.is_empty()).map(|missed| missed.join(", "))),
    ],
    labels: LABELS,
};

fn goals(rows: &[Row]) -> Option<Vec<&Row>> {
    let goals: Vec<&Row> = rows.iter().filter(|row| fits(row, &[("goal", "")])).collect();
    (!goals.is_empty()).then_some(goals)
}

/// The loads and devices of the goals that are missed, each once.
fn missed(rows: &[Row]) -> Option<Vec<String>> {
    let is_missed = |row: &&Row| fits(row, &[("goal", "missed")]);
    let mut names: Vec<String> = Vec::new();
    for row in goals(rows)?.into_iter().filter(is_missed) {
        let name = format!("{} on {}", text(row, "load"), text(row, "device"));
        names.extend((!names.contains(&name)).then_some(name));
    }
    Some(names)
}

/// The origins of the figures.
pub(super) const LABELS: &[Cells] =
    &[Cells::of(Label::PutIn, "devices, loads, the laws' knobs", &["load", "device", "seconds", "memory_bytes"])];

/// A cell that was run.
pub(super) struct Cell {
    pub(super) row: Row,
    /// Instants and backlogs, in nanoseconds.
    pub(super) backlogs_ns: Vec<(u64, u64)>,
}

impl Cell {
    pub(super) fn is(&self, law: Law, load: &str, device: &str) -> bool {
        self.row.variant == law.name() && text(&self.row, "load") == load && text(&self.row, "device") == device
    }
}

/// A parameter in words.
pub(super) fn text<'a>(row: &'a Row, name: &str) -> &'a str {
    row.params.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A figure of a row.
pub(super) fn figure(row: &Row, name: &str) -> Option<f64> {
    row.metrics.get(name).and_then(Value::as_f64)
}

pub(super) fn of(cells: &[Cell], goals: &[Row]) -> Findings {
    let rows: Vec<Row> = cells.iter().map(|cell| &cell.row).chain(goals).cloned().collect();
    let mut findings = VIEW.findings(&rows);
    let check = |goal: &Row| {
        let of = |name: &str| goal.metrics.get(name).and_then(Value::as_str).unwrap_or_default();
        let [load, device, metric] = ["load", "device", "metric"].map(|name| text(goal, name));
        let found = figure(goal, "found").map_or_else(|| "-".to_owned(), |found| found.to_string());
        Check { what: format!("{load} on {device}: {metric} {}", of("wanted")), found, met: of("goal") == "met" }
    };
    add_checks(&mut findings, "Goals of the flush budget, simulated", &goals.iter().map(check).collect::<Vec<_>>());
    findings.figures.extend(plots(cells).into_iter().map(Into::into));
    findings
}

/// The backlog over time, for the cases in which it tells the laws apart.
fn plots(cells: &[Cell]) -> Vec<Plot> {
    let of = |(load, device): (&str, &str)| {
        let axes = (Axis::new("time", Quantity::Time), Axis::new("backlog of the disk", Quantity::Time));
        let plot = Plot::new(format!("Bytes that the disk still had to write: {load}, {device}"), axes.0, axes.1)
            .note("Simulated. At each instant: how long the disk then worked until as much was written as was dirty.");
        let lines = Law::value_variants().iter().filter_map(|law| {
            let cell = cells.iter().find(|cell| cell.is(*law, load, device))?;
            let every = cell.backlogs_ns.len().div_ceil(POINTS_MAX).max(1);
            let points = cell.backlogs_ns.iter().step_by(every);
            let points = points.map(|(at, ns)| (*at as f64 / 1e9, *ns as f64 / 1e9)).collect();
            Some(Series::new(law.name(), Shape::Line, points))
        });
        let lines: Vec<Series> = lines.collect();
        (!lines.is_empty()).then(|| lines.into_iter().fold(plot, Plot::with))
    };
    [("stream", "25MB/s"), ("100-streams", "hdd"), ("stream", "smr")].into_iter().filter_map(of).collect()
}
