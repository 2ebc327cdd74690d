//! How holders come to a page that they found without a lock.
//!
//! Owns: the order of steps: first the hold, then the questions, all of them about the word from just
//! before it; and which questions each kind of holder asks.
//! Does not own: the way to the frame (`cache::index`), what is done with the bytes, taking the hold
//! back: the caller does that, whatever the answer was; readers that hold nothing (`glance`).
//! Invariants: between a yes and the end of the hold the frame is this page; a guarded page does not
//! change, and one that is written to is not taken by a flusher.

use afflux_frames::FrameId;

use super::{DIRTY, GUARD, Identity, PIN, PRESENT, PageTable, UPTODATE, WRITER};

impl PageTable {
    /// Pins the frame; whether it is that page, with all its bytes.
    #[inline]
    pub(crate) fn enter_reader(&self, frame: FrameId, identity: Identity) -> bool {
        let word = self.hold(frame, PIN);
        word.has(PRESENT | UPTODATE) && self.identity(frame) == identity
    }

    /// Guards the frame; whether it is that page, with all its bytes, and nobody is in the middle of
    /// changing it: who comes later sees the guard.
    #[inline]
    pub(crate) fn enter_guard(&self, frame: FrameId, identity: Identity) -> bool {
        let word = self.hold(frame, GUARD);
        word.has(PRESENT | UPTODATE)
            && !word.being_written_to()
            && !word.guards_full()
            && self.identity(frame) == identity
    }

    /// Becomes a writer of the frame; whether it is that page, in a state in which new bytes change
    /// nothing but the bytes. `fits` says whether the new bytes lie in the file and, asked after that,
    /// in the page's dirty sectors. It is asked after the hold, since a truncation stores the size
    /// first and then waits for holders; and in this order, since who is let in by the size of a file
    /// that has grown again must see the sectors that were cut before.
    #[inline]
    pub(crate) fn enter_overwriter(&self, frame: FrameId, identity: Identity, fits: impl FnOnce() -> bool) -> bool {
        let word = self.hold(frame, WRITER);
        word.has(PRESENT | UPTODATE | DIRTY) && !word.stable() && self.identity(frame) == identity && fits()
    }

    /// Whether the frame is that page, in a state in which [`PageTable::enter_overwriter`] lets writers
    /// in. For callers that hold nothing, so it is no promise.
    #[inline]
    pub(crate) fn takes_overwrites(&self, frame: FrameId, identity: Identity) -> bool {
        let word = self.word(frame);
        word.has(PRESENT | UPTODATE | DIRTY) && !word.stable() && self.identity(frame) == identity
    }

    /// Guards a frame of which the caller is a writer, to copy the page to another frame: nobody
    /// overwrites it until that guard is gone, whatever becomes of others. Whether nobody is in the
    /// middle of an overwrite that began before.
    pub(crate) fn freeze(&self, frame: FrameId) -> bool {
        !self.hold(frame, GUARD).other_writers()
    }
}
