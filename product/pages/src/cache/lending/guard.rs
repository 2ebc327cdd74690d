//! Guards by announcement: a thread takes one, a recall ends unused ones, and a cache outlives its engine while one is
//! in use.
//!
//! Owns: the announcement, from the check of the page's record to its end, on any thread; the search for lent pages and
//! the end of a recall; a reference to each cache that outlives its engine.
//! Does not own: the slots (`hazards`), the record (`page::entry`), to which threads the cache lends and the order of a
//! recall's steps (`lending`).
//! Invariants: no step of a guard on a lent page changes memory that other threads change, or waits for their view of
//! it. Pages that go together are recalled together, with one fence; a page in use stays guarded. A recall frees a
//! frame that was detached with a lent guard. When an engine ends, the count of kept caches rises before the engine
//! reads the slots, and a guard reads the count after its slot is empty. All threads are fenced in between, so either
//! the engine sees the slot empty, or the guard sees the count.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use afflux_frames::FrameId;

use crate::cache::lending::Recalled;
use crate::cache::{FilePages, PageCache};
use crate::hazards::{HazardSlot, Hazards};
use crate::page::{DETACHED, FrameRecord, LENT, PageIdentity, PageTable};
use crate::sync::light_fence;
use crate::wait::lock;

/// The frame is guarded until the owner calls [`LentGuard::end`], which it does once.
pub(in crate::cache) struct LentGuard {
    pub(in crate::cache) slot: NonNull<HazardSlot>,
    pub(in crate::cache) frame: FrameId,
}

impl LentGuard {
    /// Guards the page if it is cached whole, and this thread has a slot. Counts that as a use.
    #[inline]
    pub(in crate::cache) fn take(cache: &PageCache, hazards: &Hazards, file: &FilePages, page: u64) -> Option<Self> {
        let frame = file.index.lookup(&cache.nodes, page)?;
        let record = cache.pages.get(frame)?;
        let slot = hazards.announce(cache.lending.number, frame)?;
        let identity = file.identity(page);
        if PageTable::try_enter_lent(record, identity) || cache.try_lend(record, identity, hazards) {
            cache.pages.touch_at(record, frame);
            return Some(Self { slot: NonNull::from(slot), frame });
        }
        // As at the end of a guard: a recall may have seen the announcement.
        leave(cache, slot, frame);
        slot.empty();
        None
    }

    /// Ends the guard, on any thread.
    ///
    /// # Safety
    /// The guard was taken of this cache, has not ended, and its owner does not use the cache afterwards.
    #[inline]
    pub(in crate::cache) unsafe fn end(self, cache: NonNull<PageCache>) {
        // SAFETY: a cache lives while one of its slots has a frame. The engine keeps the cache, and the list of
        // kept caches keeps it
        // after the engine. The cache's list of threads keeps the slots.
        let (slot, kept) = unsafe { (self.slot.as_ref(), cache.as_ref()) };
        leave(kept, slot, self.frame);
        // From here on the cache may be gone.
        slot.empty();
        free_unused();
    }
}

/// Ends an announcement, and does what the frame's last user has to do.
#[inline]
fn leave(cache: &PageCache, slot: &HazardSlot, frame: FrameId) {
    slot.leave();
    if cache.pages.word(frame).has(DETACHED) || cache.memory_queue.has_waiters() {
        cache.after_announcement(frame);
    }
}

impl PageCache {
    /// Lends a guard of the page, which the caller has announced, and enters it; returns whether that worked.
    #[cold]
    pub(in crate::cache) fn try_lend(&self, record: &FrameRecord, identity: PageIdentity, hazards: &Hazards) -> bool {
        self.lending.try_lend(hazards) && self.pages.try_lend(record, identity)
    }

    /// Recalls the lent guards of these frames: guards stay that threads use. Frees detached frames.
    pub fn recall(&self, frames: impl Iterator<Item = FrameId>) {
        if self.lending.leased() == 0 {
            return;
        }
        let lent: Recalled = frames.filter(|frame| self.pages.word(*frame).has(LENT)).collect();
        if !lent.is_empty() {
            self.recall_lent(&lent);
        }
    }

    #[cold]
    fn recall_lent(&self, frames: &[FrameId]) {
        for frame in self.lending.recall(frames.iter().copied(), &self.pages) {
            // A page with an unused guard could be evicted before: no waiter for memory learns anything new.
            if self.pages.end_guard(frame).0 {
                self.release(frame);
            }
        }
    }

    /// [`PageCache::recall`] of the pages of a range that a caller is about to write, found without a lock.
    pub fn recall_for_write(&self, file: &FilePages, pages: Range<u64>) {
        if self.lending.leased() == 0 {
            return;
        }
        let found = |page| file.index.lookup(&self.nodes, page).filter(|frame| self.pages.contains(*frame));
        let lent: Recalled = pages.filter_map(found).filter(|frame| self.pages.word(*frame).has(LENT)).collect();
        if !lent.is_empty() {
            self.lending.note_recall_for_write();
            self.recall_lent(&lent);
        }
    }

    /// [`PageCache::recall`] of the first present pages of a range, `most` at most. The caller holds the file's lock.
    pub fn recall_present(&self, file: &FilePages, pages: Range<u64>, most: u64) {
        if self.lending.leased() > 0 {
            let next = |page| file.index.next_present(&self.nodes, page).filter(|page| *page < pages.end);
            let present = std::iter::successors(next(pages.start), |page| next(page + 1));
            self.recall(present.take(most as usize).filter_map(|page| file.index.frame(&self.nodes, page)));
        }
    }

    /// After the end of an announcement: what the frame's last user has to do.
    #[cold]
    pub(in crate::cache) fn after_announcement(&self, frame: FrameId) {
        if self.pages.word(frame).has(DETACHED) {
            // Also if the guard is not lent at this moment: a recall under way may have seen the announcement.
            self.recall_lent(&[frame]);
        }
        self.memory_queue.wake_all();
    }
}

/// The number of caches in the list, or about to come there.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static CACHES: Mutex<Vec<Arc<PageCache>>> = Mutex::new(Vec::new());

/// Holds the cache of an engine that ends, as long as guards need it.
pub(in crate::cache) fn keep(cache: &Arc<PageCache>) {
    if cache.lending.leased() == 0 {
        return;
    }
    cache.lending.end();
    COUNT.fetch_add(1, Ordering::SeqCst);
    cache.lending.fence();
    let mut caches = lock(&CACHES);
    if cache.lending.has_users() {
        caches.push(Arc::clone(cache));
    } else {
        COUNT.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Frees the caches that no guard uses any more. The caller has just emptied a slot.
#[inline]
pub(in crate::cache) fn free_unused() {
    light_fence();
    if COUNT.load(Ordering::Relaxed) > 0 {
        sweep();
    }
}

#[cold]
fn sweep() {
    let unused: Vec<_> = lock(&CACHES).extract_if(.., |cache| !cache.lending.has_users()).collect();
    COUNT.fetch_sub(unused.len(), Ordering::SeqCst);
}

#[cfg(test)]
mod tests;
