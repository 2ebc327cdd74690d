//! A run on a terminal, in the manner of fio.
//!
//! Owns: the choice, order and words of the figures.
//! Does not own: the figures, their units and tables (`report`).
//! Invariants: the first line says that the run was simulated, and whether it was cut; figures that were not counted
//! are left out.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::time::Duration;

use afflux_engine::Delay;
use afflux_report::terminal::{Paint, Terminal, sparkline};
use afflux_report::{Align, Table};
use afflux_workloads::simulation::{DeviceOutcome, JobOutcome, OWN_POLICY, OperationOutcome, Outcome as Figures};

use super::answer::answer;
use super::curves::{self, Curve};
use super::ended_run::Run;
use super::ending::ending;
use afflux_report::units;

/// A curve's name, its values, the value of a full letter (0 is its largest), its values in words.
type ShownCurve<'a> = (&'a str, Curve, f64, &'a dyn Fn(f64) -> String);

/// Percentiles that are shown, where a run has them.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Most clients with waits that a disk shows.
const DELAYS_MAX: usize = 8;

/// Letters of a curve in one line.
const CURVE_WIDTH: usize = 40;

/// Size of a page of the cache.
const PAGE_BYTES: u64 = 4096;

/// The units of a report, which explains them once.
pub(super) const UNITS: &str = "\
All times are virtual. kB, MB and GB are decimal (data, rates); KiB, MiB and GiB are binary (memory).
p50, p99: half of the calls, one in a hundred, took longer; max is the longest.";

/// The whole report.
pub(super) fn summary(run: &Run, terminal: Terminal) -> String {
    let figures = &run.figures;
    let headline = terminal.paint(Paint::Strong, &headline(run));
    let mut text = format!("{headline}\n{}\n", answer(std::slice::from_ref(run)));
    let mut waiting = Table::new("Waiting", &[("", Align::Left), ("", Align::Left)]);
    for (name, value) in facts(figures) {
        waiting.row([name, value]);
    }
    let table = |table: &Table| if table.is_empty() { String::new() } else { table.text(terminal) };
    let parts = [
        table(&jobs(figures)),
        errors(figures.by_job()),
        table(&latencies(figures)),
        table(&devices(figures)),
        table(&delays(figures)),
        table(&over_time(figures)),
        table(&waiting),
        ending(figures),
    ];
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let _ = write!(text, "\n{part}");
    }
    let _ = writeln!(text, "\n{UNITS}\n{}", identity(figures));
    text
}

/// `Simulated 44 s in 0.4 s: backup.fio on usb2-disk, 1.00 GiB of cache, 8 CPUs`.
pub(super) fn headline(run: &Run) -> String {
    let virtual_time = units::time(Duration::from_nanos(run.figures.virtual_ns));
    let real = units::time(run.real);
    let cut = if run.figures.cut { " (cut)" } else { "" };
    format!("Simulated {virtual_time} in {real}{cut}: {} on {}", run.jobs, machine(run))
}

/// `usb2-disk, 1.00 GiB of cache, 8 CPUs`, and the policy if it is not the engine's own.
pub(super) fn machine(run: &Run) -> String {
    let policy = if run.policy == OWN_POLICY { String::new() } else { format!(", {}", run.policy) };
    format!("{}{policy}", hardware(&run.figures))
}

/// `usb2-disk, 1.00 GiB of cache, 8 CPUs`.
pub(super) fn hardware(figures: &Figures) -> String {
    let engine = &figures.engine;
    let (cache, cpus) = (units::memory(engine.cache_bytes), engine.cpus);
    let several = if cpus == 1 { "" } else { "s" };
    format!("{}, {cache} of cache, {cpus} CPU{several}", disks(figures))
}

/// The names of all disks.
pub(super) fn disks(figures: &Figures) -> String {
    figures.devices.iter().map(title).collect::<Vec<_>>().join(", ")
}

/// The last line, with which the run can be repeated.
pub(super) fn identity(figures: &Figures) -> String {
    format!("seed {}, trace {:016x} (--seed N for another run)", figures.seed, figures.trace_hash)
}

/// The calls of a job, by fio's names; kinds that it has not made are left out.
pub(super) fn calls(job: &JobOutcome) -> impl Iterator<Item = (&'static str, &OperationOutcome)> {
    let all = [("read", &job.read), ("write", &job.write), ("trim", &job.trim), ("fsync", &job.sync)];
    all.into_iter().filter(|(_, call)| call.ops > 0)
}

/// A job's name, with its number of clones.
pub(super) fn name(job: &JobOutcome) -> String {
    if job.clones > 1 { format!("{} ×{}", job.name, job.clones) } else { job.name.clone() }
}

