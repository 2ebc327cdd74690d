//! How a holder enters a page that it found without a lock.
//!
//! Owns: the order of steps: the hold first, then all questions, about the word from just before it. Also which
//! questions each kind of holder asks.
//! Does not own: the way to the frame (`cache::index`), the use of the bytes; readers that hold nothing
//! (`optimistic_read`). The caller takes back the hold itself, after either answer.
//! Invariants: between a yes and the end of the hold the frame is this page. A guarded page does not change, and no
//! flusher takes a page that is being written to.

use afflux_frames::FrameId;

use super::{DIRTY, GUARD, PIN, PRESENT, PageIdentity, PageTable, UPTODATE, WRITER};

impl PageTable {
    /// Pins the frame; returns whether it is this page, with all its bytes.
    #[inline]
    pub(crate) fn try_enter_reader(&self, frame: FrameId, identity: PageIdentity) -> bool {
        let word = self.hold(frame, PIN);
        word.has(PRESENT | UPTODATE) && self.identity(frame) == identity
    }

    /// Guards the frame; returns whether it is this page, with all its bytes, and no write to it is under way. Later
    /// writers see the guard.
    #[inline]
    pub(crate) fn try_enter_guard(&self, frame: FrameId, identity: PageIdentity) -> bool {
        let word = self.hold(frame, GUARD);
        word.has(PRESENT | UPTODATE)
            && !word.is_being_written_to()
            && !word.has_all_guards()
            && self.identity(frame) == identity
    }

    /// Becomes a writer of the frame; returns whether it is this page, in a state in which new bytes change only bytes.
    /// `fits` checks that the new bytes lie in the file and, after that, in the page's dirty sectors. It is called
    /// after the hold, since a truncation stores the size first and then waits for holders. The size is checked first,
    /// since a writer that enters by the size of a regrown file must see the sectors that were cut before.
    #[inline]
    pub(crate) fn try_enter_overwriter(
        &self,
        frame: FrameId,
        identity: PageIdentity,
        fits: impl FnOnce() -> bool,
    ) -> bool {
        let word = self.hold(frame, WRITER);
        word.has(PRESENT | UPTODATE | DIRTY) && !word.is_stable() && self.identity(frame) == identity && fits()
    }

    /// Whether the frame is this page, in a state in which [`PageTable::try_enter_overwriter`] admits writers. For
    /// callers that hold nothing, so it is no promise.
    #[inline]
    pub(crate) fn may_take_overwrites(&self, frame: FrameId, identity: PageIdentity) -> bool {
        let word = self.word(frame);
        word.has(PRESENT | UPTODATE | DIRTY) && !word.is_stable() && self.identity(frame) == identity
    }

    /// Guards a frame that the caller is a writer of, to copy the page to another frame. Nobody overwrites the page
    /// until this guard is gone, independent of other guards. Returns whether no earlier overwrite is still under way.
    pub fn try_freeze(&self, frame: FrameId) -> bool {
        !self.hold(frame, GUARD).has_other_writers()
    }
}
