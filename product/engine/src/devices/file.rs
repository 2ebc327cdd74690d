//! One open file, on its device.
//!
//! Owns: under one lock everything that changes with its pages: how many are dirty, what is in flight, syncs,
//! errors; in which of its device's lists it belongs.
//! Does not own: names (`volume`), its pages (`cache`), the lists (`state`).
//! Invariants: its pages' `size` is what readers of the cache see, `host_size` what the device has. In the lock order
//! this lock comes before the device's lock and the eviction lists'; two files' locks are never held together. What
//! needs the lock takes the state that it guards.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

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

/// Where a file goes that has more to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PutBack {
    /// Behind the others that had a turn; its age stays (the kernel's `requeue_io`).
    More,
    /// Among the files that have had no turn, as the youngest. If the youngest there has been dirty for less
    /// long, it waits for its age anew; if there is none its age stays (the kernel's `redirty_tail`).
    Redirty,
}

/// An open file. On cache lines of its own: its writers change it at every page.
#[repr(align(128))]
pub(crate) struct FileInner {
    pub(crate) pages: FilePages,
    pub(crate) cache: Arc<Cache>,
    table: Arc<FileTable>,
    pub(crate) device: Arc<DeviceState>,
    pub(crate) backing: Backing,
    /// The largest size it can have.
    pub(crate) bytes_max: u64,
    pub(crate) state: Mutex<FileState>,
    /// Waiters for requests in flight, tags and holds.
    pub(crate) queue: WaitQueue,
    /// One change of shape (size, holes) at a time.
    pub(crate) reshaping: Permits,
    /// Changes of shape asked for and not yet ended.
    reshapes: AtomicU32,
    /// What a stream has passed leaves the cache.
    pub(crate) no_reuse: AtomicBool,
    /// The file as a payer, where the policy asks about payers.
    pub(crate) payer: Payer,
    /// A page is dirty or being written: kept beside the lock for cheap questions.
    unclean: AtomicBool,
}

/// Failed tries in a row after which a file's writes keep failing.
pub(crate) const FAILING_TRIES: u32 = 3;

/// Pages of a file whose last write failed.
#[derive(Clone, Copy, Default)]
pub(super) struct FailedPages {
    pub(super) all: u64,
    /// All of them, if the file's writes keep failing.
    pub(super) failing: u64,
}

/// What changes with a file's pages.
pub(crate) struct FileState {
    /// Bytes the device has; what lies past it reads as zeros without asking.
    pub(crate) host_size: u64,
    /// Pages dirty or under writeback, and detached ones still being written.
    pub(crate) dirty_pages: u64,
    pub(crate) failed_pages: u64,
    /// What the device was told of them.
    failed_noted: FailedPages,
    /// Of these, what is on its way to the device.
    pub(crate) writing_pages: u64,
    /// Since when the file has been dirty: nothing that is not on its way has been for longer.
    pub(crate) dirtied_at: Nanos,
    /// Where the flusher goes on.
    pub(crate) cursor: u64,
    /// The page after the last write request's.
    pub(crate) write_end: u64,
    /// Where it goes on, and how far it has come, if it goes by passes.
    pub(crate) pass: Pass,
    /// Where it is in its device's list.
    pub(crate) place: Place,
    /// Whether it is left alone.
    pub(crate) watch: Watch,
    /// In its device's list of dirty files, or of those being worked on.
    pub(crate) queued: bool,
    /// In its device's list of files that a sync waits for.
    pub(crate) sync_queued: bool,
    /// Something was written, or resized, since the last flush of the device for this file.
    pub(crate) unflushed: bool,
    /// Pages that were written and evicted before a flush followed.
    pub(crate) unflushed_evicted: bool,
    /// Above 0, nothing is submitted.
    pub(crate) holds: u32,
    /// A new size is being applied to the pages: writers wait.
    pub(crate) cutting: bool,
    /// How many changes of ours to the host's file have ended: writes, whatever came of them, and sizes.
    pub(crate) host_changes: u64,
    pub(crate) next_sequence: u64,
    pub(crate) writes_in_flight: BTreeSet<u64>,
    pub(crate) reads_in_flight: u32,
    /// Pages of these.
    pub(crate) reading_pages: u64,
    /// The last flush failed: what it covered may not be durable.
    pub(crate) flush_failed: bool,
    /// Pages that it covered are being made dirty again: until then they stay.
    pub(crate) redirtying: bool,
    /// Dirty bytes from this page on have no place on the device: its space is used up, or the owner's share is.
    pub(crate) unplaced_from: Option<u64>,
    /// The error of the last failed write or flush, until everything is durable.
    pub(crate) error: Option<DeviceError>,
    /// How many writes and flushes have failed.
    pub(crate) failures: u64,
    /// Failures since the last success; sets the pause before the next try.
    pub(crate) failures_in_row: u32,
    pub(crate) retry_at: Nanos,
    /// Its device has it in the list of files to come back to.
    pub(crate) retry_queued: bool,
    pub(crate) sync: SyncState,
    pub(crate) readahead: Window,
    /// Pages of a read that failed: each is read by itself.
    pub(crate) suspect: Range<u64>,
    pub(crate) discarded: bool,
}

/// Syncs of a file run one round at a time; who comes meanwhile shares the next.
#[derive(Default)]
pub(crate) struct SyncState {
    pub(crate) running: bool,
    pub(crate) next: Option<SyncRound>,
}

/// One round: its pages and who waits for it.
pub(crate) struct SyncRound {
    pub(crate) range: Range<u64>,
    pub(crate) answer: Arc<Answer<Result<(), Error>>>,
}

