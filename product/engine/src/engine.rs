//! The engine: its public surface, and how its mechanisms are put together.
//!
//! Owns: one of each mechanism, in the order in which they stand on each other.
//! Does not own: any policy or mechanism: each has a module of its own.
//! Invariants: cheap calls (`try_…`, status, knobs) never wait; everything else may.

use std::ops::Range;
use std::sync::Arc;

use afflux_frames::Frames;

use crate::base::Base;
use crate::cache::{Cache, Census, PinnedPages};
use crate::client::Client;
use crate::counters::Counter;
use crate::devices::Devices;
use crate::devices::file::FileInner;
use crate::devices::state::{DeviceId, DeviceState, DeviceStatus, ListedFiles};
use crate::devices::waits::{DeviceWaits, WaitHistograms};
use crate::dirty;
use crate::durations::WaitTimes;
use crate::error::{DeviceError, Error};
use crate::eviction::EvictionKind;
use crate::platform::{Device, Nanos, Platform};
use crate::policy::{AnyPolicy, EqualParts, InForce, Remembered};
use crate::rare::Rare;
use crate::readahead::{Advice, Readahead};
use crate::reading::{self, Readings};
use crate::reclaim::{Dropped, Reclaim, ReclaimForm};
use crate::request::Backing;
use crate::reshape::Reshaping;
use crate::settings::{Acts, KnobError, KnobInfo, Settings, Shares, WhichKnob, would_fit};
use crate::trace::{Event, Follower};
use crate::units::PAGE_BYTES;
use crate::wait::lock;
use crate::writeback::Writeback;
use crate::writeback::driver::Driver;
use crate::writing::{self, Writing};

/// Files that are flushed at the same time by a drain.
const DRAIN_TOGETHER: usize = 64;

/// A page cache with writeback, in the world `P`.
pub struct Engine<P: Platform> {
    base: Base<P>,
    reclaim: Arc<Reclaim<P>>,
    writeback: Arc<Writeback<P>>,
    reading: Arc<Readings<P>>,
    writing: Arc<Writing<P>>,
    reshaping: Arc<Reshaping<P>>,
}

/// A change of names that is being made durable, by [`Engine::names_first`].
pub struct NamesFirst(Arc<DeviceState>);

