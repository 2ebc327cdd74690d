//! One open file, on its device.
//!
//! Owns: the state under one lock that changes with the file's pages: how many are dirty, requests in flight, syncs,
//! errors.
//! Does not own: names (`volume`), its pages (`cache`), the lists (`agenda`) and the file's way into them (`listing`).
//! Invariants: the `size` of its pages is the size that readers of the cache see, `host_size` the device's. In the lock
//! order this lock comes before the device's lock and the eviction lists'; two files' locks are never held together. A
//! function that needs the lock takes the state that it guards.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use super::failures::FailedPages;
use super::pass::Pass;
use super::quiet::Watch;
use super::ready::Place;
use super::state::DeviceState;
use super::table::FileTable;
use crate::cache::nodes::Tag;
use crate::cache::{Cache, FilePages};
use crate::error::{DeviceError, Error};
use crate::platform::Nanos;
use crate::policy::Payer;
use crate::readahead::{Readahead, Window};
use crate::request::Backing;
use crate::units::PAGE_BYTES;
use crate::wait::{Answer, Permits, WaitQueue};

/// An open file. On cache lines of its own, because its writers change it at every page.
#[repr(align(128))]
pub(crate) struct FileInner {
    pub(crate) pages: FilePages,
    pub(crate) cache: Arc<Cache>,
    table: Arc<FileTable<FileInner>>,
    pub(crate) device: Arc<DeviceState<Self>>,
    pub(crate) backing: Backing,
    /// The largest size that the file can have.
    pub(crate) bytes_max: u64,
    pub(crate) state: Mutex<FileState>,
    /// Waiters for requests in flight, tags and holds.
    pub(crate) queue: WaitQueue,
    /// One change of shape (size, holes) at a time.
    pub(crate) reshaping: Permits,
    /// Changes of shape requested and not yet ended.
    reshapes: AtomicU32,
    /// Pages that a stream has passed leave the cache.
    pub(crate) no_reuse: AtomicBool,
    /// The file as a payer, if the policy asks about payers.
    pub(crate) payer: Payer,
    /// Whether a page is dirty or being written: kept outside the lock for cheap questions.
    pub(super) unclean: AtomicBool,
}

/// Failed attempts in a row after which a file's writes count as failing.
pub(crate) const FAILING_TRIES: u32 = 3;

/// The state that changes with a file's pages.
pub(crate) struct FileState {
    /// Bytes on the device; bytes past this size read as zeros without a request.
    pub(crate) host_size: u64,
    /// Pages dirty or under writeback, and detached pages still being written.
    pub(crate) dirty_pages: u64,
    pub(crate) failed_pages: u64,
    /// The failed pages as last reported to the device.
    failed_noted: FailedPages,
    /// The part of the dirty pages that is in flight to the device.
    pub(crate) writing_pages: u64,
    /// When the file became dirty: no dirty page that is not in flight is older.
    pub(crate) dirtied_at: Nanos,
    /// Where the flusher continues.
    pub(crate) cursor: u64,
    /// The page after the last write request.
    pub(crate) write_end: u64,
    /// The flusher's position and progress, if it goes by passes.
    pub(crate) pass: Pass,
    /// The file's place in its device's list.
    pub(crate) place: Place,
    /// Whether the file is left alone.
    pub(crate) watch: Watch,
    /// Whether the file is in its device's list of dirty files, or of files being worked on.
    pub(crate) queued: bool,
    /// Whether the file is in its device's list of files that a sync waits for.
    pub(crate) sync_queued: bool,
    /// Whether the file was written or resized since the last flush of the device for it.
    pub(crate) unflushed: bool,
    /// Whether pages were written and evicted before a flush followed.
    pub(crate) unflushed_evicted: bool,
    /// While above 0, nothing is submitted.
    pub(crate) holds: u32,
    /// A new size is being applied to the pages: writers wait.
    pub(crate) cutting: bool,
    /// How many of our changes to the host's file have ended: writes, even failed ones, and sizes.
    pub(crate) host_changes: u64,
    pub(crate) next_sequence: u64,
    pub(crate) writes_in_flight: BTreeSet<u64>,
    pub(crate) reads_in_flight: u32,
    /// Pages of these reads.
    pub(crate) reading_pages: u64,
    /// The last flush failed: the writes it covered may not be durable.
    pub(crate) flush_failed: bool,
    /// Pages that the failed flush covered are being made dirty again: until then they stay.
    pub(crate) redirtying: bool,
    /// Dirty bytes from this page on have no place on the device: its space, or the owner's quota, is used up.
    pub(crate) unplaced_from: Option<u64>,
    /// The error of the last failed write or flush, until everything is durable.
    pub(crate) error: Option<DeviceError>,
    /// The number of failed writes and flushes.
    pub(crate) failures: u64,
    /// Failures since the last success; this sets the pause before the next attempt.
    pub(crate) failures_in_row: u32,
    pub(crate) retry_at: Nanos,
    /// Whether the device has the file in its list of files to come back to.
    pub(crate) retry_queued: bool,
    pub(crate) sync: SyncState,
    pub(crate) readahead: Window,
    /// Pages of a failed read: each is read separately.
    pub(crate) suspect: Range<u64>,
    pub(crate) discarded: bool,
}

