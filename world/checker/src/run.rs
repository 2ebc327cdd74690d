//! Runs a scenario to its end: first the work, then, without faults, the proof that all waits end, everything becomes
//! clean and nothing is missing.
//!
//! Owns: the phases of a run, the checks at its end.
//! Does not own: the machine (`bench`), the operations and their checks (`ops`), the reference models.
//! Invariants: a run always ends: steps and virtual time are bounded, and a panic of the engine is an ordinary failure.
//! The same scenario gives the same report.

//! rule: every clean page without a user can be evicted, after a short scan

use std::cell::RefCell;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};

use afflux_engine::settings::Knob;
use afflux_engine::{Dropped, Nanos, Platform};
use afflux_simulator::{RunError, World};

use crate::bench::ScenarioBench;
use crate::locking::lock;
use crate::report::{Report, RunOptions};
use crate::text::Scenario;
use crate::{machine, ops};

/// Virtual time after which faults end, even if tasks still run.
pub(crate) const TROUBLE_NS_MAX: u64 = 200 * Nanos::SECOND;
/// Most looks to drop all clean pages. A search looks at 256 pages, and finds one as long as there is one to drop. Most
/// searches find 32. Few are found if the remaining pages are spared, because they were read ahead and not used yet.
const LOOKS_A_FRAME_MAX: u64 = 256;
const LOOKS_MORE_MAX: u64 = 1024;
/// Virtual time within which every operation must end without faults.
const SETTLE_NS_MAX: u64 = 2_000 * Nanos::SECOND;

thread_local! {
    static QUIET: RefCell<Option<String>> = const { RefCell::new(None) };
    static IS_QUIET: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Records panics in the code under test as failures, and does not print them.
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

/// Runs code under test; a panic in it is an error.
pub(crate) fn caught<T>(loud: bool, body: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_panics_quietly();
    IS_QUIET.set(!loud);
    let result = std::panic::catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| Err(panic_text()));
    IS_QUIET.set(false);
    result
}

/// Runs a scenario and checks it.
///
/// # Errors
/// The first failure, in words.
pub fn run(scenario: &Scenario) -> Result<(), String> {
    run_with(scenario, &RunOptions::default()).result
}

/// Runs a scenario. Changes nothing outside except the process's panic hook.
pub fn run_with(scenario: &Scenario, options: &RunOptions) -> Report {
    catch_panics_quietly();
    IS_QUIET.set(!options.loud);
    let world = machine::world(scenario, options);
    let mut left_behind = Vec::new();
    let mut work = RunCounts::default();
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let bench = Arc::new(ScenarioBench::new(&world, scenario)?);
        left_behind.extend(bench.disks.iter().map(Arc::downgrade));
        // If a disk dropped accepted data, and the engine reports the loss, bytes may be missing; waits must end all
        // the same.
        run_in(&world, scenario, &bench, &mut work).or_else(|failure| {
            let excused = scenario.loses_data() && bench.engine.lost_epoch() > 0;
            let hangs = ["deadlock", "not done", "without faults", "a panic"];
            if excused && !hangs.iter().any(|start| failure.starts_with(start)) { Ok(()) } else { Err(failure) }
        })
    }));
    let result = result.unwrap_or_else(|_| Err(panic_text()));
    let RunCounts { steps: work_steps, allocations, requests_failed } = work;
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

/// The counts of the operations' phase.
#[derive(Default)]
struct RunCounts {
    steps: u64,
    allocations: u64,
    requests_failed: u64,
}

/// Starts the scenario's tasks.
pub(crate) fn start_tasks(world: &World, scenario: &Scenario, bench: &Arc<ScenarioBench>) {
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
}

fn run_in(world: &World, scenario: &Scenario, bench: &Arc<ScenarioBench>, work: &mut RunCounts) -> Result<(), String> {
    start_tasks(world, scenario, bench);
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
    *work = RunCounts {
        steps: world.steps(),
        allocations: bench.engine.allocations(),
        requests_failed: bench.disks.iter().map(|disk| disk.failures_of_all()).sum(),
    };
    finish(world, bench)
}

/// After the work: no faults any more. Proves that all waits end, everything becomes clean and nothing is missing.
pub(crate) fn finish(world: &World, bench: &ScenarioBench) -> Result<(), String> {
    for disk in &bench.disks {
        disk.clear_faults();
        disk.set_capacity(1 << 60);
        disk.release();
    }
    // Under some laws, writers wait for data that only the look for expired data writes. If knobs make this look rare,
    // or data expire late, the wait is long but not endless. So both knobs are lowered.
    for (knob, most) in [(Knob::WritebackCentisecs, 500), (Knob::ExpireCentisecs, 3000)] {
        // 0 is off, which would be endless.
        let value = match bench.engine.settings().get(knob) {
            0 => most,
            value => value.min(most),
        };
        bench.engine.set_knob(knob, value).map_err(|error| error.to_string())?;
    }
    if !bench.guarded(world, bench.wait_for_tasks(SETTLE_NS_MAX))? {
        return Err(format!("without faults, still not done after 2000 s: {:?}", bench.doing()));
    }
    bench.guarded(world, bench.settle())??;
    bench.guarded(world, bench.check_contents())??;
    bench.guarded(world, bench.check_reclaim())??;
    bench.guarded(world, bench.check_frames())?
}

