//! The case `kernel`: `linux-6.1` in the simulator against the page cache of the kernel of this machine.
//!
//! One writer, 64 KiB at a time, as fast as it may for 45 s, then fsync; on ext4 behind a throttle. Once as
//! the kernel comes, and once tuned: `strict_limit` and `max_bytes` of the device.
//!
//! Owns: the simulated machine that stands for this one, rows, tables and plots of this case.
//! Does not own: the writer on the kernel's side (`plain_writer`), the policy.
//! Invariants: the simulated machine may have as many dirty bytes as the kernel says that this one may.

use std::sync::Arc;

use report::{Align, Axis, Cell, Fields, Plot, Quantity, Row, Series, Shape, Source, Table};
use simulator::catalogue;
use simulator::simulation::{DeviceChoice, Simulation};
use simulator::workload::{BlockSizes, Job, Workload};

use super::compare::{Look, deviation};
use super::plain_writer::{self, Written};
use super::plan::{Rate, directory, model, rates};
use super::{DIRTYABLE, MAX_BYTES, OTHERS_RATE, WRITER_SECONDS, simulated};
use crate::experiment::{Findings, LabError, Request, Watch};
use crate::options;

/// How far apart the two may be.
const GOAL: f64 = 0.15;
/// Most that a limit or a memory may have.
const BYTES_MAX: u64 = 1_000_000_000_000;
/// Seconds that do not count: memory fills.
const FILLING_S: u64 = 10;
/// Bytes of a write.
pub(super) const BLOCK_BYTES: u64 = 64 << 10;
/// How long others have written before the writer begins.
const BEFORE_S: u64 = 10;
/// Where their disk is in the simulation.
const OTHERS: &str = "/others";
/// `vm.dirty_ratio` of the policy and of a kernel that nobody tuned.
const DIRTY_PERCENT: u64 = 20;

/// One way to set the device up.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) name: &'static str,
    /// `max_bytes`, with `strict_limit`; 0: as the kernel comes.
    pub(super) max_bytes: u64,
}

/// What is compared of a side.
struct Figures {
    accepted_mb_per_s: f64,
    plateau_mb: f64,
    p99_ms: f64,
    sync_s: f64,
}

pub(super) fn run(request: &Request, watch: &mut dyn Watch) -> Result<Findings, LabError> {
    let seconds = request.value(&WRITER_SECONDS, options::number(11, 600))?;
    let seconds = if request.quick { seconds.min(20) } else { seconds };
    let bytes = options::size(0, BYTES_MAX);
    let max_bytes = request.value(&MAX_BYTES, &bytes)?;
    let given_bytes = request.value(&DIRTYABLE, options::or_nothing(bytes))?.unwrap_or(0);
    let dirtyable_bytes = match (given_bytes, request.measured) {
        (0, true) => plain_writer::dirty_threshold_bytes()? * 100 / DIRTY_PERCENT,
        (0, false) => 22 << 30,
        (bytes, _) => bytes,
    };
    let others = request.value(&OTHERS_RATE, options::rate(0, 10_000_000_000))?;
    let tuned = Form { name: "kernel-tuned", max_bytes };
    let forms = if request.quick { vec![tuned] } else { vec![tuned, Form { name: "kernel-default", max_bytes: 0 }] };
    let (mut findings, mut table) = (Findings::default(), table());
    // The kernel's side takes minutes at each rate; the first is the one that is asked about.
    let rate = &rates(request)?[0];
    for (done, form) in forms.iter().enumerate() {
        let done = done as f64 / forms.len() as f64;
        watch.step(&format!("{}, simulated", form.name), done);
        let ours = simulate(form, rate, (seconds, others), dirtyable_bytes)?;
        watch.row(&row(form, rate, seconds, dirtyable_bytes, &ours, Source::Simulated, None));
        let mut theirs = None;
        if request.measured {
            watch.step(&format!("{}, measured: {seconds} s, then fsync", form.name), done + 0.05);
            let written = plain_writer::run(form, rate, seconds, &directory(request))?;
            watch.row(&row(form, rate, seconds, dirtyable_bytes, &written, Source::Measured, Some(&ours)));
            theirs = Some(written);
        }
        lines(&mut table, form, seconds, &ours, theirs.as_ref());
        plots(&mut findings, form, rate, &ours, theirs.as_ref());
    }
    table.note(format!(
        "Accepted and dirty: means from second {FILLING_S} to {seconds}. An asterisk: more than 15 % apart."
    ));
    findings.tables.push(table);
    findings.says = says();
    Ok(findings)
}

/// A writer, as fast as it may.
fn writer(name: &str, seconds: u64) -> Job {
    let mut job = Job::named(name);
    (job.pattern.reads, job.pattern.writes) = (false, true);
    job.block_bytes = [BlockSizes { min: BLOCK_BYTES, max: BLOCK_BYTES }; 2];
    (job.size, job.runtime_ns) = (60 << 30, seconds * 1_000_000_000);
    job
}

