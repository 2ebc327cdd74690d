//! The case `kernel`: the law of `linux-6.1` on a disk with a byte rate.
//!
//! One writer, 64 KiB at a time, at full speed for 45 s, then fsync. There are four forms: tuned for the device
//! (`strict_limit`, `max_bytes`), with the machine's limits in bytes, with the kernel's defaults, and as a FUSE mount.
//!
//! Owns: the simulated machine; the figures of a run, their table and plots.
//! Does not own: the policy. A real kernel beside the same law is in `recorded`.
//! Invariants: a run depends on its options alone. Means cover the seconds after memory has filled
//! (`a_plateau_is_what_was_dirty_once_memory_had_filled`).

use afflux_report::{Axis, Fields, Plot, Quantity, Row, Series, Shape};
use afflux_workloads::simulation::Simulation;
use afflux_workloads::{BlockSizes, Job, Workload};
use serde_json::Value;

use super::compare::{Look, last_before};
use super::plan::{CaseOptions, FormKind, LABELS, Rate, model};
use super::simulated;
use crate::delays::simulated_delays_by_caller;
use crate::experiment::{Findings, LabError, StoredRows, Watch};
use crate::machine::{self, rounded};
use crate::views::{TableView, View};

/// The machine has run for so long when the writer begins.
const BEFORE_S: u64 = 24;
/// Seconds of the writer that do not count, because memory fills.
const FILLING_S: u64 = 10;
/// Bytes of a write.
const BLOCK_BYTES: u64 = 64 << 10;
/// The dirty share of dirtyable memory: `vm.dirty_ratio` of 20 %, rounded as in the kernel.
const DIRTY_OF_4096: u64 = 819;
/// The share of the limit that a FUSE mount has, strictly (`fuse_bdi_init`).
const FUSE_PERCENT: u64 = 1;
/// Memory of the simulated machine if its limits do not depend on it.
const MEMORY_BYTES: u64 = 22 << 30;

const NAMES: &[&str] = &["rate_bytes_per_s", "max_bytes", "dirty_bytes", "seconds", "dirty_limit_bytes", "hz"];

const VIEW: View = View {
    tables: &[TableView::of(
        "A writer at full speed under linux-6.1",
        NAMES,
        &[
            ("accepted, MB/s", "accepted_mb_per_s", 1),
            ("dirty, MB", "dirty_mb", 1),
            ("write p99, ms", "write_p99_ms", 1),
            ("fsync, s", "sync_s", 2),
        ],
        "Accepted and dirty: means after ten seconds.",
    )],
    charts: &[],
    text: include_str!("kernel.md"),
    facts: &[],
    labels: LABELS,
};

/// The machine of a run, and its writer.
#[derive(Clone, Copy)]
struct Machine<'a> {
    rate: &'a Rate,
    seconds: u64,
    dirty_limit_bytes: u64,
    /// Ticks a second.
    hz: u64,
}

/// A setup of the machine.
#[derive(Clone, Copy)]
struct Form {
    name: &'static str,
    /// `max_bytes`, with `strict_limit`; 0 for the kernel's default.
    max_bytes: u64,
    /// `vm.dirty_bytes` and `vm.dirty_background_bytes`; `None` for the machine's settings.
    limit_bytes: Option<(u64, u64)>,
}

/// A run.
struct Written {
    looks: Vec<Look>,
    p99_ns: u64,
    max_ns: u64,
    sync_ns: u64,
    /// The waits of each job for the disk.
    delays: Value,
}

pub(super) fn run(options: &CaseOptions, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let dirty_limit_bytes = options.dirtyable_bytes.unwrap_or(MEMORY_BYTES) / 4096 * DIRTY_OF_4096;
    let forms = forms(options, dirty_limit_bytes);
    // Virtual seconds are cheap, but a page with each rate would say the same again.
    let machine = Machine { rate: &options.rates[0], seconds: options.seconds, dirty_limit_bytes, hz: options.hz };
    let mut plots = Vec::new();
    for (done, form) in forms.iter().enumerate() {
        watch.step(form.name, done as f64 / forms.len() as f64);
        let written = simulate(form, machine)?;
        watch.row(&row(form, machine, &written));
        plots.push(plot(form, machine, &written, ("dirty", Quantity::Memory), |look| look.dirty_bytes));
        plots.push(plot(form, machine, &written, ("accepted", Quantity::Data), |look| look.accepted_bytes));
    }
    Ok(Findings { figures: plots.into_iter().map(Into::into).collect(), ..VIEW.findings(&watch.rows) })
}

fn forms(options: &CaseOptions, dirty_limit_bytes: u64) -> Vec<Form> {
    let CaseOptions { max_bytes, limit_bytes, .. } = *options;
    let of = |name, max_bytes, limit_bytes| Form { name, max_bytes, limit_bytes };
    let form = |kind| match kind {
        FormKind::Tuned => of("kernel-tuned", max_bytes, None),
        FormKind::Bytes => of("kernel-bytes", 0, Some((limit_bytes, limit_bytes / 2))),
        FormKind::Default => of("kernel-default", 0, None),
        FormKind::Fuse => of("kernel-fuse", dirty_limit_bytes * FUSE_PERCENT / 100, None),
    };
    options.forms.iter().map(|kind| form(*kind)).collect()
}

