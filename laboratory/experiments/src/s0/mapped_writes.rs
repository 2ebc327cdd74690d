//! A program stores into a mapping of 400 to 900 MB on a machine of 3 GB.
//!
//! Every page is dirtied once, in order, and a call itself costs nothing. The runs follow each other on one machine.
//! Its disk has had all completions for a long time, so its share is the whole limit. Each run has a new writer, as a
//! new process would be; the count of all dirtying goes on from run to run. The time of a run covers the storing,
//! without the writeback after it: otherwise every size would give the disk's rate. Chosen to
//! match the rows before the patch: 10.4 µs to fault in and fill a page (400 MB), the page cache's part of the 3 GB, of
//! which a fifth may be dirty (600 MB), and the disk's 54 MiB/s (700 to 900 MB).
//!
//! Owns: the runs of one variant at one size. Does not own: the machine, the kernels.
//! Invariants: a run ends.

use std::collections::BTreeMap;

use afflux_engine::Nanos;
use afflux_kernels::{FirstEvents, InodeId, Part, Path, Sysctl, release};
use serde_json::Value;

use crate::experiment::LabError;
use crate::kernel_machine::{KernelCosts, KernelMachine, KernelMachineOptions};
use crate::machine::{PAGE_BYTES, Queue, Span, queued_model};

/// An Athlon X2 (the post of August 2009).
pub(super) const CPUS: usize = 2;
/// The page cache's part of the 3 GB, in MiB: chosen to match the published 600 MB row before the patch.
pub(super) const MEMORY_MIB: u64 = 2755;
/// Chosen to match the published rows of 700 to 900 MB before the patch.
const DISK_RATE: u64 = 54 << 20;
/// A disk so slow that its dirty pages stay dirty.
const OTHER_DISK_RATE: u64 = 1 << 20;
const QUEUE: Queue = Queue { nr_requests: 128, request_kib: 512, batch: 32, at_submission: false, is_sorted: true };
/// A page: chosen to match the published 374.75 MiB/s at 400 MB. A submitted byte: S1 has 1 to 2.5 ms of CPU for a
/// megabyte.
const COSTS: KernelCosts = KernelCosts { dirty_page_ns: 10_400, write_byte_ns: 1.0 };
/// Bytes stored between two looks at the clock.
const STORED_AT_A_TIME: u64 = 4 * PAGE_BYTES;
const SEED: u64 = 1;
/// Most virtual time of a run, in looks of 100 ms.
const LOOKS_MAX: u64 = 6000;

/// The results of a run.
pub(super) struct Ran {
    pub(super) mib_per_s: f64,
    pub(super) calls: u64,
    pub(super) passes: u64,
    /// Reads of counters shared by all devices, reads of dirty counters among them, and reads of the device's counters.
    pub(super) reads: [u64; 3],
    pub(super) pauses: u64,
    pub(super) pause_s: f64,
    pub(super) written_by_writer_pages: u64,
    /// Times of the writer's first wait and of the first request for background writeback.
    pub(super) first_wait_pages: Option<u64>,
    /// From the run's beginning.
    pub(super) background_ns: Option<u64>,
    pub(super) paths: BTreeMap<Path, u64>,
    pub(super) kernel: Value,
    pub(super) trace_hash: u64,
}

/// A law, and the changed parts of it.
#[derive(Clone, Copy)]
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) parts: &'static [(Part, bool)],
}

impl Variant {
    /// The law as it is.
    pub(super) const fn named(name: &'static str) -> Self {
        Self { name, parts: &[] }
    }
}

/// The parameters of the machine.
#[derive(Clone, Copy)]
pub(super) struct Rig {
    /// The memory of the page cache; a fifth of it may be dirty.
    pub(super) memory_mib: u64,
    /// Requests in the disk's queue.
    pub(super) nr_requests: u64,
    /// MiB that stay dirty for another, slow disk.
    pub(super) others_mib: u64,
    /// Programs that store a part each, at once.
    pub(super) writers: u64,
}

impl Rig {
    /// As in the published runs.
    pub(super) const WHOLE: Self = Self { memory_mib: MEMORY_MIB, nr_requests: 128, others_mib: 0, writers: 1 };
    /// A tenth of the machine, with a limit of 57 MiB and a queue so short that writers write back themselves.
    pub(super) const SMALL: Self = Self { memory_mib: 285, nr_requests: 4, others_mib: 0, writers: 1 };
}

