//! A machine of 2009 in the simulator: an old kernel over simulated disks, with writers.
//!
//! Owns: the kernel on its hardware, streams of writes. Does not own: the kernel (`kernels`), CPUs and disks
//! (`machine`).
//! Invariants: as for the hardware: every figure is counted in the run, and the same options give the same run.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use afflux_engine::{Device, Platform};
use afflux_kernels::{InodeId, Kernel, Release, SuperBlock, Sysctl, Task};
use afflux_simulator::catalogue::Model;
use afflux_simulator::{CostOf, CostTable, DiskFileId};
use serde_json::Value;

use crate::experiment::LabError;
use crate::machine::{Hardware, PAGE_BYTES, Progress, Queue, Tally, costs};

/// CPU time of a kernel's work.
#[derive(Clone, Copy)]
pub(crate) struct KernelCosts {
    /// Nanoseconds to find, copy and dirty a page.
    pub(crate) dirty_page_ns: u64,
    /// Nanoseconds to submit a byte.
    pub(crate) write_byte_ns: f64,
}

/// The parameters of a machine.
pub(crate) struct KernelMachineOptions<'a> {
    pub(crate) seed: u64,
    pub(crate) cpus: usize,
    pub(crate) costs: KernelCosts,
    pub(crate) memory_bytes: u64,
    pub(crate) release: Release,
    pub(crate) sysctl: Sysctl,
    pub(crate) disks: &'a [Model],
    pub(crate) queue: Queue,
    /// File systems on each disk.
    pub(crate) partitions: usize,
}

/// A running kernel on its machine.
pub(crate) struct KernelMachine {
    pub(crate) hardware: Hardware,
    pub(crate) kernel: Arc<Kernel>,
    /// The file systems, by disk and partition.
    pub(crate) supers: Vec<Vec<SuperBlock>>,
}

impl Deref for KernelMachine {
    type Target = Hardware;

    fn deref(&self) -> &Hardware {
        &self.hardware
    }
}

/// CPU time of a poll and of a switch. Everything else the kernel charges itself.
fn scheduler_costs() -> CostTable {
    costs("a machine of 2009", &[(CostOf::Step, 1000.0, "assumed"), (CostOf::Switch, 2000.0, "assumed")])
}

impl KernelMachine {
    pub(crate) fn boot(options: KernelMachineOptions<'_>) -> Result<Self, LabError> {
        let KernelMachineOptions { seed, cpus, costs, queue, .. } = options;
        // Barriers did not pass LVM, and were off in ext3 unless asked for.
        let hardware = Hardware::new(seed, cpus, scheduler_costs(), options.disks, false);
        let queue = afflux_kernels::QueueOptions {
            nr_requests: queue.nr_requests,
            request_pages: queue.request_kib * 1024 / PAGE_BYTES,
            batch: queue.batch,
        };
        let disk = |disk: &Arc<_>| (Arc::clone(disk) as Arc<dyn Device>, queue);
        hardware.disks.iter().for_each(|watched| watched.disk.keep_stamps());
        let machine = afflux_kernels::MachineOptions {
            memory_pages: options.memory_bytes / PAGE_BYTES,
            cpus,
            sysctl: options.sysctl,
            dirty_page_ns: costs.dirty_page_ns,
            write_page_ns: (costs.write_byte_ns * PAGE_BYTES as f64) as u64,
            disks: hardware.disks.iter().map(disk).collect(),
        };
        let kernel = Kernel::boot(&hardware.platform, options.release, machine);
        let kernel = kernel.map_err(LabError::failed)?;
        let mounted = |disk| (0..options.partitions).map(|_| kernel.mount(disk)).collect();
        let supers = (0..options.disks.len()).map(mounted).collect();
        Ok(Self { hardware, kernel, supers })
    }

    /// An empty file in a partition of a disk.
    pub(crate) fn file(&self, disk: usize, partition: usize) -> (InodeId, DiskFileId) {
        let inner = &self.disks[disk].disk;
        let id = inner.create_file();
        (self.kernel.create(self.supers[disk][partition], inner.backing(id)), id)
    }

    /// A task that writes so many bytes to the file in calls of `call_bytes`, in sequence and at full speed.
    pub(crate) fn stream(&self, file: InodeId, bytes: u64, call_bytes: u64) -> Arc<Progress> {
        let progress = Arc::new(Progress::default());
        let (kernel, platform, own) = (Arc::clone(&self.kernel), Arc::clone(&self.platform), Arc::clone(&progress));
        self.world.spawn("writer", async move {
            let (mut task, pages) = (Task::default(), bytes / PAGE_BYTES);
            let mut at = 0;
            while at < pages {
                let count = (call_bytes / PAGE_BYTES).min(pages - at);
                kernel.write(&mut task, file, at, count).await;
                at += count;
                platform.preemption_point().await;
            }
            own.end(platform.now().0);
        });
        progress
    }

    /// Writes everything and waits for it.
    pub(crate) fn sync(&self) -> Result<(), LabError> {
        let all: Vec<SuperBlock> = self.supers.iter().flatten().copied().collect();
        let mut task = Task::default();
        self.run(self.kernel.sync(&mut task, &all, true)).map(|_| ())
    }

    /// All counts so far.
    pub(crate) fn tally(&self) -> Tally {
        let figures = self.kernel.figures();
        let counts = BTreeMap::from([
            ("nr_dirtied", figures.dirtied),
            ("nr_written", figures.written),
            ("balance_calls", figures.calls),
            ("balance_passes", figures.passes),
            ("balance_global_reads", figures.reads.global),
            ("balance_dirty_reads", figures.reads.dirty),
            ("balance_device_reads", figures.reads.device),
            ("balance_written_pages", figures.written_by_writers),
            ("balance_waits", figures.waits),
            ("balance_wait_ns", figures.wait_ns),
            ("pdflush_refused", figures.pdflush_refused),
        ]);
        self.hardware.tally(counts, Value::Null)
    }
}
