//! One open file, on its device.
//!
//! Owns: the state under one lock that changes with the file's pages: how many are dirty, requests in flight, syncs,
//! errors, the size of the host's file, marks about its device's lists. Also why its dirty pages are not written now,
//! the accounts of a request that is set aside, and the table that finds the file of a frame.
//! Does not own: names (`volume`), its pages (`cache`), the lists (`worklist`) and the file's entry into them
//! (`listing`), which requests are set aside (`writeback::hang_watch`).
//! Invariants: the `size` of its pages is the size that readers of the cache see, `host` has the device's. In the lock
//! order this lock comes before the device's lock and the eviction lists'; two files' locks are never held together. A
//! function that needs the lock takes the state that it guards. While a request is set aside, its file is held and gets
//! no other; its pages stay under writeback and dirty, beyond the device's limit. A file without an obstacle waits only
//! for its slice (`each_obstacle_of_a_file_is_named`). A slot is not reused while its file lives, and a file is made
//! without the table's lock (`a_file_is_made_without_the_lock`).

mod failures;
mod rounds;

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use afflux_device::error::DeviceError;
use afflux_device::platform::Nanos;
use afflux_device::request::Backing;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::cache::{FilePages, PageCache};
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::{Permits, WaitQueue, lock};

use crate::devices::delays::FileDelays;
use crate::devices::failures::Amount;
use crate::devices::in_flight::{EndedRequest, InOrder, Load};
use crate::devices::pass::Position;
use crate::devices::payer::Payer;
use crate::devices::ready::ReadyPosition;
use crate::devices::rewrites::RewriteWatch;
use crate::devices::state::DeviceState;
use crate::devices::usage::TransferKind;
use crate::devices::withholding::{self, WithheldRanges};
use crate::readahead::{Readahead, ReaderState};
use crate::recovery::slots::PersistedFile;
use failures::FileFailures;
use rounds::{Flushes, Rounds};

pub(crate) use failures::FAILING_TRIES;
pub(crate) use rounds::{RoundPart, SharedRound};

/// Bytes of a file that become durable before a withheld range is written.
pub(crate) type Earlier = withholding::Earlier<FileInner>;
/// Why dirty bytes of a range are not written.
pub(crate) type Obstacles = withholding::Obstacles<FileInner>;

/// An open file. On cache lines of its own, because its writers change it at every page.
#[repr(align(128))]
pub(crate) struct FileInner {
    /// Its cached pages.
    pub pages: FilePages,
    /// The cache that they are in.
    pub cache: Arc<PageCache>,
    table: Arc<FileTable<FileInner>>,
    /// The device that stores it.
    pub device: Arc<DeviceState<Self>>,
    /// The device's name for it.
    pub backing: Backing,
    /// The file as a later process finds it.
    pub persisted: Option<PersistedFile>,
    /// The largest size that the file can have.
    pub bytes_max: u64,
    /// The state that changes with its pages.
    pub state: Mutex<FileState>,
    /// Waiters for requests in flight, tags and holds.
    pub queue: WaitQueue,
    /// One change of shape (size, holes) at a time.
    pub reshaping: Permits,
    /// Changes of shape requested so far, and those of them that have ended.
    reshapes_begun: AtomicU64,
    reshapes_ended: AtomicU64,
    /// Pages that a stream has passed leave the cache.
    pub no_reuse: AtomicBool,
    /// The file as a payer, if the policy asks about payers.
    pub payer: Payer,
    /// The waits of its calls that have no client.
    pub delays: FileDelays,
    /// Whether a page is dirty or being written: stored outside the lock for cheap questions.
    pub(super) unclean: AtomicBool,
    /// Whether a range of it is withheld, or waits for bytes.
    pub(super) withholds: AtomicBool,
}

