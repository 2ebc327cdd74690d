//! The devices of an engine and the files on them: accounts, lists and states.
//!
//! Owns: the list of devices, the table of files, the knobs and the policy in force. Also the state that devices share:
//! sums.
//! Does not own: the files' pages (`cache`), any step that waits or submits (`writeback`, `reading`, `reshape`).
//! Invariants: devices are added and never removed. A device holds its dirty files alive until they are written or the
//! engine is gone.

pub(crate) mod active_policy;
pub(crate) mod admission;
mod charges;
pub(crate) mod delays;
mod failures;
pub(crate) mod file;
pub(crate) mod hang;
pub(crate) mod in_flight;
mod listing;
pub(crate) mod pass;
pub(crate) mod payer;
mod ready;
pub(crate) mod rewrites;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod usage;
pub(crate) mod waits;
pub(crate) mod withholding;
pub(crate) mod worklist;

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use afflux_device::platform::{Device, Nanos};
use afflux_device::policy::{
    AnyPolicy, Completed, DeviceCounts, Direction, KnobValues, POLICY_KNOBS_MAX, PolicyKnobs, Remembered, SharedCounts,
    View,
};
use afflux_device::request::Backing;
use afflux_device::settings::{DeviceSettings, Knob, KnobId, PageKnob, Settings, WhichKnob};
use afflux_pages::cache::{Census, FilePages, PageCache};
use afflux_pages::wait::lock;

use crate::devices::active_policy::ActivePolicy;
use crate::readahead::Readahead;
use crate::recovery::slots::FileSlots;
use crate::recovery::{FileKey, FoundFile, Unadopted};
pub use charges::DeviceId;
pub(crate) use charges::DirtyTotals;
use file::{FileInner, FileTable};
use in_flight::Terms;
pub use ready::ListedFiles;
pub(crate) use ready::Size;
pub(crate) use usage::TransferKind;

/// The least limit in bytes that a policy sees: two pages, as in the kernel; with one page no background threshold fits
/// below it.
const DIRTY_BYTES_MIN: u64 = 8192;

/// A device with the engine's files.
pub(crate) type DeviceState = state::DeviceState<FileInner>;

/// An engine's devices and their files.
pub(crate) struct Devices {
    cache: Arc<PageCache>,
    list: Mutex<Vec<Arc<DeviceState>>>,
    /// The open files, by slot.
    pub files: Arc<FileTable<FileInner>>,
    /// The files as a later process finds them.
    slots: Arc<FileSlots>,
    /// The files that were found.
    pub unadopted: Unadopted,
    /// The engine's knobs.
    pub settings: Settings,
    /// The policy in force.
    pub policy: ActivePolicy,
    /// The policy for readahead.
    readahead: Readahead,
    /// Dirty data of all devices.
    pub totals: Arc<DirtyTotals>,
    /// The knobs of the policy in force.
    policy_knobs: Vec<KnobId>,
    /// The sum of each of these knobs over all devices.
    policy_knob_sums: [AtomicU64; POLICY_KNOBS_MAX],
    /// Held while knobs are shown: if two knobs change at once, the second change sees both.
    showing: Mutex<()>,
    lost_epoch: AtomicU64,
}

/// A view's facts about the world.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    /// Instant of the event, on the platform's clock.
    pub now: Nanos,
    /// Threads, or virtual CPUs, that use the engine.
    pub cpus: u64,
}

impl Devices {
    /// # Panics
    /// If the policy brings more knobs than a view has slots for.
    pub(crate) fn new(
        cache: Arc<PageCache>,
        mut settings: Settings,
        policy: ActivePolicy,
        readahead: Readahead,
        unadopted: Unadopted,
    ) -> Self {
        let table = policy.needs().knobs;
        table.into_iter().for_each(|table| settings.add(table));
        let policy_knobs = table.map_or_else(Vec::new, |table| settings.of(table));
        assert!(policy_knobs.len() <= POLICY_KNOBS_MAX, "{} brings too many knobs", policy.name());
        let slots = FileSlots::of(cache.frames.memory(), Arc::clone(&cache.pages.stores));
        let files: Arc<FileTable<FileInner>> = Arc::default();
        files.reserve(&unadopted.slots());
        Self {
            slots,
            unadopted,
            cache,
            list: Mutex::default(),
            files,
            settings,
            policy,
            readahead,
            totals: Arc::default(),
            policy_knobs,
            policy_knob_sums: Default::default(),
            showing: Mutex::default(),
            lost_epoch: AtomicU64::new(0),
        }
    }

