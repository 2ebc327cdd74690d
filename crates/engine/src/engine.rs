//! The engine: its public surface and its lifecycle.
//!
//! Owns: the world, the cache, the devices' flushers (as tasks of the world).
//! Does not own: any policy or mechanism: each has a module of its own.
//! Invariants: cheap calls (`try_…`, status, knobs) never wait; everything else may.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use frames::Frames;

use crate::FILE_BYTES_MAX;
use crate::cache::file::{FileInner, FileState};
use crate::cache::memory::FrameMemory;
use crate::cache::wait::{Answer, lock};
use crate::cache::{Cache, PAGE_BYTES};
use crate::counters::{Counter, Local};
use crate::dirty::{apply_limits, failing};
use crate::error::{DeviceError, Error};
use crate::platform::{Backing, Device, Nanos, Platform};
use crate::request::{Completion, Operation, Request};
use crate::settings::{Knob, KnobError, Settings, Shares};
use crate::throttle::{Driver, Kept, LimitPages, Policies, Ruling, Throttle};
use crate::writeback::device::{DeviceId, DeviceState, DeviceStatus};
use crate::writeback::driver::FlushOf;
use crate::writeback::flusher::flush_device;

/// Files that are flushed at the same time.
const DRAIN_TOGETHER: usize = 64;

/// A page cache with writeback, in the world `P`.
pub struct Engine<P: Platform> {
    platform: Arc<P>,
    cache: Arc<Cache>,
    pub(crate) driver: Driver,
}

/// A file of the cache. A clone is the same file.
///
/// The last clone may be dropped while the file is dirty: the engine keeps the file until it has been
/// written. Whoever opens a host file opens it once: two `File`s of it would not see each other.
#[derive(Clone)]
pub struct File(pub(crate) Arc<FileInner>);

impl File {
    /// The size as every reader of the cache sees it: at once after a write. Takes no lock.
    pub fn size(&self) -> u64 {
        self.0.size()
    }

    /// Whether nothing is dirty or being written, and no change of size or hole is under way, not even
    /// one whose caller went away. Takes no lock; a write that is running may or may not count. Only a
    /// clean file that was synced since may be dropped and opened anew: a flush may be owed to it.
    pub fn is_clean(&self) -> bool {
        !self.0.unclean.load(Ordering::Acquire) && self.0.reshapes.load(Ordering::Acquire) == 0
    }

    /// The largest size it can have: a device may keep less than 2^63 - 1 bytes in a file.
    pub fn size_max(&self) -> u64 {
        self.0.bytes_max
    }

    /// Counts changes of ours to the host's file that have ended: writes back, and sizes that were set.
    /// What was seen of the host's file may be older than one of them if this has moved since right
    /// before the look: see [`Engine::invalidate`].
    pub fn change_count(&self) -> u64 {
        lock(&self.0.state).host_changes
    }

    /// Bytes not yet written, in whole pages.
    pub fn dirty_bytes(&self) -> u64 {
        lock(&self.0.state).dirty_pages * PAGE_BYTES
    }

    /// The device it is on.
    pub fn device(&self) -> DeviceId {
        self.0.device.id
    }

    /// The error of the last failed write or flush, while something is not durable because of it.
    pub fn write_error(&self) -> Option<DeviceError> {
        lock(&self.0.state).error
    }

    /// What the device knows it by.
    pub fn backing(&self) -> &Backing {
        &self.0.backing
    }

    /// Whether the two are the same file.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// How the engine is doing.
#[derive(Clone, Debug)]
pub struct EngineStatus {
    /// Bytes of page frames.
    pub cache_bytes: u64,
    /// Of these, free.
    pub free_bytes: u64,
    /// Not yet written, on all devices, those being written included.
    pub dirty_bytes: u64,
    /// Being written.
    pub writeback_bytes: u64,
    /// Held by replies on their way.
    pub pinned_bytes: u64,
    /// Bytes of tables and indexes that describe the cache.
    pub metadata_bytes: u64,
    /// Files open in the cache.
    pub files: u64,
    /// Each device.
    pub devices: Vec<DeviceStatus>,
}

impl<P: Platform> Engine<P> {
    /// An engine without devices. `frames` is all the memory its pages will ever have.
    ///
    /// # Panics
    /// When `frames` keeps parts of frames only, and the platform does not expect that.
    pub fn new(platform: Arc<P>, settings: Settings, frames: Frames) -> Arc<Self> {
        Self::with_policies(platform, settings, frames, Policies::default())
    }

