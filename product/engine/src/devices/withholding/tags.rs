//! The pages of withheld ranges: their tags in a file's index.
//!
//! Owns: which dirty pages have the tag `Withheld` in place of `Dirty`, and when that changes.
//! Does not own: the ranges (`withholding`), when a range is let go (`withholding` of the engine), the lists of files.
//! Invariants: a dirty page in a range has the tag `Withheld`. A page that was dirty before, and that a sync has to
//! write, retains `Dirty` and is marked for the sync. Pages that are let go are listed as any dirty page.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_pages::cache::nodes::Tag;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use crate::devices::file::{Earlier, FileInner, FileState, Obstacles};
use crate::devices::withholding::{Ordered, RangeId, WithheldRanges};

/// The most pages let go, or withheld, in one hold of the file's lock.
const PIECE_PAGES: u64 = 1024;

impl FileInner {
    /// Changes the tag of a page in a withheld range, or of one that was in such a range. Returns false for any other
    /// page, which has the tag `Dirty` instead.
    pub(in crate::devices) fn try_tag_withheld(&self, state: &mut FileState, page: u64, on: bool) -> bool {
        if state.withheld.is_empty() {
            return false;
        }
        let (nodes, index) = (&self.cache.nodes, &self.pages.index);
        let has = index.has_tag(nodes, page, Tag::Withheld);
        let wanted = on && state.withheld.has_page(page) && !self.is_for_sync(state, page);
        if has != wanted {
            index.set_tag(nodes, page, Tag::Withheld, wanted);
            state.withheld.note_tag(wanted);
            self.note_failed(state);
        }
        wanted
    }

    /// Whether a dirty page was dirty when a sync was requested that has not ended.
    fn is_for_sync(&self, state: &FileState, page: u64) -> bool {
        let is_dirty = self.pages.index.has_tag(&self.cache.nodes, page, Tag::Dirty);
        // A round's first and last page may be covered in part.
        let bytes = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
        is_dirty && state.rounds.try_cover(&bytes)
    }

    /// Withholds a range of pages from here on. Pages of syncs that were requested before are still written.
    pub(crate) fn withhold(self: &Arc<Self>, pages: &Range<u64>) -> RangeId {
        let number = self.add_range(|withheld| withheld.hold(pages));
        self.keep_off(pages);
        number
    }

    /// As [`FileInner::withhold`], until other bytes are durable.
    pub(crate) fn order(self: &Arc<Self>, pages: &Range<u64>, after: Earlier) -> Ordered {
        let ordered = self.add_range(|withheld| withheld.order(pages, after));
        self.keep_off(pages);
        ordered
    }

    fn add_range<T>(self: &Arc<Self>, add: impl FnOnce(&mut WithheldRanges<Self>) -> T) -> T {
        let mut state = lock(&self.state);
        self.withholds.store(true, Ordering::Release);
        self.device.worklist.keep_withholding(self.pages.slot, self);
        add(&mut state.withheld)
    }

    /// Takes the dirty pages of a new range off the device's work, but for those of earlier syncs.
    fn keep_off(self: &Arc<Self>, pages: &Range<u64>) {
        let (nodes, index) = (&self.cache.nodes, &self.pages.index);
        let mut next = Some(pages.start);
        while let Some(from) = next {
            let (state, mut marked) = (&mut *lock(&self.state), false);
            let dirty = |page| index.next_tagged(nodes, page, Tag::Dirty).filter(|page| *page < pages.end);
            next = self.cache.visit_piece(PIECE_PAGES, from, dirty, |page| {
                self.tag_dirty(state, page, true);
                if index.has_tag(nodes, page, Tag::Dirty) {
                    index.set_tag(nodes, page, Tag::ToWrite, true);
                    marked = true;
                }
            });
            if marked {
                self.queue_sync(state);
            }
        }
    }

    /// Whether a range of the file is withheld, or waits for bytes. Takes no lock.
    pub(crate) fn is_withholding(&self) -> bool {
        self.withholds.load(Ordering::Acquire)
    }

    /// Whether dirty pages of these bytes stay off the device.
    pub(crate) fn has_withheld_in(&self, _: &FileState, range: &Range<u64>) -> bool {
        let pages = Self::pages_of(range);
        let kept = self.pages.index.next_tagged(&self.cache.nodes, pages.start, Tag::Withheld);
        kept.is_some_and(|page| page < pages.end)
    }

    /// Whether a sync that was requested earlier still has pages of the range written.
    pub(crate) fn is_marked_within(&self, pages: &Range<u64>) -> bool {
        let _state = lock(&self.state);
        let marked = self.pages.index.next_tagged(&self.cache.nodes, pages.start, Tag::ToWrite);
        marked.is_some_and(|page| page < pages.end)
    }

    /// Lets go of a range: its dirty pages may be written, unless another range covers them.
    pub(crate) fn let_go(self: &Arc<Self>, number: RangeId) {
        let Some(pages) = lock(&self.state).withheld.remove(number) else { return };
        let (nodes, index) = (&self.cache.nodes, &self.pages.index);
        let mut next = Some(pages.start);
        while let Some(from) = next {
            let state = &mut *lock(&self.state);
            let withheld = |page| index.next_tagged(nodes, page, Tag::Withheld).filter(|page| *page < pages.end);
            next = self.cache.visit_piece(PIECE_PAGES, from, withheld, |page| {
                self.tag_dirty(state, page, true);
            });
            // A pause after a failure that has ended since is found at the next check.
            let now = state.marks.dirtied_at();
            self.requeue(state, now);
            if state.withheld.is_empty() {
                self.withholds.store(false, Ordering::Release);
                self.device.worklist.forget_withholding(self.pages.slot);
            }
        }
        self.queue.wake_all();
    }

    /// Why dirty bytes of the range are not written.
    pub(crate) fn obstacles(&self, range: &Range<u64>) -> Obstacles {
        let (state, pages) = (lock(&self.state), Self::pages_of(range));
        let (nodes, index) = (&self.cache.nodes, &self.pages.index);
        state.withheld.obstacles(&pages, |page| index.next_tagged(nodes, page, Tag::Withheld))
    }
}