/// The state that changes with a file's pages.
pub(crate) struct FileState {
    /// The file as the device has it: its size, and whether it is being cut.
    pub host: HostSide,
    /// Pages dirty or under writeback, and detached pages still being written.
    pub(super) dirty_pages: u64,
    /// Runs of dirty pages, as the device counts them.
    dirty_runs: i64,
    /// Requests in flight.
    pub flight: FileFlight,
    /// Its position in the device's lists.
    pub position: Position,
    /// Pages that a sync waits for.
    pub marks: Marks,
    /// Whether the file is left alone.
    pub watch: RewriteWatch,
    /// Its failed writes.
    pub failures: FileFailures,
    /// Flushes that are owed.
    pub flushes: Flushes,
    /// Rounds of writeback that syncs of the file wait for.
    pub rounds: Rounds,
    /// Ranges that stay off the device for now.
    pub withheld: WithheldRanges<FileInner>,
    holds: u32,
    discarded: bool,
    /// Dirty bytes from this page on have no space on the device: the device, or the owner's quota, is full.
    pub unplaced_from: Option<u64>,
    /// The state of its readers, for readahead.
    pub readahead: ReaderState,
    /// Pages of a failed read: each is read separately.
    pub suspect: Range<u64>,
}

impl FileInner {
    pub(super) fn new(
        pages: FilePages,
        (cache, table): (Arc<PageCache>, Arc<FileTable<FileInner>>),
        device: Arc<DeviceState<Self>>,
        (backing, persisted): (Backing, Option<PersistedFile>),
        readahead: Readahead,
    ) -> Self {
        let state = FileState {
            host: HostSide::new(pages.size()),
            dirty_pages: 0,
            dirty_runs: 0,
            flight: FileFlight::default(),
            position: Position::default(),
            marks: Marks::default(),
            watch: RewriteWatch::default(),
            failures: FileFailures::default(),
            flushes: Flushes::new(),
            rounds: Rounds::default(),
            withheld: WithheldRanges::default(),
            holds: 0,
            discarded: false,
            unplaced_from: None,
            readahead: ReaderState::new(readahead),
            suspect: 0..0,
        };
        pages.trigger_readahead_past(state.readahead.trigger());
        Self {
            pages,
            cache,
            table,
            bytes_max: device.file_bytes_max(),
            device,
            backing,
            persisted,
            state: Mutex::new(state),
            queue: WaitQueue::new(),
            reshaping: Permits::new(1),
            reshapes_begun: AtomicU64::new(0),
            reshapes_ended: AtomicU64::new(0),
            no_reuse: AtomicBool::new(false),
            payer: Payer::default(),
            delays: FileDelays::default(),
            unclean: AtomicBool::new(false),
            withholds: AtomicBool::new(false),
        }
    }

    /// The size in bytes, as calls see it.
    pub(crate) fn size(&self) -> u64 {
        self.pages.size()
    }

    /// Whether nothing is dirty or being written, and no change of shape is under way. Takes no lock.
    pub(crate) fn is_settled(&self) -> bool {
        !self.unclean.load(Ordering::Acquire) && !self.is_reshaping()
    }

    /// A change of shape was requested.
    pub(crate) fn reshape_begins(self: &Arc<Self>) {
        self.device.worklist().reshape_begins(self.pages.slot, self);
        self.reshapes_begun.fetch_add(1, Ordering::AcqRel);
    }

    /// A change of shape has ended, with success or not.
    pub(crate) fn reshape_ends(&self) {
        let before = self.reshapes_ended.fetch_add(1, Ordering::AcqRel);
        assert!(before < self.reshapes_begun.load(Ordering::Acquire), "a change of shape ends that nobody asked for");
        self.device.worklist().reshape_ends(self.pages.slot);
        self.queue.wake_all();
    }

    /// Whether a change of shape is under way.
    pub(crate) fn is_reshaping(&self) -> bool {
        let ended = self.reshapes_ended.load(Ordering::Acquire);
        self.reshapes_begun.load(Ordering::Acquire) > ended
    }

    /// Waits until the changes of shape under way have ended, but not for later ones.
    pub(crate) async fn reshaped(&self) {
        let begun = self.reshapes_begun.load(Ordering::Acquire);
        let ended = || self.reshapes_ended.load(Ordering::Acquire) >= begun;
        self.queue.until(|| ended().then_some(())).await;
    }

