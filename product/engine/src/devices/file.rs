//! One open file, on its device.
//!
//! Owns: the state under one lock that changes with the file's pages: how many are dirty, requests in flight, syncs,
//! errors.
//! Does not own: names (`volume`), its pages (`cache`), the lists (`worklist`) and the file's way into them
//! (`listing`).
//! Invariants: the `size` of its pages is the size that readers of the cache see, `host` has the device's. In the lock
//! order this lock comes before the device's lock and the eviction lists'; two files' locks are never held together. A
//! function that needs the lock takes the state that it guards.

mod failures;
mod flight;
mod flushes;
mod host;
mod marks;
mod obstacle;
mod rounds;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use afflux_device::platform::Nanos;
use afflux_device::request::Backing;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::cache::{FilePages, PageCache};
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::{Permits, WaitQueue};

use super::delays::FileDelays;
use super::pass::Position;
use super::rewrites::RewriteWatch;
use super::state::DeviceState;
use super::table::FileTable;
use super::unwritable::Amount;
use super::withholding::ranges::{self, WithheldRanges};
use crate::devices::payer::Payer;
use crate::readahead::{Readahead, ReaderState};
use crate::recovery::slots::PersistedFile;
pub(crate) use failures::FAILING_TRIES;
use failures::FileFailures;
use flight::FileFlight;
use flushes::Flushes;
use host::HostSide;
use marks::Marks;
pub use obstacle::WriteObstacle;
use rounds::Rounds;
pub(crate) use rounds::{RoundPart, SharedRound, SyncRound};

/// Bytes of a file that become durable before a withheld range is written.
pub(crate) type Earlier = ranges::Earlier<FileInner>;
/// Why dirty bytes of a range are not written.
pub(crate) type Obstacles = ranges::Obstacles<FileInner>;

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
    /// Whether a page is dirty or being written: kept outside the lock for cheap questions.
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
    /// Its place in the device's lists.
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
    /// Dirty bytes from this page on have no place on the device: its space, or the owner's quota, is used up.
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

    /// Tells the device how many pages of the file failed, and how many cannot be written now.
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
    /// The last reference is gone, so nothing is dirty or in flight: only clean pages are left. Or the engine ends, and
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
