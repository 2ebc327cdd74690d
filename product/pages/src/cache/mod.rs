//! The cache: the frame of each cached page of each file.
//!
//! Owns: the arena's frames while they hold pages, the frame table, the indexes' nodes, the guards on frames. Also the
//! waiters for a page or a frame, the eviction policy in force, and a count of all frames for checks.
//! Does not own: files except for their pages (`devices`), dirty state, decisions to read, write or evict a page.
//! Invariants: a page is in its file's index exactly while its frame is `PRESENT`; index and states change with the
//! file's lock held; hits take no lock.

mod file_pages;
pub mod hit;
pub mod index;
mod lending;
pub mod nodes;
mod pins;
#[cfg(all(test, loom))]
pub mod witness;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frames::{FrameId, Frames};

use crate::eviction::{Admitted, Arrival, Eviction, EvictionKind};
use crate::memory::SharedArena;
use crate::page::{DETACHED, DIRTY, LENT, PRESENT, PageIdentity, PageTable, WRITEBACK};
use crate::rare::{Number, Rare, Switches};
use crate::sync::OwnLines;
use crate::wait::WaitQueue;
use lending::Lending;
use nodes::Nodes;

pub use file_pages::FilePages;
pub use pins::{GuardSlots, PinnedPages};

/// Pages of a file without users that are dropped at a time.
const DROP_PAGES: usize = 64;

/// How many queues the waiters for pages are spread over.
const PAGE_QUEUES: usize = 256;

/// The part of an engine's pages that does not depend on its world.
pub struct PageCache {
    /// The memory of the pages.
    pub frames: Arc<Frames>,
    /// The same for the memory of writes.
    pub arena: Arc<SharedArena>,
    /// The state of each frame.
    pub pages: PageTable,
    /// The nodes of all files' indexes.
    pub nodes: Nodes,
    lending: Lending,
    /// The policy that chooses victims.
    pub eviction: Box<dyn Eviction>,
    /// Which policy that is.
    pub eviction_kind: EvictionKind,
    page_queues: Box<[WaitQueue]>,
    /// Tasks that found no frame to take.
    pub memory_queue: OwnLines<WaitQueue>,
    files_numbered: AtomicU64,
    /// The rare paths that a test forces.
    pub rare: Switches,
    /// The most pages, or leaves of the index, covered under one hold of a file's lock.
    pub longest_hold: Number,
}

impl PageCache {
    /// `fence` is the world's fence of all threads, if it has one.
    pub fn new(frames: Frames, eviction_kind: EvictionKind, fence: Option<fn()>) -> Self {
        let eviction = (eviction_kind.make)(frames.total());
        let pages = PageTable::of(frames.memory());
        let frames = Arc::new(frames);
        Self {
            arena: Arc::new(SharedArena(Arc::clone(&frames))),
            nodes: Nodes::new(Arc::clone(&frames)),
            frames,
            pages,
            lending: Lending::new(fence),
            eviction,
            eviction_kind,
            page_queues: (0..PAGE_QUEUES).map(|_| WaitQueue::new()).collect(),
            memory_queue: OwnLines(WaitQueue::new()),
            files_numbered: AtomicU64::new(0),
            rare: Switches::default(),
            longest_hold: Number::default(),
        }
    }

    /// Count of all frames of the memory.
    pub fn total_pages(&self) -> u64 {
        u64::from(self.frames.total())
    }

    /// A number for a file, which no other file gets.
    pub fn number_file(&self) -> u64 {
        self.files_numbered.fetch_add(1, Ordering::Relaxed)
    }

    /// The queue of tasks that wait for a change of this frame's state.
    pub fn page_queue(&self, frame: FrameId) -> &WaitQueue {
        &self.page_queues[frame.index() % PAGE_QUEUES]
    }

    /// Wakes all waiters for pages and for memory, if that is forced.
    pub fn rare_wake(&self) {
        if self.rare.is_forced(Rare::SpuriousWake) {
            self.page_queues.iter().for_each(WaitQueue::wake_all);
            self.memory_queue.wake_all();
        }
    }

    /// How many pages may be covered before the file's lock is released: `most` as a rule.
    pub fn piece(&self, most: u64) -> u64 {
        if self.rare.is_forced(Rare::ShortHold) { 1 } else { most }
    }

    /// Visits pages in one hold of a file's lock, `most` as a rule: those that `next` finds from `from` on. Returns the
    /// page to continue at, or `None` if `next` has found none.
    pub fn visit_piece(
        &self,
        most: u64,
        mut from: u64,
        next: impl Fn(u64) -> Option<u64>,
        mut visit: impl FnMut(u64),
    ) -> Option<u64> {
        for done in 0..self.piece(most) {
            self.longest_hold.raise_to(done + 1);
            let page = next(from)?;
            visit(page);
            from = page + 1;
        }
        Some(from)
    }

    /// The frame in the index at this page; the caller holds the file's lock.
    pub fn frame_at(&self, file: &FilePages, page: u64) -> Option<FrameId> {
        let frame = file.index.frame(&self.nodes, page)?;
        debug_assert_eq!(self.pages.identity(frame), PageIdentity { file: file.slot, index: page });
        Some(frame)
    }

