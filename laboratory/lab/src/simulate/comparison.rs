//! Several runs side by side: one column a policy.
//!
//! Owns: the choice, order and words of the compared figures.
//! Does not own: the figures of one run (`text`), their units and tables (`report`).
//! Invariants: each row is a figure of at least one run; a run without it has `-`.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::time::Duration;

use afflux_report::terminal::{Paint, Terminal};
use afflux_report::{Align, Table};
use afflux_workloads::simulation::{JobOutcome, OperationOutcome, Outcome as Figures};

use super::answer::answer;
use super::ended_run::Run;
use super::{ending, text};
use afflux_report::units;

/// A figure of a run.
type Figure<'a> = &'a dyn Fn(&Figures) -> String;
/// A call of a job, if the job has any.
type Call = fn(&JobOutcome) -> &OperationOutcome;

/// A figure of a call: its title and its text.
type Row = (&'static str, fn(&OperationOutcome) -> String);

/// The whole report.
pub(super) fn summary(runs: &[Run], terminal: Terminal) -> String {
    let mut all = format!("{}\n", terminal.paint(Paint::Strong, &headline(runs)));
    let _ = writeln!(all, "{}", answer(runs));
    let _ = write!(all, "\n{}", table(runs).text(terminal));
    for run in runs {
        let wrong = text::errors(run.figures.by_job()) + &ending::ending(&run.figures);
        if !wrong.is_empty() {
            let _ = write!(all, "\n{}\n{wrong}", terminal.paint(Paint::Strong, &run.policy));
        }
    }
    let _ = write!(all, "\n{}", callers(runs));
    let _ = writeln!(all, "\n{}\n{}", text::UNITS, identity(runs));
    all
}

/// `Simulated 44 s and 41 s in 0.9 s: backup.fio on usb2-disk, 1.00 GiB of cache, 8 CPUs`.
pub(super) fn headline(runs: &[Run]) -> String {
    let times: Vec<String> = runs.iter().map(|run| units::time(Duration::from_nanos(run.figures.virtual_ns))).collect();
    let real = units::time(runs.iter().map(|run| run.real).sum());
    let (jobs, hardware) =
        runs.first().map_or_else(Default::default, |run| (&run.jobs[..], text::hardware(&run.figures)));
    format!("Simulated {} in {real}: {jobs} on {hardware}", times.join(" and "))
}

/// The costs of calls and copies under each policy, a line each.
pub(super) fn callers(runs: &[Run]) -> String {
    let line = |run: &Run| format!("Calls and copies cost under {}: {}\n", run.policy, run.figures.engine.callers);
    runs.iter().map(line).collect()
}

/// The seed and the trace hashes, with which each run can be repeated.
pub(super) fn identity(runs: &[Run]) -> String {
    let traces: Vec<String> =
        runs.iter().map(|run| format!("{} {:016x}", run.policy, run.figures.trace_hash)).collect();
    let seed = runs.first().map_or(0, |run| run.figures.seed);
    format!("seed {seed}, traces: {} (--seed N for other runs)", traces.join(", "))
}

/// A row a figure.
pub(super) fn table(runs: &[Run]) -> Table {
    let mut columns = vec![("", Align::Left), ("", Align::Left), ("", Align::Left)];
    columns.extend(runs.iter().map(|run| (run.policy.as_str(), Align::Right)));
    let mut table = Table::new("Side by side", &columns).named_by(3);
    let mut row = |names: [String; 3], figure: Figure<'_>| {
        let cells = runs.iter().map(|run| figure(&run.figures));
        table.row(names.into_iter().chain(cells));
    };
    let jobs = runs.first().map_or(&[][..], |run| run.figures.by_job());
    for (at, job) in jobs.iter().enumerate() {
        let mut name = text::name(job);
        let calls: [(&str, Call); 4] = [
            ("read", |job| &job.read),
            ("write", |job| &job.write),
            ("trim", |job| &job.trim),
            ("fsync", |job| &job.sync),
        ];
        for (word, call) in calls {
            let of = |figures: &Figures| figures.by_job().get(at).map(call).filter(|call| call.ops > 0).cloned();
            if !runs.iter().any(|run| of(&run.figures).is_some()) {
                continue;
            }
            let mut word = word.to_owned();
            for (title, show) in rows(word == "fsync") {
                let names = [std::mem::take(&mut name), std::mem::take(&mut word), (*title).to_owned()];
                row(names, &|figures| of(figures).map_or_else(|| "-".to_owned(), |call| show(&call)));
            }
        }
    }
    for (at, device) in runs.first().map_or(&[][..], |run| &run.figures.devices).iter().enumerate() {
        let mut name = text::title(device);
        let mut row = |title: &str, show: &dyn Fn(&afflux_workloads::simulation::DeviceOutcome, u64) -> String| {
            row([std::mem::take(&mut name), String::new(), title.to_owned()], &|figures| {
                figures.devices.get(at).map_or_else(String::new, |device| show(device, figures.virtual_ns))
            });
        };
        row("written", &|device, _| units::data(device.bytes.1));
        row("mean request", &|device, _| {
            let (requests, bytes) = (device.requests.0 + device.requests.1, device.bytes.0 + device.bytes.1);
            bytes.checked_div(requests).map_or_else(|| "-".to_owned(), units::data)
        });
        row("busy", &|device, virtual_ns| units::percent(device.busy_ns, virtual_ns));
        row("seeks", &|device, _| units::count(device.seeks));
        row("dirty at most", &|device, _| {
            let dirty = device.samples.iter().map(|sample| sample.dirty_bytes + sample.writeback_bytes);
            units::memory(dirty.max().unwrap_or(0))
        });
    }
    let mut all = |title: &str, figure: Figure<'_>| row([title.to_owned(), String::new(), String::new()], figure);
    all("writers paused, in sum", &|figures| {
        units::latency(figures.engine.pauses.iter().map(|(_, _, total_ns)| total_ns).sum())
    });
    all("all on disk after the last write", &|figures| match (&figures.loss, figures.unwritten.is_empty()) {
        (None, true) if !figures.cut => units::latency(figures.settle_ns),
        _ => "-".to_owned(),
    });
    all("lost if the power failed at the worst moment", &|figures| units::data(figures.at_risk_bytes_max));
    if runs.iter().any(|run| run.figures.loss.is_some()) {
        all("lost when memory was", &|figures| {
            let lost = figures.loss.as_ref().and_then(|loss| loss.lost_bytes);
            lost.map_or_else(|| "-".to_owned(), units::data)
        });
    }
    table
}

/// The rows of a call: titles and texts.
fn rows(sync: bool) -> &'static [Row] {
    const ALL: &[Row] = &[
        ("throughput", |call| units::rate(call.bytes, Duration::from_nanos(call.elapsed_ns))),
        ("calls", |call| units::count(call.ops)),
        ("p50", |call| percentile(call, 50.0)),
        ("p99", |call| percentile(call, 99.0)),
        ("max", |call| units::latency(call.latency.max_ns)),
    ];
    if sync { &ALL[1..] } else { ALL }
}

fn percentile(call: &OperationOutcome, wanted: f64) -> String {
    let found = call.latency.percentiles_ns.iter().find(|(percentile, _)| (percentile - wanted).abs() < 1e-6);
    found.map_or_else(|| "-".to_owned(), |&(_, ns)| units::latency(ns))
}
