//! A run as a page with plots, or several with plots in the same axes.
//!
//! Owns: the choice of plots, their contents and notes; the order of the page.
//! Does not own: drawing and the document (`report`); the tables (`text`); the sentence at the top (`answer`); the
//! glossary (`words.md`).
//! Invariants: all plots over time share their axis, so that they can be read from top to bottom. The answer comes
//! first, plots before tables, and the longest lists are last and folded.

#[cfg(test)]
mod tests;

use std::time::Duration;

use afflux_report::{Align, Axis, HtmlPage, Plot, Quantity, Series, Shape, Table, entries};
use afflux_workloads::simulation::{DeviceOutcome, DeviceSample, OperationOutcome, Outcome as Figures};

use super::answer::answer;
use super::curves::{self, Curve, seconds};
use super::ended_run::Run;
use super::{comparison, ending, text};
use afflux_report::units;

/// The axis of throughput ends at this multiple of the disk's peak.
const TIMES_THE_DISK: f64 = 2.5;

/// A figure of a sample.
type Sampled = fn(&DeviceSample) -> u64;

/// Bytes accepted, written and read since the sample before.
const RATES: [Sampled; 3] =
    [|sample| sample.accepted_bytes, |sample| sample.moved_bytes.1, |sample| sample.moved_bytes.0];

/// The meaning of words, names and units.
const WORDS: &str = include_str!("html/words.md");
const WORDS_TITLE: &str = "Words on this page";

/// A longer job file is folded.
const FILE_LINES_MAX: usize = 80;

/// The request for runs, for their page.
#[derive(Default)]
pub(super) struct PageInputs {
    pub(super) command: String,
    /// Job files and the files that they include: names and texts.
    pub(super) files: Vec<(String, String)>,
    /// A sentence about each replayed trace.
    pub(super) replayed: Vec<String>,
}

/// One run in detail, or several side by side.
pub(super) fn page(runs: &[Run], asked: &PageInputs) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let mut page = HtmlPage::new(format!("{} on {}", first.jobs, text::disks(&first.figures)), "simulated");
    page.answer(&answer(runs));
    let headline = if runs.len() == 1 { text::headline(first) } else { comparison::headline(runs) };
    page.paragraph(&format!("{headline}."));
    page.listing(&asked.command);
    asked.replayed.iter().for_each(|what| page.paragraph(what));
    page.pointer("Names and units are explained below:", WORDS_TITLE);
    plots_of(&mut page, runs);
    page.section("Tables");
    match runs {
        [run] => {
            let tables = [text::jobs(&run.figures), text::latencies(&run.figures), text::devices(&run.figures)];
            tables.iter().filter(|table| !table.is_empty()).for_each(|table| page.table(table));
            wrongs(&mut page, &run.figures);
            page.section("Waiting and risk");
            page.facts(text::facts(&run.figures));
        }
        _ => {
            page.table(&comparison::table(runs));
            comparison::callers(runs).lines().for_each(|line| page.paragraph(&format!("{line}.")));
            for run in runs {
                let had = text::errors(run.figures.by_job()) + &ending::ending(&run.figures);
                if !had.is_empty() {
                    page.section(&format!("{}: what went wrong", run.policy));
                    wrongs(&mut page, &run.figures);
                }
            }
        }
    }
    files(&mut page, asked);
    page.section(WORDS_TITLE);
    page.words(entries(WORDS));
    page.section("In more detail");
    for run in runs {
        let whose = if runs.len() == 1 { String::new() } else { format!(", {}", run.policy) };
        let delays = text::delays(&run.figures);
        if !delays.is_empty() {
            page.folded(&format!("What each waited for{whose}"), |page| page.table(&delays));
        }
        page.folded(&format!("All counters of the engine that moved{whose}"), |page| page.table(&counters(run)));
    }
    let (on, identity) = match runs {
        [run] => (text::machine(run), text::identity(&run.figures)),
        _ => (text::hardware(&first.figures), comparison::identity(runs)),
    };
    page.html(&format!("afflux {}, simulate on {on}; {identity}", env!("CARGO_PKG_VERSION")))
}

