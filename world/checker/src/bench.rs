//! A scenario's machine with its files, which all its tasks share.
//!
//! Owns: the files in their slots, the users of each slot, the first failure, the rules that always hold.
//! Does not own: the operations (`ops`), the phases of a run (`run`), the parts of the machine (`machine`).
//! Invariants: the first failure is stored. A slot's file is replaced only while no task uses the slot.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use afflux_engine::rare::Rare;
use afflux_engine::{Device, DeviceId, Engine, File, FileKey, Platform};
use afflux_reference::{Conservation, FileModel, pattern};
use afflux_simulator::{Disk, DiskFileId, Fault, FaultTarget, SimMachine, SimPlatform, World};

use crate::locking::lock;
use crate::machine;
use crate::text::{FailRequest, Scenario, fault_what};

/// A file that the tasks share. Discarding or reopening puts another file in its slot.
pub(crate) struct Shared {
    pub(crate) file: File,
    pub(crate) device: usize,
    pub(crate) disk_file: DiskFileId,
    pub(crate) model: Arc<Mutex<FileModel>>,
    /// Shared by all openings of the file on the disk.
    pub(crate) discarded: Arc<AtomicBool>,
    /// The number of the file's failed requests on the disk that no longer explain an error (`excuses`).
    pub(crate) failures_settled: AtomicU64,
    /// The same of its failed syncs.
    pub(crate) sync_failures_settled: AtomicU64,
}

impl Shared {
    /// A file that was opened just now.
    pub(crate) fn new(file: File, device: usize, disk_file: DiskFileId, model: Arc<Mutex<FileModel>>) -> Self {
        Self {
            file,
            device,
            disk_file,
            model,
            discarded: Arc::default(),
            failures_settled: AtomicU64::new(0),
            sync_failures_settled: AtomicU64::new(0),
        }
    }
}

/// The key of a file on a disk: no other file ever has it.
pub(crate) fn key_of(device: usize, disk_file: DiskFileId) -> FileKey {
    let bytes = [(device as u64).to_le_bytes(), disk_file.0.to_le_bytes()].concat();
    FileKey::new(&bytes).unwrap_or_else(|| unreachable!("16 bytes fit"))
}

#[derive(Default)]
pub(crate) struct SlotUse {
    pub(crate) users: u64,
    pub(crate) exclusive: bool,
}

pub(crate) struct ScenarioBench {
    pub(crate) platform: Arc<SimPlatform>,
    pub(crate) engine: Arc<Engine<SimPlatform>>,
    pub(crate) conservation: Conservation,
    pub(crate) disks: Vec<Arc<Disk>>,
    pub(crate) devices: Vec<DeviceId>,
    pub(crate) slots: Vec<Mutex<Arc<Shared>>>,
    pub(crate) slot_use: Vec<Mutex<SlotUse>>,
    /// The current operation of each task, for the report of a task that never ends.
    pub(crate) doing: Mutex<BTreeMap<usize, String>>,
    pub(crate) tasks: usize,
    pub(crate) tasks_left: AtomicU64,
    /// Tasks that rest now, and rests that have ended.
    pub(crate) resting: AtomicU64,
    pub(crate) quiesces: AtomicU64,
    pub(crate) versions: AtomicU64,
    pub(crate) guards_held: AtomicU64,
    pub(crate) failure: Mutex<Option<String>>,
}

impl ScenarioBench {
    pub(crate) fn new(world: &World, scenario: &Scenario) -> Result<Self, String> {
        let mut bench = Self::on(machine::machine(world, scenario)?, scenario)?;
        for spec in &scenario.files {
            let device = spec.device as usize % bench.disks.len();
            let shared = bench.new_file(device, spec.size);
            bench.add(shared);
        }
        Ok(bench)
    }

    /// A machine without files.
    pub(crate) fn on(machine: SimMachine, scenario: &Scenario) -> Result<Self, String> {
        let SimMachine { platform, engine, disks, devices, .. } = machine;
        let bench = Self {
            platform,
            engine,
            conservation: machine::conservation(scenario),
            disks,
            devices,
            slots: Vec::new(),
            slot_use: Vec::new(),
            doing: Mutex::default(),
            tasks: scenario.tasks.len(),
            tasks_left: AtomicU64::new(scenario.tasks.len() as u64),
            resting: AtomicU64::new(0),
            quiesces: AtomicU64::new(0),
            versions: AtomicU64::new(0),
            guards_held: AtomicU64::new(0),
            failure: Mutex::default(),
        };
        bench.force(scenario)?;
        Ok(bench)
    }

