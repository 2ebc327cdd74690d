//! The case `kernel`: `linux-6.1` in the simulator against the page cache of the kernel of this machine.
//!
//! One writer, 64 KiB at a time, at full speed for 45 s, then fsync; on ext4 behind a throttle. There are three forms:
//! tuned for the device (`strict_limit`, `max_bytes`), with the machine's limits in bytes, and with the kernel's
//! defaults.
//!
//! Owns: the simulated machine that stands for this one.
//! Does not own: the writer on the kernel's side (`plain_writer`), its surroundings (`surroundings`), the compared
//! figures (`written`), rows and tables and charts (`kernel_findings`), the policy.
//! Invariants: in a measured run, the simulated machine has all known properties of this one. Only the law and the disk
//! differ, and they are compared.

use afflux_workloads::simulation::Simulation;
use afflux_workloads::{BlockSizes, Job, Workload};

use super::compare::Look;
use super::kernel_findings::{Compared, KernelFindings};
use super::options::{DIRTYABLE, FORMS, FormKind, LIMIT_BYTES, MAX_BYTES, OTHERS_RATE, TICKS, WRITER_SECONDS};
use super::plain_writer;
use super::plan::{Rate, model, rates};
use super::simulated;
use super::surroundings::{BEFORE_S, PIECE, Surroundings};
use super::written::{BLOCK_BYTES, Form, Written};
use crate::contenders::engine_options::directory;
use crate::delays::simulated_delays_by_caller;
use crate::experiment::{Findings, LabError, Request, Watch};
use crate::machine;

/// The other programs' disk in the simulation.
const OTHERS: &str = "/others";
/// The dirty share of dirtyable memory: `vm.dirty_ratio` of 20 %, rounded as in the kernel.
const DIRTY_OF_4096: u64 = 819;
/// The share of the limit that a FUSE mount has, strictly (`fuse_bdi_init`).
const FUSE_PERCENT: u64 = 1;
/// The other programs' writes between two syncs: the kernel's flusher writes the pages that it finds at once.
const OTHERS_SYNC_EVERY: u64 = 16;
/// Memory of the simulated machine if its limits do not depend on it.
const MEMORY_BYTES: u64 = 22 << 30;

pub(super) fn run(request: &Request, watch: &mut dyn Watch) -> Result<Findings, LabError> {
    // Virtual seconds are cheap, so only what is measured gets shorter.
    let is_short = request.quick && request.measured;
    let seconds = if is_short { WRITER_SECONDS.value_or_quick(request, 20)? } else { WRITER_SECONDS.value(request)? };
    let forms = forms(request)?;
    let given = given(request, seconds)?;
    // The kernel's side takes minutes at each rate, so only the first rate is run.
    let rate = &rates(request)?[0];
    let mut page = KernelFindings::new(rate, seconds);
    for (done, form) in forms.iter().enumerate() {
        let done = done as f64 / forms.len() as f64;
        let mut surroundings = given.clone();
        let mut theirs = None;
        if request.measured {
            watch.step(&format!("{}, measured: {seconds} s, then fsync", form.name), done);
            let (written, found) = plain_writer::run(form, rate, seconds, &directory(request)?)?;
            surroundings = found;
            theirs = Some(written);
        }
        watch.step(&format!("{}, simulated", form.name), done + 0.9 / forms.len() as f64);
        let ours = simulate(form, rate, seconds, &surroundings)?;
        page.add(&Compared { form, surroundings: &surroundings, ours: &ours, theirs: theirs.as_ref() }, watch);
    }
    Ok(page.findings())
}

fn forms(request: &Request) -> Result<Vec<Form>, LabError> {
    let max_bytes = MAX_BYTES.value(request)?;
    let limit_bytes = LIMIT_BYTES.value(request)?;
    let dirtyable = DIRTYABLE.value_if_given(request)?.unwrap_or(MEMORY_BYTES);
    let fuse_bytes = dirtyable / 4096 * DIRTY_OF_4096 * FUSE_PERCENT / 100;
    let form = |kind| match kind {
        FormKind::Tuned => Form { name: "kernel-tuned", max_bytes, limit_bytes: None },
        FormKind::Bytes => {
            Form { name: "kernel-bytes", max_bytes: 0, limit_bytes: Some((limit_bytes, limit_bytes / 2)) }
        }
        FormKind::Default => Form { name: "kernel-default", max_bytes: 0, limit_bytes: None },
        FormKind::Fuse => Form { name: "kernel-fuse", max_bytes: fuse_bytes, limit_bytes: None },
    };
    let forms: Vec<Form> = FORMS.list(request)?.into_iter().map(form).collect();
    let is_one = request.quick && request.measured && !request.gives(&FORMS.info);
    Ok(if is_one { forms.into_iter().take(1).collect() } else { forms })
}