    /// Reports a new page to the eviction policy.
    pub fn admit(&self, file: &FilePages, page: u64, frame: FrameId, why: Admitted) {
        self.eviction.admitted(&self.pages, &[Arrival { frame, key: file.key(page), why }]);
    }

    /// Reports new pages to the eviction policy.
    pub fn admit_all(&self, arrivals: &[Arrival]) {
        self.eviction.admitted(&self.pages, arrivals);
    }

    /// Reports a page that may be clean now to the eviction policy.
    pub fn note_clean(&self, frame: FrameId) {
        self.eviction.cleaned(&self.pages, &mut std::iter::once(frame));
    }

    /// Takes a frame out of the index and releases it once nobody holds it.
    pub fn drop_page(&self, file: &FilePages, page: u64, frame: FrameId) {
        file.index.remove(&self.nodes, page);
        self.release_frame(frame);
    }

    /// Releases a frame that is no longer in the index.
    pub fn release_frame(&self, frame: FrameId) {
        self.eviction.removed(&self.pages, &[frame]);
        self.pages.detach(frame);
        self.release(frame);
    }

    /// As [`PageCache::release_frame`], for many.
    fn release_frames(&self, frames: &mut Vec<FrameId>) {
        self.eviction.removed(&self.pages, frames);
        for frame in frames.iter() {
            self.pages.detach(*frame);
        }
        self.recall(frames.iter().copied());
        for frame in frames.drain(..) {
            self.try_release_silently(frame);
        }
        self.memory_queue.wake_all();
    }

    /// Drops the pages of a file without users; all of them are clean.
    pub fn forget_file(&self, file: &FilePages) {
        let (mut from, mut frames) = (0, Vec::with_capacity(DROP_PAGES));
        while let Some(page) = file.index.next_present(&self.nodes, from) {
            frames.extend(file.index.frame(&self.nodes, page));
            file.index.remove(&self.nodes, page);
            from = page + 1;
            if frames.len() == DROP_PAGES {
                self.release_frames(&mut frames);
            }
        }
        self.release_frames(&mut frames);
        self.eviction.file_forgotten(file.number);
    }

    /// Frees a detached frame unless somebody still holds it. In that case the last holder calls this again.
    pub fn release(&self, frame: FrameId) {
        if self.try_release_silently(frame) {
            self.memory_queue.wake_all();
        }
    }

    /// As [`PageCache::release`], but the caller wakes the waiters for memory if the frame was freed.
    pub fn try_release_silently(&self, frame: FrameId) -> bool {
        let released = self.pages.try_release(frame);
        if released {
            self.frames.free(frame);
        } else if self.pages.word(frame).has(DETACHED | LENT) {
            self.recall(std::iter::once(frame));
        }
        released
    }

    /// Gives back a frame that was never put in an index, or was released.
    pub fn free_frame(&self, frame: FrameId) {
        self.frames.free(frame);
        self.memory_queue.wake_all();
    }

    /// Drops the guard on one page, which may be evicted now.
    #[inline]
    pub fn unguard(&self, frame: FrameId) {
        let (detached, changed) = self.pages.end_guard(frame);
        if detached {
            self.release(frame);
        }
        self.memory_queue.wake_for(&changed);
    }

    /// Bytes of metadata, beyond the pages themselves.
    pub fn metadata_bytes(&self) -> u64 {
        self.pages.bytes() + self.nodes.bytes() + self.eviction.bytes()
    }
}

/// How many frames are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Count of all frames.
    pub frames: u64,
    /// Count of free frames.
    pub free: u64,
    /// Frames in a file's index.
    pub cached: u64,
    /// Frames that hold parts of the files' indexes.
    pub index: u64,
    /// Frames taken out of an index that wait for their readers or writers.
    pub leaving: u64,
    /// Of `cached`: dirty, and not being written.
    pub dirty: u64,
    /// Being written since it was dirty, in an index or leaving.
    pub writeback: u64,
    /// Pages that files count as not yet written.
    pub unwritten: u64,
    /// Of `dirty`: pages of found files that nobody has adopted yet, which no file counts.
    pub unadopted: u64,
}

impl Census {
    /// Frames that are neither free nor hold a page or a part of an index: in the hands of a reader or a writer.
    pub fn in_transit(&self) -> i64 {
        self.frames as i64 - (self.free + self.cached + self.index + self.leaving) as i64
    }
}

impl PageCache {
    /// Counts all frames, in time proportional to their number. The files supply `unwritten` and `unadopted`.
    pub fn census(&self) -> Census {
        let mut census =
            Census { frames: self.frames.total().into(), free: self.frames.free_count().into(), ..Census::default() };
        census.index = self.nodes.frames();
        for frame in (0..self.frames.total()).map(FrameId::new) {
            let word = self.pages.word(frame);
            census.cached += u64::from(word.has(PRESENT));
            census.leaving += u64::from(word.has(DETACHED));
            census.dirty += u64::from(word.has(DIRTY));
            census.writeback += u64::from(word.has(WRITEBACK));
        }
        census
    }
}
