//! The frame table: one record for each frame of the arena.
//!
//! Owns: the records. Does not own: any list or index that names them.
//! Invariants: 40 bytes a record at most, so that what describes the cache stays small; no pointers.

use frames::FrameId;

use super::unread::Unread;
use super::{BRIDGE, DETACHED, GUARD, HOLDERS, PIN, PRESENT, READING, Sectors, WRITEBACK, WRITER, Word, legal};
use crate::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Uses are counted to this in a record's `uses`.
const USES: u8 = 3;
/// In `uses`: the page was read before anybody asked for it, and nobody has yet.
const AHEAD: u8 = 1 << 5;
/// In `uses`: a flusher has looked at the page, which was dirty.
const LOOKED_AT: u8 = 1 << 6;
/// In `uses`: the page was overwritten while it was dirty.
const OVERWRITTEN: u8 = 1 << 7;

/// What a frame holds: page `index` of the file in slot `file`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) file: u32,
    pub(crate) index: u64,
}

struct Record {
    word: AtomicU64,
    index: AtomicU64,
    file: AtomicU32,
    valid: AtomicU8,
    dirty: AtomicU8,
    uses: AtomicU8,
    /// Which eviction list the frame is on; changed with that list's lock held.
    list: AtomicU8,
    prev: AtomicU32,
    next: AtomicU32,
}

#[cfg(not(all(test, loom)))]
const _: () = assert!(size_of::<Record>() <= 40);

/// All records.
pub(crate) struct PageTable {
    records: Box<[Record]>,
    /// Of these, how many hold pages that were read ahead and that nobody has asked for.
    pub(crate) unread: Unread,
}

impl PageTable {
    pub(crate) fn new(frames: u32) -> Self {
        let record = || Record {
            word: AtomicU64::new(0),
            index: AtomicU64::new(0),
            file: AtomicU32::new(0),
            valid: AtomicU8::new(0),
            dirty: AtomicU8::new(0),
            uses: AtomicU8::new(0),
            list: AtomicU8::new(0),
            prev: AtomicU32::new(0),
            next: AtomicU32::new(0),
        };
        Self { records: (0..frames).map(|_| record()).collect(), unread: Unread::new() }
    }

    /// Bytes of all records.
    pub(crate) fn bytes(&self) -> u64 {
        (self.records.len() * size_of::<Record>()) as u64
    }

    #[inline]
    fn record(&self, frame: FrameId) -> &Record {
        &self.records[frame.index()]
    }

    /// Whether a number read from a node that may have been reused names a frame at all.
    #[inline]
    pub(crate) fn contains(&self, frame: FrameId) -> bool {
        frame.index() < self.records.len()
    }

