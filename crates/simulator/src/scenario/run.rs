//! Runs a scenario to its end: the work, then faults off and the proof that all waits end, everything
//! becomes clean and nothing is missing.
//!
//! Owns: putting the world together, the phases of a run, the checks at its end.
//! Does not own: what a task does and the checks right after it (`ops`); the reference (`model`).
//! Invariants: a run ends, whatever the engine does: steps and virtual time are bounded, a panic is a
//! failure like others. The same scenario gives the same report.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once};

use engine::rare::Rare;
use engine::settings::Knob;
use engine::{Device, DeviceId, Engine, File, Nanos, Platform};

use super::text::{FailRequest, Scenario};
use super::{lock, machine, ops};
use crate::{Conservation, Disk, DiskFileId, Fault, FaultTarget, FileModel, RunError, SimPlatform, World};

/// Virtual time after which faults end whether or not the tasks are done.
const TROUBLE_NS_MAX: u64 = 200 * Nanos::SECOND;
/// Virtual time in which, without faults, every operation must have ended.
const SETTLE_NS_MAX: u64 = 2_000 * Nanos::SECOND;

/// One file as the tasks share it. Discarding or reopening puts another in its slot.
pub(crate) struct Shared {
    pub(crate) file: File,
    pub(crate) device: usize,
    pub(crate) disk_file: DiskFileId,
    pub(crate) model: Arc<Mutex<FileModel>>,
    pub(crate) discarded: AtomicBool,
}

#[derive(Default)]
pub(crate) struct SlotUse {
    pub(crate) users: u64,
    pub(crate) exclusive: bool,
}

pub(crate) struct Bench {
    pub(crate) platform: Arc<SimPlatform>,
    pub(crate) engine: Arc<Engine<SimPlatform>>,
    pub(crate) conservation: Conservation,
    pub(crate) disks: Vec<Arc<Disk>>,
    pub(crate) devices: Vec<DeviceId>,
    pub(crate) slots: Vec<Mutex<Arc<Shared>>>,
    pub(crate) slot_use: Vec<Mutex<SlotUse>>,
    /// What each task is doing, for the report of one that never ends.
    pub(crate) doing: Mutex<BTreeMap<usize, String>>,
    tasks: usize,
    pub(crate) tasks_left: AtomicU64,
    /// Tasks that rest now, and rests that are over.
    pub(crate) resting: AtomicU64,
    pub(crate) rests: AtomicU64,
    pub(crate) versions: AtomicU64,
    pub(crate) guards_held: AtomicU64,
    pub(crate) failure: Mutex<Option<String>>,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was found wrong.
    pub result: Result<(), String>,
    /// All that happened, as one number.
    pub hash: u64,
    /// Steps in all.
    pub steps: u64,
    /// Steps until the last operation had ended.
    pub work_steps: u64,
    /// Requests for frames until then.
    pub allocations: u64,
    /// Requests of all disks that did not succeed.
    pub requests_failed: u64,
    /// The last events in words, if they were asked for.
    pub lines: Vec<String>,
}

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Steps after which a run has failed.
    pub steps_max: u64,
    /// Keep the last events in words.
    pub keep_lines: bool,
    /// Print panics as they happen.
    pub loud: bool,
}

impl Default for RunOptions {
    /// 2 million steps, nothing kept or printed.
    fn default() -> Self {
        Self { steps_max: 2_000_000, keep_lines: false, loud: false }
    }
}

thread_local! {
    static QUIET: RefCell<Option<String>> = const { RefCell::new(None) };
    static IS_QUIET: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Panics in the code under test are failures like others: noted, not printed.
fn catch_panics_quietly() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if IS_QUIET.get() {
                QUIET.with(|quiet| *quiet.borrow_mut() = Some(info.to_string().replace('\n', ": ")));
            } else {
                before(info);
            }
        }));
    });
}

/// Runs a scenario and says what is wrong.
///
/// # Errors
/// The first thing found wrong, in words.
pub fn run(scenario: &Scenario) -> Result<(), String> {
    run_with(scenario, &RunOptions::default()).result
}