/// Rows of a table, with each job's name in the first of its rows. An `idle` job has a row that says so.
fn by_call(figures: &Figures, table: &mut Table, idle: bool, row: impl Fn(&str, &OperationOutcome) -> Vec<String>) {
    for job in figures.by_job() {
        let mut name = name(job);
        for (call, operation) in calls(job) {
            let mut cells = vec![std::mem::take(&mut name), call.to_owned()];
            cells.extend(row(call, operation));
            table.row(cells);
        }
        if idle && !name.is_empty() {
            table.row([name, "none".to_owned()]);
        }
    }
}

pub(super) fn jobs(figures: &Figures) -> Table {
    let columns = [
        ("job", Align::Left),
        ("call", Align::Left),
        ("bytes", Align::Right),
        ("throughput", Align::Right),
        ("calls", Align::Right),
        ("IOPS", Align::Right),
    ];
    let mut table = Table::new("Throughput", &columns).named_by(2);
    by_call(figures, &mut table, true, |call, operation| {
        let elapsed = Duration::from_nanos(operation.elapsed_ns);
        let moved = |text: String| if call == "fsync" { String::new() } else { text };
        vec![
            moved(units::data(operation.bytes)),
            moved(units::rate(operation.bytes, elapsed)),
            units::count(operation.ops),
            units::frequency(operation.ops, elapsed).trim_end_matches("/s").to_owned(),
        ]
    });
    table
}

/// The errors of jobs, in lines.
pub(super) fn errors(jobs: &[JobOutcome]) -> String {
    let lines = jobs.iter().flat_map(|job| job.errors.iter().map(move |(what, count)| (job, what, count)));
    let line = |(job, what, count): (&JobOutcome, &String, &u64)| {
        let times = if *count == 1 { "once".to_owned() } else { format!("{} times", units::count(*count)) };
        format!("  {}: {what}, {times}\n", job.name)
    };
    let lines: String = lines.map(line).collect();
    if lines.is_empty() { lines } else { format!("Errors\n{lines}") }
}

pub(super) fn latencies(figures: &Figures) -> Table {
    let mut columns = vec![("job", Align::Left), ("call", Align::Left), ("mean", Align::Right)];
    let titles = PERCENTILES.map(|percentile| format!("p{percentile}"));
    columns.extend(titles.iter().map(|title| (title.as_str(), Align::Right)));
    columns.push(("max", Align::Right));
    let mut table = Table::new("Latency", &columns).named_by(2);
    by_call(figures, &mut table, false, |_, operation| {
        let latency = &operation.latency;
        let mut cells = vec![units::latency(latency.mean_ns)];
        cells.extend(PERCENTILES.map(|wanted| {
            let found = latency.percentiles_ns.iter().find(|(percentile, _)| (percentile - wanted).abs() < 1e-6);
            found.map_or_else(|| "-".to_owned(), |&(_, ns)| units::latency(ns))
        }));
        cells.push(units::latency(latency.max_ns));
        cells
    });
    table
}

pub(super) fn devices(figures: &Figures) -> Table {
    let columns = [
        ("disk", Align::Left),
        ("read", Align::Right),
        ("written", Align::Right),
        ("busy", Align::Right),
        ("requests", Align::Right),
        ("mean size", Align::Right),
        ("seeks", Align::Right),
        ("file switches", Align::Right),
    ];
    let mut table = Table::new("Work of the disks", &columns);
    for device in &figures.devices {
        let requests = device.requests.0 + device.requests.1;
        let bytes = device.bytes.0 + device.bytes.1;
        let mean = bytes.checked_div(requests).map_or_else(|| "-".to_owned(), units::data);
        table.row([
            title(device),
            units::data(device.bytes.0),
            units::data(device.bytes.1),
            units::percent(device.busy_ns, figures.virtual_ns),
            units::count(requests),
            mean,
            units::count(device.seeks),
            units::count(device.file_switches),
        ]);
    }
    table
}

/// Clients' waits for each disk: causes and durations.
pub(super) fn delays(figures: &Figures) -> Table {
    let columns = [
        ("disk", Align::Left),
        ("who", Align::Left),
        ("for", Align::Left),
        ("calls", Align::Right),
        ("total", Align::Right),
        ("average", Align::Right),
        ("p99", Align::Right),
        ("longest", Align::Right),
    ];
    let mut table = Table::new("Delays", &columns).named_by(3);
    for device in &figures.devices {
        let mut disk = title(device);
        let left_out = device.delays.len().saturating_sub(DELAYS_MAX) as u64 + device.others;
        for one in device.delays.iter().take(DELAYS_MAX) {
            let mut who = one.who.clone();
            for delay in Delay::ALL {
                let times = one.times.of(delay);
                if times.count > 0 {
                    let average = times.ns.checked_div(times.count).unwrap_or(0);
                    let [total, average, p99, longest] =
                        [times.ns, average, times.p99_ns, times.max_ns].map(units::latency);
                    let (disk, who) = (std::mem::take(&mut disk), std::mem::take(&mut who));
                    let count = units::count(times.count);
                    table.row([disk, who, delay.name().to_owned(), count, total, average, p99, longest]);
                }
            }
        }
        if left_out > 0 {
            let more = format!("{} more that waited less", units::count(left_out));
            table.row([
                String::new(),
                more,
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
            ]);
        }
    }
    table
}

