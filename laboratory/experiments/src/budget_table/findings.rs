//! The findings of the table: tables by load, goals, plots and sentences.
//!
//! Owns: their arrangement and wording; fixed paragraphs are in `findings.md`.
//! Does not own: the figures, the goals.
//! Invariants: a sentence that names a figure takes it from the rows.

use afflux_report::{Align, Axis, Bar, Bars, Plot, Quantity, Row, Series, Shape, Table};
use serde_json::Value;

use super::case::{LOADS, Load};
use super::laws::{LAWS, Law};
use crate::experiment::Findings;
use crate::prose::{paragraph, section};

const TEXT: &str = include_str!("findings.md");
const CELLS: &str = section(TEXT, "cells");
const NOT_SHOWN: &str = section(TEXT, "not shown");

/// Loads that have bars.
const PLOTTED: [&str; 3] = ["stream", "100-streams", "random"];

/// Most points in one line of a plot.
const POINTS_MAX: usize = 600;

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

/// The metrics of a load's table, in order, each with a label if there are several.
fn shown(load: Load) -> &'static [&'static str] {
    match load {
        Load::SyncBeside => &["fsync_p50_ms", "fsync_max_ms", "percent_of_raw"],
        Load::Light => &["light_p50_ms", "light_max_ms"],
        Load::Sizes => &["jain_of_bytes", "mb_of_4k", "mb_of_64k", "mb_of_1m"],
        Load::BurstFull | Load::BurstHung => &["times_alone", "alone_s", "beside_s"],
        Load::Rewrite(_) => &["written_per_accepted", "written_per_dirtied", "backlog_s"],
        Load::Nfs(_) => &["percent_of_link", "commit_mean_ms", "commit_max_ms"],
        _ => &["percent_of_raw", "backlog_s", "write_p999_ms", "write_max_ms"],
    }
}