impl Drop for NamesFirst {
    fn drop(&mut self) {
        if self.0.in_flight.names_end() {
            self.0.write_ended.wake_all();
        }
    }
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
        self.0.is_settled()
    }

    /// Whether the device has something of the file that no flush has followed yet.
    pub fn awaits_flush(&self) -> bool {
        self.0.device.awaits_flush(&self.0)
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

/// What an engine is made with; for one engine only, since a driver keeps state.
#[derive(Clone)]
pub struct Policies {
    /// How writers are throttled, and what is written in the background.
    pub policy: Arc<dyn AnyPolicy>,
    /// Who does background writeback.
    pub driver: Driver,
    /// Who decides what is read ahead.
    pub readahead: Readahead,
    /// Which clean pages go when frames are needed.
    pub eviction: EvictionKind,
    /// How much a task that finds no frame frees itself; nothing is the engine's own form.
    pub reclaim: Option<Arc<dyn ReclaimForm>>,
}

impl Policies {
    /// What ratios are shares of, with so much memory.
    pub fn shares(&self, memory_bytes: u64) -> Shares {
        Shares { memory_bytes, background: self.policy.needs().background_share }
    }
}

impl Default for Policies {
    /// Each device has an equal part of the dirty limit, and a flusher.
    fn default() -> Self {
        let (driver, readahead, eviction) = (Driver::default(), Readahead::default(), EvictionKind::default());
        Self { policy: Arc::new(EqualParts), driver, readahead, eviction, reclaim: None }
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
    /// What the knobs allow all devices together to have dirty. (The kernel's DirtyThresh.)
    pub dirty_limit_bytes: u64,
    /// Held by replies on their way.
    pub pinned_bytes: u64,
    /// Bytes of tables and indexes that describe the cache.
    pub metadata_bytes: u64,
    /// Files open in the cache.
    pub files: u64,
    /// The policy in force.
    pub policy: &'static str,
    /// By which policy clean pages are evicted.
    pub eviction: &'static str,
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
        assert!(
            P::STAMPED_FRAMES || frames.kept_bytes() == afflux_frames::FRAME_BYTES,
            "this world needs whole frames"
        );
        let cache = Arc::new(Cache::new(frames, policies.eviction));
        let in_force = InForce::new(policies.policy);
        let devices = Arc::new(Devices::new(Arc::clone(&cache), settings, in_force, policies.readahead));
        let base = Base { platform, cache, devices, tracer: Arc::default() };
        let reclaim = Reclaim::new(base.clone(), policies.reclaim);
        let writeback = Writeback::new(base.clone(), policies.driver);
        let reading = Readings::new(&base, &reclaim);
        let writing = Writing::new(base.clone(), Arc::clone(&reclaim), Arc::clone(&reading), Arc::clone(&writeback));
        let reshaping = Reshaping::new(base.clone(), Arc::clone(&writeback), Arc::clone(&writing));
        Arc::new(Self { base, reclaim, writeback, reading, writing, reshaping })
    }

    /// The world.
    pub fn platform(&self) -> &Arc<P> {
        &self.base.platform
    }

    /// The knobs in force.
    pub fn settings(&self) -> &Settings {
        self.base.settings()
    }

    /// The memory of its pages: to put it behind the frames ahead of use, and to say what was got.
    pub fn frames(&self) -> &Frames {
        &self.base.cache.frames
    }

    fn device(&self, id: DeviceId) -> Option<Arc<DeviceState>> {
        self.base.devices.get(id)
    }
}

/// Reading and writing.
impl<P: Platform> Engine<P> {
    /// Copies bytes if all of them are in the cache: how many (fewer than asked only at the file's
    /// end), or nothing if it would have to wait; `into` may then hold some of them. Takes no lock,
    /// makes no system call, allocates nothing.
    #[inline]
    pub fn try_read(&self, file: &File, offset: u64, into: &mut [u8]) -> Option<usize> {
        let want = reading::available(&file.0, offset, into.len());
        if reading::copy_hits(&self.base, &file.0, offset, &mut into[..want]) != want {
            return None;
        }
        let end = offset + want as u64;
        if reading::wants_more_ahead(&file.0, end) {
            self.reading.of(&file.0).read_ahead(&file.0, offset..end);
        }
        Some(want)
    }

    /// Copies bytes from `offset` on; returns how many: fewer than asked only at the file's end.
    /// Waits for those that are not in the cache.
    pub async fn read(&self, file: &File, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        self.read_for(None, file, offset, into).await
    }

    /// [`Engine::read`] for a client: waits are told as its own.
    pub async fn read_for(
        &self,
        client: Option<&Client>,
        file: &File,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, Error> {
        self.reading.of(&file.0).read(client, &file.0, offset, into).await
    }

    /// As [`Engine::try_read`], without the copy. Nothing also when guards hold too much already.
    pub fn try_read_pinned(&self, file: &File, offset: u64, len: usize) -> Option<PinnedPages> {
        self.reading.of(&file.0).try_read_pinned(&file.0, offset, len)
    }

    /// As [`Engine::read`], without the copy. Nothing when guards hold too much already, or the cache
    /// is too small to hold the range at once: read it then.
    pub async fn read_pinned(&self, file: &File, offset: u64, len: usize) -> Result<Option<PinnedPages>, Error> {
        self.read_pinned_for(None, file, offset, len).await
    }

    /// [`Engine::read_pinned`] for a client: waits are told as its own.
    pub async fn read_pinned_for(
        &self,
        client: Option<&Client>,
        file: &File,
        offset: u64,
        len: usize,
    ) -> Result<Option<PinnedPages>, Error> {
        self.reading.of(&file.0).read_pinned(client, &file.0, offset, len).await
    }

    /// What the caller knows of how a range of the file, or all of it, will be read. Waits for nothing and promises
    /// nothing: a wish that has no room is dropped.
    pub fn advise(&self, file: &File, range: Range<u64>, advice: Advice) {
        self.reading.of(&file.0).advise(&file.0, range, advice);
    }

    /// Overwrites bytes if all of them are in pages that are dirty already, and says so; if not, it
    /// may have overwritten some of them, which writing all of them again makes good. Takes no lock,
    /// makes no system call, allocates nothing.
    #[inline]
    pub fn try_write(&self, file: &File, offset: u64, from: &[u8]) -> Option<()> {
        (self.overwrite(file, offset, from) == from.len()).then_some(())
    }

    /// As [`Engine::try_write`]; says how many bytes, from the first on, were overwritten. That is all of
    /// them or none, unless one of several pages was taken by a flusher or a reader in this very moment:
    /// then the caller has changed bytes, and whoever keeps times of the file has to note that.
    #[inline]
    pub fn overwrite(&self, file: &File, offset: u64, from: &[u8]) -> usize {
        writing::overwrite(&self.base, &file.0, offset, from)
    }

    /// Writes bytes at `offset`; the file grows as needed. Waits for room in the device's dirty
    /// budget, for frames, and for the rest of a sector that is covered in part. The bytes are in the
    /// cache on return, and durable after a [`Engine::sync`] that succeeds.
    ///
    /// An error means that a prefix may have been written: no space, a device that keeps failing, whose room is all
    /// held by files that keep failing, or that hangs for longer than is to be waited for, a read that failed, a range
    /// past the largest offset.
    pub async fn write(&self, file: &File, offset: u64, from: &[u8]) -> Result<(), Error> {
        self.write_for(None, file, offset, from).await
    }

    /// [`Engine::write`] for a client: waits are told as its own. A payer is a file and a client.
    pub async fn write_for(&self, client: Option<&Client>, file: &File, offset: u64, from: &[u8]) -> Result<(), Error> {
        let silence = &file.0.device.silence;
        silence.takes_work()?;
        silence.unless_refused(self.writing.write(&file.0, client, offset, from)).await
    }

    /// Makes every byte of `range` that was written before the call durable, with the file's size.
    /// `0..u64::MAX` is the whole file.
    ///
    /// Waits for the device. An error means that something written to the file, in the range or not,
    /// is not durable yet; it stays dirty and is tried again, and every sync says so until it is.
    pub async fn sync(&self, file: &File, range: Range<u64>) -> Result<(), Error> {
        self.sync_for(None, file, range).await
    }

    /// [`Engine::sync`] for a client: waits are told as its own.
    pub async fn sync_for(&self, client: Option<&Client>, file: &File, range: Range<u64>) -> Result<(), Error> {
        // Where nothing is to be done a device that hangs makes no difference.
        file.0.device.silence.unless_refused(self.writeback.sync(&file.0, client, range)).await
    }

    /// A COMMIT of the file that `began` then, or what a front end has in its place, is over.
    pub fn note_commit(&self, client: Option<&Client>, file: &File, began: Nanos) {
        let now = self.base.now();
        let ns = now.since(began);
        file.0.device.waits.commit.note(ns);
        self.base.trace_file(now, &file.0, client, || Event::Commit { ns });
    }

    /// Sets the size, on the device too before it returns: bytes past a smaller size are gone, bytes
    /// up to a larger one read as zeros. Durable after a sync. Waits for what is in flight of the
    /// file. On an error nothing has changed; but of a device that hangs ([`DeviceError::Hung`]), what it was asked for
    /// already may change later.
    pub async fn set_size(&self, file: &File, size: u64) -> Result<(), Error> {
        self.reshaping.set_size(&file.0, size).await
    }

    /// Makes a range read as zeros, giving its whole pages' space back where the device can. The
    /// size stays. Waits as [`Engine::set_size`] does.
    pub async fn punch(&self, file: &File, range: Range<u64>) -> Result<(), Error> {
        self.reshaping.punch(&file.0, range).await
    }

    /// Forgets the file: its last name is gone. Dirty pages are dropped; requests in flight end.
    /// Later writes fail, later syncs have nothing to do. Does not wait.
    pub fn discard(&self, file: &File) {
        self.reshaping.discard(&file.0);
    }

    /// The host's file was changed by somebody else, to this size: forgets the clean pages. Dirty
    /// ones stay and will overwrite what is there; while there are any, only a larger size is taken.
    /// `seen` is the file's [`File::change_count`] from before the host was asked for the size. If it
    /// has moved, the size may be from before a change of ours: then it is not taken, and the answer is
    /// false. Waits for what is in flight of the file.
    pub async fn invalidate(&self, file: &File, size: u64, seen: u64) -> bool {
        self.reshaping.invalidate(&file.0, size, seen).await
    }
}

/// Devices, knobs and how it is doing.
impl<P: Platform> Engine<P> {
    /// Adds a device at any time and starts its flusher. The dirty limit is divided anew.
    pub fn add_device(&self, name: &str, device: Arc<dyn Device>) -> DeviceId {
        self.add_known_device(name, device, &Remembered::new())
    }

    /// [`Engine::add_device`], of a device of which [`Engine::remembered`] was kept.
    pub fn add_known_device(&self, name: &str, device: Arc<dyn Device>, remembered: &Remembered) -> DeviceId {
        let added = self.base.devices.add(name, device, remembered);
        let id = added.id;
        dirty::divide(&self.base.devices, self.base.moment());
        self.writeback.start(added);
        self.base.trace_device(Some(id), || Event::DeviceAdded);
        id
    }

    /// Sets a knob for all devices; acts as the knob's row says.
    ///
    /// # Panics
    /// When the knob's owner did not add its table to the engine's settings.
    pub fn set_knob(&self, knob: impl WhichKnob, value: u64) -> Result<(), KnobError> {
        let settings = self.settings();
        let knob = knob.id(settings);
        would_fit(settings, knob, value, Some(self.shares()), &|knob| settings.get(knob))?;
        settings.change(knob, value)?;
        self.knob_changed(settings.info(knob));
        let knob = settings.info(knob).name;
        self.base.trace_device(None, || Event::KnobChanged { knob, value });
        Ok(())
    }

    /// Sets a knob for one device; acts as the knob's row says. Nothing happens for a device that is not there.
    ///
    /// # Panics
    /// As [`Engine::set_knob`].
    pub fn set_device_knob(&self, device: DeviceId, knob: impl WhichKnob, value: u64) -> Result<(), KnobError> {
        let Some(device) = self.device(device) else {
            return Ok(());
        };
        let settings = self.settings();
        let knob = knob.id(settings);
        would_fit(settings, knob, value, Some(self.shares()), &|knob| device.knob(settings, knob))?;
        device.settings.set(settings, knob, value)?;
        self.knob_changed(settings.info(knob));
        let knob = settings.info(knob).name;
        self.base.trace_device(Some(device.id), || Event::KnobChanged { knob, value });
        Ok(())
    }

    fn shares(&self) -> Shares {
        let memory_bytes = self.base.cache.total_pages() * PAGE_BYTES;
        Shares { memory_bytes, background: self.base.devices.policy.needs().background_share }
    }

    /// What the policy in force wants kept of the device until the next start; nothing while it knows too little.
    pub fn remembered(&self, device: DeviceId) -> Remembered {
        let ask = |device: &DeviceState| self.base.ask(device, |policy, view, own, _| policy.remember(view, own));
        self.device(device).map(|device| ask(&device)).unwrap_or_default()
    }

    /// The knobs that have a value of their own for the device, by name.
    pub fn device_knobs(&self, device: DeviceId) -> Vec<(&'static str, u64)> {
        self.device(device).map(|device| device.settings.own(self.settings())).unwrap_or_default()
    }

    fn knob_changed(&self, knob: &KnobInfo) {
        if knob.acts == Acts::NextUse {
            self.base.devices.show_knobs();
            return;
        }
        for device in dirty::divide(&self.base.devices, self.base.moment()) {
            device.flusher.raise();
            device.silence.look.raise();
        }
    }

    /// A file of `size` bytes that the device knows by `backing`. Nothing is read.
    ///
    /// # Panics
    /// When the engine has no such device.
    pub fn open(&self, device: DeviceId, backing: Backing, size: u64) -> File {
        let device = self.device(device).unwrap_or_else(|| panic!("no device {}", device.0));
        File(self.base.devices.open(device, backing, size))
    }

    /// Writes everything that is dirty on the device and flushes it. Returns the files for which
    /// that failed; their pages stay dirty.
    pub async fn drain(&self, device: DeviceId) -> Vec<(File, Error)> {
        let Some(device) = self.device(device) else {
            return Vec::new();
        };
        let _ends = device.drain();
        let mut failed = Vec::new();
        let files: Vec<File> = device.files_to_drain().into_iter().map(File).collect();
        for some in files.chunks(DRAIN_TOGETHER) {
            // Asked for together, so that the host can join their flushes.
            let rounds: Vec<_> =
                some.iter().map(|file| (file, self.writeback.join_round(&file.0, 0..u64::MAX))).collect();
            for (file, round) in rounds {
                let Some(round) = round else { continue };
                if let Err(error) = device.silence.unless_refused(round.wait()).await {
                    failed.push((file.clone(), error));
                }
            }
        }
        failed
    }

    /// Files of the device with something not yet written, and how many bytes of each.
    pub fn dirty_files(&self, device: DeviceId) -> Vec<(File, u64)> {
        let files = self.device(device).map(|device| device.unclean_files()).unwrap_or_default();
        files.into_iter().map(File).map(|file| (file.clone(), file.dirty_bytes())).collect()
    }

    /// The largest size that a file on the device can have.
    pub fn file_bytes_max(&self, device: DeviceId) -> Option<u64> {
        self.device(device).map(|device| device.file_bytes_max())
    }

    /// Lets go of every clean page that nobody holds, as `drop_caches` does in Linux. What was used goes, too.
    pub fn drop_clean_pages(&self) -> Dropped {
        self.reclaim.evict_all()
    }

    /// How it is doing.
    pub fn status(&self) -> EngineStatus {
        let Base { cache, devices, .. } = &self.base;
        let now = self.base.now();
        cache.pages.unread.age(now);
        self.base.local().count(Counter::ReadaheadWaste, cache.pages.unread.take_wasted());
        let status = |device: &Arc<DeviceState>| {
            let (limits, figures) = self
                .base
                .ask(device, |policy, view, own, shared| (policy.limits(view, own, shared), policy.explain(view, own)));
            device.status(limits, figures, now)
        };
        let statuses: Vec<_> = devices.all().iter().map(status).collect();
        EngineStatus {
            cache_bytes: cache.total_pages() * PAGE_BYTES,
            free_bytes: u64::from(cache.frames.free_count()) * PAGE_BYTES,
            dirty_bytes: statuses.iter().map(|device| device.dirty_bytes).sum(),
            writeback_bytes: statuses.iter().map(|device| device.writeback_bytes).sum(),
            dirty_limit_bytes: devices.totals.part_pages() * statuses.len() as u64 * PAGE_BYTES,
            pinned_bytes: self.reading.pinned_bytes(),
            metadata_bytes: cache.metadata_bytes(),
            files: devices.files.count(),
            policy: devices.policy.name(),
            eviction: cache.eviction_kind.name(),
            devices: statuses,
        }
    }

    /// How many of the device's files wait for a turn to be written; takes as long as there are such files.
    pub fn listed_files(&self, device: DeviceId) -> Option<ListedFiles> {
        self.device(device).map(|device| device.listed_files())
    }

    /// While the answer lives, a change of names on the device is being made durable: less data is on its way to it,
    /// so that the host's few small writes do not wait for much. None when the engine has no such device.
    pub fn names_first(&self, device: DeviceId) -> Option<NamesFirst> {
        let device = self.device(device)?;
        device.in_flight.names_begin();
        Some(NamesFirst(device))
    }

    /// Who waits for the device, and how long such waits take; nothing when the engine has no such device.
    pub fn waits(&self, device: DeviceId) -> Option<DeviceWaits> {
        self.device(device).map(|device| device.waits.told(self.base.now(), device.silence.is_stalled()))
    }

    /// How long waits for the device took, without who did: takes no lock that a caller takes. Nothing when the engine
    /// has no such device.
    pub fn wait_histograms(&self, device: DeviceId) -> Option<WaitHistograms> {
        self.device(device).map(|device| device.waits.histograms())
    }

    /// How long those took who did not find the free frames that they wanted: to recycle some, or to wait for one.
    pub fn reclaim_waits(&self) -> WaitTimes {
        self.reclaim.wait_times()
    }

    /// Follows what the engine does from now on.
    pub fn follow(&self) -> Follower {
        Follower::new(Arc::clone(&self.base.tracer))
    }

    /// Changes whenever data that was accepted and not synced may have been lost while running: a
    /// flush failed, and pages that it covered had been let go.
    pub fn lost_epoch(&self) -> u64 {
        self.base.devices.lost_epoch()
    }
}

/// For checks, and for runs in the simulator.
impl<P: Platform> Engine<P> {
    /// Counts all frames, in time proportional to their number.
    pub fn census(&self) -> Census {
        self.base.devices.census()
    }

    /// Has the path taken in `per_mille` of 1,000 cases where it could be; 0 is as usual. False if
    /// that was asked of a build without the feature `rare-paths`.
    pub fn force_rare(&self, path: Rare, per_mille: u64) -> bool {
        self.base.cache.rare.set(path, per_mille)
    }

    /// What the forced paths are drawn from.
    pub fn seed_rare(&self, seed: u64) {
        self.base.cache.rare.seed(seed);
    }

    /// Has request number `number` for frames, counted from 1 and from the engine's start, find none;
    /// 0 is never. False if that was asked of a build without the feature `rare-paths`.
    pub fn fail_allocation(&self, number: u64) -> bool {
        self.base.cache.rare.fail_allocation(number)
    }

    /// Requests for frames so far; 0 in a build without the feature `rare-paths`.
    pub fn allocations(&self) -> u64 {
        self.base.cache.rare.allocations()
    }

    /// How often what all devices share was looked at so far: the list of devices, the sums of what they
    /// have, a policy's memory of all of them; 0 in a build without the feature `rare-paths`.
    pub fn shared_looks(&self) -> u64 {
        self.base.devices.shared_looks()
    }

    /// Most pages, or leaves of an index, that work on many pages visited so far without letting go of a file's lock; 0 in
    /// a build without the feature `rare-paths`.
    pub fn longest_hold(&self) -> u64 {
        self.base.cache.longest_hold.steps()
    }
}