/// The writer, with others' writes to another disk before and meanwhile: a device's share of the limit is its
/// part of what all have written lately, and a machine has a disk of its own.
fn simulate(
    form: &Form,
    rate: &Rate,
    (seconds, others): (u64, u64),
    dirtyable_bytes: u64,
) -> Result<Written, LabError> {
    let failed = |error: &dyn std::fmt::Display| LabError::Failed(error.to_string());
    let mut model = model(rate)?;
    // The kernel's own writeback has blocks given out before it writes, and its requests wait inside the
    // throttle, where no nr_requests bounds them.
    for (key, value) in [("longer_alone", "0"), ("nr_requests", "65536"), ("capacity_bytes", "64 GiB")] {
        model.set(key, value).map_err(|error| failed(&error))?;
    }
    let make = Arc::new(move |world: &_, number| Ok(catalogue::make(world, number, &model)));
    let device = DeviceChoice { directory: None, model: format!("throttled,rate={}", rate.text), make };
    let mut simulation = Simulation::new(simulated::SEED, device);
    simulation.cpus = simulated::CPUS;
    simulation.policy = "linux-6.1".to_owned();
    simulation.memory_bytes = dirtyable_bytes;
    simulation.knobs = vec!["nr_requests=65536".to_owned()];
    if form.max_bytes > 0 {
        simulation.knobs.extend([format!("max_bytes={}", form.max_bytes), "strict_limit=1".to_owned()]);
    }
    let mut own = writer("writer", seconds);
    own.end_fsync = true;
    simulation.workloads = vec![Workload::Job(own.clone())];
    if others > 0 {
        own.start_delay_ns = BEFORE_S * 1_000_000_000;
        let mut theirs = writer("others", BEFORE_S + seconds);
        (theirs.directories, theirs.rate_bytes) = (vec![OTHERS.to_owned()], [0, others]);
        simulation.workloads = vec![Workload::Job(own), Workload::Job(theirs)];
        let choice = catalogue::DeviceChoice { name: "sata-ssd".to_owned(), overrides: Vec::new() };
        let model = choice.model(None).map_err(|error| failed(&error))?;
        simulation.devices.push(DeviceChoice {
            directory: Some(OTHERS.to_owned()),
            model: "sata-ssd".to_owned(),
            make: Arc::new(move |world: &_, number| Ok(catalogue::make(world, number, &model))),
        });
    }
    let outcome = simulation.run(&mut |_| {}).map_err(|error| failed(&error))?;
    let (Some(job), Some(device)) = (outcome.jobs.first(), outcome.devices.first()) else {
        return Err(LabError::Failed("a run without a job".to_owned()));
    };
    let p99 = job.write.latency.percentiles_ns.iter().find(|(percentile, _)| *percentile >= 99.0);
    Ok(Written {
        looks: since(simulated::looks(device), if others > 0 { BEFORE_S as f64 } else { 0.0 }),
        p99_ns: p99.map_or(0, |(_, ns)| *ns),
        max_ns: job.write.latency.max_ns,
        sync_ns: job.closing_sync.latency.max_ns,
    })
}

/// Looks from an instant on, which becomes the first.
fn since(looks: Vec<Look>, start_s: f64) -> Vec<Look> {
    let late = looks.into_iter().filter(|look| look.at_s >= start_s);
    late.map(|look| Look { at_s: look.at_s - start_s, ..look }).collect()
}

fn accepted_at(looks: &[Look], at_s: f64) -> f64 {
    let after = looks.partition_point(|look| look.at_s <= at_s);
    after.checked_sub(1).map_or(0.0, |at| looks[at].accepted_bytes as f64)
}

/// Megabytes accepted in each second.
fn by_second(written: &Written, seconds: u64) -> Vec<f64> {
    let each = |second: u64| {
        let (from, until) = (second as f64, (second + 1) as f64);
        (accepted_at(&written.looks, until) - accepted_at(&written.looks, from)) / 1e6
    };
    (0..seconds).map(each).collect()
}

fn figures(written: &Written, seconds: u64) -> Figures {
    let settled = by_second(written, seconds).split_off(FILLING_S as usize);
    let within = |look: &&Look| look.at_s >= FILLING_S as f64 && look.at_s <= seconds as f64;
    let dirty: Vec<f64> = written.looks.iter().filter(within).map(|look| look.dirty_bytes as f64).collect();
    Figures {
        accepted_mb_per_s: settled.iter().sum::<f64>() / settled.len().max(1) as f64,
        plateau_mb: dirty.iter().sum::<f64>() / dirty.len().max(1) as f64 / 1e6,
        p99_ms: written.p99_ns as f64 / 1e6,
        sync_s: written.sync_ns as f64 / 1e9,
    }
}

