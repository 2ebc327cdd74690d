//! Readers that hold nothing.
//!
//! Owns: the order of steps: the questions that a holder asks, the copy, then whether the frame was reused meanwhile. A
//! thread announces that it will fill a frame, so that no reader of new bytes misses the change.
//! Does not own: the way to the frame (`cache::index`), the copy.
//! Invariants: a copy that stands has bytes that the page had. A reader changes no line that others read, and its copy
//! need not wait for the frame's record.

use afflux_frames::FrameId;

use super::table::{FrameRecord, Reuses};
use super::{PRESENT, PageIdentity, PageTable, UPTODATE};
use crate::sync::atomic::{Ordering, fence};

/// A page as it was found.
pub(crate) struct OptimisticRead<'a> {
    record: &'a FrameRecord,
    reuses: Reuses,
}

impl PageTable {
    /// Begins a read if the frame is this page, with all its bytes. A copy made from now on is valid if
    /// [`OptimisticRead::is_valid`] returns true afterwards. The frame may be a number that no frame has.
    #[inline]
    pub(crate) fn begin_optimistic_read(&self, frame: FrameId, identity: PageIdentity) -> Option<OptimisticRead<'_>> {
        let record = self.get(frame)?;
        let word = record.word();
        let found = word.has(PRESENT | UPTODATE) && record.identity() == identity;
        found.then(|| OptimisticRead { record, reuses: record.reuses(word) })
    }
}

impl OptimisticRead<'_> {
    /// Whether the copy made since is of the page: the frame was not freed. After exactly 2^23 reuses during one copy,
    /// the last for the same page, a reuse would go unnoticed.
    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        // Orders the check after the loads of the copy.
        fence(Ordering::Acquire);
        self.record.reuses(self.record.word()) == self.reuses
    }
}

/// Called before changing bytes of a frame that may have been freed and taken since it held another page. A reader that
/// sees one of the new bytes then also sees that the frame was freed.
#[inline]
pub fn about_to_fill() {
    fence(Ordering::Release);
}
