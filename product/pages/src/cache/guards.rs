//! The number of pages under guards, and its limit.
//!
//! Owns: the slots that count guards and hold the cache, so that threads that take guards seldom change the same word.
//! Does not own: the guards (`pins`), the frames' own counts of them (`page`), lent guards and their share of the
//! limit (`lending`).
//! Invariants: a guard's reference to its slot also counts the first page, so that one atomic change serves both. All
//! slots together count the pages under counted guards. A small limit is never passed. Otherwise each
//! slot may pass it by [`SLACK_PAGES_MAX`], or a little more when several threads take guards there at one instant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::PageCache;
use super::lending::orphans;

const SLOTS: usize = 16;
/// A slot asks for the sum after it has grown by at most this: a power of two.
const SLACK_PAGES_MAX: u64 = 64;
/// The slack of all slots together is at most this part of the limit.
const SLACK_PART: u64 = 8;

/// One of the slots that hold the cache for guards.
#[repr(align(128))]
pub(crate) struct GuardSlot {
    pub(super) cache: Arc<PageCache>,
    /// Guarded pages, except for the first of each guard.
    more: AtomicU64,
}

impl GuardSlot {
    fn pages(self: &Arc<Self>) -> u64 {
        // One of the references belongs to the array of slots.
        Arc::strong_count(self) as u64 - 1 + self.more.load(Ordering::Relaxed)
    }

    /// Uncounts a guard's pages after the first.
    pub(super) fn forget_more(&self, pages: u64) {
        let before = self.more.fetch_sub(pages, Ordering::Relaxed);
        debug_assert!(before >= pages, "guards were given back that nobody took");
    }
}

/// The slots of one engine's guards.
pub struct GuardSlots([Arc<GuardSlot>; SLOTS]);

impl GuardSlots {
    /// Slots for guards on pages of this cache.
    pub fn new(cache: &Arc<PageCache>) -> Arc<Self> {
        let slot = |_| Arc::new(GuardSlot { cache: Arc::clone(cache), more: AtomicU64::new(0) });
        Arc::new(Self(std::array::from_fn(slot)))
    }

    /// The slot for a guard of one page, which the guard holds until it is dropped; `None` if guards would then hold
    /// too much.
    #[inline]
    pub(super) fn admit(&self, number: GuardIndex, pages_max: u64) -> Option<Arc<GuardSlot>> {
        let slot = Arc::clone(&self.0[number.0]);
        (!may_ask(&slot, 1, pages_max) || self.taken() <= pages_max).then_some(slot)
    }

    /// As [`GuardSlots::admit`], for several pages: the guard also gives back the pages after the first
    /// ([`GuardSlot::forget_more`]).
    pub(super) fn admit_many(&self, number: GuardIndex, pages: u64, pages_max: u64) -> Option<Arc<GuardSlot>> {
        let slot = Arc::clone(&self.0[number.0]);
        slot.more.fetch_add(pages - 1, Ordering::Relaxed);
        if may_ask(&slot, pages, pages_max) && self.taken() > pages_max {
            slot.forget_more(pages - 1);
            return None;
        }
        Some(slot)
    }

    #[inline]
    pub(super) fn cache(&self) -> &Arc<PageCache> {
        &self.0[0].cache
    }

    /// Pages under guards.
    #[cold]
    pub fn pages(&self) -> u64 {
        self.counted() + self.cache().lending.pages()
    }

    /// Pages that guards hold or may hold.
    #[cold]
    fn taken(&self) -> u64 {
        self.counted() + self.cache().lending.leased()
    }

    fn counted(&self) -> u64 {
        self.0.iter().map(GuardSlot::pages).sum()
    }
}

impl Drop for GuardSlots {
    fn drop(&mut self) {
        orphans::keep(self.cache());
    }
}

#[derive(Clone, Copy)]
pub(crate) struct GuardIndex(usize);

impl GuardIndex {
    /// The slot of a thread, chosen by the address of a value that only this thread has.
    #[inline]
    pub(crate) fn of<T>(own: &T) -> Self {
        // Any slot will do. The bits above a cache line's differ if threads' values lie apart.
        let address = std::ptr::from_ref(own) as usize;
        Self((address >> 7 ^ address >> 12) % SLOTS)
    }
}

/// Whether a slot that has just grown by some pages has passed a multiple of its slack.
#[inline]
fn may_ask(slot: &Arc<GuardSlot>, pages: u64, pages_max: u64) -> bool {
    let slack = slack_pages(pages_max);
    let after = slot.pages();
    after & !(slack - 1) != after.saturating_sub(pages) & !(slack - 1)
}

/// By how much a slot grows without asking for the sum: a power of two.
#[inline]
fn slack_pages(pages_max: u64) -> u64 {
    let share = pages_max / (SLACK_PART * SLOTS as u64);
    1 << share.clamp(1, SLACK_PAGES_MAX).ilog2()
}

#[cfg(test)]
mod tests;