    /// Adds a slot with a file.
    pub(crate) fn add(&mut self, shared: Shared) {
        self.slots.push(Mutex::new(Arc::new(shared)));
        self.slot_use.push(Mutex::default());
    }

    /// Opens a file of a disk. All files are persisted in the arena's slots.
    pub(crate) fn open(&self, device: usize, disk_file: DiskFileId, size: u64) -> File {
        let (backing, key) = (self.disks[device].backing(disk_file), key_of(device, disk_file));
        let file = self.engine.open_persistent(self.devices[device], backing, &key, size);
        if !file.is_persistent() {
            self.fail("the arena has no slot for a file".to_owned());
        }
        file
    }

    /// Sets the scenario's rare paths and faults.
    fn force(&self, scenario: &Scenario) -> Result<(), String> {
        self.engine.seed_rare(scenario.seed);
        let mut built_in = self.engine.try_fail_allocation(scenario.fail_allocation);
        for (name, per_mille) in &scenario.rare {
            let path = Rare::named(name).ok_or_else(|| format!("no rare path is called '{name}'"))?;
            built_in &= self.engine.try_force_rare(path, *per_mille);
        }
        if !built_in {
            return Err("the scenario forces rare paths, and this build lacks the feature rare-paths".to_owned());
        }
        for FailRequest { device, nth, what } in &scenario.fail_requests {
            let fault = Fault::always(FaultTarget::Any, fault_what(*what, 0)).times(1).after(nth - 1);
            self.disks[*device as usize % self.disks.len()].add_fault(fault);
        }
        Ok(())
    }

    /// Checks the rules that always hold. After a knob moved a bound, the new bound holds.
    pub(crate) fn check_bounds(&self) {
        let status = self.engine.status();
        for (device, disk) in status.devices.iter().zip(&self.disks) {
            let depth = Device::limits(&**disk).depth;
            // As many requests as the disk has slots may be set aside, because they do not end.
            if disk.data_in_flight_max() > 2 * depth {
                self.fail(format!("{} requests were in flight on a disk of depth {depth}", disk.data_in_flight_max()));
            }
            if device.writers_waiting as usize > self.tasks {
                self.fail(format!("{} tasks, but more writers wait: {device:?}", self.tasks));
            }
            if device.writeback_bytes > device.dirty_bytes {
                self.fail(format!("more is being written than is dirty: {device:?}"));
            }
        }
        let used = status.cache_bytes - status.free_bytes;
        if status.pinned_bytes > status.cache_bytes || status.free_bytes > status.cache_bytes {
            self.fail(format!("frames do not add up, {used} bytes are used: {status:?}"));
        }
        if let Err(error) = self.conservation.check(&self.engine) {
            self.fail(error.to_string());
        }
    }

    pub(crate) fn new_version(&self) -> u64 {
        self.versions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A new file on the disk, with `size` bytes of a new version, opened in the engine.
    pub(crate) fn new_file(&self, device: usize, size: u64) -> Shared {
        let disk = &self.disks[device];
        let disk_file = disk.create_file();
        let version = self.new_version();
        let mut bytes = vec![0; size as usize];
        pattern(version, 0, &mut bytes);
        disk.change_behind(disk_file, size, 0, &bytes);
        let (file, model) = (self.open(device, disk_file, size), FileModel::new(size, version));
        Shared::new(file, device, disk_file, Arc::new(Mutex::new(model)))
    }

    pub(crate) fn fail(&self, what: String) {
        lock(&self.failure).get_or_insert(what);
    }

    pub(crate) fn doing(&self) -> MutexGuard<'_, BTreeMap<usize, String>> {
        lock(&self.doing)
    }

    pub(crate) async fn sleep_ns(&self, ns: u64) {
        self.platform.sleep_until(self.platform.now().after(ns)).await;
    }
}
