//! Recalls of lent guards, before a page is written, evicted or freed.
//!
//! Owns: the search for lent pages, the end of a recall.
//! Does not own: the order of a recall's steps (`lending`), a thread's guard (`guard`).
//! Invariants: a recall frees a frame that was detached with a lent guard. The thread that detached it makes the
//! recall, or the frame's last user. Pages that go together are recalled together, with one fence. A page that is in
//! use stays guarded, and the caller finds it so.

use std::ops::Range;

use afflux_frames::FrameId;

use super::Recalled;
use crate::cache::{FilePages, PageCache};
use crate::hazards::Hazards;
use crate::page::{DETACHED, FrameRecord, LENT, PageIdentity};

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

#[cfg(test)]
mod tests;
