//! How much does background writeback get while a writer that waits for requests holds the queue congested?
//!
//! The rival writes dirty pages of the disk in slices of 4 MiB and waits for each request it needs, as a direct writer
//! or fsync does. Beside it, pages are written back by the pdflush pool of 2.6.31, which leaves a congested queue, or
//! by a flusher, which waits as well.
//!
//! Owns: the case, the rival, the flusher beside it. Does not own: the pool and the steps of all three (`kernels`).
//! Invariants: no writer is throttled: all pages are dirty before writing begins, and enough for all of it.

use std::sync::Arc;

use afflux_engine::{Nanos, Platform};
use afflux_kernels::{Sysctl, Task};
use afflux_report::{Fields, Row};

use super::machines::{DISK_CACHE_KIB, DiskQueue, Machine, Parameters, Variant, params};
use super::options::SharedOptions;
use super::two_superblocks::NOTHING_WRITTEN;
use crate::experiment::{LabError, Watch};
use crate::kernel_machine::KernelMachine;
use crate::machine::{Span, rounded, row};

const MEMORY_BYTES: u64 = 8 << 30;
const SLICE_PAGES: u64 = 1024;
const FILES: u64 = 8;
const FILE_BYTES: u64 = 256 << 20;
const COUNTED_S: u64 = 15;
/// Time between two looks of a task that found nothing to write.
const IDLE_NS: u64 = Nanos::MILLISECOND;

/// The writeback that runs beside the rival.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RivalWriteback {
    Pool,
    BlockingFlusher,
}

/// A task that writes slices of the disk's next file and waits for requests.
fn write_blocking(machine: &KernelMachine, name: &'static str) {
    let (kernel, platform) = (Arc::clone(&machine.kernel), Arc::clone(&machine.platform));
    machine.world.spawn(name, async move {
        let mut task = Task::default();
        loop {
            if kernel.write_back(&mut task, 0, SLICE_PAGES).await == 0 {
                platform.sleep_until(platform.now().after(IDLE_NS)).await;
            }
        }
    });
}

/// With `rival`, the rival starts once the pool is at work, and so does a flusher beside it. Without it the pool has
/// the disk alone.
fn run_one(
    beside: RivalWriteback,
    rival: bool,
    queue: DiskQueue,
    memory_bytes: u64,
    seed: u64,
) -> Result<Row, LabError> {
    let parameters = Parameters::of("disk-82", 1, queue, memory_bytes, seed)?;
    let machine = Machine::new(&Variant::PDFLUSH, Parameters { sysctl: NOTHING_WRITTEN, ..parameters })?;
    let Machine::Kernel(machine) = machine else { unreachable!("a kernel") };
    let writers: Vec<_> = (0..FILES).map(|_| machine.stream(machine.file(0, 0).0, FILE_BYTES, 64 << 10)).collect();
    machine.until_ended(&writers, 100 * Nanos::MILLISECOND)?;
    if beside == RivalWriteback::Pool {
        // From now on too much is dirty, and the next writer that has used up its allowance starts the pool.
        machine.kernel.set(|knobs| *knobs = Sysctl { background_ratio: 1, ..*knobs });
        machine.stream(machine.file(0, 0).0, 64 << 20, 64 << 10);
    }
    machine.sleep(Nanos::SECOND)?;
    if rival {
        write_blocking(&machine, "rival");
    }
    if beside == RivalWriteback::BlockingFlusher {
        write_blocking(&machine, "blocking flusher");
    }
    machine.sleep(Nanos::SECOND)?;
    let from = machine.tally();
    machine.sleep(COUNTED_S * Nanos::SECOND)?;
    let to = machine.tally();
    let span = Span::between(&from, &to);
    let (name, tasks) = match beside {
        RivalWriteback::Pool => (Variant::PDFLUSH.name, "pdflush"),
        RivalWriteback::BlockingFlusher => ("blocking-flusher", "blocking flusher"),
    };
    let metrics = span
        .metrics(queue.queue.nr_requests)
        .with("share_beside_rival", rounded(span.share_of_tasks(tasks), 4))
        .with("share_of_rival", rounded(span.share_of_tasks("rival"), 4))
        .with("software", span.software());
    Ok(row("s1", name, params("blocking-rival", queue, seed), metrics, Fields::new()))
}

/// The case, for the experiment.
pub(super) fn run(common: &SharedOptions, watch: &mut dyn Watch) -> Result<(), LabError> {
    let mut queues = common.queues(&[(128, 64, DISK_CACHE_KIB), (2048, 64, DISK_CACHE_KIB)]);
    queues.dedup();
    for (at, queue) in queues.iter().enumerate() {
        watch.step("blocking-rival", at as f64 / queues.len() as f64);
        for beside in [RivalWriteback::Pool, RivalWriteback::BlockingFlusher] {
            watch.row(&run_one(beside, true, *queue, common.memory_bytes(MEMORY_BYTES), common.seed)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
