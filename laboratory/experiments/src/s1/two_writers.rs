//! Two writers stream to a stripe set of five disks: the test whose graphs S1 is about.
//!
//! Published: about 400 MB/s and 4,000 to 17,000 IO/s on the graphs of the new code, with nr_requests 2048 and the
//! deadline elevator. The speed of the old code is not stated. Assumed: 4 CPUs, 4 GB. The size of requests is an input:
//! 64 and 24 KB, as the reviewer reads off the graphs for btrfs and XFS.
//!
//! Owns: the case. Does not own: the machine, the policies.
//! Invariants: the count goes from a quarter of the bytes until the first writer has ended.

use afflux_engine::Nanos;
use afflux_report::{Fields, Row};
use afflux_simulator::OffsetSample;

use super::machines::{DISK_CACHE_KIB, DiskQueue, Machine, OwnFile, Parameters, Variant, each, params};
use super::options::SharedOptions;
use crate::experiment::{LabError, Watch};
use crate::machine::{PAGE_BYTES, Sample, Span, Tally, row};

const WRITERS: u64 = 2;
const MEMORY_BYTES: u64 = 4 << 30;
const CALL_BYTES: u64 = 64 << 10;
/// Bytes of each file to read afterwards.
const READ_BYTES_MAX: u64 = 1_000_000_000;
/// Time between samples.
const LOOK_NS: u64 = 100 * Nanos::MILLISECOND;
/// Samples between points of a plot: a second.
pub(super) const PLOTTED: usize = 10;
/// Most virtual time of a run, in looks.
const LOOKS_MAX: u64 = 36_000;

/// The parameters of a run.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Setting {
    pub(super) queue: DiskQueue,
    pub(super) cpu_ms_per_mb: f64,
    /// Bytes of each file.
    pub(super) file_bytes: u64,
    pub(super) memory_bytes: u64,
}

/// A run with its samples for plots.
pub(super) struct Ran {
    pub(super) row: Row,
    pub(super) samples: Vec<Sample>,
    pub(super) offsets: Vec<OffsetSample>,
}

impl Ran {
    /// Bytes and commands a second between the sample `at` and the one plotted before it.
    pub(super) fn rate(&self, at: usize) -> (f64, f64) {
        let (to, from) = (self.samples[at], self.samples[at - PLOTTED]);
        let seconds = to.seconds - from.seconds;
        ((to.bytes - from.bytes) as f64 / seconds, (to.commands - from.commands) as f64 / seconds)
    }
}

pub(super) fn run_one(variant: &Variant, setting: Setting, seed: u64) -> Result<Ran, LabError> {
    let Setting { queue, cpu_ms_per_mb, file_bytes, memory_bytes } = setting;
    let parameters = Parameters::of("lvm-5-disks", 1, queue, memory_bytes, seed)?;
    let machine = Machine::new(variant, Parameters { cpu_ms_per_mb, ..parameters })?;
    let file_bytes = file_bytes / PAGE_BYTES * PAGE_BYTES;
    let files = [0; WRITERS as usize].map(|disk| machine.file(disk, 0));
    let writers = files.each_ref().map(|file| machine.stream(file, file_bytes, CALL_BYTES));
    let mut samples = vec![machine.sample()];
    let mut from = None;
    machine.look_until(LOOK_NS, LOOKS_MAX, || {
        let sample = machine.sample();
        samples.push(sample);
        if sample.bytes * 4 > WRITERS * file_bytes {
            from.get_or_insert_with(|| machine.tally());
        }
        writers.iter().any(|writer| writer.has_ended())
    })?;
    let to = machine.tally();
    let Some(from) = from.filter(|from| from.at_ns < to.at_ns) else {
        return Err(LabError::Failed("the files are too small: all fits into memory".to_owned()));
    };
    let span = Span::between(&from, &to);
    let params = params("two-writers", queue, seed)
        .with("cpu_ms_per_mb", cpu_ms_per_mb)
        .with("file_bytes", file_bytes)
        .with("memory_mib", memory_bytes >> 20)
        .with("allocate_at_submission", queue.queue.at_submission);
    machine.until_ended(&writers, LOOK_NS)?;
    let offsets = machine.disks[0].disk.offsets();
    let read = read_back(&machine, &files, file_bytes)?;
    let metrics = Span::between(&read[0], &read[1]).with_reading(span.metrics(queue.queue.nr_requests));
    let metrics = metrics.with("software", span.software());
    let row = row("s1", variant.name, params, metrics, Fields::new());
    Ok(Ran { row, samples, offsets })
}

/// Reads a part of each file that was written in the counted time. This shows the cost of their layout for a reader.
fn read_back(machine: &Machine, files: &[OwnFile], file_bytes: u64) -> Result<[Tally; 2], LabError> {
    machine.write_all()?;
    let first = file_bytes / 4 / CALL_BYTES * CALL_BYTES;
    machine.read(files, first..first + READ_BYTES_MAX.min(file_bytes / 2), CALL_BYTES)
}

/// Requests, KiB of a request, KiB of a disk's cache. The first is the published one; the caches hide a sleep that
/// outlasts the queue, so the last has none.
const QUEUES: [(u64, u64, u64); 5] = [
    (2048, 64, DISK_CACHE_KIB),
    (2048, 24, DISK_CACHE_KIB),
    (128, 64, DISK_CACHE_KIB),
    (128, 24, DISK_CACHE_KIB),
    (128, 24, 0),
];
/// A quick run has the first and the last. Its files are long enough that the pool has its part: with 1 GB, all of it
/// fits below the limit.
const QUICK_QUEUES: [(u64, u64, u64); 2] = [QUEUES[0], QUEUES[4]];
const FILE_BYTES: u64 = 32_000_000_000;
const QUICK_FILE_BYTES: u64 = 4_000_000_000;

/// The parameters of all runs.
fn settings(common: &SharedOptions) -> Vec<Setting> {
    let (queues, default) =
        if common.quick { (&QUICK_QUEUES[..], QUICK_FILE_BYTES) } else { (&QUEUES[..], FILE_BYTES) };
    let (file_bytes, memory_bytes) = (common.file_bytes.unwrap_or(default), common.memory_bytes(MEMORY_BYTES));
    // A slower CPU changes how full the queue is, and hardly the throughput.
    let cpus_ms_per_mb = if common.quick { &[1.0][..] } else { &[1.0, 2.5] };
    let of = |queue: DiskQueue| {
        let cpus = cpus_ms_per_mb.iter();
        cpus.map(move |cpu_ms_per_mb| Setting { queue, cpu_ms_per_mb: *cpu_ms_per_mb, file_bytes, memory_bytes })
    };
    common.queues(queues).into_iter().flat_map(of).collect()
}

/// The case, for the experiment; returns the runs of the first setting for plots.
pub(super) fn run(common: &SharedOptions, watch: &mut dyn Watch) -> Result<Vec<Ran>, LabError> {
    let variants = [&Variant::PDFLUSH, &Variant::PLAIN, &Variant::FLUSHERS, &Variant::AFFLUX];
    let runs = settings(common).into_iter().flat_map(|setting| variants.map(|variant| (variant, setting)));
    let mut plotted = Vec::new();
    each(watch, "two-writers", runs.collect(), |variant, setting| {
        let ran = run_one(variant, setting, common.seed)?;
        let row = ran.row.clone();
        if plotted.len() < variants.len() {
            plotted.push(ran);
        }
        Ok(row)
    })?;
    Ok(plotted)
}

#[cfg(test)]
mod tests;