impl ScenarioBench {
    /// Runs a part of the test; ends early, with its message, if a check has failed.
    pub(crate) fn guarded<T>(&self, world: &World, part: impl Future<Output = T>) -> Result<T, String> {
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

    pub(crate) async fn wait_for_tasks(&self, ns_max: u64) -> bool {
        let until = self.platform.now().after(ns_max);
        while self.tasks_left.load(Ordering::Relaxed) > 0 {
            if self.platform.now() > until {
                return false;
            }
            self.sleep_ns(Nanos::MILLISECOND * 20).await;
        }
        true
    }

    /// Waits until everything is clean without faults, and checks that the status reports it.
    async fn settle(&self) -> Result<(), String> {
        let mut errors = Vec::new();
        // These add up to some eight minutes; the longest pause that scenarios draw is a minute.
        for round in 0..9 {
            errors.clear();
            // A change of size that lost its caller may still be in progress; its effect needs a flush.
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
            self.sleep_ns((1 << round) * Nanos::SECOND).await;
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

    /// Checks that the cache and the disk have the same contents, and that both are right.
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
            let describe =
                |what: &str, error: &dyn std::fmt::Display| format!("at the end, file {slot} {what}: {error}");
            lock(&shared.model).check_size(look, size).map_err(|error| describe("size", &error))?;
            if size > 0 {
                let mut last = [0];
                let read = self.engine.read(&shared.file, size - 1, &mut last).await;
                read.map_err(|error| describe("read", &error))?;
                lock(&shared.model).check_last(size, last[0]).map_err(|error| describe("end", &error))?;
            }
            let ranges = lock(&shared.model).written_ranges();
            for (offset, limit) in ranges {
                for start in (offset..limit).step_by(16 * 4096) {
                    let len = (limit - start).min(16 * 4096) as usize;
                    let mut bytes = vec![0; len];
                    let count = self.engine.read(&shared.file, start, &mut bytes).await;
                    let count = count.map_err(|error| describe("read", &error))?;
                    let model = lock(&shared.model);
                    let check = model.check_read(look, start, len as u64, &bytes[..count]);
                    check.map_err(|error| describe("read", &error))?;
                    if disk.durable_bytes(shared.disk_file, start, count) != bytes[..count] {
                        let check = model.check_bytes(look, start, &disk.durable_bytes(shared.disk_file, start, count));
                        let why = check.map_or_else(|error| error.to_string(), |()| "another version".to_owned());
                        return Err(describe("on the disk differs from the cache", &why));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that every clean page can be dropped, and that searches find them soon.
    async fn check_reclaim(&self) -> Result<(), String> {
        let mut looked = Dropped::default();
        // The last readahead may still be in progress.
        for _ in 0..10 {
            let dropped = self.engine.drop_clean_pages();
            looked = Dropped { pages: looked.pages + dropped.pages, looks: looked.looks + dropped.looks };
            let status = self.engine.status();
            if looked.looks > LOOKS_A_FRAME_MAX * (status.cache_bytes / 4096) + LOOKS_MORE_MAX {
                return Err(format!("too many looks for the pages that went: {looked:?}"));
            }
            if status.free_bytes == status.cache_bytes {
                return Ok(());
            }
            self.sleep_ns(10 * Nanos::SECOND).await;
        }
        Err(format!(
            "all pages are clean and held by nobody, but some cannot go: {looked:?}, {:?}",
            self.engine.status()
        ))
    }

    /// Checks that every frame is free once all files are gone.
    async fn check_frames(&self) -> Result<(), String> {
        for slot in &self.slots {
            let file = lock(slot).file.clone();
            self.engine.discard(&file);
        }
        // A flusher's list may hold a file, clean or not, until its time comes: at most a minute, the longest pause
        // that scenarios draw.
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

    /// Cuts the power now, and checks the contents of the disks.
    pub(crate) fn crash(&self) -> Result<(), String> {
        self.disks.iter().for_each(|disk| disk.crash());
        for (slot, shared) in self.slots.iter().enumerate() {
            let shared = Arc::clone(&lock(shared));
            if shared.discarded.load(Ordering::Relaxed) {
                continue;
            }
            let disk = &self.disks[shared.device];
            let model = lock(&shared.model);
            let describe = |error| format!("after a power loss, file {slot}: {error}");
            model.check_crashed_size(disk.size(shared.disk_file)).map_err(describe)?;
            for (offset, limit) in model.written_ranges() {
                let bytes = disk.live_bytes(shared.disk_file, offset, (limit - offset) as usize);
                model.check_crashed(offset, &bytes).map_err(describe)?;
            }
        }
        Ok(())
    }
}