    #[inline]
    pub(crate) fn word(&self, frame: FrameId) -> Word {
        Word(self.record(frame).word.load(Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn identity(&self, frame: FrameId) -> Identity {
        let record = self.record(frame);
        Identity { file: record.file.load(Ordering::Relaxed), index: record.index.load(Ordering::Relaxed) }
    }

    /// Adds a holder and returns the word from just before.
    #[inline]
    pub(crate) fn hold(&self, frame: FrameId, holder: u64) -> Word {
        Word(self.record(frame).word.fetch_add(holder, Ordering::AcqRel))
    }

    /// Takes a holder back. Returns whether the frame is detached, so that the caller tries to
    /// release it.
    #[inline]
    #[must_use]
    pub(crate) fn unhold(&self, frame: FrameId, holder: u64) -> bool {
        debug_assert!(matches!(holder, PIN | GUARD | WRITER));
        let before = self.record(frame).word.fetch_sub(holder, Ordering::AcqRel);
        debug_assert!(before & (holder * 0xfff) != 0, "a holder that was never added");
        before & DETACHED != 0
    }

    /// Frees the frame's record if it is detached and nobody holds it. The caller to whom this
    /// returns true gives the frame back to the allocator; it is true once.
    pub(crate) fn release(&self, frame: FrameId) -> bool {
        self.record(frame).word.compare_exchange(DETACHED, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Gives a fresh frame its identity, then its flags. Passing pins of late readers stay.
    pub(crate) fn occupy(&self, frame: FrameId, identity: Identity, flags: u64) {
        let record = self.record(frame);
        record.file.store(identity.file, Ordering::Relaxed);
        record.index.store(identity.index, Ordering::Relaxed);
        record.uses.store(0, Ordering::Relaxed);
        self.change(frame, 0, flags);
    }

    /// Sets and clears flags. Returns the word from just before.
    pub(crate) fn change(&self, frame: FrameId, clear: u64, set: u64) -> Word {
        let before = self.record(frame).word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            let to = (word & !clear) | set;
            debug_assert!(legal(word, to), "page transition {word:#x} to {to:#x}");
            Some(to)
        });
        Word(before.unwrap_or_else(|word| word))
    }

    /// Sets and clears flags unless the word has a writer or one of `unless`.
    pub(crate) fn change_unless(&self, frame: FrameId, unless: u64, clear: u64, set: u64) -> Result<Word, Word> {
        self.record(frame)
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                if Word(word).any(unless) || Word(word).being_written_to() {
                    return None;
                }
                let to = (word & !clear) | set;
                debug_assert!(legal(word, to), "page transition {word:#x} to {to:#x}");
                Some(to)
            })
            .map(Word)
            .map_err(Word)
    }

    /// Takes the page out of its state: from now on it is only waiting for its holders.
    pub(crate) fn detach(&self, frame: FrameId) -> Word {
        self.leave_unread(frame);
        self.change(frame, !(HOLDERS | WRITEBACK | BRIDGE | READING), DETACHED)
    }

    /// As [`PageTable::detach`], but only while clean and held by nobody.
    pub(crate) fn detach_idle(&self, frame: FrameId) -> bool {
        let idle = self
            .record(frame)
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                let busy = super::DIRTY | WRITEBACK | READING | super::PRIOR;
                let idle = Word(word).has(PRESENT) && !Word(word).any(busy) && !Word(word).held();
                idle.then_some(DETACHED)
            })
            .is_ok();
        if idle {
            self.leave_unread(frame);
        }
        idle
    }

    /// The page, which has just been given its identity, is read before anybody asks for it.
    pub(crate) fn note_unread(&self, frame: FrameId) {
        self.record(frame).uses.store(AHEAD, Ordering::Relaxed);
        self.unread.add(frame);
    }

    /// Whether it was read ahead, and nobody has asked for it.
    pub(crate) fn is_unread(&self, frame: FrameId) -> bool {
        self.record(frame).uses.load(Ordering::Relaxed) & AHEAD != 0
    }

    /// Counts a use. Calls nothing: a hit would have to keep its registers from it. Two at once may count as one; of
    /// several first uses of a page that was read ahead one is the first.
    #[inline]
    fn count_use(&self, frame: FrameId, seen: u8, then: u8) {
        let uses = &self.record(frame).uses;
        if seen & AHEAD == 0 {
            uses.store(then, Ordering::Relaxed);
        } else if uses.swap(then & !AHEAD, Ordering::Relaxed) & AHEAD != 0 {
            self.unread.take(frame);
        }
    }

    /// It leaves the cache.
    fn leave_unread(&self, frame: FrameId) {
        if self.is_unread(frame) && self.record(frame).uses.fetch_and(!AHEAD, Ordering::Relaxed) & AHEAD != 0 {
            self.unread.waste(frame);
        }
    }

    #[inline]
    pub(crate) fn valid(&self, frame: FrameId) -> Sectors {
        Sectors(self.record(frame).valid.load(Ordering::Relaxed))
    }

    pub(crate) fn set_valid(&self, frame: FrameId, sectors: Sectors) {
        self.record(frame).valid.store(sectors.0, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn dirty(&self, frame: FrameId) -> Sectors {
        Sectors(self.record(frame).dirty.load(Ordering::Relaxed))
    }

    pub(crate) fn set_dirty(&self, frame: FrameId, sectors: Sectors) {
        self.record(frame).dirty.store(sectors.0, Ordering::Release);
    }

    /// Notes a use. Counts to two, so that a hot page's line is not written for it.
    #[inline]
    pub(crate) fn touch(&self, frame: FrameId) {
        let seen = self.record(frame).uses.load(Ordering::Relaxed);
        if seen & USES < 2 {
            self.count_use(frame, seen, seen + 1);
        }
    }

    /// Notes a use that overwrote what was dirty.
    #[inline]
    pub(crate) fn touch_overwritten(&self, frame: FrameId) {
        let seen = self.record(frame).uses.load(Ordering::Relaxed);
        if seen & (OVERWRITTEN | USES) < OVERWRITTEN | 2 {
            self.count_use(frame, seen, (seen | OVERWRITTEN) + u8::from(seen & USES < 2));
        }
    }

    /// Looks at a dirty page: whether it was overwritten since it was looked at last. A use in this moment may be
    /// forgotten.
    pub(crate) fn look(&self, frame: FrameId) -> bool {
        let uses = &self.record(frame).uses;
        let seen = uses.load(Ordering::Relaxed);
        uses.store(seen & (USES | AHEAD) | LOOKED_AT, Ordering::Relaxed);
        seen & (LOOKED_AT | OVERWRITTEN) == LOOKED_AT | OVERWRITTEN
    }

    /// How often the page was used since this was last asked, two being many; forgets it.
    pub(crate) fn take_uses(&self, frame: FrameId) -> u8 {
        self.record(frame).uses.fetch_and(AHEAD, Ordering::Relaxed) & USES
    }

    /// How often the page was used, two being many.
    pub(crate) fn uses(&self, frame: FrameId) -> u8 {
        self.record(frame).uses.load(Ordering::Relaxed) & USES
    }

    pub(crate) fn list(&self, frame: FrameId) -> u8 {
        self.record(frame).list.load(Ordering::Relaxed)
    }

    pub(crate) fn set_list(&self, frame: FrameId, list: u8) {
        self.record(frame).list.store(list, Ordering::Relaxed);
    }

    pub(crate) fn links(&self, frame: FrameId) -> (u32, u32) {
        let record = self.record(frame);
        (record.prev.load(Ordering::Relaxed), record.next.load(Ordering::Relaxed))
    }

    pub(crate) fn set_prev(&self, frame: FrameId, prev: u32) {
        self.record(frame).prev.store(prev, Ordering::Relaxed);
    }

    pub(crate) fn set_next(&self, frame: FrameId, next: u32) {
        self.record(frame).next.store(next, Ordering::Relaxed);
    }
}
