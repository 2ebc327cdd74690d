//! Runs a scenario to its end: the work, then faults off and the proof that all waits end, everything
//! becomes clean and nothing is missing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use engine::counters::Counter;
use engine::settings::{Knob, Settings};
use engine::{Device, DeviceId, Engine, File, Nanos, Platform};
use frames::Frames;
use simulator::{Disk, DiskFileId, DiskOptions, FileModel, RunError, SimPlatform, World, WorldOptions};

use crate::ops;
use crate::scenario::{DeviceSpec, Scenario};

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
    pub(crate) disks: Vec<Arc<Disk>>,
    pub(crate) devices: Vec<DeviceId>,
    pub(crate) slots: Vec<Mutex<Arc<Shared>>>,
    pub(crate) slot_use: Vec<Mutex<SlotUse>>,
    /// What each task is doing, for the report of one that never ends.
    pub(crate) doing: Mutex<BTreeMap<usize, String>>,
    pub(crate) tasks_left: AtomicU64,
    pub(crate) versions: AtomicU64,
    pub(crate) guards_held: AtomicU64,
    pub(crate) failure: Mutex<Option<String>>,
}

pub(crate) struct Report {
    pub(crate) result: Result<(), String>,
    pub(crate) hash: u64,
    pub(crate) steps: u64,
    pub(crate) lines: Vec<String>,
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
            if IS_QUIET.get() && std::env::var_os("AFFLUX_LOUD").is_none() {
                QUIET.with(|quiet| *quiet.borrow_mut() = Some(info.to_string().replace('\n', ": ")));
            } else {
                before(info);
            }
        }));
    });
}

pub(crate) fn run_quietly(scenario: &Scenario) -> Result<(), String> {
    run_scenario(scenario, false).result
}

pub(crate) fn run_scenario(scenario: &Scenario, keep_lines: bool) -> Report {
    catch_panics_quietly();
    IS_QUIET.set(true);
    let world = World::new(WorldOptions {
        step_ns: scenario.step_ns,
        steps_max: crate::number_from_env("AFFLUX_STEPS", 2_000_000),
        keep_lines,
        ..WorldOptions::seed(scenario.seed)
    });
    let mut left_behind = Vec::new();
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let bench = Arc::new(Bench::new(&world, scenario)?);
        left_behind.extend(bench.disks.iter().map(Arc::downgrade));
        // Where a disk dropped what it had accepted, and the engine says that data may be lost by it,
        // bytes may be missing; waits must end all the same.
        run_in(&world, scenario, &bench).or_else(|failure| {
            let excused = scenario.loses_data() && bench.engine.lost_epoch() > 0;
            let hangs = ["deadlock", "not done", "without faults", "a panic"];
            if excused && !hangs.iter().any(|start| failure.starts_with(start)) { Ok(()) } else { Err(failure) }
        })
    }));
    let result = result.unwrap_or_else(|_| Err(panic_text()));
    let report = Report { result, hash: world.trace_hash(), steps: world.steps(), lines: world.trace_lines() };
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