fn machine(variant: Variant, rig: Rig) -> Result<KernelMachine, LabError> {
    let queue = Queue { nr_requests: rig.nr_requests, ..QUEUE };
    let release = release(variant.name).map_err(LabError::failed)?;
    let disk = |rate| {
        let mut disk = queued_model("disk-82", queue)?;
        disk.zones = vec![(1000, rate)];
        Ok::<_, LabError>(disk)
    };
    let mut disks = vec![disk(DISK_RATE)?];
    if rig.others_mib > 0 {
        let mut other = disk(OTHER_DISK_RATE)?;
        // A cache would take in most of it at once.
        other.set("write_cache_bytes", "0").map_err(LabError::failed)?;
        disks.push(other);
    }
    let machine = KernelMachine::boot(KernelMachineOptions {
        seed: SEED,
        cpus: CPUS,
        costs: COSTS,
        memory_bytes: rig.memory_mib << 20,
        release: release.changed(variant.parts),
        sysctl: Sysctl::default(),
        disks: &disks,
        queue,
        partitions: 1,
    })?;
    machine.kernel.remember_completions(0);
    Ok(machine)
}

/// Stores `bytes` in files of a disk; returns the end of the last writer, with all pages still in the cache.
fn store(machine: &KernelMachine, files: &[InodeId], bytes: u64) -> Result<u64, LabError> {
    let each = bytes / files.len() as u64;
    let writers: Vec<_> = files.iter().map(|file| machine.stream(*file, each, STORED_AT_A_TIME)).collect();
    machine.look_until(100 * Nanos::MILLISECOND, LOOKS_MAX, || writers.iter().all(|writer| writer.has_ended()))?;
    Ok(writers.iter().map(|writer| writer.ended_ns()).max().unwrap_or(0))
}

/// One run: its figures are the difference of two tallies.
fn run_one(machine: &KernelMachine, size_mib: u64, writers: u64) -> Result<Ran, LabError> {
    machine.kernel.mark();
    let (paths_before, from) = (machine.kernel.paths(), machine.tally());
    let files: Vec<InodeId> = (0..writers).map(|_| machine.file(0, 0).0).collect();
    let ended_ns = store(machine, &files, size_mib << 20)?;
    let (mut paths, to) = (machine.kernel.paths(), machine.tally());
    for (path, count) in paths_before {
        paths.entry(path).and_modify(|all| *all -= count);
    }
    paths.retain(|_, count| *count > 0);
    let span = Span::between(&from, &to);
    let FirstEvents { wait_pages, background_ns } = machine.kernel.first_events();
    let reads = ["balance_global_reads", "balance_dirty_reads", "balance_device_reads"];
    let ran = Ran {
        mib_per_s: size_mib as f64 / (ended_ns.saturating_sub(from.at_ns) as f64 / 1e9),
        calls: span.count("balance_calls"),
        passes: span.count("balance_passes"),
        reads: reads.map(|name| span.count(name)),
        pauses: span.count("balance_waits"),
        pause_s: span.count("balance_wait_ns") as f64 / 1e9,
        written_by_writer_pages: span.count("balance_written_pages"),
        first_wait_pages: wait_pages,
        background_ns: background_ns.map(|ns| ns - from.at_ns),
        paths,
        kernel: span.software(),
        trace_hash: machine.world.trace_hash(),
    };
    machine.sync()?;
    Ok(ran)
}

/// Runs of a variant, one after the other on one machine, each of which stores `size_mib`.
pub(super) fn run_many(variant: Variant, size_mib: u64, runs: u64, rig: Rig) -> Result<Vec<Ran>, LabError> {
    let machine = machine(variant, rig)?;
    let mut all = Vec::new();
    for run in 0..runs {
        // Starts each run at another point of the kernel's timers.
        machine.sleep(Nanos::SECOND + run * 317 * Nanos::MILLISECOND)?;
        let others = (rig.others_mib > 0).then(|| machine.file(1, 0).0);
        if let Some(others) = others {
            store(&machine, &[others], rig.others_mib << 20)?;
        }
        all.push(run_one(&machine, size_mib, rig.writers)?);
        if let Some(others) = others {
            machine.kernel.truncate(others);
        }
    }
    Ok(all)
}
