//! sync(2) over disks A and B with 100,000 dirty pages each: one after the other, or begun on both first.
//!
//! According to S1's reviewer, sync's first pass starts writing on every device without waiting, and its second pass
//! waits. The kernels' `sync` has both; with one pass only the second is made. In the engine both files are synced, one
//! after the other or begun at once. The disks are those of two-superblocks.
//!
//! Owns: the case. Does not own: the machine, the kernels' `sync`, how the engine syncs a file.
//! Invariants: nothing is written before the sync, and no page is dirtied meanwhile.

use afflux_engine::File;
use afflux_kernels::Task;
use afflux_report::{Fields, Row};
use futures_util::future::try_join;
use serde_json::Value;

use super::machines::{DISK_CACHE_KIB, DiskQueue, Machine, OwnFile, Parameters, Variant, each, params};
use super::options::SharedOptions;
use super::two_superblocks::{CPU_MS_PER_MB, LOOK_NS, MEMORY_BYTES, NOTHING_WRITTEN, PAGES, seconds};
use crate::delays::delays;
use crate::experiment::{LabError, Watch};
use crate::machine::{ExperimentMachine, PAGE_BYTES, row};

const VARIANTS: [&Variant; 3] = [&Variant::PDFLUSH, &Variant::FLUSHERS, &Variant::AFFLUX];

/// The order of sync over the disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Passes {
    /// Waits for each disk before the next begins.
    One,
    /// Begins all disks, then waits for them.
    Two,
}

/// The times from the begin of a sync of everything until each disk was durable, and the engine's account of waits.
fn sync(machine: &Machine, files: &[OwnFile; 2], passes: Passes) -> Result<([u64; 2], Value), LabError> {
    let began_ns = machine.now_ns();
    let ends_ns = match machine {
        Machine::Kernel(machine) => {
            let all: Vec<_> = machine.supers.iter().flatten().copied().collect();
            let mut task = Task::default();
            machine.run(machine.kernel.sync(&mut task, &all, passes == Passes::Two))?
        }
        Machine::Engine(machine) => sync_files(machine, files.each_ref().map(OwnFile::of_engine), passes)?,
    };
    let delays = match machine {
        Machine::Kernel(_) => Value::Null,
        Machine::Engine(machine) => delays(&machine.engine, &machine.devices),
    };
    Ok(([0, 1].map(|disk| ends_ns[disk] - began_ns), delays))
}

/// Syncs both files of an engine; returns the instants at which each was durable.
fn sync_files(machine: &ExperimentMachine, files: [&File; 2], passes: Passes) -> Result<Vec<u64>, LabError> {
    let [a, b] = files.map(async |file| machine.engine.sync(file, 0..u64::MAX).await.map(|()| machine.now_ns()));
    let ended = match passes {
        Passes::One => machine.run(async { Ok(vec![a.await?, b.await?]) })?,
        Passes::Two => machine.run(try_join(a, b))?.map(|(a, b)| vec![a, b]),
    };
    ended.map_err(|error: afflux_engine::Error| LabError::failed(error))
}

fn run_one(
    variant: &Variant,
    queue: DiskQueue,
    passes: Passes,
    memory_bytes: u64,
    pages: u64,
    seed: u64,
) -> Result<Row, LabError> {
    let parameters = Parameters::of("disk-82", 2, queue, memory_bytes, seed)?;
    let parameters = Parameters { cpu_ms_per_mb: CPU_MS_PER_MB, sysctl: NOTHING_WRITTEN, ..parameters };
    let machine = Machine::new(variant, parameters)?;
    let files = [0, 1].map(|disk| machine.file(disk, 0));
    let writers = files.each_ref().map(|file| machine.stream(file, pages * PAGE_BYTES, 64 << 10));
    machine.until_ended(&writers, LOOK_NS)?;
    let ([a_ns, b_ns], delays) = sync(&machine, &files, passes)?;
    let params = params("sync-of-two", queue, seed)
        .with("passes", if passes == Passes::One { 1 } else { 2 })
        .with("pages", pages)
        .with("cpu_ms_per_mb", CPU_MS_PER_MB);
    let metrics = Fields::new().with("a_ends_s", seconds(a_ns)).with("b_ends_s", seconds(b_ns)).with("delays", delays);
    Ok(row("s1", variant.name, params, metrics, Fields::new()))
}

/// The case, for the experiment.
pub(super) fn run(common: &SharedOptions, watch: &mut dyn Watch) -> Result<(), LabError> {
    let runs = [Passes::One, Passes::Two].into_iter();
    let runs = runs.flat_map(|passes| VARIANTS.map(|variant| (variant, passes))).collect();
    let (memory_bytes, queue) = (common.memory_bytes(MEMORY_BYTES), common.queues(&[(128, 512, DISK_CACHE_KIB)])[0]);
    each(watch, "sync-of-two", runs, |variant, passes| {
        run_one(variant, queue, passes, memory_bytes, PAGES, common.seed)
    })
}

#[cfg(test)]
mod tests;
