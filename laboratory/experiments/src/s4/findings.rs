//! The findings of s4: the tables and charts of its rows, and the course of a copy.
//!
//! Owns: the columns, the mean of each column, the thread's later hold-out, the plots over time.
//! Does not own: the figures (`simulated`, `measured`).
//! Invariants: a mean is over the records of a run.

use afflux_report::{Axis, Fields, Plot, Quantity, Row, Series, Shape};

use super::formula;
use super::measured::Measured;
use super::plan::{OWN, Plan, Threshold};
use super::published;
use super::simulated::Cell;
use crate::experiment::Findings;
use crate::labels::{Cells, Label};
use crate::machine::{rounded, row};
use crate::pick::fits;
use crate::views::{Along, ChartView, Column, Pick, TableView, View, Within};

const NAMES: &[&str] = &["centisecs", "background_bytes", "tuned"];
const RATE: Column = ("MB/s", "rate_mb_per_s", 3);
const COMMIT: Column = ("COMMIT, ms", "commit_wait_ms_mean", 0);

const VIEW: View = View {
    tables: &[
        TableView::of(
            "Copies on this machine",
            &["centisecs", "size_bytes", "link_bits_per_s", "disk_bytes_per_s", "client_window_bytes"],
            &[RATE, COMMIT],
            "Median of the copies. Published is the seed's kernel at that threshold, on its own machine.",
        )
        .only(&[("sample", "")]),
        TableView::of(
            "Copies by threshold, mean of the records",
            NAMES,
            &[RATE, COMMIT, ("first write at MB", "starts_at_mb_first", 0), ("last at MB", "starts_at_mb_last", 0)],
            "300 centisecs: the server begins to write when it has as much dirty as its disk writes in 3 s. 0: without that \
             knob. First and last: dirty bytes when writing began, in the first and the last window of the copies. \
             The formula has nothing chosen to match: a window comes over the link, and the rest of it goes to the disk.",
        )
        .only(&[("records", "")]),
        TableView::of(
            "Hold-out: gain of a threshold in bytes over none",
            &["clients", "background_bytes"],
            &[("gain, %", "gain_percent", 2)],
            "The thread's later machine; its file, windows and memory are not known.",
        ),
        TableView::of(
            "The innocent disk during the copies",
            NAMES,
            &[
                ("MB/s", "beside_mb_per_s", 2),
                ("KiB a write", "beside_kib_a_write", 1),
                ("dirty, MB", "beside_dirty_mb", 2),
            ],
            "A program writes to it at half of its rate. A threshold in time is the first disk's own; a background line in bytes and the \
             tuned knobs are the machine's.",
        ),
        TableView::of("Each record", &["centisecs", "background_bytes", "tuned", "record_bytes"], &[RATE, COMMIT], "")
            .only(&[("record_bytes", "")])
            .detail(),
    ],
    charts: &[ChartView {
        title: "Rate of a copy by threshold",
        rows: &[("records", "")],
        label: "rate",
        quantity: Quantity::DataRate,
        figure: ("rate_mb_per_s", 1e6),
        within: Within::Rows,
        along: Along::Groups(NAMES),
    }],
    text: include_str!("findings.md"),
    facts: &[
        ("gain_300", |rows| gain(rows, &[("variant", RESERVE), ("records", ""), ("centisecs", "300")])),
        ("gain_200", |rows| gain(rows, &[("variant", RESERVE), ("records", ""), ("centisecs", "200")])),
        ("gain_100", |rows| gain(rows, &[("variant", RESERVE), ("records", ""), ("centisecs", "100")])),
        ("printed_300", |rows| printed_gain(rows, &[("variant", RESERVE), ("records", ""), ("centisecs", "300")])),
        ("printed_200", |rows| printed_gain(rows, &[("variant", RESERVE), ("records", ""), ("centisecs", "200")])),
        ("printed_100", |rows| printed_gain(rows, &[("variant", RESERVE), ("records", ""), ("centisecs", "100")])),
        ("formula_100", |rows| gain(rows, &[("variant", FORMULA), ("records", ""), ("centisecs", "100")])),
    ],
    labels: LABELS,
};

/// The kernel of the headline, and the seed's own arithmetic.
const RESERVE: &str = "linux-3.6-kept";
const FORMULA: &str = "the seed's formula";

/// The gain of a column over the same variant's without a threshold.
fn gain(rows: &[Row], pick: Pick) -> Option<String> {
    gain_of(rows, pick, |row| &row.metrics)
}

