//! The case `kernel`: the law of `linux-6.1` on a disk with a byte rate.
//!
//! One writer, 64 KiB at a time, at full speed for 45 s, then fsync. There are four forms: tuned for the device
//! (`strict_limit`, `max_bytes`), with the machine's limits in bytes, with the kernel's defaults, and as a FUSE mount.
//!
//! Owns: the simulated machine.
//! Does not own: the figures (`written`), rows and tables and charts (`kernel_findings`), the policy. A real kernel
//! beside the same law is in `recorded`.
//! Invariants: a run depends on its options alone.

use afflux_workloads::simulation::Simulation;
use afflux_workloads::{BlockSizes, Job, Workload};

use super::compare::Look;
use super::kernel_findings::KernelFindings;
use super::options::{DIRTYABLE, FORMS, FormKind, LIMIT_BYTES, MAX_BYTES, TICKS, WRITER_SECONDS};
use super::plan::{Rate, model, rates};
use super::simulated;
use super::written::{BLOCK_BYTES, Form, KernelOfRun, Written};
use crate::delays::simulated_delays_by_caller;
use crate::experiment::{Findings, LabError, Request, Watch};

/// The machine has run for so long when the writer begins.
const BEFORE_S: u64 = 24;
/// The dirty share of dirtyable memory: `vm.dirty_ratio` of 20 %, rounded as in the kernel.
const DIRTY_OF_4096: u64 = 819;
/// The share of the limit that a FUSE mount has, strictly (`fuse_bdi_init`).
const FUSE_PERCENT: u64 = 1;
/// Memory of the simulated machine if its limits do not depend on it.
const MEMORY_BYTES: u64 = 22 << 30;

pub(super) fn run(request: &Request, watch: &mut dyn Watch) -> Result<Findings, LabError> {
    let seconds = WRITER_SECONDS.value(request)?;
    let forms = forms(request)?;
    let dirtyable = DIRTYABLE.value_if_given(request)?.unwrap_or(MEMORY_BYTES);
    let kernel = KernelOfRun { dirty_limit_bytes: dirtyable / 4096 * DIRTY_OF_4096, hz: TICKS.value(request)? };
    // Virtual seconds are cheap, but a page with each rate would say the same again.
    let rate = &rates(request)?[0];
    let mut page = KernelFindings::new(rate, seconds, kernel);
    for (done, form) in forms.iter().enumerate() {
        watch.step(form.name, done as f64 / forms.len() as f64);
        page.add(form, &simulate(form, rate, seconds, kernel)?, watch);
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
    Ok(FORMS.list(request)?.into_iter().map(form).collect())
}

/// A writer at full speed.
pub(super) fn writer(name: &str, seconds: u64) -> Job {
    let mut job = Job::named(name);
    (job.pattern.reads, job.pattern.writes) = (false, true);
    job.block_bytes = [BlockSizes { min: BLOCK_BYTES, max: BLOCK_BYTES }; 2];
    (job.size, job.runtime_ns) = (60 << 30, seconds * 1_000_000_000);
    job
}

fn simulate(form: &Form, rate: &Rate, seconds: u64, kernel: KernelOfRun) -> Result<Written, LabError> {
    let mut model = model(rate)?;
    // The kernel's own writeback allocates blocks before it writes, and its requests wait inside the throttle, where no
    // nr_requests bounds them.
    for (key, value) in [("longer_alone", "0"), ("nr_requests", "65536"), ("capacity_bytes", "64 GiB")] {
        model.set(key, value).map_err(LabError::failed)?;
    }
    let device = simulated::device(None, format!("throttled,rate={}", rate.text), model);
    let mut simulation = Simulation::new(simulated::SEED, device);
    simulation.cpus = simulated::CPUS;
    simulation.policy = format!("linux-6.1@{}", kernel.hz);
    simulation.memory_bytes = match form.limit_bytes {
        Some(_) => MEMORY_BYTES,
        None => kernel.dirty_limit_bytes / DIRTY_OF_4096 * 4096,
    };
    simulation.knobs = vec!["nr_requests=65536".to_owned()];
    if form.max_bytes > 0 {
        simulation.knobs.extend([format!("max_bytes={}", form.max_bytes), "strict_limit=1".to_owned()]);
    }
    if let Some((bytes, background)) = form.limit_bytes {
        simulation.knobs.extend([format!("dirty_bytes={bytes}"), format!("dirty_background_bytes={background}")]);
    }
    let mut own = writer("writer", seconds);
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

#[cfg(test)]
mod tests;
