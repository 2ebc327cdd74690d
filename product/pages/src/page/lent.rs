//! Lent guards: how a thread guards a page without a change of the page's record.
//!
//! Owns: the steps of lending, of a guard by announcement, and of a recall.
//! Does not own: announcements (`hazards`); who recalls, and the fence of a recall (`cache::lending`).
//! Invariants: a page with a lent guard is guarded, whether a thread uses it or not. A thread that announces the frame
//! and then finds the guard lent is a guard of the page until it ends the announcement. A recall takes the lent guard
//! away, then has all threads fenced, then looks at their announcements: so a thread either finds the guard gone, or is
//! seen. During the recall an ordinary guard stands in, so that no writer comes in between.

use afflux_frames::FrameId;

use super::table::FrameRecord;
use super::{GUARD, LENT, PRESENT, PageIdentity, PageTable, UPTODATE};
use crate::sync::atomic::Ordering;

impl PageTable {
    /// Whether the record's frame, which the caller has announced, is this page, with all its bytes, and guarded by the
    /// announcement.
    #[inline]
    pub(crate) fn try_enter_lent(record: &FrameRecord, identity: PageIdentity) -> bool {
        record.word().has(PRESENT | UPTODATE | LENT) && record.identity() == identity
    }

    /// Lends a guard of the page, and enters it as [`PageTable::try_enter_lent`] does, unless a write is under way.
    pub(crate) fn try_lend(&self, record: &FrameRecord, identity: PageIdentity) -> bool {
        let word = record.word();
        if !word.has(PRESENT | UPTODATE) || word.is_being_written_to() || record.identity() != identity {
            return false;
        }
        self.stores.point();
        let lent = record.word.compare_exchange(word.0, word.0 | LENT, Ordering::AcqRel, Ordering::Relaxed);
        // Before the exchange the frame may have been reused as often as the word counts.
        lent.is_ok() && record.identity() == identity
    }

    /// Replaces a lent guard by an ordinary one. Returns whether the page had a lent guard.
    pub(crate) fn try_begin_recall(&self, frame: FrameId) -> bool {
        self.stores.point();
        let exchange = |word: u64| (word & LENT != 0).then_some((word & !LENT) + GUARD);
        self.record(frame).word.fetch_update(Ordering::AcqRel, Ordering::Acquire, exchange).is_ok()
    }

    /// Lends the guard again that a recall took away, since a thread uses it. The recall's own guard ends.
    pub(crate) fn give_up_recall(&self, frame: FrameId) {
        self.stores.point();
        let exchange = |word: u64| Some((word - GUARD) | LENT);
        let _ = self.record(frame).word.fetch_update(Ordering::AcqRel, Ordering::Acquire, exchange);
    }
}