    /// The devices. No hot path takes this lock.
    fn list(&self) -> MutexGuard<'_, Vec<Arc<DeviceState>>> {
        self.totals.looks.count_one();
        lock(&self.list)
    }

    /// All devices, in the order of their numbers.
    pub(crate) fn all(&self) -> Vec<Arc<DeviceState>> {
        self.list().clone()
    }

    /// The device with this number.
    pub(crate) fn get(&self, id: DeviceId) -> Option<Arc<DeviceState>> {
        self.list().get(id.0 as usize).cloned()
    }

    /// Adds a device. `remembered` comes from an earlier process.
    pub(crate) fn add(&self, name: &str, device: Arc<dyn Device>, remembered: &Remembered) -> Arc<DeviceState> {
        let mut list = self.list();
        let id = DeviceId(list.len() as u32);
        let memory = self.policy.new_device(remembered);
        let settings = DeviceSettings::new(&self.settings);
        let added = Arc::new(state::DeviceState::new(id, name, device, Arc::clone(&self.totals), memory, settings));
        list.push(Arc::clone(&added));
        added
    }

    /// A file of `size` bytes on the device. The arena persists a file with a key, if it has a slot for it.
    pub(crate) fn open(
        &self,
        device: Arc<DeviceState>,
        backing: Backing,
        size: u64,
        key: Option<&FileKey>,
    ) -> Arc<FileInner> {
        self.files.add(|slot| {
            let pages = FilePages::new(self.cache.number_file(), slot, size);
            let tables = (Arc::clone(&self.cache), Arc::clone(&self.files));
            let kept = key.and_then(|key| self.slots.keep(slot, key, size));
            FileInner::new(pages, tables, device, (backing, kept), self.readahead)
        })
    }

    /// A found file, in the slot that its pages name. The host's file has `host_bytes`.
    pub(crate) fn open_found(
        &self,
        device: Arc<DeviceState>,
        backing: Backing,
        found: &FoundFile,
        host_bytes: u64,
    ) -> Arc<FileInner> {
        self.files.add_at(found.slot, |slot| {
            // Dirty pages reach up to the size that clients know. Without any, nothing is known but the host's size.
            let size = if found.has_unwritten() { found.size.max(host_bytes) } else { host_bytes };
            let kept = self.slots.persisted(slot);
            kept.store_size(size);
            let pages = FilePages::new(self.cache.number_file(), slot, size);
            let tables = (Arc::clone(&self.cache), Arc::clone(&self.files));
            let file = FileInner::new(pages, tables, device, (backing, Some(kept)), self.readahead);
            lock(&file.state).host.set_size(host_bytes);
            file
        })
    }

    /// Frees the slot of a found file that is gone.
    pub(crate) fn forget_found(&self, slot: u32) {
        self.slots.free(slot);
        self.files.remove(slot);
    }

    /// Data that was accepted and not synced may be lost.
    pub(crate) fn note_lost(&self) {
        self.cache.frames.memory().header().change_verifier();
        self.lost_epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// How often accepted bytes may have been lost.
    pub(crate) fn lost_epoch(&self) -> u64 {
        self.lost_epoch.load(Ordering::Acquire)
    }

    /// Shows policies the present knobs, after a knob or the number of devices has changed.
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
        census.unadopted = self.unadopted.pages();
        for device in self.all() {
            census.unwritten +=
                device.worklist.unclean_files().iter().map(|file| lock(&file.state).dirty_pages).sum::<u64>();
        }
        census
    }

    /// Pages of the cache.
    pub(crate) fn memory_pages(&self) -> u64 {
        self.cache.total_pages()
    }

    /// A snapshot with the shared counters, if the policy needs them.
    pub(crate) fn view_of(&self, device: &DeviceState, moment: Moment) -> View {
        let needed = self.policy.needs().shared_counters;
        self.view(device, moment, if needed { self.shared_counts() } else { SharedCounts::default() })
    }

    /// The counts shared by all devices: one read of each counter.
    pub(crate) fn shared_counts(&self) -> SharedCounts {
        let free = u64::from(self.cache.frames.free_count());
        let writeback = self.totals.writeback();
        SharedCounts {
            free,
            reserve: u64::from(self.cache.frames.watermarks().low),
            cached: self.cache.total_pages().saturating_sub(free),
            dirty: self.totals.held().saturating_sub(writeback),
            writeback,
        }
    }

    #[inline]
    fn view(&self, device: &DeviceState, moment: Moment, shared: SharedCounts) -> View {
        let (pages, guard_pages) = device.admission().pages_and_guard();
        let (counts, limits) = (device.counts(moment.now, pages), device.limits());
        let mut view = self.view_without_knobs(moment, shared, counts);
        view.knobs = *device.knobs_seen();
        view.request_bytes = limits.request_bytes_best();
        view.request_bytes_max = u64::from(limits.request_bytes_max);
        view.request_depth = limits.depth;
        view.guard_pages = guard_pages.0;
        view
    }

    #[inline]
    fn view_without_knobs(&self, moment: Moment, shared: SharedCounts, counts: DeviceCounts) -> View {
        let mut view = View::new(moment.now, counts);
        view.shared = shared;
        view.cpus = moment.cpus.max(1);
        view.memory_pages = self.cache.total_pages();
        view.part_pages = self.totals.part_pages();
        view
    }

    /// How often expired data is looked for; `None` if that is off.
    pub(crate) fn look_ns(&self) -> Option<u64> {
        Some(self.settings.ns(Knob::WritebackCentisecs)).filter(|ns| *ns > 0)
    }

    fn knob_values(&self, device: Option<&DeviceState>) -> KnobValues {
        let settings = &self.settings;
        let at = |knob: KnobId| device.map_or_else(|| settings.get(knob), |device| device.knob(settings, knob));
        let knob = |knob: Knob| at(knob.id(settings));
        let page_knob = |knob: PageKnob| at(knob.id(settings));
        let expire = settings.info(Knob::ExpireCentisecs);
        let sums = self.policy_knob_sums.each_ref().map(|sum| sum.load(Ordering::Relaxed));
        KnobValues {
            dirty_ratio: settings.get(Knob::DirtyRatio),
            dirty_bytes: match settings.get(Knob::DirtyBytes) {
                0 => 0,
                bytes => bytes.max(DIRTY_BYTES_MIN),
            },
            // A kernel has one background threshold for all devices.
            background_ratio: settings.get(PageKnob::BackgroundRatio),
            background_bytes: settings.get(Knob::BackgroundBytes),
            background_centisecs: knob(Knob::BackgroundCentisecs),
            device_background_ratio: page_knob(PageKnob::BackgroundRatio),
            device_background_bytes: knob(Knob::BackgroundBytes),
            slice_bytes: page_knob(PageKnob::SliceBytes),
            expire_ns: self.look_ns().map_or(u64::MAX, |_| expire.ns(knob(Knob::ExpireCentisecs))),
            interval_ns: self.look_ns().unwrap_or(0),
            own: PolicyKnobs::read(&self.policy_knobs, at),
            own_sums: PolicyKnobs(sums),
        }
    }

    /// Asks the policy in force about a device, and first reports to it what has ended. The snapshot is taken before
    /// the device's memory is locked.
    pub(crate) fn ask<T>(
        &self,
        device: &DeviceState,
        moment: Moment,
        question: impl FnOnce(&dyn AnyPolicy, &View, &mut dyn Any, &mut dyn Any) -> T,
    ) -> T {
        let view = self.view_to_ask(device, moment);
        self.policy.ask(&device.memory, |policy, own, shared| question(policy, &view, own, shared))
    }

    /// A snapshot for a question. The policy knows all that ended before.
    pub(crate) fn view_to_ask(&self, device: &DeviceState, moment: Moment) -> View {
        self.tell_ends(device, moment);
        self.view_of(device, moment)
    }

    /// Asks how much may be charged to the device from now on.
    pub(crate) fn refresh_bounds(&self, device: &DeviceState, moment: Moment) {
        self.tell_ends(device, moment);
        let view = self.view(device, moment, SharedCounts::default());
        device.hang().set_may_refuse(self.policy.may_refuse(&view, &device.memory));
        self.set_bounds(device, view);
    }

    /// A request has ended. The engine reports it to the policy now, or later with others ([`Needs::ends_together`]).
    ///
    /// [`Needs::ends_together`]: afflux_device::policy::Needs::ends_together
    pub(crate) fn request_ended(&self, device: &DeviceState, moment: Moment, done: Completed) {
        let may_wait = self.policy.needs().ends_together && device.admission().waiting() == 0;
        device.ends.add(done);
        if !may_wait || device.ends.are_due() {
            self.tell_ends(device, moment);
        }
    }

    /// Reports all requests that have ended to the policy. If there were writes, the policy says how much may be
    /// charged to the device from now on. Not inlined: a test counts its instructions.
    #[inline(never)]
    fn tell_ends(&self, device: &DeviceState, moment: Moment) {
        if device.ends.are_told() {
            return;
        }
        let view = self.view_of(device, moment);
        let tell = |policy: &dyn AnyPolicy, own: &mut dyn Any, shared: &mut dyn Any| {
            let mut wrote = false;
            device.ends.tell(|ends| {
                wrote = ends.iter().any(|done| done.direction == Direction::Write);
                policy.completed(&view, ends, own, shared);
            });
            wrote
        };
        if self.policy.ask(&device.memory, tell) {
            self.set_bounds(device, view);
        }
    }

    /// The answer depends on nothing that devices share.
    fn set_bounds(&self, device: &DeviceState, mut view: View) {
        view.shared = SharedCounts::default();
        let (bounds, flight) = self.policy.charge_bounds(&view, &device.memory);
        device.in_flight.set(Terms { flight, prices: bounds.prices });
        device.admission().set_bounds(&bounds);
    }

    /// How often shared state was read so far; 0 in a build without the feature `rare-paths`.
    pub(crate) fn shared_looks(&self) -> u64 {
        self.totals.looks.get() + self.policy.looks.get()
    }
}

impl Drop for Devices {
    /// Dirty files and their device hold each other alive. The cycle is cut here, or the frames would never come back.
    /// Data still dirty is lost: drain first.
    fn drop(&mut self) {
        for device in self.all() {
            device.worklist.forget_files();
        }
    }
}
