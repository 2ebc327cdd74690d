//! The devices of an engine and the files on them: accounts, lists and states.
//!
//! Owns: the list of devices, the table of files, the knobs and the policy in force, what devices share: sums, the
//! end of congestion.
//! Does not own: the files' pages (`cache`), any step that waits or submits (`writeback`, `reading`, `reshape`).
//! Invariants: devices are added and never removed. Dirty files are kept alive by their device, and with it until
//! they are written or the engine is gone.

pub(crate) mod admission;
mod bandwidth;
mod busy;
mod congestion;
pub(crate) mod delays;
pub(crate) mod file;
pub(crate) mod in_flight;
mod lists;
pub(crate) mod pass;
pub(crate) mod placing;
pub(crate) mod purses;
pub(crate) mod quiet;
mod ready;
mod rings;
pub(crate) mod silence;
pub(crate) mod state;
mod table;
mod totals;
mod usage;
pub(crate) mod waits;

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::cache::{Cache, Census, FilePages};
use crate::platform::{Device, Nanos};
use crate::policy::{
    AnyPolicy, Completed, DeviceCounts, GlobalCounts, InForce, KnobValues, POLICY_KNOBS_MAX, PolicyKnobs, Remembered,
    View,
};
use crate::readahead::Readahead;
use crate::request::Backing;
use crate::settings::{DeviceSettings, Knob, KnobId, Settings, WhichKnob};
use crate::sync::OwnLines;
use crate::wait::{WaitQueue, lock};
use file::FileInner;
pub(crate) use lists::FlushReason;
use state::{DeviceId, DeviceState};
use table::FileTable;
pub(crate) use totals::DirtyTotals;
pub(crate) use usage::Kind;

/// Least limit in bytes that a policy is told of: two pages, as in the kernel; with one there is no
/// background below it.
const DIRTY_BYTES_MIN: u64 = 8192;

/// All of them.
pub(crate) struct Devices {
    cache: Arc<Cache>,
    list: Mutex<Vec<Arc<DeviceState>>>,
    pub(crate) files: Arc<FileTable>,
    pub(crate) settings: Settings,
    pub(crate) policy: InForce,
    /// Who decides what is read ahead.
    readahead: Readahead,
    /// What all devices have dirty.
    pub(crate) totals: Arc<DirtyTotals>,
    /// Where the knobs of the policy in force lie.
    policy_knobs: Vec<KnobId>,
    /// Each of them, of all devices together.
    policy_knob_sums: [AtomicU64; POLICY_KNOBS_MAX],
    /// Held while knobs are shown: of two that change at once, who comes second sees both.
    showing: Mutex<()>,
    lost_epoch: AtomicU64,
    /// How often a congested queue has cleared.
    congestion_ends: OwnLines<AtomicU64>,
    congestion_queue: WaitQueue,
}

/// What a view says of the world.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Nanos,
    pub(crate) cpus: u64,
}

impl Devices {
    /// # Panics
    /// When the policy brings more knobs than a view has room for.
    pub(crate) fn new(cache: Arc<Cache>, mut settings: Settings, policy: InForce, readahead: Readahead) -> Self {
        let table = policy.needs().knobs;
        table.into_iter().for_each(|table| settings.add(table));
        let policy_knobs = table.map_or_else(Vec::new, |table| settings.of(table));
        assert!(policy_knobs.len() <= POLICY_KNOBS_MAX, "{} brings too many knobs", policy.name());
        Self {
            cache,
            list: Mutex::default(),
            files: Arc::default(),
            settings,
            policy,
            readahead,
            totals: Arc::default(),
            policy_knobs,
            policy_knob_sums: Default::default(),
            showing: Mutex::default(),
            lost_epoch: AtomicU64::new(0),
            congestion_ends: OwnLines(AtomicU64::new(0)),
            congestion_queue: WaitQueue::new(),
        }
    }

