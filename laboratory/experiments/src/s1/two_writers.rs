//! Two writers stream to a stripe set of five disks: the test whose graphs S1 is about.
//!
//! Published: about 400 MB/s and 4,000 to 17,000 IO/s on the graphs of the new code, with nr_requests 2048 and the
//! deadline elevator. The speed of the old code is not stated. Assumed: 4 CPUs, 4 GB. The size of requests is an input:
//! 64 and 24 KB, as the reviewer reads off the graphs for btrfs and XFS.
//!
//! Owns: the case. Does not own: the machine, the policies.
//! Invariants: the count goes from a quarter of the bytes until the first writer has ended.

use afflux_engine::Nanos;
use afflux_kernels::Sysctl;
use afflux_report::{Fields, Row};
use afflux_simulator::OffsetSample;

use super::machines::{DISK_CACHE_KIB, Machine, OwnFile, Parameters, Variant, disk};
use super::options::SharedOptions;
use crate::experiment::{LabError, Watch};
use crate::machine::{PAGE_BYTES, Queue, Sample, Span, Tally, row};

const WRITERS: u64 = 2;
const CPUS: usize = 4;
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
#[derive(Clone, Copy)]
pub(super) struct Setting {
    pub(super) queue: Queue,
    /// KiB of each disk's write cache.
    pub(super) cache_kib: u64,
    pub(super) cpu_ms_per_mb: f64,
    /// Bytes of each file.
    pub(super) file_bytes: u64,
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
    let Setting { queue, cache_kib, cpu_ms_per_mb, file_bytes } = setting;
    let machine = Machine::new(
        variant,
        Parameters {
            seed,
            cpus: CPUS,
            cpu_ms_per_mb,
            memory_bytes: MEMORY_BYTES,
            sysctl: Sysctl::default(),
            disks: vec![disk("lvm-5-disks", queue, cache_kib)?],
            queue,
            partitions: 1,
        },
    )?;
    let file_bytes = file_bytes / PAGE_BYTES * PAGE_BYTES;
    let files = [0; WRITERS as usize].map(|disk| machine.file(disk, 0));
    let writers = files.each_ref().map(|file| machine.stream(file, file_bytes, CALL_BYTES));
    let mut samples = vec![machine.sample()];
    let (mut from, mut looks) = (None, 0);
    let to = loop {
        machine.sleep(LOOK_NS)?;
        let sample = machine.sample();
        samples.push(sample);
        if from.is_none() && sample.bytes * 4 > WRITERS * file_bytes {
            from = Some(machine.tally());
        }
        looks += 1;
        if writers.iter().any(|writer| writer.has_ended()) {
            break machine.tally();
        }
        if looks > LOOKS_MAX {
            return Err(LabError::Failed(format!("{}: not done after an hour of virtual time", variant.name)));
        }
    };
    let Some(from) = from.filter(|from| from.at_ns < to.at_ns) else {
        return Err(LabError::Failed("the files are too small: all fits into memory".to_owned()));
    };
    let span = Span::between(&from, &to);
    let params = Fields::new()
        .with("case", "two-writers")
        .with("nr_requests", queue.nr_requests)
        .with("request_kib", queue.request_kib)
        .with("request_batch", queue.batch)
        .with("disk_cache_kib", cache_kib)
        .with("cpu_ms_per_mb", cpu_ms_per_mb)
        .with("file_bytes", file_bytes)
        .with("allocate_at_submission", queue.at_submission)
        .with("seed", seed);
    machine.until_ended(&writers, LOOK_NS)?;
    let offsets = machine.disks[0].disk.offsets();
    let read = read_back(&machine, &files, file_bytes)?;
    let metrics = Span::between(&read[0], &read[1]).with_reading(span.metrics(queue.nr_requests));
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

/// The case, for the experiment; also returns the runs at 2048 requests of 64 KB for plots.
pub(super) fn run(common: &SharedOptions, watch: &mut dyn Watch) -> Result<(Vec<Row>, Vec<Ran>), LabError> {
    let file_bytes = common.file_bytes.unwrap_or(if common.quick { 1_000_000_000 } else { 32_000_000_000 });
    let requests: Vec<u64> = common.request_kib.map_or_else(|| vec![64, 24], |kib| vec![kib]);
    let variants = [&Variant::PDFLUSH, &Variant::PLAIN, &Variant::FLUSHERS, &Variant::AFFLUX];
    let mut settings = Vec::new();
    for nr_requests in [2048, 128] {
        for request_kib in &requests {
            // A slower CPU changes how full the queue is, and hardly the throughput.
            let cpus_ms_per_mb = if common.quick { &[1.0][..] } else { &[1.0, 2.5] };
            for &cpu_ms_per_mb in cpus_ms_per_mb {
                let queue = common.queue(nr_requests, *request_kib);
                let cache_kib = common.cache_kib.unwrap_or(DISK_CACHE_KIB);
                settings.push(Setting { queue, cache_kib, cpu_ms_per_mb, file_bytes });
            }
        }
        // The disks' caches hide a sleep that outlasts the queue, so these settings also run without caches.
        if nr_requests == 128 && common.cache_kib.is_none() {
            let shortest = requests.iter().copied().min().unwrap_or(24);
            let queue = common.queue(nr_requests, shortest);
            settings.push(Setting { queue, cache_kib: 0, cpu_ms_per_mb: 1.0, file_bytes });
        }
    }
    let all = settings.len() * variants.len();
    let (mut rows, mut plotted) = (Vec::new(), Vec::new());
    for setting in settings {
        let Setting { queue, cache_kib, cpu_ms_per_mb, .. } = setting;
        let (nr_requests, request_kib) = (queue.nr_requests, queue.request_kib);
        for variant in variants {
            let name = variant.name;
            let what = format!("two-writers, {nr_requests} x {request_kib} KB, {cpu_ms_per_mb} ms/MB: {name}");
            watch.step(&what, rows.len() as f64 / all as f64);
            let ran = run_one(variant, setting, common.seed)?;
            watch.row(&ran.row);
            rows.push(ran.row.clone());
            if nr_requests == 2048 && request_kib == requests[0] && cpu_ms_per_mb == 1.0 && cache_kib > 0 {
                plotted.push(ran);
            }
        }
    }
    Ok((rows, plotted))
}

#[cfg(test)]
mod tests;
