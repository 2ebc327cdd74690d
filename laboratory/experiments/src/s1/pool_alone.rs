//! Background writeback alone on the stripe set: does a sleep of pdflush starve the disks?
//!
//! The disks and queues of `two-writers`, but the two files were dirtied before, far below the limit. So no throttled
//! writer writes beside the pool. The disks have a write cache, or have none.
//!
//! Owns: the case. Does not own: the machine, the policies.
//! Invariants: no page is dirtied while the pages are written; the count begins after a quarter of the bytes.

use afflux_engine::Nanos;
use afflux_report::{Fields, Row};

use super::machines::{DISK_CACHE_KIB, Machine, Parameters, Variant, disk, each};
use super::options::SharedOptions;
use super::two_superblocks::{LAST_PAGES, NOTHING_WRITTEN, WritingTrigger, begin};
use crate::experiment::{LabError, Watch};
use crate::machine::{PAGE_BYTES, Queue, Span, row};

const CPUS: usize = 4;
const MEMORY_BYTES: u64 = 4 << 30;
const CPU_MS_PER_MB: f64 = 1.0;
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

fn run_one(
    variant: &Variant,
    (queue, cache_kib): (Queue, u64),
    memory_bytes: u64,
    pages: u64,
    seed: u64,
) -> Result<Row, LabError> {
    let machine = Machine::new(
        variant,
        Parameters {
            seed,
            cpus: CPUS,
            cpu_ms_per_mb: CPU_MS_PER_MB,
            memory_bytes,
            sysctl: NOTHING_WRITTEN,
            disks: vec![disk("lvm-5-disks", queue, cache_kib)?],
            queue,
            partitions: 1,
        },
    )?;
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
    for _ in 0..LOOKS_MAX {
        machine.sleep(LOOK_NS)?;
        let written = machine.sample().bytes;
        if written < all_bytes / 4 {
            continue;
        }
        let from = from.get_or_insert_with(|| machine.tally());
        if written < all_bytes / 20 * 19 {
            continue;
        }
        let to = machine.tally();
        let span = Span::between(from, &to);
        let params = Fields::new()
            .with("case", "pool-alone")
            .with("nr_requests", queue.nr_requests)
            .with("request_kib", queue.request_kib)
            .with("request_batch", queue.batch)
            .with("disk_cache_kib", cache_kib)
            .with("pages", pages)
            .with("seed", seed);
        let metrics = span.metrics(queue.nr_requests).with("software", span.software());
        return Ok(row("s1", variant.name, params, metrics, Fields::new()));
    }
    Err(LabError::Failed(format!("{}: not done after five minutes of virtual time", variant.name)))
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
