//! A thread's guard on one page, by announcement.
//!
//! Owns: the announcement, from the look at the page's record to its end, on any thread.
//! Does not own: the slots (`hazards`), the record (`page::lent`), lending and recalls (`lending`).
//! Invariants: no step of a guard on a lent page changes memory that other threads change, or waits for their view of
//! it. The announcement keeps the cache's memory, even after the engine's end: its slot is emptied last.

use std::ptr::NonNull;

use afflux_frames::FrameId;

use super::orphans;
use crate::cache::{FilePages, PageCache};
use crate::hazards::{HazardSlot, Hazards};
use crate::page::{DETACHED, PageTable};

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
        // SAFETY: a cache lives while one of its slots has a frame. The engine keeps the cache, and `orphans` keeps it
        // after the engine. The cache's list of threads keeps the slots.
        let (slot, kept) = unsafe { (self.slot.as_ref(), cache.as_ref()) };
        leave(kept, slot, self.frame);
        // From here on the cache may be gone.
        slot.empty();
        orphans::free_unused();
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