    /// Pages that a byte range touches.
    pub(crate) fn pages_of(range: &Range<u64>) -> Range<u64> {
        range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES)
    }
}

/// Changes that need the file's lock: the guarded state is the proof.
impl FileInner {
    /// Called before readers of the cache see another size: a later process finds no smaller one than they did.
    #[inline]
    pub(crate) fn keep_size(&self, _: &mut FileState, size: u64) {
        if let Some(persisted) = &self.persisted {
            persisted.store_size(size);
        }
    }

    /// Tags or untags a page as dirty, or as withheld, and updates its device's count of runs. Returns how many more
    /// runs the device has to write for it: none if the page follows the file's pages in flight.
    pub(crate) fn tag_dirty(&self, state: &mut FileState, page: u64, on: bool) -> i64 {
        let on = !self.try_tag_withheld(state, page, on) && on;
        let more = self.pages.index.set_tag_in_run(&self.cache.nodes, page, Tag::Dirty, on);
        // Streaming writes, and writeback from a run's start, change nothing.
        if more != 0 {
            self.device.admission().add_runs(more);
            state.dirty_runs += more;
        }
        let follows = on && page == state.position.cursor() && state.flight.has_writes();
        more - i64::from(follows)
    }

    /// Removes the tags of a page that is no longer dirty.
    pub(crate) fn untag(&self, state: &mut FileState, page: u64) {
        self.tag_dirty(state, page, false);
        self.pages.index.set_tag(&self.cache.nodes, page, Tag::ToWrite, false);
    }

    /// The device has changes to the file that a flush has to follow. Called before pages become clean by them.
    pub(crate) fn owe_flush(self: &Arc<Self>, state: &mut FileState, now: Nanos) {
        state.flushes.owe();
        if let Some(persisted) = &self.persisted {
            persisted.owe_flush();
        }
        if !state.discarded {
            self.device.worklist.keep_unflushed(self.pages.slot, self, now);
        }
    }

    /// A flush has succeeded, and no change came since it began: a later process owes none.
    pub(crate) fn keep_flushed(&self, _: &mut FileState) {
        if let Some(persisted) = &self.persisted {
            persisted.store_flushed();
        }
    }

    /// Bytes of other files wait for a flush of the file. Without a sync by a caller, the flusher makes one.
    pub(crate) fn owe_awaited_flush(self: &Arc<Self>, state: &mut FileState, now: Nanos) {
        state.flushes.owe();
        self.device.worklist.keep_awaited(self.pages.slot, self, now);
    }

    /// Drops the state that a clean file does not need. The caller drops the returned reference after the lock.
    pub(crate) fn settle(&self, state: &mut FileState) -> Option<Arc<Self>> {
        self.note_failed(state);
        if !state.is_clean() {
            return None;
        }
        let is_durable = state.failures.pages() == 0 && !state.flushes.has_failed();
        if is_durable && state.failures.take_error() {
            self.device.failures.file_recovers();
        }
        self.unclean.store(false, Ordering::Release);
        self.device.worklist.unlist_clean(self.pages.slot)
    }

    /// Reports to the device how many pages of the file failed, and how many cannot be written now.
    pub(crate) fn note_failed(&self, state: &mut FileState) {
        let (before, now) = state.failures.report();
        self.device.failures.note_pages(before, now);
        let runs = u64::try_from(state.dirty_runs).unwrap_or(0);
        let dirty = Amount { pages: state.dirty_pages, runs };
        let (before, now) = state.failures.report_unwritable(dirty, state.withheld.pages());
        if before != now {
            self.device.charges.unwritable.note(before, now);
        }
    }

    /// Whether any page has the tag.
    pub(crate) fn has_tagged(&self, tag: Tag) -> bool {
        self.pages.index.has_tagged(&self.cache.nodes, tag)
    }
}

impl FileState {
    /// Pages dirty or under writeback, and detached pages still being written.
    pub(crate) fn dirty_pages(&self) -> u64 {
        self.dirty_pages
    }