/// Small multiples: for each quantity a column with a plot of each policy, on the same axes.
fn plots_of(page: &mut HtmlPage, runs: &[Run]) {
    let named = |run: &Run| if runs.len() == 1 { String::new() } else { run.policy.clone() };
    let shared = Shared::of(runs);
    let devices = runs.first().map_or(&[][..], |run| &run.figures.devices);
    for (at, device) in devices.iter().enumerate() {
        page.section(&format!("{} over time", text::title(device)));
        let of = |run| Some(plots(run_device(run, at)?, &shared, &named(run)).into_iter());
        let mut each: Vec<_> = runs.iter().filter_map(of).collect();
        loop {
            let row: Vec<Plot> = each.iter_mut().filter_map(Iterator::next).collect();
            if row.is_empty() {
                break;
            }
            row.into_iter().for_each(|plot| page.figure(plot));
        }
    }
    let latencies: Vec<Plot> = runs.iter().filter_map(|run| latencies(run, &shared, &named(run))).collect();
    if !latencies.is_empty() {
        page.section("How long calls took");
        latencies.into_iter().for_each(|plot| page.figure(plot));
    }
}

fn run_device(run: &Run, at: usize) -> Option<&DeviceOutcome> {
    run.figures.devices.get(at)
}

/// The job files, as they were read.
fn files(page: &mut HtmlPage, asked: &PageInputs) {
    if !asked.files.is_empty() {
        page.section(if asked.files.len() == 1 { "The job file" } else { "The job files" });
    }
    for (name, text) in &asked.files {
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            page.folded(&format!("{name}, {lines} lines"), |page| page.listing(text));
        } else {
            page.paragraph(&format!("{name}:"));
            page.listing(text);
        }
    }
}

fn counters(run: &Run) -> Table {
    let mut table = Table::new("Counters of the engine", &[("counter", Align::Left), ("count", Align::Right)]);
    let moved = run.figures.engine.counters.iter().filter(|(_, count)| *count > 0);
    moved.for_each(|(name, count)| table.row([(*name).to_owned(), units::count(*count)]));
    table
}

/// Failures and losses, one paragraph each.
fn wrongs(page: &mut HtmlPage, figures: &Figures) {
    let errors = text::errors(figures.by_job());
    let ending = ending::ending(figures);
    errors.lines().skip(1).chain(ending.lines()).for_each(|line| page.paragraph(line.trim()));
}

/// Ranges that all plots over time of a page share, so that they can be compared.
struct Shared {
    end_s: f64,
    /// Most dirty memory, or its limit where that is higher, in bytes.
    memory: f64,
    /// Deepest queue.
    depth: f64,
    /// The highest rate of a disk without short peaks, and the highest rate with them and at which bytes were accepted
    /// from writers.
    disk: f64,
    peak: f64,
    /// The shortest and the longest drawn latency, in seconds, if any is drawn.
    latency: Option<(f64, f64)>,
}

impl Shared {
    fn of(runs: &[Run]) -> Self {
        let devices = || runs.iter().flat_map(|run| &run.figures.devices);
        let most =
            |of: &dyn Fn(&DeviceOutcome) -> Curve| devices().map(|it| curves::largest(&of(it))).fold(0.0, f64::max);
        let moved = |of: Sampled| most(&|device| curves::rate(device, of));
        let usual = |of: Sampled| devices().map(|device| curves::high(&curves::rate(device, of))).fold(0.0, f64::max);
        let level = |of: fn(&DeviceSample) -> u64| most(&|device| curves::level(device, of));
        Self {
            end_s: runs.iter().map(|run| seconds(run.figures.virtual_ns)).fold(0.0, f64::max),
            memory: level(|sample| sample.dirty_limit_bytes.max(sample.dirty_bytes).max(sample.writeback_bytes)),
            depth: level(|sample| sample.queue_depth.into()),
            disk: usual(|sample| sample.moved_bytes.1).max(usual(|sample| sample.moved_bytes.0)),
            peak: RATES.into_iter().map(moved).fold(0.0, f64::max),
            latency: latencies_of(runs),
        }
    }

