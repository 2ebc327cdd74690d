//! The cache: which page of which file is in which frame.
//!
//! Owns: the arena's frames while they hold pages, the frame table, the indexes' nodes, the files.
//! Does not own: devices and flushers (`writeback`), limits (`dirty`), what to evict (`reclaim`).
//! Invariants: a page is in its file's index exactly while its frame is `PRESENT`; index and states
//! change with the file's lock held; hits take no lock.

mod census;
pub(crate) mod copy;
pub(crate) mod file;
pub(crate) mod hit;
pub(crate) mod index;
pub(crate) mod memory;
pub(crate) mod nodes;
mod pins;
#[cfg(all(test, loom))]
pub(crate) mod witness;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use frames::{FrameId, Frames, Order};

use crate::dirty::DirtyTotals;
use crate::page::{GUARD, Identity, PageTable};
use crate::policy::InForce;
use crate::rare::{Rare, Switches};
use crate::reclaim::lru::Lru;
use crate::settings::{Knob, Settings};
pub(crate) use crate::units::PAGE_BYTES;
use crate::wait::{WaitQueue, lock};
use crate::writeback::device::DeviceState;
pub use census::Census;
use file::FileInner;
use nodes::Nodes;
pub use pins::PinnedPages;

/// How many queues the waiters for pages are spread over.
const PAGE_QUEUES: usize = 256;

/// Everything of an engine that does not depend on its world.
pub(crate) struct Cache {
    pub(crate) frames: Arc<Frames>,
    pub(crate) pages: PageTable,
    pub(crate) nodes: Nodes,
    pub(crate) lru: Lru,
    pub(crate) settings: Settings,
    devices: Mutex<Vec<Arc<DeviceState>>>,
    files: Mutex<FileTable>,
    page_queues: Box<[WaitQueue]>,
    /// Those who found no frame to take.
    pub(crate) memory_queue: WaitQueue,
    pinned_pages: AtomicU64,
    pub(crate) lost_epoch: AtomicU64,
    pub(crate) rare: Switches,
    /// What all devices have dirty.
    pub(crate) dirty: Arc<DirtyTotals>,
    /// The policy in force.
    pub(crate) policy: InForce,
    /// `min_ratio` of all devices together.
    pub(crate) min_ratio_sum: AtomicU64,
    /// How often a congested queue has cleared.
    congestion_ends: AtomicU64,
    congestion_queue: WaitQueue,
}

#[derive(Default)]
struct FileTable {
    slots: Vec<Weak<FileInner>>,
    free: Vec<u32>,
}

impl Cache {
    pub(crate) fn new(frames: Frames, settings: Settings, policy: InForce) -> Self {
        let pages = PageTable::new(frames.total());
        Self {
            frames: Arc::new(frames),
            pages,
            nodes: Nodes::new(),
            lru: Lru::new(),
            settings,
            devices: Mutex::default(),
            files: Mutex::default(),
            page_queues: (0..PAGE_QUEUES).map(|_| WaitQueue::new()).collect(),
            memory_queue: WaitQueue::new(),
            pinned_pages: AtomicU64::new(0),
            lost_epoch: AtomicU64::new(0),
            rare: Switches::new(),
            dirty: Arc::default(),
            policy,
            min_ratio_sum: AtomicU64::new(0),
            congestion_ends: AtomicU64::new(0),
            congestion_queue: WaitQueue::new(),
        }
    }

    /// The devices. No hot path takes this lock.
    pub(crate) fn devices(&self) -> MutexGuard<'_, Vec<Arc<DeviceState>>> {
        self.dirty.looks.note();
        lock(&self.devices)
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

    /// Where those wait who wait for a change of this frame's state.
    pub(crate) fn page_queue(&self, frame: FrameId) -> &WaitQueue {
        &self.page_queues[frame.index() % PAGE_QUEUES]
    }

    /// Wakes everybody who waits for a page or for memory, if that is forced.
    pub(crate) fn rare_wake(&self) {
        if self.rare.strikes(Rare::SpuriousWake) {
            self.page_queues.iter().for_each(WaitQueue::wake_all);
            self.memory_queue.wake_all();
        }
    }

