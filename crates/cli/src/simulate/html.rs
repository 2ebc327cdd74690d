//! A run as a page with plots, or several with plots in the same axes.
//!
//! Owns: which plots there are, what each shows and says.
//! Does not own: drawing and the document (`report`); the tables, which are those of `text`.
//! Invariants: all plots over time share their axis, so that they can be read from top to bottom.

#[cfg(test)]
mod tests;

use std::time::Duration;

use report::{Axis, Page, Plot, Quantity, Series, Shape};
use workloads::simulation::{DeviceOutcome, DeviceSample, Outcome as Figures};

use super::curves::{self, Curve, seconds};
use super::{Run, comparison, text};
use crate::units;

/// How far the axis of throughput goes beyond what the disk did.
const TIMES_THE_DISK: f64 = 2.5;

/// One run at length, or several side by side.
pub(super) fn page(runs: &[Run]) -> String {
    match runs {
        [run] => page_of_one(run),
        _ => page_of_several(runs),
    }
}

const UNITS: &str =
    "Times are virtual, data and rates decimal (MB = 1,000,000 bytes), memory binary (MiB = 1,048,576 bytes).";

fn page_of_one(run: &Run) -> String {
    let figures = &run.figures;
    let mut page = Page::new(format!("{} on {}", run.jobs, text::disks(figures)), "simulated");
    page.paragraph(&format!("{}.", text::headline(run)));
    page.paragraph(UNITS);
    let mut facts = text::facts(figures);
    facts.push(("seed".to_owned(), figures.seed.to_string()));
    facts.push(("trace".to_owned(), format!("{:016x}", figures.trace_hash)));
    page.facts(facts);
    page.section("Jobs");
    page.table(&text::jobs(figures));
    wrongs(&mut page, figures);
    page.table(&text::latencies(figures));
    if let Some(plot) = latencies(figures, "") {
        page.figure(plot);
    }
    page.section("Disks");
    page.table(&text::devices(figures));
    for device in &figures.devices {
        page.section(&format!("{} over time", text::title(device)));
        for plot in plots(device, &Shared::of(std::slice::from_ref(run)), "") {
            page.figure(plot);
        }
    }
    page.html(&format!("afflux simulate on {}; {}", text::machine(run), text::identity(figures)))
}

/// Small multiples: of each quantity a plot for each policy, one below the other, on the same axes.
fn page_of_several(runs: &[Run]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let mut page = Page::new(format!("{} on {}", first.jobs, text::disks(&first.figures)), "simulated");
    page.paragraph(&format!("{}.", comparison::headline(runs)));
    page.paragraph(&format!("{UNITS} Plots of the same quantity have the same axes."));
    page.table(&comparison::table(runs));
    comparison::callers(runs).lines().for_each(|line| page.paragraph(line));
    for run in runs {
        let had = text::errors(&run.figures.jobs) + &text::ending(&run.figures);
        if !had.is_empty() {
            page.section(&format!("{}: what went wrong", run.policy));
            wrongs(&mut page, &run.figures);
        }
    }
    page.section("Latency");
    for run in runs {
        if let Some(plot) = latencies(&run.figures, &run.policy) {
            page.figure(plot);
        }
    }
    let shared = Shared::of(runs);
    for (at, device) in first.figures.devices.iter().enumerate() {
        page.section(&format!("{} over time", text::title(device)));
        let mut each: Vec<_> = runs
            .iter()
            .filter_map(|run| Some(plots(run.figures.devices.get(at)?, &shared, &run.policy).into_iter()))
            .collect();
        loop {
            let row: Vec<Plot> = each.iter_mut().filter_map(Iterator::next).collect();
            if row.is_empty() {
                break;
            }
            row.into_iter().for_each(|plot| page.figure(plot));
        }
    }
    page.html(&format!("afflux simulate on {}; {}", text::hardware(&first.figures), comparison::identity(runs)))
}

/// What failed and what was lost, a paragraph a line.
fn wrongs(page: &mut Page, figures: &Figures) {
    let errors = text::errors(&figures.jobs);
    let ending = text::ending(figures);
    errors.lines().skip(1).chain(ending.lines()).for_each(|line| page.paragraph(line.trim()));
}

/// What all plots over time of a page have in common, so that they can be laid beside each other.
struct Shared {
    end_s: f64,
    /// Most dirty memory, or its limit where that is higher, in bytes.
    memory: f64,
    /// Deepest queue.
    depth: f64,
    /// Most that a disk moved a second, and that writers had accepted.
    disk: f64,
    accepted: f64,
}

impl Shared {
    fn of(runs: &[Run]) -> Self {
        let devices = || runs.iter().flat_map(|run| &run.figures.devices);
        let most =
            |of: &dyn Fn(&DeviceOutcome) -> Curve| devices().map(|it| curves::largest(&of(it))).fold(0.0, f64::max);
        let moved = |of: fn(&DeviceSample) -> u64| most(&|device| curves::rate(device, of));
        let level = |of: fn(&DeviceSample) -> u64| most(&|device| curves::level(device, of));
        Self {
            end_s: runs.iter().map(|run| seconds(run.figures.virtual_ns)).fold(0.0, f64::max),
            memory: level(|sample| sample.dirty_limit_bytes.max(sample.dirty_bytes).max(sample.writeback_bytes)),
            depth: level(|sample| sample.queue_depth.into()),
            disk: moved(|sample| sample.moved_bytes.1).max(moved(|sample| sample.moved_bytes.0)),
            accepted: moved(|sample| sample.accepted_bytes),
        }
    }