/// Syncs of a file run one round at a time; syncs that arrive meanwhile share the next.
#[derive(Default)]
pub(crate) struct SyncState {
    pub(crate) running: bool,
    pub(crate) next: Option<SyncRound>,
}

/// One round: its pages and its waiters.
pub(crate) struct SyncRound {
    pub(crate) range: Range<u64>,
    pub(crate) answer: Arc<Answer<Result<(), Error>>>,
}

impl FileInner {
    pub(super) fn new(
        pages: FilePages,
        (cache, table): (Arc<Cache>, Arc<FileTable<FileInner>>),
        device: Arc<DeviceState<Self>>,
        backing: Backing,
        readahead: Readahead,
    ) -> Self {
        let state = FileState {
            host_size: pages.size(),
            dirty_pages: 0,
            writing_pages: 0,
            failed_pages: 0,
            failed_noted: FailedPages::default(),
            dirtied_at: Nanos(0),
            cursor: 0,
            write_end: 0,
            pass: Pass::default(),
            place: Place::default(),
            watch: Watch::default(),
            queued: false,
            sync_queued: false,
            // Earlier changes to the host's file are unknown, so the first sync flushes.
            unflushed: true,
            unflushed_evicted: false,
            holds: 0,
            cutting: false,
            host_changes: 0,
            next_sequence: 0,
            writes_in_flight: BTreeSet::new(),
            reads_in_flight: 0,
            reading_pages: 0,
            flush_failed: false,
            redirtying: false,
            unplaced_from: None,
            error: None,
            failures: 0,
            failures_in_row: 0,
            retry_at: Nanos(0),
            retry_queued: false,
            sync: SyncState::default(),
            readahead: Window::new(readahead),
            suspect: 0..0,
            discarded: false,
        };
        pages.tell_readahead_past(state.readahead.trigger());
        Self {
            pages,
            cache,
            table,
            bytes_max: device.file_bytes_max(),
            device,
            backing,
            state: Mutex::new(state),
            queue: WaitQueue::new(),
            reshaping: Permits::new(1),
            reshapes: AtomicU32::new(0),
            no_reuse: AtomicBool::new(false),
            payer: Payer::default(),
            unclean: AtomicBool::new(false),
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.pages.size()
    }

    /// Whether nothing is dirty or being written, and no change of shape is under way. Takes no lock.
    pub(crate) fn is_settled(&self) -> bool {
        !self.unclean.load(Ordering::Acquire) && self.reshapes.load(Ordering::Acquire) == 0
    }

    /// A change of shape was requested.
    pub(crate) fn reshape_begins(&self) {
        self.reshapes.fetch_add(1, Ordering::AcqRel);
    }

    /// A change of shape has ended, with success or not.
    pub(crate) fn reshape_ends(&self) {
        let before = self.reshapes.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "a change of shape ends that nobody asked for");
    }