    /// [`Engine::new`] with other policies than the engine's own.
    ///
    /// # Panics
    /// As [`Engine::new`].
    pub fn with_policies(platform: Arc<P>, settings: Settings, frames: Frames, policies: Policies) -> Arc<Self> {
        assert!(P::STAMPED_FRAMES || frames.kept_bytes() == frames::FRAME_BYTES, "this world needs whole frames");
        let ruling = match policies.throttle {
            Throttle::EqualParts => None,
            Throttle::Law(law) => Some(Ruling::new(law)),
        };
        let cache = Arc::new(Cache::new(frames, settings, ruling));
        let engine = Arc::new(Self { platform, cache, driver: policies.driver });
        if let Driver::Own(driver) = &engine.driver {
            driver.start(Arc::new(FlushOf(Arc::clone(&engine))));
        }
        engine
    }

    /// The world.
    pub fn platform(&self) -> &Arc<P> {
        &self.platform
    }

    /// The knobs in force.
    pub fn settings(&self) -> &Settings {
        &self.cache.settings
    }

    pub(crate) fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    pub(crate) fn local(&self) -> &Local {
        self.platform.local()
    }

    pub(crate) fn devices(&self) -> Vec<Arc<DeviceState>> {
        self.cache.devices().clone()
    }

    pub(crate) fn device(&self, id: DeviceId) -> Option<Arc<DeviceState>> {
        self.cache.devices().get(id.0 as usize).cloned()
    }

    /// Adds a device at any time and starts its flusher. The dirty limit is divided anew.
    pub fn add_device(self: &Arc<Self>, name: &str, device: Arc<dyn Device>) -> DeviceId {
        let added = {
            let mut devices = self.cache.devices();
            let id = DeviceId(devices.len() as u32);
            let memory: Kept = self.cache.ruling.as_ref().map_or(Box::new(()), |ruling| ruling.law.new_device());
            let added = Arc::new(DeviceState::new(id, name, device, Arc::clone(&self.cache.dirty), memory));
            devices.push(Arc::clone(&added));
            added
        };
        apply_limits(&self.cache);
        let id = added.id;
        self.platform.spawn("flusher", flush_device(Arc::clone(self), added));
        id
    }

    /// Sets a knob for all devices; acts at once.
    pub fn set_knob(&self, knob: Knob, value: u64) -> Result<(), KnobError> {
        let settings = &self.cache.settings;
        Settings::would_fit(knob, value, Some(self.shares()), &|knob| settings.get(knob))?;
        settings.change(knob, value)?;
        self.knobs_changed();
        Ok(())
    }

    /// Sets a knob for one device; acts at once. Nothing happens for a device that is not there.
    pub fn set_device_knob(&self, device: DeviceId, knob: Knob, value: u64) -> Result<(), KnobError> {
        let Some(device) = self.device(device) else {
            return Ok(());
        };
        let settings = &self.cache.settings;
        Settings::would_fit(knob, value, Some(self.shares()), &|knob| device.knob(settings, knob))?;
        device.settings.set(settings, knob, value)?;
        self.knobs_changed();
        Ok(())
    }

    fn shares(&self) -> Shares {
        let memory_bytes = u64::from(self.cache.frames.total()) * PAGE_BYTES;
        Shares { memory_bytes, by_law: self.cache.ruling.is_some() }
    }

    /// The knobs that have a value of their own for the device.
    pub fn device_knobs(&self, device: DeviceId) -> Vec<(Knob, u64)> {
        self.device(device).map(|device| device.settings.own()).unwrap_or_default()
    }

    fn knobs_changed(&self) {
        apply_limits(&self.cache);
        for device in self.devices() {
            device.flusher.raise();
        }
    }