    /// Runs of dirty pages.
    pub(crate) fn dirty_runs(&self) -> usize {
        usize::try_from(self.dirty_runs).unwrap_or(0)
    }

    /// A dirty page was written or cut off.
    pub(crate) fn page_is_clean(&mut self) {
        self.dirty_pages -= 1;
    }

    /// Dirty pages that are not in flight.
    pub(crate) fn waiting_pages(&self) -> u64 {
        self.dirty_pages.saturating_sub(self.flight.writing_pages())
    }

    /// While a hold lasts, nothing is submitted.
    pub(crate) fn hold(&mut self) {
        self.holds += 1;
    }

    /// Ends a hold.
    pub(crate) fn release(&mut self) {
        self.holds -= 1;
    }

    /// Whether a change of shape holds the file: no request begins.
    pub(crate) fn is_held(&self) -> bool {
        self.holds > 0
    }

    /// The file's last name is gone.
    pub(crate) fn discard(&mut self) {
        self.discarded = true;
    }

    /// Whether the file is gone: no call goes on.
    pub(crate) fn is_discarded(&self) -> bool {
        self.discarded
    }

    /// Whether nothing is dirty or being written.
    pub(crate) fn is_clean(&self) -> bool {
        self.dirty_pages == 0
    }

    /// Whether all bytes are durable, as far as is known.
    pub(crate) fn is_durable(&self) -> bool {
        self.is_clean() && !self.flight.has_any() && !self.flushes.is_owed() && self.failures.error().is_none()
    }
}

impl Drop for FileInner {
    /// The last reference is gone, so nothing is dirty or in flight: all its pages are clean. Or the engine ends, and
    /// dirty pages of a file in a slot stay for a later process.
    fn drop(&mut self) {
        if *self.withholds.get_mut() {
            self.device.worklist.forget_withholding(self.pages.slot);
        }
        if self.delays.has_any() {
            self.device.waits.forget_file(self.pages.slot);
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(persisted) = &self.persisted {
            if !state.is_clean() && !state.is_discarded() {
                return;
            }
            persisted.forget();
        }
        self.cache.forget_file(&self.pages);
        self.table.remove(self.pages.slot);
    }
}

pub(crate) struct HostSide {
    size: u64,
    cutting: bool,
    changes: u64,
}

impl HostSide {
    fn new(size: u64) -> Self {
        Self { size, cutting: false, changes: 0 }
    }

    /// Bytes on the device; bytes past this size read as zeros without a request.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn set_size(&mut self, size: u64) {
        self.size = size;
    }

    /// The file is at least so large.
    pub(crate) fn reaches(&mut self, size: u64) {
        self.size = self.size.max(size);
    }

    /// How many of our changes to the host's file have ended: writes, even failed ones, sizes and holes.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// A change of ours has ended.
    pub(crate) fn note_change(&mut self) {
        self.changes += 1;
    }

    /// Whether a new size is being applied to the pages: writers wait.
    pub(crate) fn is_cutting(&self) -> bool {
        self.cutting
    }

    pub(crate) fn set_cutting(&mut self, cutting: bool) {
        self.cutting = cutting;
    }
}

#[derive(Default)]
pub(crate) struct FileFlight {
    /// Whether each is of a round that writes and flushes at once.
    writes: InOrder<bool>,
    writing_pages: u64,
    reading_pages: u64,
}

impl FileFlight {
    /// A write of so many pages was claimed; returns its number.
    pub(crate) fn write_begins(&mut self, pages: u64) -> u64 {
        self.writing_pages += pages;
        self.writes.begin(false)
    }

    pub(crate) fn write_ends(&mut self, number: u64, pages: u64) {
        self.writes.end(number);
        self.writing_pages -= pages;
    }

    pub(crate) fn read_begins(&mut self, pages: u64) {
        self.reading_pages += pages;
    }

    pub(crate) fn read_ends(&mut self, pages: u64) {
        self.reading_pages -= pages;
    }

    /// Whether any request is in flight.
    pub(crate) fn has_any(&self) -> bool {
        self.reading_pages > 0 || self.has_writes()
    }

