//! One file of the cache.
//!
//! Owns: its index, its size, and under one lock everything that changes with its pages: how many
//! are dirty, what is in flight, syncs, errors.
//! Does not own: names (`volume`), the device, the pages' records.
//! Invariants: `size` is what readers of the cache see, `host_size` what the device has; bytes of
//! cached pages past `size` are zero. In the lock order this comes before the device's lock and the
//! eviction lists'; two files' locks are never held together.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::index::Index;
use super::wait::{Answer, Permits, WaitQueue};
use super::{Cache, PAGE_BYTES};
use crate::FILE_BYTES_MAX;
use crate::error::{DeviceError, Error};
use crate::platform::{Backing, Nanos};
use crate::throttle::balance::Payer;
use crate::writeback::device::DeviceState;

/// Pages of a file without users that are let go at a time.
const DROP_PAGES: usize = 64;

/// A file of the cache.
pub(crate) struct FileInner {
    pub(crate) slot: u32,
    pub(crate) cache: Arc<Cache>,
    pub(crate) device: Arc<DeviceState>,
    pub(crate) backing: Backing,
    pub(crate) size: AtomicU64,
    /// The largest size it can have.
    pub(crate) bytes_max: u64,
    pub(crate) index: Index,
    pub(crate) state: Mutex<FileState>,
    /// Waiters for requests in flight, tags and holds.
    pub(crate) queue: WaitQueue,
    /// One change of shape (size, holes) at a time.
    pub(crate) reshaping: Permits<Error>,
    /// Changes of shape asked for and not yet ended.
    pub(crate) reshapes: AtomicU32,
    /// A read that ends past this offset has used up what was read ahead.
    pub(crate) readahead_trigger: AtomicU64,
    /// The file as a writer, under a law of throttling.
    pub(crate) payer: Payer,
    /// A page is dirty or being written: kept beside the lock for cheap questions.
    pub(crate) unclean: AtomicBool,
}

/// What changes with a file's pages.
pub(crate) struct FileState {
    /// Bytes the device has; what lies past it reads as zeros without asking.
    pub(crate) host_size: u64,
    /// Pages dirty or under writeback, and detached ones still being written.
    pub(crate) dirty_pages: u64,
    pub(crate) failed_pages: u64,
    /// Of these, as many as the device was told of.
    pub(crate) failed_noted: u64,
    /// Since when the file has been dirty.
    pub(crate) dirtied_at: Nanos,
    /// Where the flusher goes on.
    pub(crate) cursor: u64,
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
    /// The last flush failed: what it covered may not be durable.
    pub(crate) flush_failed: bool,
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
    pub(crate) readahead: crate::readahead::Window,
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
    pub(crate) fn new(slot: u32, cache: Arc<Cache>, device: Arc<DeviceState>, backing: Backing, size: u64) -> Self {
        let state = FileState {
            host_size: size,
            dirty_pages: 0,
            failed_pages: 0,
            failed_noted: 0,
            dirtied_at: Nanos(0),
            cursor: 0,
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
            flush_failed: false,
            error: None,
            failures: 0,
            failures_in_row: 0,
            retry_at: Nanos(0),
            retry_queued: false,
            sync: SyncState::default(),
            readahead: crate::readahead::Window::default(),
            discarded: false,
        };
        Self {
            slot,
            cache,
            bytes_max: device.device.limits().file_bytes_max.min(FILE_BYTES_MAX),
            device,
            backing,
            size: AtomicU64::new(size),
            index: Index::new(),
            state: Mutex::new(state),
            queue: WaitQueue::new(),
            reshaping: Permits::new(1),
            reshapes: AtomicU32::new(0),
            readahead_trigger: AtomicU64::new(u64::MAX),
            payer: Payer::default(),
            unclean: AtomicBool::new(false),
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Pages that a byte range touches.
    pub(crate) fn pages_of(range: &Range<u64>) -> Range<u64> {
        range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES)
    }
}

impl FileState {
    /// Whether requests of the file are with its device.
    pub(crate) fn in_flight(&self) -> bool {
        self.reads_in_flight > 0 || !self.writes_in_flight.is_empty()
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
        let cache = Arc::clone(&self.cache);
        let (mut from, mut frames) = (0, Vec::with_capacity(DROP_PAGES));
        while let Some(page) = self.index.next_present(&cache.nodes, from) {
            frames.extend(self.index.frame(&cache.nodes, page));
            self.index.remove(&cache.nodes, page);
            from = page + 1;
            if frames.len() == DROP_PAGES {
                cache.let_all_go(&mut frames);
            }
        }
        cache.let_all_go(&mut frames);
        cache.remove_file(self.slot);
    }
}