/// Runs a scenario. Touches nothing outside, but for the process's panic hook.
pub fn run_with(scenario: &Scenario, options: &RunOptions) -> Report {
    catch_panics_quietly();
    IS_QUIET.set(!options.loud);
    let world = machine::world(scenario, options);
    let mut left_behind = Vec::new();
    let mut work = Work::default();
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let bench = Arc::new(Bench::new(&world, scenario)?);
        left_behind.extend(bench.disks.iter().map(Arc::downgrade));
        // Where a disk dropped what it had accepted, and the engine says that data may be lost by it,
        // bytes may be missing; waits must end all the same.
        run_in(&world, scenario, &bench, &mut work).or_else(|failure| {
            let excused = scenario.loses_data() && bench.engine.lost_epoch() > 0;
            let hangs = ["deadlock", "not done", "without faults", "a panic"];
            if excused && !hangs.iter().any(|start| failure.starts_with(start)) { Ok(()) } else { Err(failure) }
        })
    }));
    let result = result.unwrap_or_else(|_| Err(panic_text()));
    let Work { steps: work_steps, allocations, requests_failed } = work;
    let (hash, steps, lines) = (world.trace_hash(), world.steps(), world.trace_lines());
    let report = Report { result, hash, steps, work_steps, allocations, requests_failed, lines };
    let dropped = std::panic::catch_unwind(AssertUnwindSafe(|| drop(world)));
    IS_QUIET.set(false);
    if report.result.is_err() {
        return report;
    }
    let held = left_behind.iter().filter(|disk| disk.strong_count() > 0).count();
    match dropped {
        Err(_) => Report { result: Err(format!("when the world ended: {}", panic_text())), ..report },
        Ok(()) if held > 0 => Report { result: Err(format!("the world ended, but {held} disks are held")), ..report },
        Ok(()) => report,
    }
}

fn panic_text() -> String {
    QUIET.with(|quiet| quiet.borrow_mut().take()).unwrap_or_else(|| "a panic without words".to_owned())
}

/// What the operations took.
#[derive(Default)]
struct Work {
    steps: u64,
    allocations: u64,
    requests_failed: u64,
}

fn run_in(world: &World, scenario: &Scenario, bench: &Arc<Bench>, work: &mut Work) -> Result<(), String> {
    for (task, list) in scenario.tasks.iter().enumerate() {
        let (bench, list) = (Arc::clone(bench), list.clone());
        world.spawn("scenario", async move {
            for op in list {
                bench.doing().insert(task, op.to_text());
                ops::perform(&bench, op).await;
                bench.check_bounds();
            }
            bench.doing().remove(&task);
            bench.tasks_left.fetch_sub(1, Ordering::Relaxed);
        });
    }
    if scenario.crash_us > 0 {
        let crash = Nanos(scenario.crash_us * 1000);
        bench.guarded(world, bench.platform.sleep_until(crash))?;
        return bench.crash();
    }
    if scenario.crash_step > 0 {
        // The end of the steps, or of the work if that comes first.
        let ended = bench.guarded(world, bench.wait_for_tasks(TROUBLE_NS_MAX));
        return if world.steps() >= scenario.crash_step || ended.is_ok() { bench.crash() } else { ended.map(drop) };
    }
    bench.guarded(world, bench.wait_for_tasks(TROUBLE_NS_MAX))?;
    *work = Work {
        steps: world.steps(),
        allocations: bench.engine.allocations(),
        requests_failed: bench.disks.iter().map(|disk| disk.failures_of_all()).sum(),
    };
    for disk in &bench.disks {
        disk.clear_faults();
        disk.set_capacity(1 << 60);
        disk.release();
    }
    // Under some laws writers wait for what only the look for expired data writes: that it is rare, or that
    // data expires late, is a matter of the knobs, and no wait without end.
    for (knob, most) in [(Knob::WritebackCentisecs, 500), (Knob::ExpireCentisecs, 3000)] {
        let value = bench.engine.settings().get(knob).min(most);
        bench.engine.set_knob(knob, value).map_err(|error| error.to_string())?;
    }
    if !bench.guarded(world, bench.wait_for_tasks(SETTLE_NS_MAX))? {
        return Err(format!("without faults, still not done after 2000 s: {:?}", bench.doing()));
    }
    bench.guarded(world, bench.settle())??;
    bench.guarded(world, bench.check_contents())??;
    bench.guarded(world, bench.check_frames())?
}

impl Bench {
    fn new(world: &World, scenario: &Scenario) -> Result<Self, String> {
        let mut bench = Self {
            platform: Arc::clone(world.platform()),
            engine: machine::engine(world, scenario)?,
            conservation: machine::conservation(scenario),
            disks: Vec::new(),
            devices: Vec::new(),
            slots: Vec::new(),
            slot_use: Vec::new(),
            doing: Mutex::default(),
            tasks: scenario.tasks.len(),
            tasks_left: AtomicU64::new(scenario.tasks.len() as u64),
            resting: AtomicU64::new(0),
            rests: AtomicU64::new(0),
            versions: AtomicU64::new(0),
            guards_held: AtomicU64::new(0),
            failure: Mutex::default(),
        };
        for (number, spec) in scenario.devices.iter().enumerate() {
            let disk = machine::disk(world, number as u64, spec)?;
            let device = Arc::clone(&disk) as Arc<dyn Device>;
            bench.devices.push(bench.engine.add_device(&format!("disk{number}"), device));
            bench.disks.push(disk);
        }
        bench.force(scenario)?;
        for spec in &scenario.files {
            let device = spec.device as usize % bench.disks.len();
            let shared = bench.new_file(device, spec.size);
            bench.slots.push(Mutex::new(Arc::new(shared)));
            bench.slot_use.push(Mutex::default());
        }
        Ok(bench)
    }

