//! The engine: its public surface, and the assembly of its mechanisms.
//!
//! Owns: one of each mechanism, in the order of their dependence.
//! Does not own: any policy or mechanism: each has its own module.
//! Invariants: cheap calls (`try_…`, status, knobs) never wait; everything else may.

use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};

use afflux_device::client::Client;
use afflux_device::counters::Counter;
use afflux_device::error::{DeviceError, Error};
use afflux_device::platform::{Device, Nanos, Platform};
use afflux_device::policy::{AnyPolicy, EqualParts, IgnoredKnob, KnobInForce, Needs, Remembered};
use afflux_device::request::Backing;
use afflux_device::settings::{Acts, KnobError, KnobId, KnobInfo, RatioBases, Scope, Settings, WhichKnob, would_fit};
use afflux_frames::{ArenaState, Frames};
use afflux_pages::cache::{Census, PageCache, PinnedPages};
use afflux_pages::eviction::EvictionKind;
use afflux_pages::rare::Rare;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use crate::base::Base;
use crate::devices::active_policy::ActivePolicy;
use crate::devices::file::{FileInner, WriteObstacle};
use crate::devices::status::DeviceStatus;
use crate::devices::waits::{DeviceWaits, PerWait};
use crate::devices::{DeviceId, DeviceState, Devices, ListedFiles};
use crate::durations::{WaitHistogram, WaitTimes};
use crate::readahead::{Advice, Readahead};
use crate::reading::{self, Readings, Waiting};
use crate::reclaim::{Dropped, Reclaim};
use crate::recovery::adopt::Adopting;
use crate::recovery::{FileKey, Recovered, Unadopted};
use crate::reshape::Reshaping;
use crate::trace::{EngineEvent, Follower};
use crate::withholding::RangeHolder;
use crate::writeback::Writeback;
use crate::writing::{self, Writing};
use crate::{dirty, in_force};

/// Files that a drain flushes at the same time.
const DRAIN_TOGETHER: usize = 64;

/// A page cache with writeback, in the world `P`.
pub struct Engine<P: Platform> {
    base: Base<P>,
    reclaim: Arc<Reclaim<P>>,
    writeback: Arc<Writeback<P>>,
    reading: Arc<Readings<P>>,
    writing: Arc<Writing<P>>,
    reshaping: Arc<Reshaping<P>>,
    adopting: Arc<Adopting<P>>,
}

/// A change of names that is being made durable, from [`Engine::prioritize_names`].
pub struct NamesPriority(Arc<DeviceState>);

impl Drop for NamesPriority {
    fn drop(&mut self) {
        if self.0.in_flight.remove_name() {
            self.0.requests().write_ended().wake_all();
        }
    }
}

/// A range whose bytes stay off the device until this is dropped, from [`Engine::withhold`].
pub struct WithheldRange {
    _holder: RangeHolder,
}

/// A file of the cache. A clone is the same file.
///
/// The last clone may be dropped while the file is dirty: the engine holds the file until it has been written. A host
/// file must be opened once: two `File`s of it would not see each other.
#[derive(Clone)]
pub struct File(pub(crate) Arc<FileInner>);

impl File {
    /// The size as every reader of the cache sees it: at once after a write. Takes no lock.
    pub fn size(&self) -> u64 {
        self.0.size()
    }

    /// Whether nothing is dirty or being written, and no change of size or hole is under way, not even one whose caller
    /// went away. Takes no lock; a running write may or may not count. Only a clean file that was synced since may be
    /// dropped and opened anew: a flush may be owed to it.
    pub fn is_clean(&self) -> bool {
        self.0.is_settled()
    }

    /// Whether the device has changes to the file that no successful flush has followed yet.
    pub fn has_unflushed(&self) -> bool {
        self.0.device.worklist().has_unflushed(self.0.pages.slot)
    }

    /// The largest size that the file can have: a device may store less than 2^63 - 1 bytes in a file.
    pub fn size_max(&self) -> u64 {
        self.0.bytes_max
    }

    /// Counts our changes to the host's file that have ended: writebacks, sizes set and holes. If the count has moved
    /// since right before a check of the host's file, the check may be older than one of the changes: see
    /// [`Engine::try_invalidate`].
    pub fn change_count(&self) -> u64 {
        lock(&self.0.state).host.changes()
    }

    /// Bytes not yet written, in whole pages.
    pub fn dirty_bytes(&self) -> u64 {
        lock(&self.0.state).dirty_pages() * PAGE_BYTES
    }

    /// The device that the file is on.
    pub fn device(&self) -> DeviceId {
        self.0.device.id()
    }

    /// Whether a limit that no free space shows may refuse dirty bytes of the file when they are written: only a sync
    /// shows that.
    pub fn may_be_refused(&self) -> bool {
        !self.is_clean() && self.0.device.may_refuse_late()
    }