/// The disk's name in the run, and its model if that differs.
pub(super) fn title(device: &DeviceOutcome) -> String {
    match (device.name.as_str(), device.model.as_str()) {
        (name, model) if name == model => name.to_owned(),
        ("disk" | "", model) => model.to_owned(),
        (name, model) => format!("{name} ({model})"),
    }
}

/// Curves over time, a line each: bytes moved, and bytes or requests waiting.
fn over_time(figures: &Figures) -> Table {
    let columns = [("disk", Align::Left), ("", Align::Left), ("over time", Align::Left), ("at most", Align::Right)];
    let letters = figures.devices.iter().map(|device| device.samples.len().min(CURVE_WIDTH)).max().unwrap_or(0);
    let each = units::latency(figures.virtual_ns.checked_div(letters as u64).unwrap_or(0));
    let mut table = Table::new(format!("Over time, {each} a letter"), &columns);
    for device in &figures.devices {
        let limit = curves::largest(&curves::level(device, |sample| sample.dirty_limit_bytes));
        let rate = |value: f64| units::rate(value as u64, Duration::from_secs(1));
        let memory = |value: f64| units::memory(value as u64);
        let dirty = |value: f64| format!("{} of {}", memory(value), memory(limit));
        let count = |value: f64| units::count(value as u64);
        let shown: [ShownCurve<'_>; 6] = [
            ("accepted", curves::rate(device, |sample| sample.accepted_bytes), 0.0, &rate),
            ("written", curves::rate(device, |sample| sample.moved_bytes.1), 0.0, &rate),
            ("read", curves::rate(device, |sample| sample.moved_bytes.0), 0.0, &rate),
            ("dirty", curves::level(device, |sample| sample.dirty_bytes), limit, &dirty),
            ("writeback", curves::level(device, |sample| sample.writeback_bytes), 0.0, &memory),
            ("queue", curves::level(device, |sample| sample.queue_depth.into()), 0.0, &count),
        ];
        let mut name = title(device);
        for (what, curve, full, text) in shown {
            if !curves::lives(&curve) {
                continue;
            }
            let values: Vec<f64> = curve.iter().map(|point| point.1).collect();
            let largest = curves::largest(&curve);
            let line = sparkline(&values, full.max(largest), CURVE_WIDTH);
            table.row([std::mem::take(&mut name), what.to_owned(), line, text(largest)]);
        }
    }
    table
}

/// Names and values of facts: pauses, data at risk, the run's costs.
pub(super) fn facts(figures: &Figures) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    for (cause, count, total_ns) in figures.engine.pauses.iter().filter(|(_, count, _)| *count > 0) {
        let mean = units::latency(total_ns.checked_div(*count).unwrap_or(0));
        let (times, total) = (units::count(*count), units::latency(*total_ns));
        facts.push((format!("writers paused: {cause}"), format!("{times} times, {total} in sum, {mean} on average")));
    }
    if facts.is_empty() {
        facts.push(("writers paused".to_owned(), "never".to_owned()));
    }
    let engine = &figures.engine;
    let all = figures.virtual_ns.saturating_mul(engine.cpus.into());
    let busy = format!("{} of {}", units::percent(engine.cpu_busy_ns, all), engine.cpus);
    if figures.loss.is_none() && figures.unwritten.is_empty() && !figures.cut {
        facts.push(("all on disk after the last write".to_owned(), units::latency(figures.settle_ns)));
    }
    let count = |name| engine.counters.iter().find(|(own, _)| *own == name).map_or(0, |(_, count)| *count);
    let (hit, miss) = (count("read_hit_pages"), count("read_miss_pages"));
    if hit + miss > 0 {
        facts.push(("pages that reads found in the cache".to_owned(), units::percent(hit, hit + miss)));
    }
    let (written, dirtied) = (count("pgpgout"), count("nr_dirtied") * PAGE_BYTES);
    facts.push(("written for each byte that became dirty".to_owned(), units::times(written, dirtied)));
    facts.push(("lost if the power failed at the worst moment".to_owned(), units::data(figures.at_risk_bytes_max)));
    facts.push(("CPUs busy".to_owned(), busy));
    facts.push(("calls and copies cost".to_owned(), engine.callers.clone()));
    facts
}
