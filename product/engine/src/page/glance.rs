//! Readers that hold nothing.
//!
//! Owns: the order of steps: the questions that a holder asks, the copy, then whether the frame was used anew
//! meanwhile; what fills frames says so before, so that a reader of new bytes cannot miss it.
//! Does not own: the way to the frame (`cache::index`), the copy.
//! Invariants: a copy that stands is of bytes that the page had. A reader changes no line that others read, and its copy
//! need not wait for the frame's record.

use afflux_frames::FrameId;

use super::table::{Record, Reuses};
use super::{Identity, PRESENT, PageTable, UPTODATE};
use crate::sync::atomic::{Ordering, fence};

/// A page as it was found.
pub(crate) struct Glance<'a> {
    record: &'a Record,
    reuses: Reuses,
}

impl PageTable {
    /// If the frame is that page, with all its bytes: what is copied from now on stands if [`Glance::stands`] says so
    /// afterwards. The frame may be a number that no frame has.
    #[inline]
    pub(crate) fn glance(&self, frame: FrameId, identity: Identity) -> Option<Glance<'_>> {
        let record = self.get(frame)?;
        let word = record.word();
        let found = word.has(PRESENT | UPTODATE) && record.identity() == identity;
        found.then(|| Glance { record, reuses: record.reuses(word) })
    }
}

impl Glance<'_> {
    /// Whether what was copied since is of the page: the frame was not freed. Of 2^23 reuses during one copy the last would
    /// look like none, were it for the same page.
    #[inline]
    pub(crate) fn stands(&self) -> bool {
        // After the loads of the copy.
        fence(Ordering::Acquire);
        self.record.reuses(self.record.word()) == self.reuses
    }
}

/// Said before bytes of a frame are changed that may have been freed and taken since it held another page: a reader that
/// sees one of the new bytes then also sees that the frame was freed.
#[inline]
pub(crate) fn about_to_fill() {
    fence(Ordering::Release);
}
