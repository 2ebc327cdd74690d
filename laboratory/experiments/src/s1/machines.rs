//! The kernels, disks and costs of s1's cases, and the machine of a run.
//!
//! Owns: the variants, the disk with its queue and cache, CPU time of a step; a machine with a kernel or with the
//! engine; the steps and rows of a case.
//! Does not own: the hardware (`machine`), the kernels (`kernels`), the engine's policies, the cases.
//! Invariants: two variants of kernels differ in their release and in the end of its waits alone.

use std::ops::{Deref, Range};
use std::sync::Arc;

use afflux_engine::counters::Counter;
use afflux_engine::settings::{Knob, Settings};
use afflux_engine::{Device, Engine, File, Policies};
use afflux_frames::Frames;
use afflux_kernels::{InodeId, Part, Release, Sysctl, Task, release};
use afflux_report::{Fields, Row};
use afflux_simulator::catalogue::Model;
use afflux_simulator::{CostOf, CostTable, DiskFileId, OWN_POLICY, Setup};
use serde_json::Value;

use crate::experiment::{LabError, Watch};
use crate::kernel_machine::{KernelCosts, KernelMachine, KernelMachineOptions};
use crate::machine::{
    ExperimentMachine, Hardware, MachineOptions, PAGE_BYTES, Progress, Queue, Tally, costs, queued_model,
};

/// A kernel, and whether its waits for congestion end when a queue clears; or the engine itself.
pub(super) struct Variant {
    pub(super) name: &'static str,
    /// The kernel; `None` for the engine with its own policy.
    kernel: Option<&'static str>,
    plain_waits: bool,
    /// Changes to the kernel's law.
    parts: &'static [(Part, bool)],
    /// Knobs of the engine.
    knobs: &'static [&'static str],
}

impl Variant {
    const fn kernel(name: &'static str, kernel: &'static str, plain_waits: bool) -> Self {
        Self { name, kernel: Some(kernel), plain_waits, parts: &[], knobs: &[] }
    }

    pub(super) const RC1: Self = Self::kernel("linux-2.6.31-rc1", "linux-2.6.31-rc1", false);
    pub(super) const RC1_PLAIN: Self = Self::kernel("linux-2.6.31-rc1-plain-100ms", "linux-2.6.31-rc1", true);
    pub(super) const PDFLUSH: Self = Self::kernel("linux-2.6.31", "linux-2.6.31", false);
    pub(super) const PLAIN: Self = Self::kernel("linux-2.6.31-plain-100ms", "linux-2.6.31", true);
    pub(super) const FLUSHERS: Self = Self::kernel("linux-2.6.32", "linux-2.6.32", false);
    /// The tree of the thread's day with the test on the share taken out.
    pub(super) const FLUSHERS_UNTESTED: Self = Self {
        parts: &[(Part::ShareTest, false)],
        ..Self::kernel("linux-2.6.32-no-share-test", "linux-2.6.32", false)
    };
    /// No kernel: the engine with its own policy.
    pub(super) const AFFLUX: Self = Self { name: OWN_POLICY, kernel: None, plain_waits: false, parts: &[], knobs: &[] };
    /// The same with twice the budget, so that each file has twice as much to write.
    pub(super) const AFFLUX_2S: Self = Self { name: "afflux-2s", knobs: &["budget_ms=2000"], ..Self::AFFLUX };
    pub(super) const ALL: &'static [&'static Self] =
        &[&Self::RC1, &Self::PDFLUSH, &Self::RC1_PLAIN, &Self::PLAIN, &Self::FLUSHERS, &Self::AFFLUX];

    /// Whether each device has a flusher of its own.
    pub(super) fn has_flushers(&self) -> bool {
        self.name == Self::FLUSHERS.name
    }

    fn release(&self, name: &str) -> Result<Release, LabError> {
        let release = release(name).map_err(LabError::failed)?.changed(self.parts);
        Ok(if self.plain_waits { release.with_plain_waits() } else { release })
    }
}

/// The write cache inside each disk: half of a 16 MB buffer, as in the built-in disks.
pub(super) const DISK_CACHE_KIB: u64 = 8192;
/// Memory of the engine that reads files back.
const READER_BYTES: u64 = 4 << 30;
/// Nanoseconds to find, copy and dirty a page of 2009: assumed.
const DIRTY_PAGE_NS: u64 = 1500;

/// A built-in disk with a queue in front of it, and a write cache of `cache_kib` (0 for none).
pub(super) fn disk(name: &str, queue: Queue, cache_kib: u64) -> Result<Model, LabError> {
    let mut model = queued_model(name, queue)?;
    let set = model.set("write_cache_bytes", &format!("{cache_kib} KiB"));
    set.map_err(LabError::failed)?;
    Ok(model)
}

