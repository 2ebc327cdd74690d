//! The case `jobs`: the same job files, simulated and by the real engine.
//!
//! Owns: rows, columns, goals and plots of this case.
//! Does not own: the two sides, the comparison.
//! Invariants: a simulated row needs no hardware; a deviation needs both sides.

use afflux_report::{Axis, Fields, FigureSource, Plot, Quantity, Row, Series, Shape};
use serde_json::Value;

use super::compare::{DIRTY_GOAL, SYNC_GOAL, Side, THROUGHPUT_GOAL, deviation, dirty_deviation};
use super::plan::{Group, LABELS, Plan, Rate, plan};
use super::{real, simulated};
use crate::experiment::{Findings, LabError, Request, StoredRows, Watch};
use crate::hardware::{DiskRates, SlowDisk};
use crate::machine;
use crate::pick;
use crate::views::{Check, TableView, View, add_checks};

/// Bytes of the slow disk's image.
const IMAGE_BYTES: u64 = 2 << 30;
const IMAGE_BYTES_QUICK: u64 = 1 << 30;

const NAMES: &[&str] = &["rate_bytes_per_s", "memory_bytes", "seed"];

const VIEW: View = View {
    tables: &[
        TableView::of(
            "Jobs",
            NAMES,
            &[
                ("MB/s", "throughput_mb_per_s", 2),
                ("syncs", "syncs", 0),
                ("sync mean, ms", "sync_mean_ms", 1),
                ("p50, ms", "sync_p50_ms", 1),
                ("p99, ms", "sync_p99_ms", 1),
                ("max, ms", "sync_max_ms", 1),
            ],
            "MB/s: bytes that the job moved, over the time until its last sync ended.",
        ),
        TableView::of(
            "How far the simulated side is from it, %",
            NAMES,
            &[
                ("MB/s", "throughput_deviation_percent", 1),
                ("sync mean", "sync_mean_deviation_percent", 1),
                ("p50", "sync_p50_deviation_percent", 1),
                ("p99", "sync_p99_deviation_percent", 1),
                ("max", "sync_max_deviation_percent", 1),
                ("dirty, mean", "dirty_deviation_mean_percent_of_limit", 1),
                ("dirty, p95", "dirty_deviation_p95_percent_of_limit", 1),
            ],
            "Dirty: how far apart the dirty bytes are over time, in shares of the limit.",
        ),
    ],
    charts: &[],
    text: include_str!("jobs.md"),
    facts: &[],
    labels: LABELS,
};

/// Figures whose distance is reported, and the unit that ends their name.
const COMPARED: [(&str, &str); 5] =
    [("throughput", "mb_per_s"), ("sync_mean", "ms"), ("sync_p50", "ms"), ("sync_p99", "ms"), ("sync_max", "ms")];

/// Figures with a goal: the largest distance, in percent.
const GOALS: [(&str, f64); 4] = [
    ("throughput_deviation_percent", THROUGHPUT_GOAL),
    ("sync_mean_deviation_percent", SYNC_GOAL),
    ("dirty_deviation_mean_percent_of_limit", DIRTY_GOAL),
    ("dirty_deviation_p95_percent_of_limit", DIRTY_GOAL),
];

pub(super) fn run(request: &Request, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let plan = plan(request)?;
    let image_bytes = if request.quick { IMAGE_BYTES_QUICK } else { IMAGE_BYTES };
    let disk = request.measured.then(|| SlowDisk::new(&plan.directory, image_bytes, DiskRates::default()));
    let disk = disk.transpose().map_err(LabError::failed)?;
    let mut plots = Vec::new();
    let total = (plan.rates.len() * plan.groups.len()) as f64;
    for rate in &plan.rates {
        for group in &plan.groups {
            let (what, done) = (format!("{} at {}/s", group.name, rate.text), plots.len() as f64);
            watch.step(&format!("{what}, simulated"), done / total);
            let latency_ns = disk.as_ref().map(real::latency_ns).transpose()?;
            let simulated = simulated::run(group, rate, plan.memory_bytes, latency_ns)?;
            let mut simulated_row = row(group, rate, &plan, &simulated, FigureSource::Simulated, None);
            if let Some(latency_ns) = latency_ns {
                simulated_row.params.push("latency_us", latency_ns as f64 / 1e3);
            }
            watch.row(&simulated_row);
            let mut measured = None;
            if let Some(disk) = &disk {
                watch.step(&format!("{what}, measured"), (done + 0.1) / total);
                let side = real::run(group, rate, plan.memory_bytes, disk)?;
                watch.row(&row(group, rate, &plan, &side, FigureSource::Measured, Some(&simulated)));
                measured = Some(side);
            }
            plots.push(plot(&what, &simulated, measured.as_ref()));
        }
    }
    let mut findings = VIEW.findings(&watch.rows);
    add_checks(&mut findings, "The simulated disk beside the real one", &checks(&watch.rows));
    findings.answer = answer(&watch.rows);
    findings.figures.extend(plots.into_iter().map(Into::into));
    Ok(findings)
}