fn run_in(world: &World, scenario: &Scenario, bench: &Arc<Bench>) -> Result<(), String> {
    for (task, list) in scenario.tasks.iter().enumerate() {
        let (bench, list) = (Arc::clone(bench), list.clone());
        world.spawn("scenario", async move {
            for op in list {
                bench.doing().insert(task, op.to_text());
                ops::perform(&bench, op).await;
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
    bench.guarded(world, bench.wait_for_tasks(TROUBLE_NS_MAX))?;
    for disk in &bench.disks {
        disk.clear_faults();
        disk.set_capacity(1 << 60);
        disk.release();
    }
    if !bench.guarded(world, bench.wait_for_tasks(SETTLE_NS_MAX))? {
        return Err(format!("without faults, still not done after 2000 s: {:?}", bench.doing()));
    }
    bench.guarded(world, bench.settle())??;
    bench.guarded(world, bench.check_contents())??;
    bench.guarded(world, bench.check_frames())?
}

fn disk_options(spec: &DeviceSpec) -> DiskOptions {
    DiskOptions {
        block_bytes: spec.block as u32,
        request_bytes_max: spec.request_max as u32,
        depth: spec.depth as u32,
        volatile_cache: spec.volatile != 0,
        latency_ns: spec.latency_ns,
        bytes_per_second: spec.rate,
        capacity_bytes: spec.capacity,
        inline_per_mille: spec.inline_per_mille,
    }
}

impl Bench {
    fn new(world: &World, scenario: &Scenario) -> Result<Self, String> {
        let mut settings = Settings::new();
        for (name, value) in &scenario.knobs {
            let knob = Knob::named(name).map_err(|error| error.to_string())?;
            settings.set(knob, *value).map_err(|error| error.to_string())?;
        }
        let frames = Frames::new(scenario.frames * 4096).map_err(|error| error.to_string())?;
        let engine = match std::env::var("AFFLUX_POLICY") {
            Err(_) => Engine::new(Arc::clone(world.platform()), settings, frames),
            Ok(name) => {
                let policies = linux_policies::policy(&name).map_err(|error| error.to_string())?.policies;
                Engine::with_policies(Arc::clone(world.platform()), settings, frames, policies)
            }
        };
        let mut bench = Self {
            platform: Arc::clone(world.platform()),
            engine,
            disks: Vec::new(),
            devices: Vec::new(),
            slots: Vec::new(),
            slot_use: Vec::new(),
            doing: Mutex::default(),
            tasks_left: AtomicU64::new(scenario.tasks.len() as u64),
            versions: AtomicU64::new(0),
            guards_held: AtomicU64::new(0),
            failure: Mutex::default(),
        };
        for (number, spec) in scenario.devices.iter().enumerate() {
            let disk = Disk::new(world, number as u64, disk_options(spec));
            let device = Arc::clone(&disk) as Arc<dyn Device>;
            bench.devices.push(bench.engine.add_device(&format!("disk{number}"), device));
            bench.disks.push(disk);
        }
        for spec in &scenario.files {
            let device = spec.device as usize % bench.disks.len();
            let shared = bench.new_file(device, spec.size);
            bench.slots.push(Mutex::new(Arc::new(shared)));
            bench.slot_use.push(Mutex::default());
        }
        Ok(bench)
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
        simulator::pattern(version, 0, &mut bytes);
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
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
    }

    pub(crate) fn doing(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, String>> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn sleep_ns(&self, ns: u64) {
        self.platform.sleep_until(self.platform.now().after(ns)).await;
    }

    /// Runs a part of the test; ends early, with its message, when a check has failed.
    fn guarded<T>(&self, world: &World, part: impl Future<Output = T>) -> Result<T, String> {
        let mut part = std::pin::pin!(part);
        let outcome = world.run(std::future::poll_fn(|cx| {
            if let Some(what) = self.failure.lock().unwrap().clone() {
                return std::task::Poll::Ready(Err(what));
            }
            part.as_mut().poll(cx).map(Ok)
        }));
        let failed = self.failure.lock().unwrap().clone();
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
        for turn in 0..12 {
            errors.clear();
            for device in &self.devices {
                errors.extend(self.engine.drain(*device).await.into_iter().map(|(_, error)| error));
            }
            for slot in &self.slots {
                let file = slot.lock().unwrap().file.clone();
                errors.extend(self.engine.sync(&file, 0..u64::MAX).await.err());
            }
            let status = self.engine.status();
            // A change of size that lost its caller may still be under way.
            let clean = self.slots.iter().all(|slot| slot.lock().unwrap().file.is_clean());
            if errors.is_empty() && clean && status.dirty_bytes == 0 && status.writeback_bytes == 0 {
                return self.check_clean();
            }
            self.sleep_ns((1 << turn) * Nanos::SECOND).await;
        }
        Err(format!("without faults, not clean after an hour: errors {errors:?}, {:?}", self.engine.status()))
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
            let file = slot.lock().unwrap().file.clone();
            if !file.is_clean() || file.dirty_bytes() != 0 || file.write_error().is_some() {
                let (dirty, error) = (file.dirty_bytes(), file.write_error());
                return Err(format!("drained, but a file has {dirty} dirty bytes, error {error:?}"));
            }
        }
        let counters = self.platform.counters();
        let [dirtied, written, truncated] = [Counter::PagesDirtied, Counter::PagesWritten, Counter::PagesTruncated]
            .map(|counter| counters.get(counter));
        if dirtied != written + truncated {
            return Err(format!(
                "everything is clean, but nr_dirtied {dirtied} is not nr_written {written} + nr_dirty_truncated {truncated}"
            ));
        }
        Ok(())
    }

    /// What the cache gives, the disk has, and both are right.
    async fn check_contents(&self) -> Result<(), String> {
        for slot in 0..self.slots.len() {
            let shared = Arc::clone(&self.slots[slot].lock().unwrap());
            let disk = &self.disks[shared.device];
            let look = shared.model.lock().unwrap().look();
            let size = shared.file.size();
            let on_disk = (disk.size(shared.disk_file), disk.durable_size(shared.disk_file));
            if on_disk != (size, size) {
                return Err(format!("file {slot} has size {size}, on the disk (live, durable) {on_disk:?}"));
            }
            let told = |what: &str, error: &dyn std::fmt::Display| format!("at the end, file {slot} {what}: {error}");
            shared.model.lock().unwrap().check_size(look, size).map_err(|error| told("size", &error))?;
            let ranges = shared.model.lock().unwrap().written_ranges();
            for (offset, limit) in ranges {
                for start in (offset..limit).step_by(16 * 4096) {
                    let len = (limit - start).min(16 * 4096) as usize;
                    let mut bytes = vec![0; len];
                    let count = self.engine.read(&shared.file, start, &mut bytes).await;
                    let count = count.map_err(|error| told("read", &error))?;
                    let model = shared.model.lock().unwrap();
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
            let file = slot.lock().unwrap().file.clone();
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
        Ok(())
    }

    /// Power is lost now; what is on the disks is what may be there.
    fn crash(&self) -> Result<(), String> {
        self.disks.iter().for_each(|disk| disk.crash());
        for (slot, shared) in self.slots.iter().enumerate() {
            let shared = Arc::clone(&shared.lock().unwrap());
            if shared.discarded.load(Ordering::Relaxed) {
                continue;
            }
            let disk = &self.disks[shared.device];
            let model = shared.model.lock().unwrap();
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