    /// The devices. No hot path takes this lock.
    fn list(&self) -> MutexGuard<'_, Vec<Arc<DeviceState>>> {
        self.totals.looks.note();
        lock(&self.list)
    }

    pub(crate) fn all(&self) -> Vec<Arc<DeviceState>> {
        self.list().clone()
    }

    pub(crate) fn get(&self, id: DeviceId) -> Option<Arc<DeviceState>> {
        self.list().get(id.0 as usize).cloned()
    }

    pub(crate) fn add(&self, name: &str, device: Arc<dyn Device>, remembered: &Remembered) -> Arc<DeviceState> {
        let mut list = self.list();
        let id = DeviceId(list.len() as u32);
        let memory = self.policy.new_device(remembered);
        let settings = DeviceSettings::new(&self.settings);
        let added = Arc::new(DeviceState::new(id, name, device, Arc::clone(&self.totals), memory, settings));
        list.push(Arc::clone(&added));
        added
    }

    /// A file of `size` bytes on the device.
    pub(crate) fn open(&self, device: Arc<DeviceState>, backing: Backing, size: u64) -> Arc<FileInner> {
        self.files.add(|slot| {
            let pages = FilePages::new(&self.cache, slot, size);
            let tables = (Arc::clone(&self.cache), Arc::clone(&self.files));
            FileInner::new(pages, tables, device, backing, self.readahead)
        })
    }

    /// Waits until the next time that a device's queue stops being congested.
    pub(crate) async fn congestion_clears(&self) {
        let ends = self.congestion_ends.load(Ordering::Acquire);
        self.congestion_queue.until(|| (self.congestion_ends.load(Ordering::Acquire) != ends).then_some(())).await;
    }

    pub(crate) fn congestion_cleared(&self) {
        self.congestion_ends.fetch_add(1, Ordering::AcqRel);
        self.congestion_queue.wake_all();
    }

    /// Data that was accepted and not synced may be lost.
    pub(crate) fn note_lost(&self) {
        self.lost_epoch.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn lost_epoch(&self) -> u64 {
        self.lost_epoch.load(Ordering::Acquire)
    }

    /// Shows policies the knobs as they are, after one of them or the number of devices has changed.
    pub(crate) fn show_knobs(&self) {
        let _one_at_a_time = lock(&self.showing);
        let all = self.all();
        for (knob, sum) in self.policy_knobs.iter().zip(&self.policy_knob_sums) {
            let values = all.iter().map(|device| device.knob(&self.settings, *knob));
            sum.store(values.fold(0, u64::saturating_add), Ordering::Relaxed);
        }
        all.iter().for_each(|device| device.show_knobs(self.knob_values(Some(device))));
    }

    /// Counts all frames, in time proportional to their number.
    pub(crate) fn census(&self) -> Census {
        let mut census = self.cache.census();
        for device in self.all() {
            census.unwritten += device.unclean_files().iter().map(|file| lock(&file.state).dirty_pages).sum::<u64>();
        }
        census
    }

    /// All memory for pages.
    pub(crate) fn memory_pages(&self) -> u64 {
        self.cache.total_pages()
    }

    /// A snapshot with the shared counters, if the policy needs them.
    pub(crate) fn view_of(&self, device: &DeviceState, moment: Moment) -> View {
        let needed = self.policy.needs().shared_counters;
        self.view(device, moment, if needed { self.shared_counts() } else { GlobalCounts::default() })
    }

    /// What all devices share: one read of each counter.
    pub(crate) fn shared_counts(&self) -> GlobalCounts {
        let free = u64::from(self.cache.frames.free_count());
        let writeback = self.totals.writeback();
        GlobalCounts {
            free,
            reserve: u64::from(self.cache.frames.watermarks().low),
            inactive_file: self.cache.total_pages().saturating_sub(free),
            dirty: self.totals.held().saturating_sub(writeback),
            writeback,
            ..GlobalCounts::default()
        }
    }

    #[inline]
    fn view(&self, device: &DeviceState, moment: Moment, shared: GlobalCounts) -> View {
        let (pages, guard_pages) = device.admission.pages_and_guard();
        let (counts, limits) = (device.counts(moment.now, pages), device.limits());
        let mut view = self.view_without_knobs(moment, shared, counts);
        view.knobs = *device.knobs_seen();
        view.request_bytes = limits.request_bytes_best();
        view.request_bytes_max = u64::from(limits.request_bytes_max);
        view.request_depth = limits.depth;
        view.failed_room_pages = device.failed_room_pages();
        view.guard_pages = guard_pages.0;
        view
    }

    /// A view of no device in particular.
    pub(crate) fn view_of_none(&self, moment: Moment) -> View {
        let mut view = self.view_without_knobs(moment, self.shared_counts(), DeviceCounts::default());
        view.knobs = self.knob_values(None);
        view.guard_pages = u64::MAX;
        view
    }

    #[inline]
    fn view_without_knobs(&self, moment: Moment, shared: GlobalCounts, counts: DeviceCounts) -> View {
        let mut view = View::new(moment.now, shared, counts);
        view.cpus = moment.cpus.max(1);
        view.memory_pages = self.cache.total_pages();
        view.part_pages = self.totals.part_pages();
        view
    }

    /// How often data that has expired is looked for; `None` if that is off.
    pub(crate) fn look_ns(&self) -> Option<u64> {
        Some(self.settings.ns(Knob::WritebackCentisecs)).filter(|ns| *ns > 0)
    }

    fn knob_values(&self, device: Option<&DeviceState>) -> KnobValues {
        let settings = &self.settings;
        let at = |knob: KnobId| device.map_or_else(|| settings.get(knob), |device| device.knob(settings, knob));
        let knob = |knob: Knob| at(knob.id(settings));
        let expire = settings.info(Knob::ExpireCentisecs);
        let sums = self.policy_knob_sums.each_ref().map(|sum| sum.load(Ordering::Relaxed));
        KnobValues {
            dirty_ratio: settings.get(Knob::DirtyRatio),
            dirty_bytes: match settings.get(Knob::DirtyBytes) {
                0 => 0,
                bytes => bytes.max(DIRTY_BYTES_MIN),
            },
            // A kernel has one for all devices.
            background_ratio: settings.get(Knob::BackgroundRatio),
            background_bytes: settings.get(Knob::BackgroundBytes),
            background_centisecs: knob(Knob::BackgroundCentisecs),
            device_background_ratio: knob(Knob::BackgroundRatio),
            device_background_bytes: knob(Knob::BackgroundBytes),
            slice_bytes: knob(Knob::SliceBytes),
            expire_ns: self.look_ns().map_or(u64::MAX, |_| expire.ns(knob(Knob::ExpireCentisecs))),
            own: PolicyKnobs::read(&self.policy_knobs, at),
            own_sums: PolicyKnobs(sums),
        }
    }

    /// Asks the policy in force something about a device. The snapshot is taken before its memory is locked.
    pub(crate) fn ask<T>(
        &self,
        device: &DeviceState,
        moment: Moment,
        question: impl FnOnce(&dyn AnyPolicy, &View, &mut dyn Any, &mut dyn Any) -> T,
    ) -> T {
        let view = self.view_of(device, moment);
        self.policy.ask(&device.memory, |policy, own, shared| question(policy, &view, own, shared))
    }

    /// Asks what may be charged to the device from now on.
    pub(crate) fn refresh_room(&self, device: &DeviceState, moment: Moment) {
        let view = self.view(device, moment, GlobalCounts::default());
        self.set_room(device, &view);
    }

    /// Tells the policy of a write request that has ended, and asks what may be charged to the device from now on:
    /// both of one view, for small requests end often. Not inlined: a test counts its instructions.
    #[inline(never)]
    pub(crate) fn write_ended(&self, device: &DeviceState, moment: Moment, done: &Completed) {
        let mut view = self.view_of(device, moment);
        self.policy.ask(&device.memory, |policy, own, shared| policy.completed(&view, done, own, shared));
        view.forget_global();
        self.set_room(device, &view);
    }

    fn set_room(&self, device: &DeviceState, view: &View) {
        let (room, flight) = self.policy.room(view, &device.memory);
        device.in_flight.set(flight, room.prices);
        device.admission.set_room(&room);
    }

    /// Looks at what all devices share so far; 0 in a build without the feature `rare-paths`.
    pub(crate) fn shared_looks(&self) -> u64 {
        self.totals.looks.count() + self.policy.looks.count()
    }
}

impl Drop for Devices {
    /// Dirty files hold their device and are held by it: cut here, or their frames would never come
    /// back. What is dirty then is lost: drain first.
    fn drop(&mut self) {
        for device in self.all() {
            device.forget_files();
        }
    }
}
