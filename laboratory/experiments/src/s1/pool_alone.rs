//! Background writeback alone on the stripe set: does a sleep of pdflush starve the disks?
//!
//! The disks and queues of `two-writers`, but the two files were dirtied before, far below the limit. So no throttled
//! writer writes beside the pool. The disks have a write cache, or have none.
//!
//! Owns: the case. Does not own: the machine, the policies.
//! Invariants: no page is dirtied while the pages are written; the count begins after a quarter of the bytes.

use afflux_engine::Nanos;
use afflux_report::{Fields, Row};

use super::machines::{DISK_CACHE_KIB, DiskQueue, Machine, Parameters, Variant, each, params};
use super::options::SharedOptions;
use super::two_superblocks::{LAST_PAGES, NOTHING_WRITTEN, WritingTrigger, begin};
use crate::experiment::{LabError, Watch};
use crate::machine::{PAGE_BYTES, Span, row};

const MEMORY_BYTES: u64 = 4 << 30;
/// Pages of each file.
const PAGES: u64 = 250_000;
/// Requests, KiB of a request, KiB of a disk's cache. A quick run has the last two, where a sleep outlasts the queue.
const QUEUES: [(u64, u64, u64); 8] = [
    (2048, 64, DISK_CACHE_KIB),
    (2048, 64, 0),
    (2048, 24, DISK_CACHE_KIB),
    (2048, 24, 0),
    (128, 64, DISK_CACHE_KIB),
    (128, 64, 0),
    (128, 24, DISK_CACHE_KIB),
    (128, 24, 0),
];
const LOOK_NS: u64 = 10 * Nanos::MILLISECOND;
/// Most looks: five minutes of them.
const LOOKS_MAX: u64 = 30_000;

fn run_one(variant: &Variant, queue: DiskQueue, memory_bytes: u64, pages: u64, seed: u64) -> Result<Row, LabError> {
    let parameters = Parameters::of("lvm-5-disks", 1, queue, memory_bytes, seed)?;
    let machine = Machine::new(variant, Parameters { sysctl: NOTHING_WRITTEN, ..parameters })?;
    let files = [0; 2].map(|disk| machine.file(disk, 0));
    let writers = [0, 1].map(|at| {
        let pages = if at == 0 { pages - LAST_PAGES } else { pages };
        machine.stream(&files[at], pages * PAGE_BYTES, 64 << 10)
    });
    machine.until_ended(&writers, LOOK_NS)?;
    begin(&machine, WritingTrigger::Background, &files[..1], pages - LAST_PAGES)?;
    // Leaves out the beginning, when the disks' caches fill, and the end, when the queue runs empty.
    let all_bytes = 2 * pages * PAGE_BYTES;
    let mut from = None;
    machine.look_until(LOOK_NS, LOOKS_MAX, || {
        let written = machine.sample().bytes;
        if written >= all_bytes / 4 {
            from.get_or_insert_with(|| machine.tally());
        }
        written >= all_bytes / 20 * 19
    })?;
    let (from, to) = (from.ok_or_else(|| LabError::failed("nothing was written"))?, machine.tally());
    let span = Span::between(&from, &to);
    let metrics = span.metrics(queue.queue.nr_requests).with("software", span.software());
    Ok(row("s1", variant.name, params("pool-alone", queue, seed).with("pages", pages), metrics, Fields::new()))
}

/// The case, for the experiment.
pub(super) fn run(common: &SharedOptions, watch: &mut dyn Watch) -> Result<(), LabError> {
    let variants = [&Variant::PDFLUSH, &Variant::PLAIN, &Variant::FLUSHERS, &Variant::AFFLUX];
    let queues = common.queues(if common.quick { &QUEUES[6..] } else { &QUEUES });
    let memory_bytes = common.memory_bytes(MEMORY_BYTES);
    let runs = queues.into_iter().flat_map(|setting| variants.map(|variant| (variant, setting))).collect();
    each(watch, "pool-alone", runs, |variant, setting| run_one(variant, setting, memory_bytes, PAGES, common.seed))
}

#[cfg(test)]
mod tests;