/// A writer at full speed.
pub(super) fn writer(name: &str, seconds: u64) -> Job {
    let mut job = Job::named(name);
    (job.pattern.reads, job.pattern.writes) = (false, true);
    job.block_bytes = [BlockSizes { min: BLOCK_BYTES, max: BLOCK_BYTES }; 2];
    (job.size, job.runtime_ns) = (60 << 30, seconds * 1_000_000_000);
    job
}

fn simulate(form: &Form, machine: Machine<'_>) -> Result<Written, LabError> {
    let mut model = model(machine.rate)?;
    // The kernel's own writeback allocates blocks before it writes, and its requests wait inside the throttle, where no
    // nr_requests bounds them.
    for (key, value) in [("longer_alone", "0"), ("nr_requests", "65536"), ("capacity_bytes", "64 GiB")] {
        model.set(key, value).map_err(LabError::failed)?;
    }
    let device = simulated::device(None, format!("throttled,rate={}", machine.rate.text), model);
    let mut simulation = Simulation::new(simulated::SEED, device);
    simulation.cpus = simulated::CPUS;
    simulation.policy = format!("linux-6.1@{}", machine.hz);
    simulation.memory_bytes = match form.limit_bytes {
        Some(_) => MEMORY_BYTES,
        None => machine.dirty_limit_bytes / DIRTY_OF_4096 * 4096,
    };
    simulation.knobs = vec!["nr_requests=65536".to_owned()];
    if form.max_bytes > 0 {
        simulation.knobs.extend([format!("max_bytes={}", form.max_bytes), "strict_limit=1".to_owned()]);
    }
    if let Some((bytes, background)) = form.limit_bytes {
        simulation.knobs.extend([format!("dirty_bytes={bytes}"), format!("dirty_background_bytes={background}")]);
    }
    let mut own = writer("writer", machine.seconds);
    own.end_fsync = true;
    own.start_delay_ns = BEFORE_S * 1_000_000_000;
    simulation.workloads = vec![Workload::Job(own)];
    let outcome = simulation.run(&mut |_| {}).map_err(LabError::failed)?;
    let (Some(job), Some(device)) = (outcome.jobs.first(), outcome.devices.first()) else {
        return Err(LabError::failed("a run without a job"));
    };
    let p99 = job.write.latency.percentiles_ns.iter().find(|(percentile, _)| *percentile >= 99.0);
    Ok(Written {
        looks: since(simulated::looks(device), BEFORE_S as f64),
        p99_ns: p99.map_or(0, |(_, ns)| *ns),
        max_ns: job.write.latency.max_ns,
        sync_ns: job.closing_sync.latency.max_ns,
        delays: simulated_delays_by_caller(device),
    })
}

/// The looks from an instant on; times are relative to that instant.
fn since(looks: Vec<Look>, start_s: f64) -> Vec<Look> {
    let late = looks.into_iter().filter(|look| look.at_s >= start_s);
    late.map(|look| Look { at_s: look.at_s - start_s, ..look }).collect()
}

/// The figures of a run.
fn metrics(written: &Written, seconds: u64) -> Fields {
    let accepted = |at_s| last_before(&written.looks, at_s).map_or(0.0, |look| look.accepted_bytes as f64);
    let each = |second: u64| (accepted((second + 1) as f64) - accepted(second as f64)) / 1e6;
    let by_second: Vec<f64> = (0..seconds).map(each).collect();
    let within = |look: &&Look| look.at_s >= FILLING_S as f64 && look.at_s <= seconds as f64;
    let dirty: Vec<f64> = written.looks.iter().filter(within).map(|look| look.dirty_bytes as f64).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    Fields::new()
        .with("accepted_mb_per_s", mean(&by_second[FILLING_S as usize..]))
        .with("dirty_mb", mean(&dirty) / 1e6)
        .with("write_p99_ms", written.p99_ns as f64 / 1e6)
        .with("write_max_ms", written.max_ns as f64 / 1e6)
        .with("sync_s", written.sync_ns as f64 / 1e9)
        .with("accepted_mb_by_second", by_second.into_iter().map(|mb| rounded(mb, 1)).collect::<Vec<_>>())
        .with("delays", written.delays.clone())
}

fn row(form: &Form, machine: Machine<'_>, written: &Written) -> Row {
    let (limit_bytes, background_bytes) = form.limit_bytes.unwrap_or_default();
    let params = Fields::new()
        .with("rate_bytes_per_s", machine.rate.bytes_per_s)
        .with("max_bytes", form.max_bytes)
        .with("dirty_bytes", limit_bytes)
        .with("dirty_background_bytes", background_bytes)
        .with("seconds", machine.seconds)
        .with("dirty_limit_bytes", machine.dirty_limit_bytes)
        .with("hz", machine.hz);
    machine::row("throttled", form.name, params, metrics(written, machine.seconds), Fields::new())
}

fn plot(form: &Form, machine: Machine<'_>, written: &Written, what: (&str, Quantity), of: fn(&Look) -> u64) -> Plot {
    let title = format!("{}: {} at {}/s", what.0, form.name, machine.rate.text);
    let points = written.looks.iter().map(|look| (look.at_s, of(look) as f64)).collect();
    let plot = Plot::new(title, Axis::new("time", Quantity::Time), Axis::new(what.0, what.1));
    plot.with(Series::new(form.name, Shape::Line, points))
}

#[cfg(test)]
mod tests;