/// A figure with three significant digits.
fn digits(value: f64) -> String {
    match value.abs() {
        large if large >= 99.95 => format!("{value:.0}"),
        middle if middle >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn cell_text(row: &Row, metrics: &[&str]) -> String {
    let drained = row.metrics.get("drained").and_then(Value::as_bool) != Some(false);
    let one = |metric: &&str| {
        let more = if *metric == "backlog_s" && !drained { ">" } else { "" };
        figure(row, metric).map_or_else(|| "-".to_owned(), |value| format!("{more}{}", digits(value)))
    };
    metrics.iter().map(one).collect::<Vec<_>>().join(" / ")
}

pub(super) fn of(cells: &[Cell], goals: &[Row]) -> Findings {
    let tables = vec![goals_table(goals)];
    let mut findings = Findings { answer: answer(cells, goals), tables, ..Findings::default() };
    findings.tables.extend(LOADS.iter().filter_map(|(name, load)| table_of(cells, name, *load)));
    findings.tables.extend(sync_all(cells));
    findings.figures = PLOTTED.into_iter().flat_map(|load| of_load(cells, load)).flatten().map(Into::into).collect();
    findings.figures.extend(plots(cells).into_iter().map(Into::into));
    findings.says = says(cells);
    findings
}

/// The devices of a load, in the order of the run.
fn devices<'a>(cells: &'a [Cell], load: &str) -> Vec<&'a str> {
    let mut devices = Vec::new();
    for cell in cells.iter().filter(|cell| text(&cell.row, "load") == load) {
        let device = text(&cell.row, "device");
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    devices
}

fn laws(cells: &[Cell]) -> Vec<Law> {
    let all = LAWS.iter().map(|(_, law)| *law);
    all.filter(|law| cells.iter().any(|cell| cell.row.variant == law.name())).collect()
}

fn by_law(cells: &[Cell], caption: &str) -> Table {
    let columns = laws(cells).into_iter().map(|law| (law.name(), Align::Right));
    let columns: Vec<(&str, Align)> = std::iter::once(("device", Align::Left)).chain(columns).collect();
    Table::new(caption, &columns)
}

fn table_of(cells: &[Cell], name: &str, load: Load) -> Option<Table> {
    let (devices, metrics) = (devices(cells, name), shown(load));
    let mut table = by_law(cells, &format!("{name}, simulated: {}", metrics.join(" / ")));
    for device in &devices {
        let of_law = |law: Law| {
            let cell = cells.iter().find(|cell| cell.is(law, name, device));
            cell.map_or_else(String::new, |cell| cell_text(&cell.row, metrics))
        };
        table.row(std::iter::once((*device).to_owned()).chain(laws(cells).into_iter().map(of_law)));
    }
    (!devices.is_empty()).then_some(table)
}

/// An fsync of everything after a stream.
fn sync_all(cells: &[Cell]) -> Option<Table> {
    let devices = devices(cells, "stream");
    let mut table = by_law(cells, "fsync of everything after the stream, simulated, seconds");
    for device in &devices {
        let of_law = |law: Law| {
            let cell = cells.iter().find(|cell| cell.is(law, "stream", device));
            cell.map_or_else(String::new, |cell| cell_text(&cell.row, &["sync_all_s"]))
        };
        table.row(std::iter::once((*device).to_owned()).chain(laws(cells).into_iter().map(of_law)));
    }
    (!devices.is_empty()).then_some(table)
}

fn goals_table(goals: &[Row]) -> Table {
    let columns = ["load", "device", "figure", "wanted", "found", "goal"].map(|name| (name, Align::Left));
    let mut table = Table::new("Goals of the flush budget, simulated", &columns).named_by(3);
    for goal in goals {
        let of = |name: &str| goal.metrics.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let found = figure(goal, "found").map_or_else(|| "-".to_owned(), digits);
        let [load, device, metric] = ["load", "device", "metric"].map(|name| text(goal, name).to_owned());
        let met = of("goal");
        let met = if met == "met" { met.into() } else { afflux_report::Cell::flagged(met) };
        let words = [load, device, metric, of("wanted"), found].map(afflux_report::Cell::from);
        table.row(words.into_iter().chain([met]));
    }
    table
}

/// A load's results on each device, by law. Each metric has a plot of its own, since the amounts that caches take in
/// differ by orders of magnitude.
fn of_load(cells: &[Cell], load: &str) -> [Option<Bars>; 2] {
    [
        bars(cells, load, "percent_of_raw", "written, of what the device does by itself", ("share", "%")),
        bars(cells, load, "write_p999_ms", "one write in a thousand takes longer", ("time", "ms")),
    ]
}

fn bars(cells: &[Cell], load: &str, metric: &str, title: &str, axis: (&str, &'static str)) -> Option<Bars> {
    let (laws, devices) = (laws(cells), devices(cells, load));
    let names = laws.iter().map(|law| law.name());
    let mut bars = Bars::new(format!("{load}: {title}"), axis.0, Quantity::Plain(axis.1), names);
    for device in &devices {
        let bar = |law: &Law| {
            let cell = cells.iter().find(|cell| cell.is(*law, load, device));
            cell.and_then(|cell| figure(&cell.row, metric)).map(Bar::new)
        };
        bars = bars.group(*device, laws.iter().map(bar).collect());
    }
    (!devices.is_empty()).then_some(bars)
}

/// The backlog over time, for the cases in which it tells the laws apart.
fn plots(cells: &[Cell]) -> Vec<Plot> {
    let of = |(load, device): (&str, &str)| {
        let axes = (Axis::new("time", Quantity::Time), Axis::new("backlog of the disk", Quantity::Time));
        let plot = Plot::new(format!("What the disk still had to write: {load}, {device}"), axes.0, axes.1)
            .note("Simulated. At each instant: how long the disk then worked until as much was written as was dirty.");
        let lines = laws(cells).into_iter().filter_map(|law| {
            let cell = cells.iter().find(|cell| cell.is(law, load, device))?;
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

/// How many goals are met, and the backlog that a stream leaves under each law.
fn answer(cells: &[Cell], goals: &[Row]) -> String {
    let met = goals.iter().filter(|goal| goal.metrics.get("goal").and_then(Value::as_str) == Some("met")).count();
    let mut answer = match goals.len() {
        0 => "No goal can be told of by this run.".to_owned(),
        all => format!("Of {all} goals of the flush budget {met} are met."),
    };
    // The slowest disk of the run, where it matters most.
    let slow = ["25MB/s", "usb", "hdd"].into_iter().find(|device| devices(cells, "stream").contains(device));
    if let Some(device) = slow {
        let of = |law: &Law| {
            let row = &cells.iter().find(|cell| cell.is(*law, "stream", device))?.row;
            let (owed, rate) = (figure(row, "backlog_s")?, figure(row, "percent_of_raw")?);
            Some(format!("{} {} s at {rate:.0} % of the device's speed", law.name(), digits(owed)))
        };
        let each: Vec<String> = laws(cells).iter().filter_map(of).collect();
        answer.push_str(&format!(
            " What a stream leaves the device {device} to write takes it, at worst: {}.",
            each.join("; ")
        ));
    }
    answer
}

fn says(cells: &[Cell]) -> Vec<String> {
    let mut says = vec![paragraph(CELLS)];
    says.extend(against_linux(cells));
    says.push(paragraph(NOT_SHOWN));
    says
}

/// The cases in which the budget writes less than Linux does.
fn against_linux(cells: &[Cell]) -> Option<String> {
    let losses = cells.iter().filter_map(|cell| {
        let (load, device) = (text(&cell.row, "load"), text(&cell.row, "device"));
        let other = cells.iter().find(|other| other.is(Law::Linux, load, device))?;
        let own = figure(&cell.row, "percent_of_raw").filter(|_| cell.is(Law::Budget, load, device))?;
        let linux = figure(&other.row, "percent_of_raw")?;
        (own < linux - 1.0).then(|| format!("{load} on {device} ({own:.1} % against {linux:.1})"))
    });
    let losses: Vec<String> = losses.collect();
    (!losses.is_empty()).then(|| format!("Less is written than under linux-6.1: {}.", losses.join(", ")))
}