    /// A file of `size` bytes that the device knows by `backing`. Nothing is read.
    ///
    /// # Panics
    /// When the engine has no such device.
    pub fn open(self: &Arc<Self>, device: DeviceId, backing: Backing, size: u64) -> File {
        let device = self.device(device).unwrap_or_else(|| panic!("no device {}", device.0));
        File(self.cache.add_file(|slot| FileInner::new(slot, Arc::clone(&self.cache), device, backing, size)))
    }

    /// Writes everything that is dirty on the device and flushes it. Returns the files for which
    /// that failed; their pages stay dirty.
    pub async fn drain(self: &Arc<Self>, device: DeviceId) -> Vec<(File, Error)> {
        let Some(device) = self.device(device) else {
            return Vec::new();
        };
        device.draining.fetch_add(1, Ordering::Relaxed);
        let _ends = Draining(&device);
        device.flusher.raise();
        let mut failed = Vec::new();
        let files: Vec<File> = device.files_to_drain().into_iter().map(File).collect();
        for some in files.chunks(DRAIN_TOGETHER) {
            // Asked for together, so that the host can join their flushes.
            let rounds: Vec<_> = some.iter().map(|file| (file, self.join_round(&file.0, 0..u64::MAX))).collect();
            for (file, round) in rounds {
                let Some(round) = round else { continue };
                if let Err(error) = round.wait().await {
                    failed.push((file.clone(), error));
                }
            }
        }
        failed
    }

    /// Flushes clean files that nobody has synced for as long as dirty data may wait, so that what is
    /// written becomes durable by itself and the files need not be kept.
    /// Returns whether there may be more.
    pub(crate) fn flush_forgotten(self: &Arc<Self>, device: &DeviceState, before: Nanos) -> bool {
        let files = device.take_unflushed(before, DRAIN_TOGETHER);
        for file in &files {
            // Its outcome is the file's error, for whoever syncs next.
            drop(self.join_round(file, 0..0));
        }
        files.len() == DRAIN_TOGETHER
    }

    /// Files of the device with something not yet written, and how many bytes of each.
    pub fn dirty_files(&self, device: DeviceId) -> Vec<(File, u64)> {
        let files = self.device(device).map(|device| device.unclean_files()).unwrap_or_default();
        files.into_iter().map(File).map(|file| (file.clone(), file.dirty_bytes())).collect()
    }

    /// The largest size that a file on the device can have.
    pub fn file_bytes_max(&self, device: DeviceId) -> Option<u64> {
        self.device(device).map(|device| device.device.limits().file_bytes_max.min(FILE_BYTES_MAX))
    }

    /// The memory of its pages: to put it behind the frames ahead of use, and to say what was got.
    pub fn frames(&self) -> &Frames {
        &self.cache.frames
    }

    /// How it is doing.
    pub fn status(&self) -> EngineStatus {
        let now = self.platform.now();
        let status = |device: &Arc<DeviceState>| {
            let mut status = device.status(&self.cache, now);
            if let Some(limits) = self.law_limits(device) {
                let LimitPages { dirty, background, bandwidth } = limits;
                let bytes = |pages: u64| pages.saturating_mul(PAGE_BYTES);
                status.dirty_limit_bytes = bytes(dirty);
                status.background_threshold_bytes = bytes(background);
                status.write_bandwidth_bytes_per_s = bandwidth.map(bytes).or(status.write_bandwidth_bytes_per_s);
            }
            status
        };
        let devices: Vec<_> = self.devices().iter().map(status).collect();
        EngineStatus {
            cache_bytes: u64::from(self.cache.frames.total()) * PAGE_BYTES,
            free_bytes: u64::from(self.cache.frames.free_count()) * PAGE_BYTES,
            dirty_bytes: devices.iter().map(|device| device.dirty_bytes).sum(),
            writeback_bytes: devices.iter().map(|device| device.writeback_bytes).sum(),
            pinned_bytes: self.cache.pinned_bytes(),
            metadata_bytes: self.cache.metadata_bytes(),
            files: self.cache.file_count(),
            devices,
        }
    }