    pub(crate) fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    /// The write is of a round that writes and flushes at once.
    pub(crate) fn mark_at_once(&mut self, number: u64) {
        if let Some(is_at_once) = self.writes.get_mut(number) {
            *is_at_once = true;
        }
    }

    /// Whether a write is in flight that is of no round at once.
    pub(crate) fn has_other_writes(&self) -> bool {
        self.writes.first(|is_at_once| !is_at_once).is_some()
    }

    pub(crate) fn next_write(&self) -> u64 {
        self.writes.next()
    }

    /// Whether a write with a lower number is in flight.
    pub(crate) fn has_writes_before(&self, number: u64) -> bool {
        self.writes.first(|_| true).is_some_and(|(first, _)| *first < number)
    }

    pub(crate) fn writing_pages(&self) -> u64 {
        self.writing_pages
    }

    pub(crate) fn reading_pages(&self) -> u64 {
        self.reading_pages
    }
}

#[derive(Default)]
pub(crate) struct Marks {
    /// The file's position among the files that may be written.
    pub(in crate::devices) position: ReadyPosition,
    /// When the file became dirty.
    pub(in crate::devices) dirtied_at: Nanos,
    /// Whether the file may be written and is listed for that, or has its slice.
    pub(in crate::devices) queued: bool,
    /// Whether the file is listed for a sync.
    pub(in crate::devices) sync_queued: bool,
    /// Whether the file is listed to be come back to.
    pub(in crate::devices) retry_queued: bool,
}

impl Marks {
    /// When the file became dirty: no dirty page that is not in flight is older.
    pub(crate) fn dirtied_at(&self) -> Nanos {
        self.dirtied_at
    }

    /// No dirty page that is not in flight is older than this.
    pub(crate) fn raise_dirtied_at(&mut self, at: Nanos) {
        self.dirtied_at = self.dirtied_at.max(at);
    }

    /// The file's slice has ended, and the file is in no list of files that may be written.
    pub(crate) fn slice_ends(&mut self) {
        self.queued = false;
    }

    /// The file has its slice for a sync.
    pub(crate) fn sync_begins(&mut self) {
        self.sync_queued = false;
    }

    /// A sync's caller gives the file its slice: until [`Marks::sync_begins`] nobody lists the file for a sync. Returns
    /// false if it is listed already.
    pub(crate) fn try_keep_off_list_for_sync(&mut self) -> bool {
        !std::mem::replace(&mut self.sync_queued, true)
    }

    /// The flusher has come back to the file.
    pub(crate) fn retry_begins(&mut self) {
        self.retry_queued = false;
    }
}

/// Why dirty pages of a file are not written now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteObstacle {
    /// The last write or flush failed. It is tried again.
    Failed(DeviceError),
    /// The device completes nothing.
    Hung,
    /// A write of the file has not ended for long. The file gets no other until it ends.
    Aside,
    /// Some of the bytes have no space on the device: the device, or the owner's quota, is full.
    Unplaced,
    /// A change of its size or of its holes is under way.
    Held,
    /// Some wait until other bytes are durable, or until their holder lets them go.
    Withheld,
}

impl FileInner {
    /// Why its dirty pages are not written now. `None`: they wait for their slice, or are being written.
    pub(crate) fn write_obstacle(&self) -> Option<WriteObstacle> {
        let state = lock(&self.state);
        let failed = state.failures.error().map(WriteObstacle::Failed);
        let others = [
            (self.device.hang().is_stalled(), WriteObstacle::Hung),
            (state.failures.is_aside(), WriteObstacle::Aside),
            (state.unplaced_from.is_some(), WriteObstacle::Unplaced),
            (state.is_held(), WriteObstacle::Held),
            (state.withheld.pages() > 0, WriteObstacle::Withheld),
        ];
        failed.or_else(|| others.into_iter().find_map(|(holds, obstacle)| holds.then_some(obstacle)))
    }
}