impl FileInner {
    pub(super) fn new(
        pages: FilePages,
        (cache, table): (Arc<Cache>, Arc<FileTable>),
        device: Arc<DeviceState>,
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
            // What happened to the host's file before is not known, so the first sync flushes.
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

    /// A change of shape was asked for.
    pub(crate) fn reshape_begins(&self) {
        self.reshapes.fetch_add(1, Ordering::AcqRel);
    }

    /// It has ended, whatever came of it.
    pub(crate) fn reshape_ends(&self) {
        let before = self.reshapes.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "a change of shape ends that nobody asked for");
    }

    /// Pages that a byte range touches.
    pub(crate) fn pages_of(range: &Range<u64>) -> Range<u64> {
        range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES)
    }
}

/// Changes that need the file's lock: the state that it guards is the proof.
impl FileInner {
    /// A page has become dirty; it was charged. The clock is asked by few pages of many.
    pub(crate) fn note_dirtied(self: &Arc<Self>, state: &mut FileState, now: impl Fn() -> Nanos) {
        state.dirty_pages += 1;
        if state.dirty_pages == 1 {
            state.dirtied_at = now();
            self.unclean.store(true, Ordering::Release);
            self.device.keep(self, state);
        }
        if !state.queued && state.holds == 0 {
            state.queued = true;
            // The flusher had its turn: what was dirty before is on its way, or to be tried again.
            state.dirtied_at = now();
            if let Some(idle) = self.device.in_flight.allowed().idle {
                state.watch.wakes(state.dirtied_at, idle.look_ns);
            }
            self.device.queue_dirty(self, state);
        } else if state.waiting_pages().is_power_of_two() && state.place.is_outgrown(state.waiting_pages()) {
            self.device.grow_queued(self, state);
        }
    }

    /// Tags a page as dirty, or as dirty no more, and keeps its device's count of runs. How many runs more the device
    /// has to write for it: none if the page follows what is being written of the file.
    pub(crate) fn tag_dirty(&self, state: &mut FileState, page: u64, on: bool) -> i64 {
        let more = self.pages.index.set_tag_in_run(&self.cache.nodes, page, Tag::Dirty, on);
        // What a stream dirties, and what is written from a run's beginning, changes nothing.
        if more != 0 {
            self.device.admission.add_runs(more);
        }
        let follows = on && page == state.cursor && !state.writes_in_flight.is_empty();
        more - i64::from(follows)
    }

    /// Takes away the marks of a page that is dirty no more.
    pub(crate) fn untag(&self, state: &mut FileState, page: u64) {
        self.tag_dirty(state, page, false);
        self.pages.index.set_tag(&self.cache.nodes, page, Tag::ToWrite, false);
    }

    /// The device has something of the file that a flush has to follow.
    pub(crate) fn owe_flush(self: &Arc<Self>, state: &mut FileState, now: Nanos) {
        state.unflushed = true;
        if !state.discarded {
            self.device.keep_unflushed(self, state, now);
        }
    }

    /// Forgets what a clean file need not remember. The returned reference is dropped after the lock.
    pub(crate) fn settle(&self, state: &mut FileState) -> Option<Arc<Self>> {
        if !state.is_clean() {
            return None;
        }
        if state.error.is_some() && state.failed_pages == 0 && !state.flush_failed {
            state.error = None;
            self.device.file_recovers();
        }
        self.note_failed(state);
        self.unclean.store(false, Ordering::Release);
        self.device.let_be(self)
    }

    /// Tells the device how many pages of the file failed.
    pub(crate) fn note_failed(&self, state: &mut FileState) {
        let failing = if state.keeps_failing() { state.failed_pages } else { 0 };
        let now = FailedPages { all: state.failed_pages, failing };
        let before = std::mem::replace(&mut state.failed_noted, now);
        self.device.note_failed_pages(before, now);
    }

    /// Puts a file with dirty pages back in a list unless it is in one, or held: then the end of the hold does.
    pub(crate) fn requeue(self: &Arc<Self>, state: &mut FileState, now: Nanos) {
        self.requeue_as(state, now, PutBack::More);
    }

    /// [`FileInner::requeue`], with the place of a file that may be written at once.
    pub(crate) fn requeue_as(self: &Arc<Self>, state: &mut FileState, now: Nanos, how: PutBack) {
        if state.holds > 0 {
            return;
        }
        if self.has_tagged(Tag::ToWrite) {
            self.device.queue_sync(self, state);
        }
        if !self.has_tagged(Tag::Dirty) {
            return;
        }
        if state.backs_off(now) {
            self.come_back(state, state.retry_at);
        } else if !state.queued {
            state.queued = true;
            match how {
                PutBack::More => self.device.queue_more(self, state),
                PutBack::Redirty => self.device.queue_redirtied(self, state, now),
            }
            self.device.flusher.raise();
        }
    }

    /// Whether any page has the tag.
    pub(crate) fn has_tagged(&self, tag: Tag) -> bool {
        self.pages.index.any_tagged(&self.cache.nodes, tag)
    }

    /// Has the flusher come back at `at`, unless it will come back anyway.
    pub(crate) fn come_back(self: &Arc<Self>, state: &mut FileState, at: Nanos) {
        if !state.retry_queued {
            state.retry_queued = true;
            self.device.queue_later(self, at);
        }
    }
}

impl FileState {
    /// Dirty pages that are not on their way.
    pub(crate) fn waiting_pages(&self) -> u64 {
        self.dirty_pages.saturating_sub(self.writing_pages)
    }

    /// Whether requests of the file are with its device.
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
    /// The last reference is gone, so nothing is dirty or in flight: what is left are clean pages.
    fn drop(&mut self) {
        self.pages.forget(&self.cache);
        self.table.remove(self.pages.slot);
    }
}