/// CPU time of the engine, as measured by S1's reviewer for a kernel: `ms_per_mb` for each submitted megabyte.
fn engine_costs(ms_per_mb: f64) -> CostTable {
    let list = [
        (CostOf::Counter(Counter::PageOut), ms_per_mb, "S1: 0.01 s for 4 MiB on a 2 GHz laptop; or less"),
        (CostOf::Counter(Counter::PagesDirtied), DIRTY_PAGE_NS as f64, "assumed"),
        (CostOf::Step, 1000.0, "assumed"),
        (CostOf::Switch, 2000.0, "assumed"),
    ];
    costs("a machine of 2009", &list)
}

/// A disk's write cache, and the queue before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DiskQueue {
    pub(super) queue: Queue,
    pub(super) cache_kib: u64,
}

/// A row's parameters: its case, its queue and its seed.
pub(super) fn params(case: &str, DiskQueue { queue, cache_kib }: DiskQueue, seed: u64) -> Fields {
    let params = Fields::new().with("case", case);
    let params = if queue.is_sorted { params } else { params.with("elevator", "none") };
    params
        .with("nr_requests", queue.nr_requests)
        .with("request_kib", queue.request_kib)
        .with("request_batch", queue.batch)
        .with("disk_cache_kib", cache_kib)
        .with("seed", seed)
}

/// The parameters of a run's machine.
pub(super) struct Parameters {
    pub(super) seed: u64,
    pub(super) cpus: usize,
    pub(super) cpu_ms_per_mb: f64,
    pub(super) memory_bytes: u64,
    pub(super) sysctl: Sysctl,
    pub(super) disks: Vec<Model>,
    pub(super) queue: Queue,
    /// File systems on each disk.
    pub(super) partitions: usize,
}

impl Parameters {
    /// Four CPUs that take a millisecond for a megabyte, and so many disks of one kind with a file system each.
    pub(super) fn of(
        name: &str,
        count: usize,
        DiskQueue { queue, cache_kib }: DiskQueue,
        memory_bytes: u64,
        seed: u64,
    ) -> Result<Self, LabError> {
        let disks = vec![disk(name, queue, cache_kib)?; count];
        let sysctl = Sysctl::default();
        Ok(Self { seed, cpus: 4, cpu_ms_per_mb: 1.0, memory_bytes, sysctl, disks, queue, partitions: 1 })
    }
}

/// A running machine.
pub(super) enum Machine {
    Kernel(KernelMachine),
    Engine(ExperimentMachine),
}

/// A file on it.
pub(super) struct OwnFile {
    software: SoftwareFile,
    pub(super) id: DiskFileId,
}

impl OwnFile {
    /// The file of an engine.
    ///
    /// # Panics
    /// If a kernel has it.
    pub(super) fn of_engine(&self) -> &File {
        let SoftwareFile::Engine(file) = &self.software else { unreachable!("a file of an engine") };
        file
    }
}

enum SoftwareFile {
    Kernel(InodeId),
    Engine(File),
}

impl Deref for Machine {
    type Target = Hardware;

    fn deref(&self) -> &Hardware {
        match self {
            Self::Kernel(machine) => machine,
            Self::Engine(machine) => machine,
        }
    }
}

/// The knobs that the default policy shares with the kernels, with their values and a kernel's initial ones.
fn changes(sysctl: &Sysctl) -> [(Knob, u64, u64); 4] {
    let initial = Sysctl::default();
    [
        (Knob::DirtyRatio, sysctl.dirty_ratio, initial.dirty_ratio),
        (Knob::BackgroundBytes, sysctl.background_bytes, initial.background_bytes),
        (Knob::ExpireCentisecs, sysctl.expire_centisecs, initial.expire_centisecs),
        (Knob::WritebackCentisecs, sysctl.writeback_centisecs, initial.writeback_centisecs),
    ]
}

impl Machine {
    pub(super) fn new(variant: &Variant, parameters: Parameters) -> Result<Self, LabError> {
        let Parameters { seed, cpus, cpu_ms_per_mb, memory_bytes, sysctl, disks, queue, partitions } = parameters;
        let Some(kernel) = variant.kernel else {
            let setup = Setup::of(OWN_POLICY).map_err(LabError::failed)?;
            let (costs, knobs) = (engine_costs(cpu_ms_per_mb), variant.knobs.iter().map(ToString::to_string).collect());
            let flushes = false;
            let options = MachineOptions { seed, cpus, costs, memory_bytes, setup, knobs, disks, queue, flushes };
            let machine = Self::Engine(ExperimentMachine::new(options)?);
            machine.set(|knobs| *knobs = sysctl)?;
            return Ok(machine);
        };
        let machine = KernelMachine::boot(KernelMachineOptions {
            seed,
            cpus,
            costs: KernelCosts { dirty_page_ns: DIRTY_PAGE_NS, write_byte_ns: cpu_ms_per_mb },
            memory_bytes,
            release: variant.release(kernel)?,
            sysctl,
            disks: &disks,
            queue,
            partitions,
        });
        machine.map(Self::Kernel)
    }