    /// Makes a file and gives it a slot. Slot numbers are not reused while the file lives.
    pub(crate) fn add_file(&self, make: impl FnOnce(u32) -> FileInner) -> Arc<FileInner> {
        let mut table = lock(&self.files);
        let slot = table.free.pop().unwrap_or_else(|| {
            table.slots.push(Weak::new());
            (table.slots.len() - 1) as u32
        });
        let file = Arc::new(make(slot));
        table.slots[slot as usize] = Arc::downgrade(&file);
        file
    }

    pub(crate) fn remove_file(&self, slot: u32) {
        let mut table = lock(&self.files);
        table.slots[slot as usize] = Weak::new();
        table.free.push(slot);
    }

    pub(crate) fn file(&self, slot: u32) -> Option<Arc<FileInner>> {
        lock(&self.files).slots.get(slot as usize)?.upgrade()
    }

    pub(crate) fn file_count(&self) -> u64 {
        let table = lock(&self.files);
        (table.slots.len() - table.free.len()) as u64
    }

    /// The frame in the index at this page, with the file's lock held by the caller.
    pub(crate) fn frame_at(&self, file: &FileInner, page: u64) -> Option<FrameId> {
        let frame = file.index.frame(&self.nodes, page)?;
        debug_assert_eq!(self.pages.identity(frame), Identity { file: file.slot, index: page });
        Some(frame)
    }

    /// Takes a frame out of the index and lets it go once nobody holds it.
    pub(crate) fn drop_page(&self, file: &FileInner, page: u64, frame: FrameId) {
        file.index.remove(&self.nodes, page);
        self.let_go(frame);
    }

    /// Lets go of a frame that is no longer in the index.
    pub(crate) fn let_go(&self, frame: FrameId) {
        self.lru.remove(&self.pages, frame);
        self.pages.detach(frame);
        self.release(frame);
    }

    /// As [`Cache::let_go`], for many.
    pub(crate) fn let_all_go(&self, frames: &mut Vec<FrameId>) {
        self.lru.remove_all(&self.pages, frames);
        for frame in frames.drain(..) {
            self.pages.detach(frame);
            self.release_silently(frame);
        }
        self.memory_queue.wake_all();
    }

    /// Frees a detached frame unless somebody still holds it; the last holder calls this again.
    pub(crate) fn release(&self, frame: FrameId) {
        if self.release_silently(frame) {
            self.memory_queue.wake_all();
        }
    }

    /// As [`Cache::release`], but the caller wakes who waits for memory if it was freed.
    pub(crate) fn release_silently(&self, frame: FrameId) -> bool {
        let released = self.pages.release(frame);
        if released {
            self.frames.free(frame, Order::SINGLE);
        }
        released
    }

    /// Gives back a frame that was never put in an index, or was released.
    pub(crate) fn free_frame(&self, frame: FrameId) {
        self.frames.free(frame, Order::SINGLE);
        self.memory_queue.wake_all();
    }

    /// Notes guards taken; false (and none taken) when guards hold too much already.
    pub(crate) fn admit_guards(&self, count: u64) -> bool {
        let limit = u64::from(self.frames.total()) * self.settings.get(Knob::PinnedRatio) / 100;
        let fits = self.pinned_pages.fetch_add(count, Ordering::Relaxed) + count <= limit;
        if !fits {
            self.pinned_pages.fetch_sub(count, Ordering::Relaxed);
        }
        fits
    }

    /// Lets go of one guarded page.
    pub(crate) fn unguard(&self, frame: FrameId) {
        if self.pages.unhold(frame, GUARD) {
            self.release(frame);
        }
    }

    pub(crate) fn forget_guards(&self, count: u64) {
        self.pinned_pages.fetch_sub(count, Ordering::Relaxed);
        self.memory_queue.wake_all();
    }

    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.pinned_pages.load(Ordering::Relaxed) * PAGE_BYTES
    }

    /// Bytes that describe the cache rather than being it.
    pub(crate) fn metadata_bytes(&self) -> u64 {
        self.pages.bytes() + self.nodes.bytes()
    }
}
