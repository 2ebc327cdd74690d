//! sync(2) over disks A and B with 100,000 dirty pages each: one after the other, or begun on both first.
//!
//! According to S1's reviewer, sync's first pass starts writing on every device without waiting, and its second pass
//! waits. Here the first pass is a sync of each disk's file, begun on both at once; without it the second pass would
//! sync them one by one. The disks are those of two-superblocks.
//!
//! Owns: the case. Does not own: the machine, the policies, how the engine syncs a file.
//! Invariants: nothing is written before the sync, and no page is dirtied meanwhile.

use std::future::{Future, poll_fn};
use std::task::Poll;

use afflux_engine::{File, Nanos};
use afflux_report::{Fields, Row};

use super::machines::{DISK_CACHE_KIB, Variant, disk, submission_costs};
use super::options::SharedOptions;
use super::two_superblocks::seconds;
use crate::delays::delays;
use crate::experiment::{LabError, Watch};
use crate::machine::{ExperimentMachine, MachineOptions, PAGE_BYTES, Queue, row};

const PAGES: u64 = 100_000;
const CPUS: usize = 4;
const MEMORY_BYTES: u64 = 4 << 30;
const CPU_MS_PER_MB: f64 = 2.5;
const VARIANTS: [&Variant; 3] = [&Variant::PDFLUSH, &Variant::FLUSHERS, &Variant::AFFLUX];
const LOOK_NS: u64 = 10 * Nanos::MILLISECOND;
/// Most looks: two minutes of them.
const LOOKS_MAX: u64 = 12_000;

/// The order of sync over the disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Passes {
    /// Waits for each disk before the next begins.
    One,
    /// Begins all disks, then waits for them.
    Two,
}

/// Dirties `pages` of a file on each disk.
fn dirty(machine: &ExperimentMachine, pages: u64) -> Result<[File; 2], LabError> {
    let files = [0, 1].map(|disk| machine.file(disk).0);
    let writers = files.each_ref().map(|file| machine.stream(file, pages * PAGE_BYTES, 64 << 10));
    for _ in 0..LOOKS_MAX {
        if writers.iter().all(|writer| writer.has_ended()) {
            return Ok(files);
        }
        machine.sleep(LOOK_NS)?;
    }
    Err(LabError::Failed("pages were not dirty after two minutes of virtual time".to_owned()))
}

/// Syncs both files; returns the time from the begin until each was durable.
fn sync(machine: &ExperimentMachine, files: &[File; 2], passes: Passes) -> Result<[u64; 2], LabError> {
    let began_ns = machine.now_ns();
    let mut syncs = files.each_ref().map(|file| Box::pin(machine.engine.sync(file, 0..u64::MAX)));
    let mut ended = [None; 2];
    let both = poll_fn(|context| {
        for (sync, ended) in syncs.iter_mut().zip(&mut ended) {
            if ended.is_none()
                && let Poll::Ready(result) = sync.as_mut().poll(context)
            {
                *ended = Some(result.map(|()| machine.now_ns() - began_ns));
            }
            // A sync begins at its first poll.
            if ended.is_none() && passes == Passes::One {
                return Poll::Pending;
            }
        }
        let [Some(a), Some(b)] = ended else { return Poll::Pending };
        Poll::Ready(a.and_then(|a| Ok([a, b?])))
    });
    machine.run(both)?.map_err(|error| LabError::Failed(error.to_string()))
}

pub(super) fn run_one(variant: &Variant, passes: Passes, queue: Queue, pages: u64, seed: u64) -> Result<Row, LabError> {
    let machine = ExperimentMachine::without_flushes(MachineOptions {
        seed,
        cpus: CPUS,
        costs: submission_costs(CPU_MS_PER_MB),
        memory_bytes: MEMORY_BYTES,
        setup: variant.setup()?,
        // Nothing is written until the sync.
        knobs: ["dirty_ratio=80", "dirty_background_ratio=70", "dirty_expire_centisecs=360000"]
            .map(str::to_owned)
            .into(),
        disks: vec![disk("disk-82", queue, DISK_CACHE_KIB)?; 2],
        queue,
    })?;
    let files = dirty(&machine, pages)?;
    let [a_ns, b_ns] = sync(&machine, &files, passes)?;
    let params = Fields::new()
        .with("case", "sync-of-two")
        .with("passes", if passes == Passes::One { 1 } else { 2 })
        .with("pages", pages)
        .with("nr_requests", queue.nr_requests)
        .with("request_kib", queue.request_kib)
        .with("cpu_ms_per_mb", CPU_MS_PER_MB)
        .with("seed", seed);
    let metrics = Fields::new()
        .with("a_ends_s", seconds(a_ns))
        .with("b_ends_s", seconds(b_ns))
        .with("delays", delays(&machine.engine, &machine.devices));
    Ok(row("s1", variant.name, params, metrics, Fields::new()))
}

/// The case, for the experiment.
pub(super) fn run(common: &SharedOptions, watch: &mut dyn Watch) -> Result<Vec<Row>, LabError> {
    let mut rows = Vec::new();
    let all = 2 * VARIANTS.len();
    for passes in [Passes::One, Passes::Two] {
        for variant in VARIANTS {
            watch.step(&format!("sync-of-two: {}", variant.name), rows.len() as f64 / all as f64);
            let row = run_one(variant, passes, common.queue(128, 512), PAGES, common.seed)?;
            watch.row(&row);
            rows.push(row);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests;