    /// Turns the switches that the scenario turns.
    fn force(&self, scenario: &Scenario) -> Result<(), String> {
        self.engine.seed_rare(scenario.seed);
        let mut built_in = self.engine.fail_allocation(scenario.fail_allocation);
        for (name, per_mille) in &scenario.rare {
            let path = Rare::named(name).ok_or_else(|| format!("no rare path is called '{name}'"))?;
            built_in &= self.engine.force_rare(path, *per_mille);
        }
        if !built_in {
            return Err("the scenario forces rare paths, and this build lacks the feature rare-paths".to_owned());
        }
        for FailRequest { device, nth, what } in &scenario.fail_requests {
            let fault = Fault::always(FaultTarget::Any, ops::fault_what(*what, 0)).times(1).after(nth - 1);
            self.disks[*device as usize % self.disks.len()].add_fault(fault);
        }
        Ok(())
    }

    /// What holds at any time. A bound that a knob moved holds for what comes after.
    fn check_bounds(&self) {
        let status = self.engine.status();
        for (device, disk) in status.devices.iter().zip(&self.disks) {
            let depth = Device::limits(&**disk).depth;
            if disk.data_in_flight_max() > depth {
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

    /// A new file on the disk, `size` bytes of a version of its own, opened in the engine.
    pub(crate) fn new_file(&self, device: usize, size: u64) -> Shared {
        let disk = &self.disks[device];
        let disk_file = disk.create_file();
        let version = self.new_version();
        let mut bytes = vec![0; size as usize];
        crate::pattern(version, 0, &mut bytes);
        disk.change_behind(disk_file, size, 0, &bytes);
        Shared {
            file: self.engine.open(self.devices[device], disk.backing(disk_file), size),
            device,
            disk_file,
            model: Arc::new(Mutex::new(FileModel::new(size, version))),
            discarded: AtomicBool::new(false),
        }
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

    /// Runs a part of the test; ends early, with its message, when a check has failed.
    fn guarded<T>(&self, world: &World, part: impl Future<Output = T>) -> Result<T, String> {
        let mut part = std::pin::pin!(part);
        let outcome = world.run(std::future::poll_fn(|cx| {
            if let Some(what) = lock(&self.failure).clone() {
                return std::task::Poll::Ready(Err(what));
            }
            part.as_mut().poll(cx).map(Ok)
        }));
        let failed = lock(&self.failure).clone();
        match (outcome, failed) {
            (_, Some(what)) => Err(what),
            (Ok(output), None) => output,
            (Err(error @ RunError::Failed { .. }), None) => Err(error.to_string()),
            (Err(error), None) => Err(format!("{error}; tasks: {:?}", self.doing())),
        }
    }

    async fn wait_for_tasks(&self, ns_max: u64) -> bool {
        let until = self.platform.now().after(ns_max);
        while self.tasks_left.load(Ordering::Relaxed) > 0 {
            if self.platform.now() > until {
                return false;
            }
            self.sleep_ns(Nanos::MILLISECOND * 20).await;
        }
        true
    }

    /// Without faults everything becomes clean, and says so.
    async fn settle(&self) -> Result<(), String> {
        let mut errors = Vec::new();
        // Together some eight minutes: no pause that is drawn is longer than one.
        for turn in 0..9 {
            errors.clear();
            // A change of size that lost its caller may still be under way; what it does is owed a flush.
            let clean = self.slots.iter().all(|slot| lock(slot).file.is_clean());
            for device in &self.devices {
                errors.extend(self.engine.drain(*device).await.into_iter().map(|(_, error)| error));
            }
            for slot in &self.slots {
                let file = lock(slot).file.clone();
                errors.extend(self.engine.sync(&file, 0..u64::MAX).await.err());
            }
            let status = self.engine.status();
            if errors.is_empty() && clean && status.dirty_bytes == 0 && status.writeback_bytes == 0 {
                return self.check_clean();
            }
            self.sleep_ns((1 << turn) * Nanos::SECOND).await;
        }
        Err(format!("without faults, not clean after eight minutes: errors {errors:?}, {:?}", self.engine.status()))
    }

    fn check_clean(&self) -> Result<(), String> {
        let status = self.engine.status();
        for device in &status.devices {
            let idle = device.dirty_bytes == 0 && device.writeback_bytes == 0;
            if !idle || device.writers_waiting != 0 || device.files_dirty != 0 || device.files_failed != 0 {
                return Err(format!("drained, but its status is {device:?}"));
            }
        }
        if status.pinned_bytes != 0 {
            return Err(format!("no guard is held, but {} bytes are pinned", status.pinned_bytes));
        }
        for slot in &self.slots {
            let file = lock(slot).file.clone();
            if !file.is_clean() || file.dirty_bytes() != 0 || file.write_error().is_some() {
                let (dirty, error) = (file.dirty_bytes(), file.write_error());
                return Err(format!("drained, but a file has {dirty} dirty bytes, error {error:?}"));
            }
        }
        self.conservation.check(&self.engine).map_err(|error| error.to_string())
    }

    /// What the cache gives, the disk has, and both are right.
    async fn check_contents(&self) -> Result<(), String> {
        for slot in 0..self.slots.len() {
            let shared = Arc::clone(&lock(&self.slots[slot]));
            let disk = &self.disks[shared.device];
            let look = lock(&shared.model).look();
            let size = shared.file.size();
            let on_disk = (disk.size(shared.disk_file), disk.durable_size(shared.disk_file));
            if on_disk != (size, size) {
                return Err(format!("file {slot} has size {size}, on the disk (live, durable) {on_disk:?}"));
            }
            let told = |what: &str, error: &dyn std::fmt::Display| format!("at the end, file {slot} {what}: {error}");
            lock(&shared.model).check_size(look, size).map_err(|error| told("size", &error))?;
            if size > 0 {
                let mut last = [0];
                let read = self.engine.read(&shared.file, size - 1, &mut last).await;
                read.map_err(|error| told("read", &error))?;
                lock(&shared.model).check_last(size, last[0]).map_err(|error| told("end", &error))?;
            }
            let ranges = lock(&shared.model).written_ranges();
            for (offset, limit) in ranges {
                for start in (offset..limit).step_by(16 * 4096) {
                    let len = (limit - start).min(16 * 4096) as usize;
                    let mut bytes = vec![0; len];
                    let count = self.engine.read(&shared.file, start, &mut bytes).await;
                    let count = count.map_err(|error| told("read", &error))?;
                    let model = lock(&shared.model);
                    let check = model.check_read(look, start, len as u64, &bytes[..count]);
                    check.map_err(|error| told("read", &error))?;
                    if disk.durable_bytes(shared.disk_file, start, count) != bytes[..count] {
                        let check = model.check_bytes(look, start, &disk.durable_bytes(shared.disk_file, start, count));
                        let why = check.map_or_else(|error| error.to_string(), |()| "another version".to_owned());
                        return Err(told("on the disk differs from the cache", &why));
                    }
                }
            }
        }
        Ok(())
    }

    /// With all files gone every frame is free again.
    async fn check_frames(&self) -> Result<(), String> {
        for slot in &self.slots {
            let file = lock(slot).file.clone();
            self.engine.discard(&file);
        }
        // A flusher's list may hold a file, clean or not, until its time comes: at most a minute, the
        // longest pause that is drawn.
        for (knob, value) in [(Knob::ExpireCentisecs, 1), (Knob::WritebackCentisecs, 500)] {
            self.engine.set_knob(knob, value).map_err(|error| error.to_string())?;
        }
        self.sleep_ns(100 * Nanos::SECOND).await;
        let status = self.engine.status();
        if status.free_bytes != status.cache_bytes {
            return Err(format!(
                "all files are gone, but of {} bytes {} are free",
                status.cache_bytes, status.free_bytes
            ));
        }
        self.conservation.check_at_rest(&self.engine).map_err(|error| error.to_string())
    }

    /// Power is lost now; what is on the disks is what may be there.
    fn crash(&self) -> Result<(), String> {
        self.disks.iter().for_each(|disk| disk.crash());
        for (slot, shared) in self.slots.iter().enumerate() {
            let shared = Arc::clone(&lock(shared));
            if shared.discarded.load(Ordering::Relaxed) {
                continue;
            }
            let disk = &self.disks[shared.device];
            let model = lock(&shared.model);
            let told = |error| format!("after a power loss, file {slot}: {error}");
            model.check_crashed_size(disk.size(shared.disk_file)).map_err(told)?;
            for (offset, limit) in model.written_ranges() {
                let bytes = disk.live_bytes(shared.disk_file, offset, (limit - offset) as usize);
                model.check_crashed(offset, &bytes).map_err(told)?;
            }
        }
        Ok(())
    }
}