/// The surroundings of a run that is only simulated.
fn given(request: &Request, seconds: u64) -> Result<Surroundings, LabError> {
    let dirtyable = DIRTYABLE.value_if_given(request)?.unwrap_or(MEMORY_BYTES);
    let others = OTHERS_RATE.value(request)?;
    let hz = TICKS.value(request)?;
    Ok(Surroundings {
        dirty_limit_bytes: dirtyable / 4096 * DIRTY_OF_4096,
        hz,
        filling_bytes: Vec::new(),
        others_bytes: vec![others; (BEFORE_S + seconds) as usize],
        late_p99_ns: 0,
    })
}

/// A writer at full speed.
pub(super) fn writer(name: &str, seconds: u64) -> Job {
    let mut job = Job::named(name);
    (job.pattern.reads, job.pattern.writes) = (false, true);
    job.block_bytes = [BlockSizes { min: BLOCK_BYTES, max: BLOCK_BYTES }; 2];
    (job.size, job.runtime_ns) = (60 << 30, seconds * 1_000_000_000);
    job
}

/// The data that the writer writes while memory fills, piece by piece, at the measured speed.
fn filling(surroundings: &Surroundings) -> Vec<Job> {
    let pieces = surroundings.filling_bytes.iter().enumerate().filter(|(_, bytes)| **bytes >= BLOCK_BYTES);
    let piece_ns = PIECE.as_nanos() as u64;
    let job = |(piece, bytes): (usize, &u64)| {
        let mut job = writer(&format!("filling-{piece}"), 1);
        (job.size, job.runtime_ns) = (*bytes / BLOCK_BYTES * BLOCK_BYTES, 0);
        job.rate_bytes = [0, bytes * (1_000_000_000 / piece_ns)];
        job.start_delay_ns = BEFORE_S * 1_000_000_000 + piece as u64 * piece_ns;
        job
    };
    pieces.map(job).collect()
}

/// The other programs' writes to their disk, second by second.
fn others(surroundings: &Surroundings) -> Vec<Job> {
    let wrote = surroundings.others_bytes.iter().enumerate().filter(|(_, bytes)| **bytes >= BLOCK_BYTES);
    let job = |(second, bytes): (usize, &u64)| {
        let mut job = writer(&format!("others-{second}"), 1);
        (job.directories, job.rate_bytes) = (vec![OTHERS.to_owned()], [0, *bytes]);
        job.size = bytes.next_multiple_of(BLOCK_BYTES);
        job.start_delay_ns = second as u64 * 1_000_000_000;
        (job.fsync_every, job.end_fsync) = (OTHERS_SYNC_EVERY, true);
        job
    };
    wrote.map(job).collect()
}

/// The writer, with other programs' writes to another disk before and meanwhile. A device's share of the limit is its
/// part of all recent writes, and a machine has a disk of its own.
fn simulate(form: &Form, rate: &Rate, seconds: u64, surroundings: &Surroundings) -> Result<Written, LabError> {
    let mut model = model(rate)?;
    // The kernel's own writeback allocates blocks before it writes, and its requests wait inside the throttle, where no
    // nr_requests bounds them.
    for (key, value) in [("longer_alone", "0"), ("nr_requests", "65536"), ("capacity_bytes", "64 GiB")] {
        model.set(key, value).map_err(LabError::failed)?;
    }
    let device = simulated::device(None, format!("throttled,rate={}", rate.text), model);
    let mut simulation = Simulation::new(simulated::SEED, device);
    simulation.cpus = simulated::CPUS;
    simulation.policy = format!("linux-6.1@{}", surroundings.hz);
    simulation.memory_bytes = match form.limit_bytes {
        Some(_) => MEMORY_BYTES,
        None => surroundings.dirty_limit_bytes / DIRTY_OF_4096 * 4096,
    };
    simulation.knobs = vec!["nr_requests=65536".to_owned()];
    if form.max_bytes > 0 {
        simulation.knobs.extend([format!("max_bytes={}", form.max_bytes), "strict_limit=1".to_owned()]);
    }
    if let Some((bytes, background)) = form.limit_bytes {
        simulation.knobs.extend([format!("dirty_bytes={bytes}"), format!("dirty_background_bytes={background}")]);
    }
    let (filling_ns, others) = (surroundings.filling().as_nanos() as u64, others(surroundings));
    let mut own = writer("writer", seconds);
    own.end_fsync = true;
    own.start_delay_ns = BEFORE_S * 1_000_000_000 + filling_ns;
    own.runtime_ns -= filling_ns;
    let beside = !others.is_empty();
    let jobs = std::iter::once(own).chain(filling(surroundings)).chain(others);
    simulation.workloads = jobs.map(Workload::Job).collect();
    if beside {
        let model = machine::model("sata-ssd", &[])?;
        simulation.devices.push(simulated::device(Some(OTHERS), "sata-ssd".to_owned(), model));
    }
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
        delays: Some(simulated_delays_by_caller(device)),
    })
}

/// The looks from an instant on; times are relative to that instant.
fn since(looks: Vec<Look>, start_s: f64) -> Vec<Look> {
    let late = looks.into_iter().filter(|look| look.at_s >= start_s);
    late.map(|look| Look { at_s: look.at_s - start_s, ..look }).collect()
}

#[cfg(test)]
mod tests;