    fn time(&self) -> Axis {
        Axis::new("Virtual time", Quantity::Time).range(0.0, self.end_s)
    }

    /// An axis from zero to the maximum of all plots.
    fn axis(&self, label: &str, quantity: Quantity, top: f64) -> Axis {
        let axis = Axis::new(label, quantity);
        if top > 0.0 { axis.range(0.0, top) } else { axis }
    }
}

/// A plot's title, with the policy's name if there are several.
fn titled(title: &str, policy: &str) -> String {
    if policy.is_empty() { title.to_owned() } else { format!("{title}: {policy}") }
}

/// The shortest and the longest latency that [`latencies`] draws for these runs.
fn latencies_of(runs: &[Run]) -> Option<(f64, f64)> {
    let calls = runs.iter().flat_map(|run| run.figures.by_job()).flat_map(text::calls);
    let all = calls.flat_map(|(_, operation)| slowest(operation)).map(|(_, latency)| latency);
    all.fold(None, |range, latency| {
        let (low, high) = range.unwrap_or((latency, latency));
        Some((latency.min(low), latency.max(high)))
    })
}

/// Pairs `(n, s)`: one call in `n` takes longer than `s` seconds. A hundred calls have no value for one in a thousand.
fn slowest(operation: &OperationOutcome) -> Vec<(f64, f64)> {
    let percentiles = operation.latency.percentiles_ns.iter().filter(|(it, _)| *it >= 50.0 && *it < 100.0);
    let points = percentiles.map(|&(percentile, ns)| (100.0 / (100.0 - percentile), seconds(ns)));
    points.filter(|(one_in, _)| one_in.round() <= operation.ops as f64).collect()
}

/// The latency of the slowest calls: one in ten, one in a hundred, ...
fn latencies(run: &Run, shared: &Shared, policy: &str) -> Option<Plot> {
    let x = Axis::new("One call in so many takes longer", Quantity::Count).log();
    let y = Axis::new("Latency", Quantity::Time).log();
    let y = if let Some((low, high)) = shared.latency { y.range(low, high) } else { y };
    let mut plot = Plot::new(titled("Latency of the slowest calls", policy), x, y).note("Farther right: rarer.");
    let mut any = false;
    for job in run.figures.by_job() {
        for (call, operation) in text::calls(job) {
            let points = slowest(operation);
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
        .note("The bytes that a power loss would take, and the limit at which writers are paused.")
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
            .note("A line is work in sequence, a cloud is seeks.");
        for (name, shape, points) in [("writes", Shape::Dots, of(true)), ("reads", Shape::Ticks, of(false))] {
            if !points.is_empty() {
                plot = plot.with(Series::new(name, shape, points));
            }
        }
        plots.push(plot);
    }
    plots
}

/// The accepted bytes and the disk's own. A cache accepts bytes far faster than a disk writes them, and a disk may have
/// a short peak. The axis therefore ends where the disk's usual rate is still visible, and the note gives the peak.
fn throughput(device: &DeviceOutcome, shared: &Shared, policy: &str) -> Plot {
    let [accepted, written, read] = RATES.map(|of| curves::rate(device, of));
    let top = TIMES_THE_DISK * shared.disk;
    let (who, peak) = [("the cache accepted", &accepted), ("the disk wrote", &written), ("the disk read", &read)]
        .map(|(who, curve)| (who, curves::largest(curve)))
        .into_iter()
        .fold(("", 0.0), |most, one| if one.1 > most.1 { one } else { most });
    let cut = top > 0.0 && shared.peak > top;
    let axis = shared.axis("Throughput", Quantity::DataRate, if cut { top } else { shared.peak });
    let mut plot = Plot::new(titled("Throughput", policy), shared.time(), axis);
    if cut && peak > top {
        let peak = units::rate(peak as u64, Duration::from_secs(1));
        plot = plot.note(format!("Cut at the top: {who} up to {peak}."));
    }
    for (name, curve) in [("accepted from writers", accepted), ("written to disk", written), ("read from disk", read)] {
        if curves::lives(&curve) {
            plot = plot.with(Series::new(name, Shape::Line, curve));
        }
    }
    plot
}