/// The figures of this name, each with the name of its job.
fn figures<'a>(rows: &'a [Row], name: &str) -> Vec<(&'a str, f64)> {
    let of = |row: &'a Row| Some((row.variant.as_str(), row.metrics.get(name).and_then(Value::as_f64)?));
    rows.iter().filter_map(of).collect()
}

fn checks(rows: &[Row]) -> Vec<Check> {
    let of = |(name, goal): (&str, f64)| {
        let check = |(job, percent): (&str, f64)| Check {
            what: format!("{job}: {name} at most {:.0}", 100.0 * goal),
            found: format!("{percent:+.1}"),
            met: percent.abs() <= 100.0 * goal,
        };
        figures(rows, name).into_iter().map(check).collect::<Vec<_>>()
    };
    GOALS.into_iter().flat_map(of).collect()
}

/// The largest distances of the two sides. If nothing was measured, the simulated jobs.
fn answer(rows: &[Row]) -> String {
    let [throughput, sync] = [GOALS[0].0, GOALS[1].0].map(|name| figures(rows, name));
    if throughput.is_empty() {
        let jobs = rows.iter().zip(figures(rows, "throughput_mb_per_s"));
        let told =
            |(row, (job, rate)): (&Row, (&str, f64))| format!("{job} at {} {rate:.1} MB/s", pick::shown(row, NAMES[0]));
        let jobs: Vec<String> = jobs.map(told).collect();
        return format!(
            "Nothing was measured, so nothing is compared: that takes --measured. Simulated: {}.",
            jobs.join(", ")
        );
    }
    let largest = |found: &[(&str, f64)]| found.iter().map(|(_, percent)| percent.abs()).fold(0.0, f64::max);
    format!(
        "Over {} runs of the same jobs the simulator's throughput is within {:.1} % of the real disk's, and its mean \
         sync within {:.1} %.",
        throughput.len(),
        largest(&throughput),
        largest(&sync)
    )
}

fn row(group: &Group, rate: &Rate, plan: &Plan, side: &Side, source: FigureSource, other: Option<&Side>) -> Row {
    let mut metrics = side.figures();
    metrics.push("dirty_bytes_max", side.looks.iter().map(|look| look.dirty_bytes).max().unwrap_or(0));
    metrics.push("dirty_limit_bytes", side.limit_bytes);
    metrics.push("dirty_mib_by_second", side.dirty_mib_by_second());
    metrics.push("delays", side.delays.clone());
    if let Some(simulated) = other {
        let (ours, theirs) = (simulated.figures(), side.figures());
        let of = |figures: &Fields, name: &str| figures.get(name).and_then(Value::as_f64).unwrap_or_default();
        for (name, unit) in COMPARED {
            let figure = format!("{name}_{unit}");
            let apart = deviation(of(&ours, &figure), of(&theirs, &figure));
            metrics.push(format!("{name}_deviation_percent"), 100.0 * apart);
        }
        let (mean, most) = dirty_deviation(simulated, side);
        metrics.push("dirty_deviation_mean_percent_of_limit", 100.0 * mean);
        metrics.push("dirty_deviation_p95_percent_of_limit", 100.0 * most);
    }
    let params = Fields::new()
        .with("rate_bytes_per_s", rate.bytes_per_s)
        .with("memory_bytes", plan.memory_bytes)
        .with("seed", simulated::SEED);
    Row { source, ..machine::row("throttled", &group.name, params, metrics, Fields::new()) }
}

fn plot(what: &str, simulated: &Side, measured: Option<&Side>) -> Plot {
    let dirty = |side: &Side| side.looks.iter().map(|look| (look.at_s, look.dirty_bytes as f64)).collect();
    let end_s = simulated.looks.iter().chain(measured.iter().flat_map(|side| &side.looks));
    let end_s = end_s.map(|look| look.at_s).fold(0.0, f64::max);
    let limit = simulated.limit_bytes as f64;
    let axes = (Axis::new("time", Quantity::Time), Axis::new("dirty", Quantity::Memory));
    let plot = Plot::new(format!("Dirty bytes: {what}"), axes.0, axes.1);
    let sides = [("simulated", Some(simulated)), ("measured", measured)].into_iter();
    let sides = sides.filter_map(|(name, side)| Some(Series::new(name, Shape::Line, dirty(side?))));
    sides.fold(plot, Plot::with).with(Series::new("limit", Shape::Reference, vec![(0.0, limit), (end_s, limit)]))
}

#[cfg(test)]
mod tests;