    fn time(&self) -> Axis {
        Axis::new("Virtual time", Quantity::Time).range(0.0, self.end_s)
    }

    /// An axis from zero to what all plots need.
    fn axis(&self, label: &str, quantity: Quantity, top: f64) -> Axis {
        let axis = Axis::new(label, quantity);
        if top > 0.0 { axis.range(0.0, top) } else { axis }
    }
}

/// A plot's title, with whose it is where there are several.
fn titled(title: &str, policy: &str) -> String {
    if policy.is_empty() { title.to_owned() } else { format!("{title}: {policy}") }
}

/// How slow the slowest are: one in ten, in a hundred, ...
fn latencies(figures: &Figures, policy: &str) -> Option<Plot> {
    let x = Axis::new("One call in so many takes longer", Quantity::Count).log();
    let y = Axis::new("Latency", Quantity::Time).log();
    let mut plot = Plot::new(titled("Latency of the slowest calls", policy), x, y).note("Farther right: rarer.");
    let mut any = false;
    for job in &figures.jobs {
        for (call, operation) in text::calls(job) {
            let percentiles = &operation.latency.percentiles_ns;
            let points = percentiles.iter().filter(|(percentile, _)| *percentile >= 50.0 && *percentile < 100.0);
            let points: Vec<_> = points.map(|&(percentile, ns)| (100.0 / (100.0 - percentile), seconds(ns))).collect();
            any |= points.len() > 1;
            plot = plot.with(Series::new(format!("{} {call}", job.name), Shape::Line, points));
        }
    }
    any.then_some(plot)
}

fn plots(device: &DeviceOutcome, shared: &Shared, policy: &str) -> Vec<Plot> {
    let title = |title| titled(title, policy);
    let mut plots = vec![throughput(device, shared, policy)];

    let memory = shared.axis("Memory", Quantity::Memory, shared.memory);
    let dirty = Plot::new(title("Dirty memory"), shared.time(), memory)
        .note("What a power loss would take, and where writers are paused.")
        .with(Series::new("limit", Shape::Reference, curves::level(device, |sample| sample.dirty_limit_bytes)))
        .with(Series::new("dirty", Shape::Line, curves::level(device, |sample| sample.dirty_bytes)))
        .with(Series::new("under writeback", Shape::Line, curves::level(device, |sample| sample.writeback_bytes)));
    plots.push(dirty);

    let queue = curves::level(device, |sample| sample.queue_depth.into());
    let depth = shared.axis("Requests in flight", Quantity::Count, shared.depth);
    plots.push(Plot::new(title("Queue depth"), shared.time(), depth).with(Series::new(
        "requests",
        Shape::Steps,
        queue,
    )));

    if !device.offsets.is_empty() {
        let of = |write: bool| {
            let points = device.offsets.iter().filter(|point| point.write == write);
            points.map(|point| (seconds(point.at_ns), point.offset as f64)).collect::<Vec<_>>()
        };
        let offset = Axis::new("Offset on the disk", Quantity::Data).near_data();
        let mut plot = Plot::new(title("Where the disk worked"), shared.time(), offset)
            .note("Level bands are sequential work, clouds are seeks.");
        for (name, shape, points) in [("writes", Shape::Dots, of(true)), ("reads", Shape::Ticks, of(false))] {
            if !points.is_empty() {
                plot = plot.with(Series::new(name, shape, points));
            }
        }
        plots.push(plot);
    }
    plots
}

/// What came in and what the disk did. A cache takes bytes in far faster than a disk writes them: the
/// axis ends where the disk is still seen, and the note says how far the rest goes.
fn throughput(device: &DeviceOutcome, shared: &Shared, policy: &str) -> Plot {
    let accepted = curves::rate(device, |sample| sample.accepted_bytes);
    let written = curves::rate(device, |sample| sample.moved_bytes.1);
    let read = curves::rate(device, |sample| sample.moved_bytes.0);
    let top = TIMES_THE_DISK * shared.disk;
    let peak = curves::largest(&accepted);
    let cut = top > 0.0 && shared.accepted > top;
    let whole = shared.accepted.max(shared.disk);
    let axis = shared.axis("Throughput", Quantity::DataRate, if cut { top } else { whole });
    let mut plot = Plot::new(titled("Throughput", policy), shared.time(), axis);
    if cut && peak > top {
        let peak = units::rate(peak as u64, Duration::from_secs(1));
        plot = plot.note(format!("Cut at the top: the cache accepted up to {peak}."));
    }
    for (name, curve) in [("accepted from writers", accepted), ("written to disk", written), ("read from disk", read)] {
        if curves::lives(&curve) {
            plot = plot.with(Series::new(name, Shape::Line, curve));
        }
    }
    plot
}
