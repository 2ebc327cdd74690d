//! How a thread comes to use a page that it found without a lock: with a hold, with nothing, or with an announcement.
//!
//! A holder holds first and asks afterwards, about the word from just before the hold. A reader that holds nothing
//! asks, copies, and then checks that the frame was not reused meanwhile. A page may have a lent guard: a thread that
//! announces the frame and then finds the guard lent is a guard of the page until it ends the announcement. A recall
//! takes the lent guard away, then has all threads fenced, then reads their announcements: so a thread either finds the
//! guard gone, or is seen. During the recall an ordinary guard stands in, so that no writer comes in between.
//!
//! Owns: the order of these steps, the questions that each kind of user asks; the announcement that a thread will fill
//! a frame, so that no reader of new bytes misses the change.
//! Does not own: the lookup of the frame (`cache::index`), the use of the bytes, announcements (`hazards`), who recalls
//! (`cache::lending`). A holder takes back the hold itself, after either answer.
//! Invariants: between a yes and the end of the hold the frame is this page. A guarded page does not change, and no
//! flusher takes a page that is being written to. A copy without a hold that stands has bytes that the page had, and
//! its reader changes no line that others read.

use afflux_frames::FrameId;

use crate::page::table::{FrameRecord, Reuses};
use crate::page::{DIRTY, GUARD, LENT, PIN, PRESENT, PageIdentity, PageTable, UPTODATE, WRITER};
use crate::sync::atomic::{Ordering, fence};

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