    /// Pages that a byte range touches.
    pub(crate) fn pages_of(range: &Range<u64>) -> Range<u64> {
        range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES)
    }
}

/// Changes that need the file's lock: the guarded state is the proof.
impl FileInner {
    /// Tags or untags a page as dirty, and updates its device's count of runs. Returns how many more runs the device
    /// has to write for it: none if the page follows the file's pages in flight.
    pub(crate) fn tag_dirty(&self, state: &mut FileState, page: u64, on: bool) -> i64 {
        let more = self.pages.index.set_tag_in_run(&self.cache.nodes, page, Tag::Dirty, on);
        // Streaming writes, and writeback from a run's start, change nothing.
        if more != 0 {
            self.device.admission().add_runs(more);
        }
        let follows = on && page == state.cursor && !state.writes_in_flight.is_empty();
        more - i64::from(follows)
    }

    /// Removes the tags of a page that is no longer dirty.
    pub(crate) fn untag(&self, state: &mut FileState, page: u64) {
        self.tag_dirty(state, page, false);
        self.pages.index.set_tag(&self.cache.nodes, page, Tag::ToWrite, false);
    }

    /// The device has changes to the file that a flush has to follow.
    pub(crate) fn owe_flush(self: &Arc<Self>, state: &mut FileState, now: Nanos) {
        state.unflushed = true;
        if !state.discarded {
            self.device.agenda.keep_unflushed(self.pages.slot, self, now);
        }
    }

    /// Drops the state that a clean file does not need. The caller drops the returned reference after the lock.
    pub(crate) fn settle(&self, state: &mut FileState) -> Option<Arc<Self>> {
        if !state.is_clean() {
            return None;
        }
        if state.error.is_some() && state.failed_pages == 0 && !state.flush_failed {
            state.error = None;
            self.device.failures.file_recovers();
        }
        self.note_failed(state);
        self.unclean.store(false, Ordering::Release);
        self.device.agenda.let_be(self.pages.slot)
    }

    /// Tells the device how many pages of the file failed.
    pub(crate) fn note_failed(&self, state: &mut FileState) {
        let failing = if state.keeps_failing() { state.failed_pages } else { 0 };
        let now = FailedPages { all: state.failed_pages, failing };
        let before = std::mem::replace(&mut state.failed_noted, now);
        self.device.failures.note_pages(before, now);
    }

    /// Whether any page has the tag.
    pub(crate) fn has_tagged(&self, tag: Tag) -> bool {
        self.pages.index.any_tagged(&self.cache.nodes, tag)
    }
}

impl FileState {
    /// Dirty pages that are not in flight.
    pub(crate) fn waiting_pages(&self) -> u64 {
        self.dirty_pages.saturating_sub(self.writing_pages)
    }

    /// Whether the device has requests of the file in flight.
    pub(crate) fn in_flight(&self) -> bool {
        self.reads_in_flight > 0 || !self.writes_in_flight.is_empty()
    }

    /// Whether writes of the file keep failing.
    pub(crate) fn keeps_failing(&self) -> bool {
        self.failures_in_row >= FAILING_TRIES
    }

    /// Whether the last write failed and the pause before the next try is not over.
    pub(crate) fn backs_off(&self, now: Nanos) -> bool {
        self.failures_in_row > 0 && self.retry_at > now
    }

    /// Whether nothing is dirty or being written.
    pub(crate) fn is_clean(&self) -> bool {
        self.dirty_pages == 0
    }
}

impl Drop for FileInner {
    /// The last reference is gone, so nothing is dirty or in flight: only clean pages are left.
    fn drop(&mut self) {
        self.pages.forget(&self.cache);
        self.table.remove(self.pages.slot);
    }
}