impl Display for WriteObstacle {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(out),
            Self::Hung => out.write_str("the device completes nothing"),
            Self::Aside => out.write_str("a write of it has not ended for long"),
            Self::Unplaced => out.write_str("the device's space or the owner's quota is used up"),
            Self::Held => out.write_str("its size or its holes change"),
            Self::Withheld => out.write_str("bytes wait until others are durable"),
        }
    }
}

/// The beginning and the end of its requests. Nothing else changes what is in flight to its device.
impl FileInner {
    /// A request is about to be submitted; returns its number.
    pub(crate) fn request_begins(&self, load: Load, now: Nanos) -> u64 {
        let runs = load.dirty().runs;
        if runs > 0 {
            self.device.admission().add_runs(runs as i64);
        }
        self.device.in_flight.begin(self.pages.slot, load, now)
    }

    /// Sets a request of the file aside, unless it has ended or too many are; returns whether it did.
    pub(crate) fn try_set_aside(&self, number: u64, now: Nanos) -> bool {
        let device = &self.device;
        {
            let mut state = lock(&self.state);
            let Some(load) = device.in_flight.try_set_aside(number, now) else { return false };
            state.hold();
            if load.kind == TransferKind::Write {
                state.failures.set_aside(load.dirty());
                self.note_failed(&mut state);
                device.requests.uncount_write();
            }
        }
        device.slots().give_back(1);
        device.requests.write_ended().wake_all();
        true
    }

    /// A request has ended. If it was set aside, it has no slot to give back, and the caller puts the file back in its
    /// lists.
    pub(crate) fn request_ends(&self, number: u64, succeeds: bool, now: Nanos) -> EndedRequest {
        let ended = self.device.in_flight.end(number, succeeds, now);
        let dirty = ended.load.dirty();
        if ended.was_aside {
            let mut state = lock(&self.state);
            state.release();
            state.failures.take_back(dirty);
        }
        if dirty.runs > 0 {
            self.device.admission().add_runs(-(dirty.runs as i64));
        }
        ended
    }
}

pub(crate) struct FileTable<F>(Mutex<Slots<F>>);

struct Slots<F> {
    slots: Vec<Weak<F>>,
    free: Vec<u32>,
}

impl<F> Default for FileTable<F> {
    fn default() -> Self {
        Self(Mutex::new(Slots { slots: Vec::new(), free: Vec::new() }))
    }
}

impl<F> FileTable<F> {
    /// Makes a file and gives it a slot.
    pub(super) fn add(&self, make: impl FnOnce(u32) -> F) -> Arc<F> {
        let slot = self.take_slot();
        self.add_at(slot, make)
    }

    fn take_slot(&self) -> u32 {
        let mut table = lock(&self.0);
        table.free.pop().unwrap_or_else(|| {
            table.slots.push(Weak::new());
            (table.slots.len() - 1) as u32
        })
    }

    /// Reserves these slots for files that come later by [`FileTable::add_at`]. Called before any file is added.
    pub(super) fn reserve(&self, slots: &BTreeSet<u32>) {
        let mut table = lock(&self.0);
        let count = slots.last().map_or(0, |last| last + 1);
        table.slots.resize_with(count as usize, Weak::new);
        table.free.extend((0..count).rev().filter(|slot| !slots.contains(slot)));
    }

    /// Makes a file in a slot that was reserved for it.
    pub(super) fn add_at(&self, slot: u32, make: impl FnOnce(u32) -> F) -> Arc<F> {
        let file = Arc::new(make(slot));
        let mut table = lock(&self.0);
        table.slots[slot as usize] = Arc::downgrade(&file);
        file
    }

    pub(super) fn remove(&self, slot: u32) {
        let mut table = lock(&self.0);
        table.slots[slot as usize] = Weak::new();
        table.free.push(slot);
    }

    pub(crate) fn get(&self, slot: u32) -> Option<Arc<F>> {
        lock(&self.0).slots.get(slot as usize)?.upgrade()
    }

    pub(crate) fn count(&self) -> u64 {
        let table = lock(&self.0);
        (table.slots.len() - table.free.len()) as u64
    }
}

#[cfg(test)]
mod tests;