    /// Changes whenever data that was accepted and not synced may have been lost while running: a
    /// flush failed, and pages that it covered had been let go.
    pub fn lost_epoch(&self) -> u64 {
        self.cache.lost_epoch.load(Ordering::Acquire)
    }

    /// Carries out an operation without data and waits for it.
    pub(crate) async fn call(self: &Arc<Self>, file: &Arc<FileInner>, operation: Operation) -> Result<(), DeviceError> {
        let answer = Answer::new();
        let ends = CallEnds { engine: Arc::clone(self), file: Arc::clone(file), answer: Arc::clone(&answer) };
        file.device.request_begins(self.platform.now());
        file.device.device.submit(Request::new(Box::new(ends), file.backing.clone(), operation, None));
        answer.wait().await
    }

    /// A page of the file has become dirty; it was charged. With the file's lock held.
    pub(crate) fn note_dirtied(&self, file: &Arc<FileInner>, state: &mut FileState) {
        self.local().count(Counter::PagesDirtied, 1);
        state.dirty_pages += 1;
        if state.dirty_pages == 1 {
            state.dirtied_at = self.platform.now();
            file.unclean.store(true, Ordering::Release);
            file.device.keep(file);
        }
        if !state.queued && state.holds == 0 {
            state.queued = true;
            // The flusher had its turn: what was dirty before is on its way, or to be tried again.
            state.dirtied_at = self.platform.now();
            file.device.queue_dirty(file, state.dirtied_at);
        }
    }

    /// Forgets what a clean file need not remember. The returned reference is dropped after the lock.
    pub(crate) fn settle(&self, file: &FileInner, state: &mut FileState) -> Option<Arc<FileInner>> {
        if !state.is_clean() {
            return None;
        }
        if state.error.is_some() && state.failed_pages == 0 && !state.flush_failed {
            state.error = None;
            file.device.files_failed.fetch_sub(1, Ordering::Relaxed);
        }
        failing::note(file, state);
        file.unclean.store(false, Ordering::Release);
        file.device.let_be(file)
    }

    /// Wakes the flusher if what is dirty has passed its threshold. A law says so itself when it is asked.
    pub(crate) fn wake_flusher_if_over(&self, device: &DeviceState) {
        if self.cache.ruling.is_some() {
            return;
        }
        let time = device.background_time_pages(&self.cache.settings);
        let over_time = time.is_some_and(|pages| device.reclaimable_pages() > pages);
        if over_time || device.budget.used() > device.background_pages(&self.cache) {
            device.flusher.raise();
        }
    }

    /// Whether the law in force wants background writeback of the device.
    pub(crate) fn is_over_background(&self, device: &DeviceState) -> bool {
        self.ask_law(device, |law, view, own, shared| law.over_background(view, &mut **own, &mut **shared))
            .unwrap_or_else(|| device.reclaimable_pages() > device.background_pages(&self.cache))
    }
}

impl<P: Platform> Drop for Engine<P> {
    /// Dirty files hold their device and are held by it: cut here, or their frames would never come
    /// back. What is dirty then is lost: drain first.
    fn drop(&mut self) {
        for device in self.devices() {
            device.let_all_be();
        }
    }
}

struct Draining<'a>(&'a DeviceState);

impl Drop for Draining<'_> {
    fn drop(&mut self) {
        self.0.draining.fetch_sub(1, Ordering::Relaxed);
    }
}

struct CallEnds<P: Platform> {
    engine: Arc<Engine<P>>,
    file: Arc<FileInner>,
    answer: Arc<Answer<Result<(), DeviceError>>>,
}

impl<P: Platform> Completion for CallEnds<P> {
    fn completed(self: Box<Self>, _: Operation, _: Option<FrameMemory>, result: Result<(), DeviceError>) {
        self.file.device.request_ends(self.engine.platform.now());
        self.answer.give(result);
    }
}

/// Waits for whichever ends first; drops the other.
pub(crate) async fn either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| {
        if one.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        other.as_mut().poll(cx)
    })
    .await;
}