    pub(super) fn file(&self, disk: usize, partition: usize) -> OwnFile {
        match self {
            Self::Kernel(machine) => {
                let (inode, id) = machine.file(disk, partition);
                OwnFile { software: SoftwareFile::Kernel(inode), id }
            }
            Self::Engine(machine) => {
                let (file, id) = machine.file(disk);
                OwnFile { software: SoftwareFile::Engine(file), id }
            }
        }
    }

    /// A task that writes so many bytes to the file in calls of `call_bytes`, in sequence and at full speed.
    pub(super) fn stream(&self, file: &OwnFile, bytes: u64, call_bytes: u64) -> Arc<Progress> {
        match (self, &file.software) {
            (Self::Kernel(machine), SoftwareFile::Kernel(inode)) => machine.stream(*inode, bytes, call_bytes),
            (Self::Engine(machine), SoftwareFile::Engine(file)) => machine.stream(file, bytes, call_bytes),
            _ => unreachable!("a file belongs to the machine that made it"),
        }
    }

    /// Changes knobs that the kernels and the engine share.
    pub(super) fn set(&self, change: impl FnOnce(&mut Sysctl)) -> Result<(), LabError> {
        match self {
            Self::Kernel(machine) => machine.kernel.set(change),
            Self::Engine(machine) => {
                let mut sysctl = Sysctl::default();
                change(&mut sysctl);
                for (knob, value, initial) in changes(&sysctl) {
                    if value != initial {
                        let set = machine.engine.set_knob(knob, value);
                        set.map_err(LabError::failed)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes pages of the file instead of the caller.
    pub(super) fn write(&self, file: &OwnFile, first: u64, pages: u64) -> Result<(), LabError> {
        match (self, &file.software) {
            (Self::Kernel(machine), SoftwareFile::Kernel(inode)) => {
                let mut task = Task::default();
                machine.run(machine.kernel.write(&mut task, *inode, first, pages))
            }
            (Self::Engine(machine), SoftwareFile::Engine(file)) => {
                let piece = vec![0; (pages * PAGE_BYTES) as usize];
                let written = machine.run(machine.engine.write(file, first * PAGE_BYTES, &piece))?;
                written.map(|_| ()).map_err(LabError::failed)
            }
            _ => unreachable!("a file belongs to the machine that made it"),
        }
    }

    /// Writes everything and waits for it.
    pub(super) fn write_all(&self) -> Result<(), LabError> {
        match self {
            Self::Kernel(machine) => machine.sync(),
            Self::Engine(machine) => {
                machine.devices.iter().try_for_each(|device| machine.run(machine.engine.drain(*device)).map(|_| ()))
            }
        }
    }

    /// Reads a part of each file from the first disk, one after the other, through an engine that has none of their
    /// pages in memory. Their layout shows in its reads. Returns the tallies before and after.
    pub(super) fn read(&self, files: &[OwnFile], part: Range<u64>, call_bytes: u64) -> Result<[Tally; 2], LabError> {
        let frames = Frames::new_stamped(READER_BYTES).map_err(LabError::failed)?;
        let engine = Engine::with_policies(Arc::clone(&self.platform), Settings::new(), frames, Policies::default());
        let disk = &self.disks[0];
        let device = engine.add_device("disk", Arc::clone(disk) as Arc<dyn Device>);
        let from = self.hardware_tally();
        for file in files {
            let open = engine.open(device, disk.disk.backing(file.id), disk.disk.size(file.id));
            let reading = async {
                let mut piece = vec![0; call_bytes as usize];
                for at in part.clone().step_by(call_bytes as usize) {
                    engine.read(&open, at, &mut piece).await?;
                }
                Ok::<(), afflux_engine::Error>(())
            };
            self.run(reading)?.map_err(LabError::failed)?;
        }
        Ok([from, self.hardware_tally()])
    }

    /// All counts so far.
    pub(super) fn tally(&self) -> Tally {
        match self {
            Self::Kernel(machine) => machine.tally(),
            Self::Engine(machine) => machine.tally(),
        }
    }

    /// The counts of the hardware alone.
    fn hardware_tally(&self) -> Tally {
        Hardware::tally(self, std::collections::BTreeMap::new(), Value::Null)
    }
}

/// Makes all runs of a case, each with its variant and setting. An option may have made several equal; one is run.
pub(super) fn each<T: PartialEq>(
    watch: &mut dyn Watch,
    case: &str,
    runs: Vec<(&'static Variant, T)>,
    mut run: impl FnMut(&Variant, T) -> Result<Row, LabError>,
) -> Result<(), LabError> {
    let runs = runs.into_iter().fold(Vec::<(&Variant, T)>::new(), |mut distinct, (variant, setting)| {
        if !distinct.iter().any(|(other, known)| other.name == variant.name && *known == setting) {
            distinct.push((variant, setting));
        }
        distinct
    });
    let all = runs.len() as f64;
    for (at, (variant, setting)) in runs.into_iter().enumerate() {
        watch.step(&format!("{case}: {}", variant.name), at as f64 / all);
        watch.row(&run(variant, setting)?);
    }
    Ok(())
}