/// The published gain of that column, by the same records.
fn printed_gain(rows: &[Row], pick: Pick) -> Option<String> {
    gain_of(rows, pick, |row| &row.published)
}

fn gain_of(rows: &[Row], pick: Pick, fields: fn(&Row) -> &Fields) -> Option<String> {
    let is_off = |row: &&Row| fits(row, &[("records", ""), ("centisecs", "0")]) && fits(row, &pick[..1]);
    let rate = |row: Option<&Row>| fields(row?).get("rate_mb_per_s")?.as_f64();
    let off = rate(rows.iter().find(is_off))?;
    let own = rate(rows.iter().find(|row| fits(row, pick)))?;
    Some(format!("{:+.1} %", (own / off - 1.0) * 100.0))
}

/// The origins of the figures.
pub(super) const LABELS: &[Cells] = &[
    Cells::of(
        Label::PutIn,
        "link, disk, windows, records, the law of 3.6",
        &["link_bits_per_s", "disk_bytes_per_s", "client_window_bytes", "records", "record_bytes"],
    ),
    Cells::of(Label::Predicted, "the seed's formula", &["rate_mb_per_s"]).only(&[("variant", FORMULA)]),
    Cells::of(
        Label::Chosen,
        "the kept estimate, one of four variants, which was picked by the gains",
        &["rate_mb_per_s"],
    )
    .only(&[("variant", RESERVE)])
    .beside_published(),
    Cells::of(
        Label::Chosen,
        "the rates without a threshold (by the 900 MB that may be dirty, and so the background line of 90 MB)",
        &["rate_mb_per_s"],
    )
    .only(&[("variant", "linux-3.6|linux-3.6-completions|linux-3.6-completions-kept"), ("centisecs", "0")])
    .beside_published(),
    Cells::of(Label::HoldOut, "gains on the thread's later machines", &["gain_percent"]).beside_published(),
];

/// The threshold that the seed advises.
const SECOND: Threshold = Threshold::Centisecs(100);
const PLOTTED: [&str; 4] = ["linux-3.6", "linux-3.6-kept", "linux-3.6-completions", "linux-3.6-completions-kept"];

pub(super) fn findings(plan: &Plan, cells: &[Cell], measured: &[Measured], rows: &[Row]) -> Findings {
    let means = plan.variants.iter().flat_map(|variant| columns(plan, cells, variant.name));
    let formula = plan.columns.iter().filter_map(|threshold| of_formula(plan, *threshold));
    let all: Vec<Row> = rows.iter().cloned().chain(formula).chain(means).collect();
    let mut findings = VIEW.findings(&all);
    let plots = [measured_plot(measured), dirty_plot(cells), starts_plot(cells)];
    findings.figures.extend(plots.into_iter().flatten().map(Into::into));
    findings
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn of_column<'a>(cells: &'a [Cell], variant: &str, threshold: Threshold) -> Vec<&'a Cell> {
    cells.iter().filter(|cell| cell.variant == variant && cell.threshold == threshold).collect()
}

fn params(plan: &Plan, threshold: Threshold) -> Fields {
    let centisecs = if let Threshold::Centisecs(centisecs) = threshold { Some(centisecs) } else { None };
    Fields::new()
        .with("records", plan.records.len())
        .with("centisecs", centisecs)
        .with("background_bytes", threshold.bytes())
        .with("tuned", threshold == Threshold::Tuned)
}

/// The mean of each column of a variant.
fn columns(plan: &Plan, cells: &[Cell], variant: &str) -> Vec<Row> {
    let of = |threshold: &Threshold| {
        let cells = of_column(cells, variant, *threshold);
        let rates: Vec<f64> = cells.iter().map(|cell| cell.copy.rate_mb_per_s()).collect();
        let waits: Vec<f64> = cells.iter().map(|cell| cell.copy.commit_wait_ms()).collect();
        let starts: Vec<u64> = cells.iter().flat_map(|cell| cell.copy.first_writes_bytes()).collect();
        let mb = |bytes: Option<&u64>| bytes.map(|bytes| *bytes as f64 / 1e6);
        // Nobody published a figure of the engine.
        let published = if variant == OWN { Fields::new() } else { published::mean_rate(plan, *threshold) };
        let metrics = Fields::new()
            .with("rate_mb_per_s", mean(&rates)?)
            .with("commit_wait_ms_mean", mean(&waits)?)
            .with("starts_at_mb_first", mb(starts.first()))
            .with("starts_at_mb_last", mb(starts.last()));
        Some(row("s4", variant, params(plan, *threshold), metrics, published))
    };
    plan.columns.iter().filter_map(of).collect()
}