fn row(
    form: &Form,
    rate: &Rate,
    seconds: u64,
    dirtyable_bytes: u64,
    written: &Written,
    source: Source,
    other: Option<&Written>,
) -> Row {
    let own = figures(written, seconds);
    let rounded: Vec<f64> = by_second(written, seconds).iter().map(|mb| (mb * 10.0).round() / 10.0).collect();
    let mut metrics = Fields::new()
        .with("accepted_mb_per_s", own.accepted_mb_per_s)
        .with("dirty_mb", own.plateau_mb)
        .with("write_p99_ms", own.p99_ms)
        .with("write_max_ms", written.max_ns as f64 / 1e6)
        .with("sync_s", own.sync_s)
        .with("accepted_mb_by_second", rounded);
    if let Some(simulated) = other.map(|other| figures(other, seconds)) {
        for (name, ours, theirs) in [
            ("accepted_deviation_percent", simulated.accepted_mb_per_s, own.accepted_mb_per_s),
            ("dirty_deviation_percent", simulated.plateau_mb, own.plateau_mb),
            ("write_p99_deviation_percent", simulated.p99_ms, own.p99_ms),
            ("sync_deviation_percent", simulated.sync_s, own.sync_s),
        ] {
            metrics.push(name, 100.0 * deviation(ours, theirs));
        }
    }
    Row {
        experiment: "throttled".to_owned(),
        variant: form.name.to_owned(),
        params: Fields::new()
            .with("rate_bytes_per_s", rate.bytes_per_s)
            .with("dirtyable_bytes", dirtyable_bytes)
            .with("max_bytes", form.max_bytes)
            .with("seconds", seconds),
        metrics,
        published: Fields::new(),
        source,
    }
}

fn table() -> Table {
    let right = Align::Right;
    Table::new(
        "linux-6.1 simulated, and the kernel of this machine",
        &[
            ("", Align::Left),
            ("", Align::Left),
            ("accepted MB/s", right),
            ("dirty MB", right),
            ("write p99 ms", right),
            ("fsync s", right),
        ],
    )
}

fn lines(table: &mut Table, form: &Form, seconds: u64, ours: &Written, theirs: Option<&Written>) {
    let line = |side: &str, figures: &Figures| {
        [
            form.name.to_owned(),
            side.to_owned(),
            format!("{:.1}", figures.accepted_mb_per_s),
            format!("{:.1}", figures.plateau_mb),
            format!("{:.1}", figures.p99_ms),
            format!("{:.2}", figures.sync_s),
        ]
    };
    let ours = figures(ours, seconds);
    table.row(line("simulated", &ours));
    let Some(theirs) = theirs.map(|theirs| figures(theirs, seconds)) else { return };
    table.row(line("measured", &theirs));
    let percent = |ours: f64, theirs: f64| {
        let share = deviation(ours, theirs);
        let text = format!("{:+.1} %", 100.0 * share);
        if share.abs() > GOAL { Cell::flagged(text) } else { text.into() }
    };
    table.row(vec![
        form.name.into(),
        "deviation".into(),
        percent(ours.accepted_mb_per_s, theirs.accepted_mb_per_s),
        percent(ours.plateau_mb, theirs.plateau_mb),
        percent(ours.p99_ms, theirs.p99_ms),
        percent(ours.sync_s, theirs.sync_s),
    ]);
}

fn plots(findings: &mut Findings, form: &Form, rate: &Rate, ours: &Written, theirs: Option<&Written>) {
    let title = |what: &str| format!("{what}: {} at {}/s", form.name, rate.text);
    let sides = [("simulated", Some(ours)), ("measured", theirs)];
    let mut dirty =
        Plot::new(title("Dirty bytes"), Axis::new("time", Quantity::Time), Axis::new("dirty", Quantity::Memory));
    let mut accepted =
        Plot::new(title("Accepted"), Axis::new("time", Quantity::Time), Axis::new("accepted", Quantity::Data));
    for (name, written) in sides.iter().filter_map(|(name, written)| written.map(|written| (*name, written))) {
        let points =
            |of: &dyn Fn(&Look) -> u64| written.looks.iter().map(|look| (look.at_s, of(look) as f64)).collect();
        dirty = dirty.with(Series::new(name, Shape::Line, points(&|look| look.dirty_bytes)));
        accepted = accepted.with(Series::new(name, Shape::Line, points(&|look| look.accepted_bytes)));
    }
    findings.figures.push(dirty.into());
    findings.figures.push(accepted.into());
}

fn says() -> Vec<String> {
    [
        "The writer is alone on the device and writes 64 KiB at a time as fast as it may; the simulated machine may \
         have as many dirty bytes as this one's kernel says it may. Dirty bytes of the measured side are the \
         device's own where debugfs tells them, else all of the machine's less those at the start.",
        "Untuned, the first gigabytes go to memory as fast as the machine can find pages, and only then the law \
         begins. That takes two seconds on a machine with memory to spare, and half a minute where clean pages have \
         to be reclaimed on busy CPUs; the simulated machine has its memory free. What is compared after the \
         first ten seconds is the law only if the measured machine had filled by then: look at the plots first.",
        "The running kernel is not 6.1. Known to differ (from memory, not measured apart): since 6.2 the device's \
         limits in bytes, which the simulated law has; since 6.13 the device's share is raised under strict_limit \
         while it is small; since 6.16 ext4 writes in large folios, so a writer's account is settled in larger \
         steps. The loop device is told apart by its own writeback being direct: its local throttle is not used.",
    ]
    .map(str::to_owned)
    .to_vec()
}
