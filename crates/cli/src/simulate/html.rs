//! A run as a page with plots.
//!
//! Owns: which plots there are, what each shows and says.
//! Does not own: drawing and the document (`report`); the tables, which are those of `text`.
//! Invariants: all plots over time share their axis, so that they can be read from top to bottom.

#[cfg(test)]
mod tests;

use std::time::Duration;

use report::{Axis, Page, Plot, Quantity, Series, Shape};
use simulator::simulation::{DeviceOutcome, Outcome as Figures};

use super::curves::{self, seconds};
use super::{Run, text};
use crate::units;

/// How far the axis of throughput goes beyond what the disk did.
const TIMES_THE_DISK: f64 = 2.5;
pub(super) fn page(run: &Run) -> String {
    let figures = &run.figures;
    let mut page = Page::new(format!("{} on {}", run.jobs, text::disks(figures)), "simulated");
    page.paragraph(&format!("{}.", text::headline(run)));
    page.paragraph(
        "Times are virtual, data and rates decimal (MB = 1,000,000 bytes), memory binary (MiB = 1,048,576 bytes).",
    );
    let mut facts = text::facts(figures);
    facts.push(("seed".to_owned(), figures.seed.to_string()));
    facts.push(("trace".to_owned(), format!("{:016x}", figures.trace_hash)));
    page.facts(facts);
    page.section("Jobs");
    page.table(&text::jobs(figures));
    for line in text::errors(&figures.jobs).lines().skip(1) {
        page.paragraph(line.trim());
    }
    page.table(&text::latencies(figures));
    if let Some(plot) = latencies(figures) {
        page.figure(plot);
    }
    page.section("Disks");
    page.table(&text::devices(figures));
    for device in &figures.devices {
        page.section(&format!("{} over time", text::title(device)));
        for plot in plots(device, seconds(figures.virtual_ns)) {
            page.figure(plot);
        }
    }
    page.html(&format!("afflux simulate on {}; {}", text::machine(run), text::identity(figures)))
}

/// How slow the slowest are: one in ten, in a hundred, ...
fn latencies(figures: &Figures) -> Option<Plot> {
    let x = Axis::new("One call in so many takes longer", Quantity::Count).log();
    let y = Axis::new("Latency", Quantity::Time).log();
    let mut plot = Plot::new("Latency of the slowest calls", x, y).note("Farther right: rarer.");
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

fn plots(device: &DeviceOutcome, end_s: f64) -> Vec<Plot> {
    let time = || Axis::new("Virtual time", Quantity::Time).range(0.0, end_s);
    let mut plots = Vec::new();

    plots.push(throughput(device, time()));

    let dirty = Plot::new("Dirty memory", time(), Axis::new("Memory", Quantity::Memory))
        .note("What a power loss would take, and where writers are paused.")
        .with(Series::new("limit", Shape::Reference, curves::level(device, |sample| sample.dirty_limit_bytes)))
        .with(Series::new("dirty", Shape::Line, curves::level(device, |sample| sample.dirty_bytes)))
        .with(Series::new("under writeback", Shape::Line, curves::level(device, |sample| sample.writeback_bytes)));
    plots.push(dirty);

    let queue = curves::level(device, |sample| sample.queue_depth.into());
    let depth = Axis::new("Requests in flight", Quantity::Count);
    plots.push(Plot::new("Queue depth", time(), depth).with(Series::new("requests", Shape::Steps, queue)));

    if !device.offsets.is_empty() {
        let of = |write: bool| {
            let points = device.offsets.iter().filter(|point| point.write == write);
            points.map(|point| (seconds(point.at_ns), point.offset as f64)).collect::<Vec<_>>()
        };
        let offset = Axis::new("Offset on the disk", Quantity::Data).near_data();
        let mut plot = Plot::new("Where the disk worked", time(), offset)
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
fn throughput(device: &DeviceOutcome, time: Axis) -> Plot {
    let accepted = curves::rate(device, |sample| sample.accepted_bytes);
    let written = curves::rate(device, |sample| sample.moved_bytes.1);
    let read = curves::rate(device, |sample| sample.moved_bytes.0);
    let top = TIMES_THE_DISK * curves::largest(&written).max(curves::largest(&read));
    let peak = curves::largest(&accepted);
    let cut = top > 0.0 && peak > top;
    let axis = Axis::new("Throughput", Quantity::DataRate);
    let mut plot = Plot::new("Throughput", time, if cut { axis.range(0.0, top) } else { axis });
    if cut {
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