fn of_formula(plan: &Plan, threshold: Threshold) -> Option<Row> {
    let metrics = Fields::new().with("rate_mb_per_s", formula::mb_per_s(plan, threshold)?);
    Some(row("s4", FORMULA, params(plan, threshold), metrics, published::mean_rate(plan, threshold)))
}

/// The gain of a threshold in bytes on the thread's later machine.
pub(super) fn gain_by_clients(plan: &Plan, cells: &[Cell]) -> Option<Row> {
    let (link, disk, bytes) = published::GAINS_OF;
    let published = published::gain_percent(plan.clients)?;
    if (plan.link.bits_per_second, plan.disk_bytes_per_s) != (link, disk) {
        return None;
    }
    let of = |threshold| {
        let cells = of_column(cells, PLOTTED[0], threshold);
        mean(&cells.iter().map(|cell| cell.copy.rate_mb_per_s()).collect::<Vec<_>>())
    };
    let gain = (of(Threshold::Bytes(bytes))? / of(Threshold::OFF)? - 1.0) * 100.0;
    let params = Fields::new().with("clients", plan.clients).with("background_bytes", bytes);
    let fields = |gain: f64| Fields::new().with("gain_percent", gain);
    Some(row("s4", PLOTTED[0], params, fields(rounded(gain, 2)), fields(published)))
}

fn dirty_over_time(of: &str) -> Plot {
    let (x, y) = (Axis::new("time since the copy began", Quantity::Time), Axis::new("dirty", Quantity::Data));
    Plot::new(format!("Dirty data on the server during one copy, {of}"), x, y)
}

fn title(threshold: Threshold) -> String {
    if threshold == Threshold::OFF { "off".to_owned() } else { format!("{} cs", threshold.centisecs()) }
}

/// The first copy of each server that reports.
fn measured_plot(measured: &[Measured]) -> Option<Plot> {
    let shown: Vec<&Measured> = measured
        .iter()
        .filter(|copy| copy.sample == 1 && matches!(copy.centisecs(), Some(0 | 100)) && !copy.dirty().is_empty())
        .collect();
    let name = |copy: &Measured| title(Threshold::Centisecs(copy.centisecs().unwrap_or_default()));
    let with = |plot: Plot, copy: &&Measured| plot.with(Series::new(name(copy), Shape::Line, copy.dirty()));
    (!shown.is_empty()).then(|| shown.iter().fold(dirty_over_time("measured"), with))
}

fn dirty_plot(cells: &[Cell]) -> Option<Plot> {
    let shown: Vec<&Cell> =
        [Threshold::OFF, SECOND].iter().filter_map(|it| of_column(cells, PLOTTED[0], *it).first().copied()).collect();
    let with = |plot: Plot, cell: &&Cell| {
        let began = cell.copy.looks.first().map_or(0, |look| look.at_ns);
        let looks = cell.copy.looks.iter();
        let points = looks.map(|look| ((look.at_ns - began) as f64 / 1e9, look.dirty_bytes as f64)).collect();
        plot.with(Series::new(title(cell.threshold), Shape::Line, points))
    };
    (!shown.is_empty()).then(|| shown.iter().fold(dirty_over_time(PLOTTED[0]), with))
}

/// Starts of writing over the windows of all copies; `None` for a single window, which makes no line.
fn starts_plot(cells: &[Cell]) -> Option<Plot> {
    let starts = |variant: &str| -> Vec<(f64, f64)> {
        let starts = of_column(cells, variant, SECOND).into_iter().flat_map(|cell| cell.copy.first_writes_bytes());
        starts.enumerate().map(|(at, bytes)| (at as f64 + 1.0, bytes as f64)).collect()
    };
    if starts(PLOTTED[0]).len() < 2 {
        return None;
    }
    let x = Axis::new("window of the client, over all copies of the column", Quantity::Count);
    let y = Axis::new("dirty when the server begins to write", Quantity::Data);
    let plot = Plot::new("Where writing begins at 100 centiseconds", x, y);
    Some(PLOTTED.into_iter().fold(plot, |plot, variant| plot.with(Series::new(variant, Shape::Line, starts(variant)))))
}