    /// The error of the last failed write or flush, while data is not durable because of it.
    pub fn write_error(&self) -> Option<DeviceError> {
        lock(&self.0.state).failures.error()
    }

    /// Why its dirty pages are not written now. `None`: they wait for their slice, or are being written.
    pub fn write_obstacle(&self) -> Option<WriteObstacle> {
        self.0.write_obstacle()
    }

    /// The device's name for the file.
    pub fn backing(&self) -> &Backing {
        &self.0.backing
    }

    /// Whether the file's dirty pages outlive the process, if the engine's memory does ([`Engine::open_persistent`]).
    pub fn is_persistent(&self) -> bool {
        self.0.persisted.is_some()
    }

    /// Whether the two are the same file.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The parts that an engine is made with; for one engine only, since a kernel has state.
#[derive(Clone)]
pub struct Policies {
    /// The policy for throttling writers and for background writeback.
    pub policy: Arc<dyn AnyPolicy>,
    /// The policy for readahead.
    pub readahead: Readahead,
    /// Which clean pages go when frames are needed.
    pub eviction: EvictionKind,
}

impl Policies {
    /// The bases of ratio knobs, with this much memory.
    pub fn ratio_bases(&self, memory_bytes: u64) -> RatioBases {
        RatioBases { memory_bytes, background: self.policy.needs().background_base }
    }

