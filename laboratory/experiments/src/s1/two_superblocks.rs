//! Superblocks A and B with 100,000 dirty pages each: is A exhausted before B is written?
//!
//! One pdflush thread walks both, A first each time, and passes over a congested queue. The disks write 82 MB/s each;
//! submission takes 2.5 ms of CPU a megabyte (400 MB/s), as S1's reviewer measured it. Writing begins as background
//! writeback, or as the periodic writing of old pages (here: 10 ms).
//!
//! Owns: the case. Does not own: the machine, the policies.
//! Invariants: no page is dirtied while the pages are written.

use afflux_engine::Nanos;
use afflux_kernels::Sysctl;
use afflux_report::{Fields, Row};

use super::machines::{DISK_CACHE_KIB, DiskQueue, Machine, OwnFile, Parameters, Variant, each, params};
use super::options::SharedOptions;
use crate::experiment::{LabError, Watch};
use crate::machine::{self, PAGE_BYTES, Span, rounded, row};

pub(super) const PAGES: u64 = 100_000;
pub(super) const MEMORY_BYTES: u64 = 4 << 30;
pub(super) const CPU_MS_PER_MB: f64 = 2.5;
/// Knobs under which nothing is written by itself. Nor does the periodic job run: in 2.6.31 it takes over the inodes
/// that background writeback has queued, which then ends and leaves them dirty.
pub(super) const NOTHING_WRITTEN: Sysctl = Sysctl {
    dirty_ratio: 80,
    background_ratio: 70,
    background_bytes: 0,
    expire_centisecs: 360_000,
    writeback_centisecs: 0,
    max_ratio: 100,
};
const VARIANTS: [&Variant; 4] = [&Variant::PDFLUSH, &Variant::PLAIN, &Variant::FLUSHERS, &Variant::AFFLUX];
pub(super) const LOOK_NS: u64 = 10 * Nanos::MILLISECOND;
/// Most looks: two minutes of them.
const LOOKS_MAX: u64 = 12_000;

/// The event that begins the writing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WritingTrigger {
    Background,
    Periodic,
}

/// Pages that are dirtied last: one allowance, so that the law is asked once. They are A's. In 2.6.32 a writer wakes
/// the flusher of its own device alone, so there B has such pages, too.
pub(super) const LAST_PAGES: u64 = 1024;
/// Requests, KiB of a request, KiB of a disk's cache.
const QUEUES: [(u64, u64, u64); 4] =
    [(128, 64, DISK_CACHE_KIB), (128, 512, DISK_CACHE_KIB), (2048, 64, DISK_CACHE_KIB), (2048, 512, DISK_CACHE_KIB)];
/// Queues that last a third of a sleep.
const SHORT_QUEUES: [(u64, u64, u64); 2] = [(128, 24, DISK_CACHE_KIB), (128, 24, 0)];
/// Bytes that background writeback may leave dirty.
const LEFT_BYTES: u64 = 64 << 10;

pub(super) fn begin(machine: &Machine, begun: WritingTrigger, files: &[OwnFile], at: u64) -> Result<(), LabError> {
    machine.set(|knobs| match begun {
        WritingTrigger::Background => knobs.background_bytes = PAGE_BYTES,
        WritingTrigger::Periodic => knobs.expire_centisecs = 1,
    })?;
    files.iter().try_for_each(|file| machine.write(file, at, LAST_PAGES))
}

pub(super) fn seconds(ns: u64) -> f64 {
    rounded(machine::seconds(ns), 3)
}

fn run_one(
    variant: &Variant,
    queue: DiskQueue,
    begun: WritingTrigger,
    memory_bytes: u64,
    pages: u64,
    seed: u64,
) -> Result<Row, LabError> {
    let writeback_centisecs = if begun == WritingTrigger::Periodic { 100 } else { 0 };
    let sysctl = Sysctl { writeback_centisecs, ..NOTHING_WRITTEN };
    let parameters = Parameters::of("disk-82", 2, queue, memory_bytes, seed)?;
    let machine = Machine::new(variant, Parameters { cpu_ms_per_mb: CPU_MS_PER_MB, sysctl, ..parameters })?;
    let files = [0, 1].map(|disk| machine.file(disk, 0));
    let last = if variant.has_flushers() { 2 } else { 1 };
    let writers = [0, 1].map(|disk| {
        let pages = if disk < last { pages - LAST_PAGES } else { pages };
        machine.stream(&files[disk], pages * PAGE_BYTES, 64 << 10)
    });
    let all_bytes = pages * PAGE_BYTES - LEFT_BYTES;
    machine.look_until(LOOK_NS, LOOKS_MAX, || writers.iter().all(|writer| writer.has_ended()))?;
    let from = machine.tally();
    begin(&machine, begun, &files[..last], pages - LAST_PAGES)?;
    let mut ended = [None; 2];
    let mut at_end_of_a = None;
    machine.look_until(LOOK_NS, LOOKS_MAX, || {
        let submitted = [0, 1].map(|disk| machine.disks[disk].submitted());
        if at_end_of_a.is_none() && submitted[0].bytes >= all_bytes {
            at_end_of_a = Some(submitted[1].bytes as f64 / (submitted[0].bytes + submitted[1].bytes) as f64);
        }
        for (disk, ended) in ended.iter_mut().enumerate() {
            if ended.is_none() && machine.disks[disk].disk.figures().bytes.1 >= all_bytes {
                *ended = Some(machine.now_ns());
            }
        }
        !ended.contains(&None)
    })?;
    let to = machine.tally();
    let span = Span::between(&from, &to);
    let firsts = [0, 1].map(|disk| machine.disks[disk].submitted().first_ns.unwrap_or(0));
    let began = firsts[0].min(firsts[1]);
    let params = params("two-superblocks", queue, seed)
        .with("begun_as", if begun == WritingTrigger::Background { "background" } else { "periodic" })
        .with("pages", pages)
        .with("cpu_ms_per_mb", CPU_MS_PER_MB);
    let metrics = Fields::new()
        .with("share_of_b", rounded(at_end_of_a.unwrap_or(0.0), 3))
        .with("b_starts_s", seconds(firsts[1].saturating_sub(began)))
        .with("a_ends_s", seconds(ended[0].unwrap_or(began) - began))
        .with("b_ends_s", seconds(ended[1].unwrap_or(began) - began))
        .with("submitters", rounded(span.submitters(), 1))
        .with("pdflush_share", rounded(span.share_of_tasks("pdflush"), 3))
        .with("software", span.software());
    Ok(row("s1", variant.name, params, metrics, Fields::new()))
}

/// The case, for the experiment.
pub(super) fn run(common: &SharedOptions, watch: &mut dyn Watch) -> Result<(), LabError> {
    let of = |queues: &[(u64, u64, u64)], all_begun: &[WritingTrigger]| {
        let settings = common.queues(queues).into_iter();
        let settings = settings.flat_map(|queue| all_begun.iter().map(move |begun| (queue, *begun)));
        settings.flat_map(|setting| VARIANTS.map(|variant| (variant, setting))).collect::<Vec<_>>()
    };
    let mut runs = of(&QUEUES, &[WritingTrigger::Background, WritingTrigger::Periodic]);
    runs.extend(of(&SHORT_QUEUES, &[WritingTrigger::Background]));
    let memory_bytes = common.memory_bytes(MEMORY_BYTES);
    each(watch, "two-superblocks", runs, |variant, (queue, begun)| {
        run_one(variant, queue, begun, memory_bytes, PAGES, common.seed)
    })
}

#[cfg(test)]
mod tests;
