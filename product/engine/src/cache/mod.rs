//! The cache: the frame of each cached page of each file.
//!
//! Owns: the arena's frames while they hold pages, the frame table, the indexes' nodes, the guards on frames. Also the
//! waiters for a page or a frame, and the eviction policy in force.
//! Does not own: files except for their pages (`devices`), dirty state, decisions to read, write or evict a page.
//! Invariants: a page is in its file's index exactly while its frame is `PRESENT`; index and states change with the
//! file's lock held; hits take no lock.

mod census;
mod file_pages;
pub(crate) mod guards;
pub(crate) mod hit;
pub(crate) mod index;
mod lending;
mod lent_guard;
pub(crate) mod nodes;
mod orphans;
mod pins;
mod recall;
#[cfg(all(test, loom))]
pub(crate) mod witness;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frames::{FrameId, Frames};

use crate::eviction::{Admitted, Arrival, Eviction, EvictionKind};
use crate::memory::Arena;
use crate::page::{DETACHED, Identity, LENT, PageTable};
use crate::rare::{Number, Rare, Switches};
use crate::sync::OwnLines;
use crate::wait::WaitQueue;
pub use census::Census;
pub(crate) use file_pages::FilePages;
use lending::Lending;
use nodes::Nodes;
pub use pins::PinnedPages;

/// How many queues the waiters for pages are spread over.
const PAGE_QUEUES: usize = 256;

/// The part of an engine's pages that does not depend on its world.
pub(crate) struct Cache {
    pub(crate) frames: Arc<Frames>,
    /// The same for the memory of writes.
    pub(crate) arena: Arc<Arena>,
    pub(crate) pages: PageTable,
    pub(crate) nodes: Nodes,
    lending: Lending,
    pub(crate) eviction: Box<dyn Eviction>,
    pub(crate) eviction_kind: EvictionKind,
    page_queues: Box<[WaitQueue]>,
    /// Tasks that found no frame to take.
    pub(crate) memory_queue: OwnLines<WaitQueue>,
    files_numbered: AtomicU64,
    pub(crate) rare: Switches,
    /// The most pages, or leaves of the index, covered under one hold of a file's lock.
    pub(crate) longest_hold: Number,
}

impl Cache {
    /// `fence` is [`Platform::fence_all_threads`](crate::Platform::fence_all_threads).
    pub(crate) fn new(frames: Frames, eviction_kind: EvictionKind, fence: Option<fn()>) -> Self {
        let eviction = (eviction_kind.make)(frames.total());
        let pages = PageTable::of(frames.memory());
        let frames = Arc::new(frames);
        Self {
            arena: Arc::new(Arena(Arc::clone(&frames))),
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

    /// All frames.
    pub(crate) fn total_pages(&self) -> u64 {
        u64::from(self.frames.total())
    }

    /// A number for a file, which no other file gets.
    fn number_file(&self) -> u64 {
        self.files_numbered.fetch_add(1, Ordering::Relaxed)
    }

    /// The queue of tasks that wait for a change of this frame's state.
    pub(crate) fn page_queue(&self, frame: FrameId) -> &WaitQueue {
        &self.page_queues[frame.index() % PAGE_QUEUES]
    }

    /// Wakes all waiters for pages and for memory, if that is forced.
    pub(crate) fn rare_wake(&self) {
        if self.rare.is_forced(Rare::SpuriousWake) {
            self.page_queues.iter().for_each(WaitQueue::wake_all);
            self.memory_queue.wake_all();
        }
    }

    /// How many pages may be covered before the file's lock is released: `most` as a rule.
    pub(crate) fn piece(&self, most: u64) -> u64 {
        if self.rare.is_forced(Rare::ShortHold) { 1 } else { most }
    }

    /// Visits pages in one hold of a file's lock, `most` as a rule: those that `next` finds from `from` on. Returns the
    /// page to continue at, or `None` if `next` has found none.
    pub(crate) fn visit_piece(
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
    pub(crate) fn frame_at(&self, file: &FilePages, page: u64) -> Option<FrameId> {
        let frame = file.index.frame(&self.nodes, page)?;
        debug_assert_eq!(self.pages.identity(frame), Identity { file: file.slot, index: page });
        Some(frame)
    }

    /// Tells the eviction policy of a new page.
    pub(crate) fn admit(&self, file: &FilePages, page: u64, frame: FrameId, why: Admitted) {
        self.eviction.admitted(&self.pages, &[Arrival { frame, key: file.key(page), why }]);
    }

    /// Tells the eviction policy of new pages.
    pub(crate) fn admit_all(&self, arrivals: &[Arrival]) {
        self.eviction.admitted(&self.pages, arrivals);
    }

    /// Tells the eviction policy of a page that may be clean now.
    pub(crate) fn note_clean(&self, frame: FrameId) {
        self.eviction.cleaned(&self.pages, &mut std::iter::once(frame));
    }

    /// Takes a frame out of the index and releases it once nobody holds it.
    pub(crate) fn drop_page(&self, file: &FilePages, page: u64, frame: FrameId) {
        file.index.remove(&self.nodes, page);
        self.release_frame(frame);
    }

    /// Releases a frame that is no longer in the index.
    pub(crate) fn release_frame(&self, frame: FrameId) {
        self.eviction.removed(&self.pages, &[frame]);
        self.pages.detach(frame);
        self.release(frame);
    }

    /// As [`Cache::release_frame`], for many.
    fn release_frames(&self, frames: &mut Vec<FrameId>) {
        self.eviction.removed(&self.pages, frames);
        for frame in frames.iter() {
            self.pages.detach(*frame);
        }
        self.recall(frames.iter().copied());
        for frame in frames.drain(..) {
            self.release_silently(frame);
        }
        self.memory_queue.wake_all();
    }

    /// Frees a detached frame unless somebody still holds it. In that case the last holder calls this again.
    pub(crate) fn release(&self, frame: FrameId) {
        if self.release_silently(frame) {
            self.memory_queue.wake_all();
        }
    }

    /// As [`Cache::release`], but the caller wakes the waiters for memory if the frame was freed.
    pub(crate) fn release_silently(&self, frame: FrameId) -> bool {
        let released = self.pages.release(frame);
        if released {
            self.frames.free(frame);
        } else if self.pages.word(frame).has(DETACHED | LENT) {
            self.recall(std::iter::once(frame));
        }
        released
    }

    /// Gives back a frame that was never put in an index, or was released.
    pub(crate) fn free_frame(&self, frame: FrameId) {
        self.frames.free(frame);
        self.memory_queue.wake_all();
    }

    /// Drops the guard on one page, which may be evicted now.
    #[inline]
    pub(crate) fn unguard(&self, frame: FrameId) {
        let (detached, changed) = self.pages.end_guard(frame);
        if detached {
            self.release(frame);
        }
        self.memory_queue.wake_for(&changed);
    }

    /// Bytes of metadata, beyond the pages themselves.
    pub(crate) fn metadata_bytes(&self) -> u64 {
        self.pages.bytes() + self.nodes.bytes() + self.eviction.bytes()
    }
}