    /// Refuses a knob that these policies ignore; the error names the knob to set instead. A knob that is set all the
    /// same changes nothing: a run under several policies has one list of knobs.
    ///
    /// # Errors
    /// [`KnobError::Ignored`].
    pub fn refuse_ignored(&self, settings: &Settings, knob: impl WhichKnob) -> Result<(), KnobError> {
        refuse_ignored((self.policy.name(), &self.policy.needs()), settings, knob.id(settings))
    }
}

fn refuse_ignored((policy, needs): (&'static str, &Needs), settings: &Settings, knob: KnobId) -> Result<(), KnobError> {
    let (name, table) = (settings.info(knob).name, settings.table(knob));
    let ignored = |policy, instead| Err(KnobError::Ignored { name, policy, instead });
    if table.of_policy && needs.knobs != Some(table) {
        return ignored(policy, format!("it is a knob of {}", table.owner));
    }
    match needs.ignores.iter().find(|other| other.name == name) {
        Some(IgnoredKnob { instead, .. }) => ignored(policy, format!("set {instead}")),
        None => Ok(()),
    }
}

impl Default for Policies {
    /// Each device has an equal part of the dirty limit, and a flusher.
    fn default() -> Self {
        let (readahead, eviction) = (Readahead::default(), EvictionKind::default());
        Self { policy: Arc::new(EqualParts), readahead, eviction }
    }
}

afflux_device::gauges! {
    /// The state of the engine. As JSON it has the cache's figures alone.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
    pub struct EngineStatus in ENGINE_FIGURES {
        cache_bytes: u64 = Now "cache_bytes" "bytes" "" "size_bytes" "Size of the cache.";
        free_bytes: u64 = Now "free_bytes" "bytes" "" "free_bytes" "Free memory of the cache.";
        dirty_bytes: u64 = Now "dirty_bytes" "bytes" "" "dirty_bytes" "Bytes that are not written yet on all devices, those in flight included.";
        writeback_bytes: u64 = Now "writeback_bytes" "bytes" "" "writeback_bytes" "Bytes in flight to devices.";
        dirty_limit_bytes: u64 = Now "dirty_limit_bytes" "bytes" "DirtyThresh" "dirty_limit_bytes" "Dirty limit of all devices together.";
        pinned_bytes: u64 = Now "pinned_bytes" "bytes" "" "pinned_bytes" "Memory that replies in flight hold.";
        metadata_bytes: u64 = Now "metadata_bytes" "bytes" "" "metadata_bytes" "Memory of the cache's own tables and indexes.";
        files: u64 = Now "files" "files" "" "files" "Files that the cache knows.";
    } own {
        /// The policy in force.
        #[cfg_attr(feature = "serde", serde(skip))]
        policy: &'static str,
        /// The name of the eviction policy.
        #[cfg_attr(feature = "serde", serde(skip))]
        eviction: &'static str,
        /// Status of each device, by number.
        #[cfg_attr(feature = "serde", serde(skip))]
        devices: Vec<DeviceStatus>,
    }
}

impl<P: Platform> Engine<P> {
    /// An engine without devices. `frames` is all the memory that its pages will ever have.
    ///
    /// # Panics
    /// If `frames` backs parts of frames only, and the platform does not expect that.
    pub fn new(platform: Arc<P>, settings: Settings, frames: Frames) -> Arc<Self> {
        Self::with_policies(platform, settings, frames, Policies::default())
    }

    /// [`Engine::new`] with other policies than the engine's own.
    ///
    /// # Panics
    /// As [`Engine::new`].
    pub fn with_policies(platform: Arc<P>, settings: Settings, frames: Frames, policies: Policies) -> Arc<Self> {
        Self::over(platform, settings, frames, Unadopted::default(), policies)
    }

    /// An engine over the memory of an earlier process. It has the dirty pages that were found, until their files are
    /// adopted ([`Engine::adopt`]) or forgotten ([`Engine::try_forget_found`]). `verifier` becomes the memory's write
    /// verifier if [`Recovered::needs_new_verifier`].
    ///
    /// # Panics
    /// As [`Engine::new`].
    pub fn recover(
        platform: Arc<P>,
        settings: Settings,
        recovered: Recovered,
        verifier: u64,
        policies: Policies,
    ) -> Arc<Self> {
        let (frames, files) = recovered.settle(verifier);
        Self::over(platform, settings, frames, Unadopted::new(files), policies)
    }

    fn over(
        platform: Arc<P>,
        settings: Settings,
        frames: Frames,
        unadopted: Unadopted,
        policies: Policies,
    ) -> Arc<Self> {
        assert!(
            cfg!(feature = "stamped-frames") || frames.backed_bytes() == afflux_frames::FRAME_BYTES,
            "frames that keep only their first bytes need the feature `stamped-frames`"
        );
        frames.memory().header().set_state(ArenaState::Serving);
        let cache = Arc::new(PageCache::new(frames, policies.eviction, platform.fence_all_threads()));
        let in_force = ActivePolicy::new(policies.policy);
        let devices = Devices::new(Arc::clone(&cache), settings, in_force, policies.readahead, unadopted);
        let devices = Arc::new(devices);
        let base = Base { platform, cache, devices, tracer: Arc::default() };
        let reclaim = Reclaim::new(base.clone());
        let writeback = Writeback::new(base.clone());
        let reading = Readings::new(&base, &reclaim);
        let writing = Writing::new(base.clone(), Arc::clone(&reclaim), Arc::clone(&reading), Arc::clone(&writeback));
        let reshaping = Reshaping::new(base.clone(), Arc::clone(&writeback), Arc::clone(&writing));
        let adopting = Adopting::new(base.clone(), Arc::clone(&reclaim), Arc::clone(&reshaping));
        Arc::new(Self { base, reclaim, writeback, reading, writing, reshaping, adopting })
    }

    /// Platform that gives clock, tasks and randomness.
    pub fn platform(&self) -> &Arc<P> {
        &self.base.platform
    }

    /// The knobs in force.
    pub fn settings(&self) -> &Settings {
        self.base.settings()
    }

    /// The memory of the engine's pages: to commit it ahead of use, and to report the result.
    pub fn frames(&self) -> &Frames {
        &self.base.cache.frames
    }

    fn device(&self, id: DeviceId) -> Option<Arc<DeviceState>> {
        self.base.devices.get(id)
    }
}

/// Reading and writing.
impl<P: Platform> Engine<P> {
    /// Copies bytes if all of them are in the cache. Returns how many: fewer than requested only at the file's end.
    /// `None` if the copy would have to wait; `into` may then hold some of the bytes. Takes no lock, makes no system
    /// call, allocates nothing.
    #[inline]
    pub fn try_read(&self, file: &File, offset: u64, into: &mut [u8]) -> Option<usize> {
        let want = reading::available(&file.0, offset, into.len());
        if reading::copy_hits(&self.base, &file.0, offset, &mut into[..want]) != want {
            return None;
        }
        let end = offset + want as u64;
        if reading::needs_more_ahead(&file.0, end) {
            self.reading.of(&file.0).read_ahead(&file.0, offset..end);
        }
        Some(want)
    }

    /// Copies bytes from `offset` on. Returns how many: fewer than requested only at the file's end. Waits for bytes
    /// that are not in the cache.
    pub async fn read(&self, file: &File, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        self.read_for(None, file, offset, into).await
    }

    /// [`Engine::read`] for a client: waits are reported as its own.
    pub async fn read_for(
        &self,
        client: Option<&Client>,
        file: &File,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, Error> {
        self.reading.of(&file.0).read(client, &file.0, offset, into).await
    }

    /// [`Engine::read`] for a thread that may block in the host: where the device allows it, the thread itself reads
    /// the absent pages. What it cannot do so is a future, which `wait` runs to its end. An error of `wait` itself ends
    /// the read. Call it on a thread that drives no task of the engine.
    pub fn read_here<E>(
        &self,
        file: &File,
        offset: u64,
        into: &mut [u8],
        wait: impl FnMut(Pin<&mut Waiting<'_>>) -> Result<Result<(), Error>, E>,
    ) -> Result<Result<usize, Error>, E> {
        self.reading.of(&file.0).read_here(&file.0, offset, into, wait)
    }

    /// As [`Engine::try_read`], without the copy. `None` also if guards hold too much already.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "what a call returns through memory is read back before it is there")]
    pub fn try_read_pinned(&self, file: &File, offset: u64, len: usize) -> Option<PinnedPages> {
        self.reading.try_read_pinned(self.base.local(), &file.0, offset, len)
    }

    /// As [`Engine::read`], without the copy. `None` if guards hold too much already, or if the cache is too small to
    /// hold the range at once: copy the bytes then.
    pub async fn read_pinned(&self, file: &File, offset: u64, len: usize) -> Result<Option<PinnedPages>, Error> {
        self.read_pinned_for(None, file, offset, len).await
    }

    /// [`Engine::read_pinned`] for a client: waits are reported as its own.
    pub async fn read_pinned_for(
        &self,
        client: Option<&Client>,
        file: &File,
        offset: u64,
        len: usize,
    ) -> Result<Option<PinnedPages>, Error> {
        self.reading.of(&file.0).read_pinned(client, &file.0, offset, len).await
    }

    /// Announces how a range of the file, or all of it, will be read. Waits for nothing and promises nothing: advice is
    /// dropped if no request, frame or quota is free.
    pub fn advise(&self, file: &File, range: Range<u64>, advice: Advice) {
        self.reading.of(&file.0).advise(&file.0, range, advice);
    }

    /// Overwrites bytes if all of them are in dirty pages. If it returns `None`, some of the bytes may have been
    /// overwritten; writing all of them again makes that good. Takes no lock, makes no system call, allocates nothing.
    #[inline]
    pub fn try_write(&self, file: &File, offset: u64, from: &[u8]) -> Option<()> {
        (self.overwrite(file, offset, from) == from.len()).then_some(())
    }

    /// As [`Engine::try_write`]; returns how many bytes, from the first on, were overwritten: all or none, as a rule.
    /// If a flusher or a reader takes one of several pages at this moment, it may be a part of them. The caller has
    /// changed bytes then, and must note that if it maintains times of the file.
    #[inline]
    pub fn overwrite(&self, file: &File, offset: u64, from: &[u8]) -> usize {
        writing::overwrite(&self.base, &file.0, offset, from)
    }

    /// Writes bytes at `offset`; the file grows as needed. Waits for admission to the device's dirty budget, for
    /// frames, and for the rest of a partly covered sector. The bytes are in the cache on return, and durable after a
    /// successful [`Engine::sync`].
    ///
    /// After an error a prefix may have been written. Causes: no space, a failed read, a range past the largest offset.
    /// Also a device that keeps failing or hangs for too long, or has all its limit used by files that keep failing.
    pub async fn write(&self, file: &File, offset: u64, from: &[u8]) -> Result<(), Error> {
        self.write_for(None, file, offset, from).await
    }

    /// [`Engine::write`] for a client: waits are reported as its own. A payer is a file and a client.
    pub async fn write_for(&self, client: Option<&Client>, file: &File, offset: u64, from: &[u8]) -> Result<(), Error> {
        let hang = &file.0.device.hang();
        hang.takes_work()?;
        hang.unless_refused(pin!(self.writing.write(&file.0, client, offset, from))).await
    }

    /// Makes every byte of `range` that was written before the call durable, with the file's size.
    /// `0..u64::MAX` is the whole file.
    ///
    /// Waits for the device. An error means that data written to the file, in the range or not, is not durable yet. The
    /// data stays dirty and is tried again, and every sync fails until it is durable.
    pub async fn sync(&self, file: &File, range: Range<u64>) -> Result<(), Error> {
        self.sync_for(None, file, range).await
    }

    /// [`Engine::sync`] for a client: waits are reported as its own.
    pub async fn sync_for(&self, client: Option<&Client>, file: &File, range: Range<u64>) -> Result<(), Error> {
        // A sync without work succeeds even if the device hangs.
        file.0.device.hang().unless_refused(pin!(self.writeback.sync(&file.0, client, range))).await
    }

    /// Keeps dirty bytes of a range off the device until the result is dropped, also bytes that are written later. The
    /// range is widened to whole pages. Waits until syncs that began earlier have written their part of it. Bytes that
    /// a request has taken before are written.
    ///
    /// A sync of withheld bytes fails with [`Error::Withheld`]. Withheld bytes may take a quarter of their device's
    /// part of the dirty limit; a write of more fails with [`Error::TooMuchWithheld`].
    ///
    /// # Errors
    /// [`Error::TooManyWithheld`] if the file has that many withheld ranges.
    pub async fn withhold(&self, file: &File, range: Range<u64>) -> Result<WithheldRange, Error> {
        Ok(WithheldRange { _holder: self.writeback.withhold(&file.0, &range).await? })
    }

    /// Orders dirty bytes of a range after bytes of `first` in `earlier`. The range goes to the device only after all
    /// bytes that were written to `earlier` before the call are durable. Bytes that are written to the range later
    /// wait, too. The range is widened to whole pages. Waits as [`Engine::withhold`] does.
    ///
    /// A sync of the range syncs `earlier` first. Without any sync, the flusher makes one when the bytes expire, or
    /// when the withheld bytes are at their limit.
    ///
    /// # Errors
    /// [`Error::OrderCycle`] if bytes of `earlier` wait for the range, through any number of other orders;
    /// [`Error::TooManyWithheld`] if the file has that many ranges with holders.
    pub async fn order_after(
        &self,
        file: &File,
        range: Range<u64>,
        first: &File,
        earlier: Range<u64>,
    ) -> Result<(), Error> {
        self.writeback.order_after(&file.0, &range, &first.0, &earlier).await
    }

    /// The first run of pages at or after the page of `from` that the device does not have yet: dirty, being written,
    /// or failed. Asks the device nothing. Pages that get dirty meanwhile may be missing.
    pub async fn unwritten(&self, file: &File, from: u64) -> Option<Range<u64>> {
        if file.is_clean() { None } else { self.writeback.unwritten(&file.0, from).await }
    }

    /// A COMMIT of the file, or a front end's equivalent, that began at `began` is over.
    pub fn note_commit(&self, client: Option<&Client>, file: &File, began: Nanos) {
        let now = self.base.now();
        let ns = now.since(began);
        file.0.device.waits.note_commit(ns);
        self.base.trace_file(now, &file.0, client, || EngineEvent::Commit { ns });
    }

    /// Sets the size, on the device too before it returns: bytes past a smaller size are gone, bytes up to a larger one
    /// read as zeros. Durable after a sync. Waits for the file's requests in flight. After an error nothing has
    /// changed. The exception is a device that hangs ([`DeviceError::Hung`]): a request that it has may take effect
    /// later.
    pub async fn set_size(&self, file: &File, size: u64) -> Result<(), Error> {
        self.reshaping.set_size(&file.0, size).await
    }

    /// Makes a range read as zeros, and gives the space of whole pages back if the device can. The size stays. Waits as
    /// [`Engine::set_size`] does.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] if the device cannot punch holes and the range has more than 64 MiB of whole pages:
    /// they would be written as zeros. Then nothing has changed.
    pub async fn punch(&self, file: &File, range: Range<u64>) -> Result<(), Error> {
        self.reshaping.punch(&file.0, range).await
    }

    /// Has `change` replace a range of the file's bytes on the device, as a clone does, and forgets the pages of the
    /// range. Both ends are multiples of 4096; a file that ends before the range's end grows to it. Meanwhile no
    /// request of the file is in flight, so `change` may not wait for one. Dirty pages of the range are dropped, so the
    /// caller writes them first: a change that fails, or is cut off by a kill, must find them on the device. What
    /// others write to the range meanwhile may be replaced, too. Waits as [`Engine::set_size`] does. Durable after a
    /// sync.
    ///
    /// # Errors
    /// The outer one is the engine's: `change` was not made, or its caller was refused since the device hangs. The
    /// inner one is that of `change`, which has changed nothing then.
    pub async fn replace_range<E: Send + 'static>(
        &self,
        file: &File,
        range: Range<u64>,
        change: impl Future<Output = Result<(), E>> + Send + 'static,
    ) -> Result<Result<(), E>, Error> {
        let failure = Arc::new(Mutex::new(None));
        let told = Arc::clone(&failure);
        let change = async move { change.await.map_err(|error| *lock(&told) = Some(error)).is_ok() };
        self.reshaping.replace_range(&file.0, range, Box::pin(change)).await?;
        let failed = lock(&failure).take();
        Ok(failed.map_or(Ok(()), Err))
    }

    /// Forgets a file whose last name is gone. Dirty pages are dropped; requests in flight end. Later writes fail,
    /// later syncs have nothing to do. Does not wait: a task drops the pages beyond the first ones.
    pub fn discard(&self, file: &File) {
        self.reshaping.discard(&file.0);
    }

    /// Drops this clone of a file. If it is the last clone of a clean file, the engine frees some pages at once, and a
    /// task frees the others.
    pub fn release(&self, file: File) {
        self.reshaping.release(file.0);
    }

    /// Forgets the clean pages after another program changed the host's file, to this size. Dirty pages stay and will
    /// overwrite the host's bytes; while there are any, only a larger size is taken. `seen` is the file's
    /// [`File::change_count`] from before the host was asked for the size. If the count has moved, the size may be
    /// older than one of our changes: the size is then not taken, and the result is false. Waits for the file's
    /// requests in flight.
    pub async fn try_invalidate(&self, file: &File, size: u64, seen: u64) -> bool {
        self.reshaping.try_invalidate(&file.0, size, seen).await
    }
}

/// Devices, knobs and status.
impl<P: Platform> Engine<P> {
    /// Adds a device at any time and starts its flusher. The dirty limit is divided anew.
    pub fn add_device(&self, name: &str, device: Arc<dyn Device>) -> DeviceId {
        self.add_known_device(name, device, &Remembered::new())
    }

    /// [`Engine::add_device`], for a device whose [`Engine::remembered`] was persisted.
    pub fn add_known_device(&self, name: &str, device: Arc<dyn Device>, remembered: &Remembered) -> DeviceId {
        let added = self.base.devices.add(name, device, remembered);
        let id = added.id();
        dirty::divide(&self.base.devices, self.base.moment());
        self.writeback.start(added);
        self.base.trace_device(Some(id), || EngineEvent::DeviceAdded);
        id
    }

    /// Refuses a knob that the policies in force ignore: [`Policies::refuse_ignored`].
    ///
    /// # Errors
    /// [`KnobError::Ignored`].
    pub fn refuse_ignored(&self, knob: impl WhichKnob) -> Result<(), KnobError> {
        let (devices, settings) = (&self.base.devices, self.settings());
        let policy = (devices.policy.name(), devices.policy.needs());
        refuse_ignored(policy, settings, knob.id(settings))
    }

    /// Sets a knob for all devices; takes effect as the knob's row says.
    ///
    /// # Panics
    /// If the knob's owner did not add its table to the engine's settings.
    pub fn set_knob(&self, knob: impl WhichKnob, value: u64) -> Result<(), KnobError> {
        self.set_knobs(None, &[(knob.id(self.settings()), value)])
    }

    /// Sets a knob for one device; takes effect as the knob's row says. Does nothing for an unknown device.
    ///
    /// # Panics
    /// As [`Engine::set_knob`].
    pub fn set_device_knob(&self, device: DeviceId, knob: impl WhichKnob, value: u64) -> Result<(), KnobError> {
        self.set_knobs(Some(device), &[(knob.id(self.settings()), value)])
    }

    /// Sets several knobs, for one device or for all: each of them, or none if one value is refused. The values are
    /// checked together, so their order does not matter. Does nothing for an unknown device.
    pub fn set_knobs(&self, device: Option<DeviceId>, changes: &[(KnobId, u64)]) -> Result<(), KnobError> {
        let settings = self.settings();
        let device = match device.map(|id| self.device(id)) {
            Some(None) => return Ok(()),
            found => found.flatten(),
        };
        let common = changes.iter().map(|(knob, _)| settings.info(*knob)).find(|knob| knob.scope != Scope::Device);
        if let (Some(_), Some(knob)) = (&device, common) {
            return Err(KnobError::NotPerDevice { name: knob.name });
        }
        let now = |knob: KnobId| device.as_ref().map_or_else(|| settings.get(knob), |it| it.knob(settings, knob));
        would_fit(settings, changes, Some(self.ratio_bases()), &now)?;
        for (knob, value) in changes.iter().copied() {
            match &device {
                Some(device) => device.settings.set(settings, knob, value)?,
                None => settings.change(knob, value)?,
            }
            let info = settings.info(knob);
            self.knob_changed(info);
            let id = device.as_ref().map(|device| device.id());
            self.base.trace_device(id, || EngineEvent::KnobChanged { knob: info.name, value });
        }
        Ok(())
    }

    fn ratio_bases(&self) -> RatioBases {
        let memory_bytes = self.base.cache.total_pages() * PAGE_BYTES;
        RatioBases { memory_bytes, background: self.base.devices.policy.needs().background_base }
    }

    /// The data about the device that the policy in force wants persisted until the next start; empty while it knows
    /// too little.
    pub fn remembered(&self, device: DeviceId) -> Remembered {
        let ask = |device: &DeviceState| self.base.ask(device, |policy, view, own, _| policy.remember(view, own));
        self.device(device).map(|device| ask(&device)).unwrap_or_default()
    }

    /// The knobs that have their own value for the device, by name.
    pub fn device_knobs(&self, device: DeviceId) -> Vec<(&'static str, u64)> {
        self.device(device).map(|device| device.settings.own(self.settings())).unwrap_or_default()
    }

    /// The knobs that act on the device with other values than they were given, and why. Empty for an unknown device.
    pub fn knobs_in_force(&self, device: DeviceId) -> Vec<KnobInForce> {
        let Some(device) = self.device(device) else { return Vec::new() };
        let mut found = in_force::of_engine(self.settings(), &device, self.ratio_bases().memory_bytes);
        for knob in self.base.ask(&device, |policy, view, own, _| policy.knobs_in_force(view, own)) {
            if found.iter().all(|other| other.name != knob.name) {
                found.push(knob);
            }
        }
        found
    }

    fn knob_changed(&self, knob: &KnobInfo) {
        if knob.acts == Acts::NextUse {
            self.base.devices.show_knobs();
            return;
        }
        for device in dirty::divide(&self.base.devices, self.base.moment()) {
            device.flusher().raise();
            device.hang().look().raise();
        }
    }

    /// A file of `size` bytes that the device knows by `backing`. Nothing is read.
    ///
    /// # Panics
    /// If the engine has no such device.
    pub fn open(&self, device: DeviceId, backing: Backing, size: u64) -> File {
        let device = self.device(device).unwrap_or_else(|| panic!("no device {}", device.0));
        File(self.base.devices.open(device, backing, size, None))
    }

    /// As [`Engine::open`], for a file that outlives the process if the engine's memory does. A later engine over that
    /// memory finds the file by the key, with its dirty pages, its size and an unfinished change of shape. Only one
    /// open file may have the key. [`File::is_persistent`] reports whether the memory had a slot for one more such
    /// file.
    ///
    /// # Panics
    /// As [`Engine::open`], or if the file was found and is not adopted yet.
    pub fn open_persistent(&self, device: DeviceId, backing: Backing, key: &FileKey, size: u64) -> File {
        assert!(!self.base.devices.unadopted.has(key), "{key:?} was found: it is adopted, not opened");
        let device = self.device(device).unwrap_or_else(|| panic!("no device {}", device.0));
        File(self.base.devices.open(device, backing, size, Some(key)))
    }

    /// Files of an earlier process, in its memory, that nobody has adopted or forgotten yet.
    pub fn found_files(&self) -> Vec<FileKey> {
        self.base.devices.unadopted.keys()
    }

    /// Whether a found file has dirty pages or an unfinished change of shape.
    pub fn is_owed(&self, key: &FileKey) -> bool {
        self.base.devices.unadopted.is_owed(key)
    }

    /// Opens a found file, with the dirty pages and the size that it had. An unfinished change of size, or a hole, is
    /// carried out first. `host_bytes` is the size of the host's file now. `None` if no file with the key was found, or
    /// if somebody has adopted it. If the caller goes away, the file is adopted all the same, and stays while it is
    /// dirty.
    ///
    /// # Panics
    /// If the engine has no such device.
    pub async fn adopt(&self, device: DeviceId, backing: Backing, key: &FileKey, host_bytes: u64) -> Option<File> {
        let device = self.device(device).unwrap_or_else(|| panic!("no device {}", device.0));
        self.adopting.adopt(device, backing, key, host_bytes).await.map(File)
    }

    /// Forgets a found file that is gone from its host: its pages are dropped. Returns whether it was there.
    pub fn try_forget_found(&self, key: &FileKey) -> bool {
        self.adopting.try_forget(key)
    }

    /// Writes everything that is dirty on the device and flushes it. Returns the files for which that failed; their
    /// pages stay dirty.
    pub async fn drain(&self, device: DeviceId) -> Vec<(File, Error)> {
        let Some(device) = self.device(device) else {
            return Vec::new();
        };
        let _ends = device.worklist().drain();
        let mut failed = Vec::new();
        // A caller that was refused beside a hang did not finish its change of shape. Once made, it owes a flush.
        for file in device.worklist().reshaped_files() {
            let ended = async {
                file.reshaped().await;
                Ok(())
            };
            if let Err(error) = device.hang().unless_refused(pin!(ended)).await {
                failed.push((File(Arc::clone(&file)), error));
            }
        }
        let files: Vec<File> = device.worklist().files_to_drain().into_iter().map(File).collect();
        for some in files.chunks(DRAIN_TOGETHER) {
            // Requested together, so that the host can join their flushes.
            let rounds: Vec<_> =
                some.iter().map(|file| (file, self.writeback.join_round(&file.0, 0..u64::MAX))).collect();
            for (file, round) in rounds {
                let ended = async {
                    if let Some(round) = round {
                        round.result.wait().await?;
                    }
                    if file.0.is_withholding() { self.writeback.sync(&file.0, None, 0..u64::MAX).await } else { Ok(()) }
                };
                if let Err(error) = device.hang().unless_refused(pin!(ended)).await {
                    failed.push((file.clone(), error));
                }
            }
        }
        failed
    }

    /// Files of the device with unwritten data, and the number of dirty bytes of each.
    pub fn dirty_files(&self, device: DeviceId) -> Vec<(File, u64)> {
        let files = self.device(device).map(|device| device.worklist().unclean_files()).unwrap_or_default();
        files.into_iter().map(File).map(|file| (file.clone(), file.dirty_bytes())).collect()
    }

    /// The largest size that a file on the device can have.
    pub fn file_bytes_max(&self, device: DeviceId) -> Option<u64> {
        self.device(device).map(|device| device.file_bytes_max())
    }

    /// Drops every clean page that nobody holds, even used pages, as `drop_caches` does in Linux.
    pub fn drop_clean_pages(&self) -> Dropped {
        self.reclaim.evict_all()
    }

    /// The state of the engine.
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
            eviction: cache.eviction_kind.name,
            devices: statuses,
        }
    }

    /// How many of the device's files wait for a slice, in time proportional to their number.
    pub fn listed_files(&self, device: DeviceId) -> Option<ListedFiles> {
        self.device(device).map(|device| device.worklist().listed_files())
    }

    /// Until the result is dropped, a change of names on the device is being made durable. Less data is in flight
    /// meanwhile, so that the host's few small writes do not wait for much. `None` if the engine has no such device.
    pub fn prioritize_names(&self, device: DeviceId) -> Option<NamesPriority> {
        let device = self.device(device)?;
        device.in_flight.names_begin();
        Some(NamesPriority(device))
    }

    /// The waiters for the device, and how long such waits take; `None` if the engine has no such device.
    pub fn waits(&self, device: DeviceId) -> Option<DeviceWaits> {
        self.device(device).map(|device| {
            let hung = device.hang().is_stalled();
            let files = &self.base.devices.files;
            device.waits.report(self.base.now(), hung, |slot| files.get(slot), |file| file.backing.clone())
        })
    }

    /// How long waits for the device took, without names. Takes no lock that a caller takes. `None` if the engine has
    /// no such device.
    pub fn wait_histograms(&self, device: DeviceId) -> Option<PerWait<WaitHistogram>> {
        self.device(device).map(|device| device.waits.histograms())
    }

    /// How long tasks took that did not find the free frames they wanted: to recycle some, or to wait for one.
    pub fn reclaim_waits(&self) -> WaitTimes {
        self.reclaim.wait_times()
    }

    /// Follows what the engine does from now on.
    pub fn follow(&self) -> Follower {
        Follower::new(Arc::clone(&self.base.tracer))
    }

    /// The write verifier: it changes exactly when accepted, unsynced data may have been lost. It stands in the
    /// engine's memory, and outlives the process with that. 0 if none was set yet.
    pub fn write_verifier(&self) -> u64 {
        self.base.cache.frames.memory().header().verifier()
    }

    /// Sets the write verifier of an engine that has served nobody yet.
    pub fn set_write_verifier(&self, verifier: u64) {
        self.base.cache.frames.memory().header().set_verifier(verifier);
    }

    /// Counts how often accepted, unsynced data may have been lost while running: a flush failed, and pages that it
    /// covered were no longer in the cache. The verifier has changed before.
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

    /// Forces the path in `per_mille` of 1,000 cases in which it is possible; 0 is the default. False in a build
    /// without the feature `rare-paths`, if a path was forced.
    pub fn try_force_rare(&self, path: Rare, per_mille: u64) -> bool {
        self.base.cache.rare.try_set(path, per_mille)
    }

    /// Seeds the choice of forced paths.
    pub fn seed_rare(&self, seed: u64) {
        self.base.cache.rare.seed(seed);
    }

    /// Makes request number `number` for frames find none, counted from 1 since the engine's start; 0 is never. False
    /// in a build without the feature `rare-paths`, if a number was given.
    pub fn try_fail_allocation(&self, number: u64) -> bool {
        self.base.cache.rare.try_fail_allocation(number)
    }

    /// Calls the hook before store number `number` to the arena's tables, counted from now on, in the middle of a step:
    /// as if the process were killed there. The hook may read the engine's memory, and calls nothing else of the
    /// engine. False in a build without the feature `rare-paths`.
    pub fn try_call_at_store(&self, number: u64, hook: impl FnOnce() + Send + 'static) -> bool {
        self.base.cache.pages.stores.try_call_at(number, Box::new(hook))
    }

    /// Requests for frames so far; 0 in a build without the feature `rare-paths`.
    pub fn allocations(&self) -> u64 {
        self.base.cache.rare.allocations()
    }

    /// How often state shared by all devices was read so far: the list of devices, the sums over them, a policy's
    /// memory of all of them. 0 in a build without the feature `rare-paths`.
    pub fn shared_looks(&self) -> u64 {
        self.base.devices.shared_looks()
    }

    /// The most pages, or leaves of an index, visited so far under one hold of a file's lock; 0 in a build without the
    /// feature `rare-paths`.
    pub fn longest_hold(&self) -> u64 {
        self.base.cache.longest_hold.get()
    }
}
