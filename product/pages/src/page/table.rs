//! The frame table: one record for each frame of the arena.
//!
//! Owns: the records, and the marks of dirty pages. Does not own: lists and indexes that name them; the memory, which
//! may outlive the process.
//! Invariants: 32 bytes a record, at fixed offsets, so that a later process can read them; no pointers. Any bytes are a
//! record, if a wrong one. A present page has a mark while its record has dirty sectors. A mark is one word with its
//! own check. So a later process needs no flag of the record. It believes no mark of another frame, page or set of
//! sectors (`no_flipped_bit_moves_a_page_or_its_sectors_or_loses_one_untold`).

use std::sync::Arc;

use afflux_frames::{FrameId, Memory};

use super::unread::{Parity, Unread};
use super::{
    DETACHED, GUARD, GUARDS, HOLDERS, PIN, PRESENT, READING, REUSE, REUSES, Sectors, UPTODATE, WRITEBACK, WRITER, Word,
    is_legal,
};
use crate::rare::Stores;
use crate::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::wait::Changed;

/// The records, in the arena's memory or in memory of their own.
#[cfg(not(loom))]
pub(crate) type Records = afflux_frames::FrameTable<FrameRecord>;
/// In a model each record is made, since loom follows it.
#[cfg(loom)]
pub(crate) type Records = Box<[FrameRecord]>;

/// In `uses`: the page was used.
const USED: u8 = 1 << 2;
/// In `uses`: how often the page was used after that; three means many. Of an unread page, how often it was spared.
const HITS: u8 = 3;
/// In `uses`: the bits that a use changes. Once all are set, nothing more is counted.
const COUNTED: u8 = USED | HITS;
/// In `uses`: the page came before anybody asked for it, and is still unused.
const UNREAD: u8 = 1 << 3;
/// In `uses`: the parity of the spell in which an unread page was read ahead. Of another page: it was read ahead.
const ODD: u8 = 1 << 4;
/// In `uses`: hits were taken away, so that a use since then may leave the number as it was.
const TAKEN: u8 = 1 << 5;
/// In `uses`: a flusher has looked at the page, which was dirty.
const LOOKED_AT: u8 = 1 << 6;
/// In `uses`: the page was overwritten while it was dirty.
const OVERWRITTEN: u8 = 1 << 7;

/// The parity in a `uses` byte.
#[inline]
fn parity(uses: u8) -> Parity {
    usize::from(uses & ODD != 0)
}

/// In a record's `index`: the page's number, which a 63-bit file length bounds below this. The bits above are the high
/// bits of the frame's number of reuses.
const INDEX_BITS: u32 = 52;
const INDEX: u64 = (1 << INDEX_BITS) - 1;

/// The page in a frame: page `index` of the file in slot `file`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageIdentity {
    /// The file, by its slot.
    pub file: u32,
    /// The number of the page in the file.
    pub index: u64,
}

/// The meaning of a frame's mark.
pub(super) enum Marked {
    Clean,
    Dirty(Sectors),
    /// It is the mark of nothing that the frame holds.
    Damaged,
}

/// How often a frame was freed: the low bits as in its word, the high bits below them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Reuses(u64);

/// The record of a frame.
#[derive(Default)]
#[repr(C)]
pub struct FrameRecord {
    pub(super) word: AtomicU64,
    /// The page's number, and the high bits of the frame's reuses.
    index: AtomicU64,
    file: AtomicU32,
    /// While some sectors are missing: the others. Later: the sectors that a failed flush may have lost, or more.
    sectors: AtomicU8,
    dirty: AtomicU8,
    uses: AtomicU8,
    /// Which eviction list the frame is on; changed with that list's lock held.
    list: AtomicU8,
    prev: AtomicU32,
    next: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<FrameRecord>() == afflux_frames::PAGE_RECORD_BYTES);

// SAFETY: each field is an atomic number, and zero is one.
#[cfg(not(loom))]
unsafe impl afflux_frames::Zeroed for FrameRecord {}
// SAFETY: each field is an atomic number, without gaps.
#[cfg(not(loom))]
unsafe impl afflux_frames::AnyBytes for FrameRecord {}

impl FrameRecord {
    #[inline]
    pub(super) fn word(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn identity(&self) -> PageIdentity {
        PageIdentity { file: self.file.load(Ordering::Relaxed), index: self.index.load(Ordering::Relaxed) & INDEX }
    }

    /// How often the frame was freed after holding a page, modulo 2^23; `word` is its present word.
    #[inline]
    pub(super) fn reuses(&self, word: Word) -> Reuses {
        Reuses(word.0 & REUSES | self.index.load(Ordering::Relaxed) >> INDEX_BITS)
    }
}

/// The marks of dirty pages. A table in memory of its own has none: no later process finds it.
#[cfg(not(loom))]
pub(crate) type Marks = Option<afflux_frames::FrameTable<AtomicU64>>;
#[cfg(loom)]
pub(crate) type Marks = Option<Box<[AtomicU64]>>;

/// A frame without dirty sectors.
const NO_MARK: u64 = 0;
/// A bit of each mark: no flipped bit makes [`NO_MARK`] of a mark.
const MARKED: u64 = 1 << 8;

/// The mark of a page with these dirty sectors in this frame: the sectors in the lowest byte, and a check over all
/// three.
#[inline]
fn mark_of(frame: FrameId, page: PageIdentity, dirty: Sectors) -> u64 {
    let place = u64::from(frame.raw()) << 32 | u64::from(page.file);
    let check = mixed(mixed(page.index | u64::from(dirty.0) << 56) ^ place);
    check & !(MARKED | 0xff) | MARKED | u64::from(dirty.0)
}

/// Bits of a number over a whole word; each number has another.
#[inline]
pub fn mixed(number: u64) -> u64 {
    let product = number.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    product ^ product >> 32
}

/// The states of the pages in all frames.
pub struct PageTable {
    records: Records,
    marks: Marks,
    /// The number of pages read ahead that nobody has asked for.
    pub unread: Unread,
    /// The points between two stores.
    pub stores: Arc<Stores>,
}

impl PageTable {
    /// A table of free frames, in memory of its own.
    pub(crate) fn new(frames: u32) -> Self {
        #[cfg(not(loom))]
        let records = Records::zeroed(frames as usize);
        #[cfg(loom)]
        let records = crate::sync::zeros(frames as usize);
        Self::over(records, None)
    }

    /// The records in an arena's memory.
    pub fn of(memory: &Arc<Memory>) -> Self {
        #[cfg(not(loom))]
        return Self::over(memory.table(afflux_frames::Part::Records), Some(memory.table(afflux_frames::Part::Marks)));
        #[cfg(loom)]
        return Self::new(memory.layout().frames());
    }

    fn over(records: Records, marks: Marks) -> Self {
        Self { records, marks, unread: Unread::new(), stores: Arc::default() }
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.records.len() * size_of::<FrameRecord>()) as u64
    }

    #[inline]
    pub(super) fn record(&self, frame: FrameId) -> &FrameRecord {
        &self.records[frame.index()]
    }

    /// The record of a frame, if there is one with this number.
    #[inline]
    pub(crate) fn get(&self, frame: FrameId) -> Option<&FrameRecord> {
        self.records.get(frame.index())
    }

    /// The number of records.
    pub(super) fn count(&self) -> u32 {
        self.records.len() as u32
    }

    /// Stores a whole word, for a frame that no other thread knows.
    pub fn set_word(&self, frame: FrameId, word: u64) {
        self.stores.point();
        self.record(frame).word.store(word, Ordering::Release);
    }

    /// Forgets uses and positions in lists that an earlier process noted.
    pub(super) fn forget_uses(&self, frame: FrameId) {
        let record = self.record(frame);
        record.uses.store(0, Ordering::Relaxed);
        record.list.store(0, Ordering::Relaxed);
    }

    /// Whether a number read from a node, which may have been reused, names a frame at all.
    #[inline]
    pub fn contains(&self, frame: FrameId) -> bool {
        frame.index() < self.records.len()
    }

    /// The state of a frame's page.
    #[inline]
    pub fn word(&self, frame: FrameId) -> Word {
        self.record(frame).word()
    }

    /// The page that the frame holds or held last.
    #[inline]
    pub fn identity(&self, frame: FrameId) -> PageIdentity {
        self.record(frame).identity()
    }

    /// Adds a holder and returns the word from just before.
    #[inline]
    pub fn hold(&self, frame: FrameId, holder: u64) -> Word {
        self.stores.point();
        Word(self.record(frame).word.fetch_add(holder, Ordering::AcqRel))
    }

    /// Takes a holder back. Returns the word before: the caller tries to release a frame that was detached.
    #[inline]
    #[must_use]
    pub fn unhold(&self, frame: FrameId, holder: u64) -> Word {
        self.stores.point();
        debug_assert!(matches!(holder, PIN | WRITER));
        let before = self.record(frame).word.fetch_sub(holder, Ordering::AcqRel);
        debug_assert!(before & (holder * 0xfff) != 0, "a holder that was never added");
        Word(before)
    }

    /// [`PageTable::unhold`] for a guard. Waiters for memory may wait for its end.
    #[inline]
    pub(crate) fn end_guard(&self, frame: FrameId) -> (bool, Changed) {
        let word = &self.record(frame).word;
        let (before, changed) = Changed::with(|in_order| word.fetch_sub(GUARD, in_order));
        debug_assert!(before & GUARDS != 0, "a guard that was never taken");
        (before & DETACHED != 0, changed)
    }

    /// Frees the frame's record if it is detached and nobody holds it. If this returns true, which happens once, the
    /// caller gives the frame back to the allocator.
    pub fn try_release(&self, frame: FrameId) -> bool {
        self.stores.point();
        let record = self.record(frame);
        let word = record.word.load(Ordering::Relaxed);
        if word & !REUSES != DETACHED {
            return false;
        }
        let freed = (word & REUSES).wrapping_add(REUSE);
        let released = record.word.compare_exchange(word, freed, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        // No other thread has the frame now.
        if released && freed == 0 {
            record.index.fetch_add(INDEX + 1, Ordering::Relaxed);
        }
        released
    }

    /// Gives a fresh frame its identity, then its mark, then its flags. Passing pins of late readers stay.
    pub fn occupy(&self, frame: FrameId, identity: PageIdentity, flags: u64) {
        let record = self.record(frame);
        record.file.store(identity.file, Ordering::Relaxed);
        self.stores.point();
        debug_assert!(identity.index <= INDEX);
        let reuses = record.index.load(Ordering::Relaxed) & !INDEX;
        let index = reuses | identity.index;
        record.index.store(index, Ordering::Relaxed);
        record.uses.store(0, Ordering::Relaxed);
        let dirty = self.dirty(frame);
        if !dirty.is_empty() {
            self.set_mark(frame, mark_of(frame, identity, dirty));
        }
        self.change(frame, 0, flags);
    }

    #[inline]
    fn set_mark(&self, frame: FrameId, mark: u64) {
        if let Some(marks) = &self.marks {
            self.stores.point();
            // Bytes and identity are there before the mark.
            marks[frame.index()].store(mark, Ordering::Release);
        }
    }

    /// Takes the mark of a frame away that holds nothing to persist.
    pub(super) fn forget_mark(&self, frame: FrameId) {
        if self.marks.as_ref().is_some_and(|marks| marks[frame.index()].load(Ordering::Relaxed) != NO_MARK) {
            self.set_mark(frame, NO_MARK);
        }
    }

    /// The dirty sectors that the frame's mark has, or why it has none.
    pub(super) fn marked(&self, frame: FrameId) -> Marked {
        let Some(marks) = &self.marks else { return Marked::Clean };
        let mark = marks[frame.index()].load(Ordering::Acquire);
        let dirty = Sectors(mark as u8);
        match mark {
            NO_MARK => Marked::Clean,
            _ if mark == mark_of(frame, self.identity(frame), dirty) && !dirty.is_empty() => Marked::Dirty(dirty),
            _ => Marked::Damaged,
        }
    }

    /// Gives a record the mark that its writer would have stored. For tests, which make records by chance.
    pub fn believe(&self, frame: FrameId) {
        let dirty = self.dirty(frame);
        self.set_mark(frame, if dirty.is_empty() { NO_MARK } else { mark_of(frame, self.identity(frame), dirty) });
    }

    /// Sets and clears flags. Returns the word from just before.
    pub fn change(&self, frame: FrameId, clear: u64, set: u64) -> Word {
        self.stores.point();
        let before = self.record(frame).word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            let to = (word & !clear) | set;
            debug_assert!(is_legal(word, to), "page transition {word:#x} to {to:#x}");
            Some(to)
        });
        Word(before.unwrap_or_else(|word| word))
    }

    /// Sets and clears flags unless the word has a writer or one of `unless`.
    pub fn change_unless(&self, frame: FrameId, unless: u64, clear: u64, set: u64) -> Result<Word, Word> {
        self.stores.point();
        self.record(frame)
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                if Word(word).has_any(unless) || Word(word).is_being_written_to() {
                    return None;
                }
                let to = (word & !clear) | set;
                debug_assert!(is_legal(word, to), "page transition {word:#x} to {to:#x}");
                Some(to)
            })
            .map(Word)
            .map_err(Word)
    }

    /// Takes the page out of its state: it now only waits for its holders. The mark goes first: the last holder may
    /// free the frame at once.
    pub fn detach(&self, frame: FrameId) -> Word {
        self.leave_unread(frame);
        self.set_dirty(frame, Sectors::NONE);
        self.change(frame, !(HOLDERS | REUSES | WRITEBACK | READING), DETACHED)
    }

    /// As [`PageTable::detach`], but only while clean and held by nobody.
    pub fn try_detach_idle(&self, frame: FrameId) -> bool {
        self.stores.point();
        // Before it is detached: the last holder may free the frame at once.
        let unread = self.end_unread(frame);
        let idle = self
            .record(frame)
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                let busy = super::DIRTY | WRITEBACK | READING | super::PRIOR;
                let idle = Word(word).has(PRESENT) && !Word(word).has_any(busy | HOLDERS);
                idle.then_some(word & REUSES | DETACHED)
            })
            .is_ok();
        match (unread, idle) {
            (Some(parity), true) => self.unread.waste(frame, parity),
            // A page that is held after all is in use.
            (Some(parity), false) => self.unread.used(frame, parity, self.identity(frame).file),
            (None, _) => {}
        }
        idle
    }

    /// The page comes before anybody asked for it. Called before anybody can use it.
    pub fn note_unread(&self, frame: FrameId) {
        let parity = self.unread.parity();
        let mark = if parity == 0 { UNREAD } else { UNREAD | ODD };
        if self.record(frame).uses.fetch_or(mark, Ordering::Relaxed) & UNREAD == 0 {
            self.unread.add(frame, parity, self.identity(frame).file);
        }
    }

    /// Whether the page came before anybody asked for it, and is still unused.
    pub(crate) fn is_unread(&self, frame: FrameId) -> bool {
        self.record(frame).uses.load(Ordering::Relaxed) & UNREAD != 0
    }

    /// Whether the page was read ahead, and was used once at most since, as far as hits were not taken away.
    pub(crate) fn is_ahead_without_hit(&self, frame: FrameId) -> bool {
        let seen = self.record(frame).uses.load(Ordering::Relaxed);
        seen & UNREAD != 0 || seen & (ODD | HITS) == ODD
    }

    /// The page is no longer unread. If it was unread, returns the parity of the spell in which it was read ahead.
    fn end_unread(&self, frame: FrameId) -> Option<Parity> {
        if !self.is_unread(frame) {
            return None;
        }
        let seen = self.record(frame).uses.fetch_and(!UNREAD, Ordering::Relaxed);
        (seen & UNREAD != 0).then_some(parity(seen))
    }

    /// An unread page leaves the cache.
    fn leave_unread(&self, frame: FrameId) {
        if let Some(parity) = self.end_unread(frame) {
            self.unread.waste(frame, parity);
        }
    }

    /// The sectors of the page that the frame holds.
    #[inline]
    pub fn valid(&self, frame: FrameId) -> Sectors {
        if self.word(frame).has(UPTODATE) { Sectors::ALL } else { self.unflushed(frame) }
    }

    /// The sectors that may be lost if the file's next flush fails, or more of them: those that the cache's users wrote
    /// since the page came, and those that requests wrote since a flush. Means nothing for a page without the tag
    /// `Unflushed`.
    #[inline]
    pub fn unflushed(&self, frame: FrameId) -> Sectors {
        Sectors(self.record(frame).sectors.load(Ordering::Relaxed))
    }

    /// Sets the valid sectors of a page that is not up to date, or the unflushed ones of a page that is.
    pub fn set_sectors(&self, frame: FrameId, sectors: Sectors) {
        self.stores.point();
        self.record(frame).sectors.store(sectors.0, Ordering::Relaxed);
    }

    /// Adds valid sectors. Returns the flag to set if none is missing now: the caller sets it before it calls again.
    #[must_use]
    pub fn add_valid(&self, frame: FrameId, more: Sectors) -> u64 {
        if self.word(frame).has(UPTODATE) {
            return UPTODATE;
        }
        let valid = self.unflushed(frame).union(more);
        self.set_sectors(frame, valid);
        if valid == Sectors::ALL { UPTODATE } else { 0 }
    }

    /// A request wrote the sectors; `again`: no flush has covered the request before.
    pub fn note_written(&self, frame: FrameId, written: Sectors, again: bool) {
        if self.word(frame).has(UPTODATE) {
            let before = if again { self.unflushed(frame) } else { Sectors::NONE };
            self.set_sectors(frame, before.union(written));
        }
    }

    /// Its dirty sectors.
    #[inline]
    pub fn dirty(&self, frame: FrameId) -> Sectors {
        Sectors(self.record(frame).dirty.load(Ordering::Relaxed))
    }

    /// Stores the dirty sectors, for the present page of a frame also in its mark. A fresh frame gets its mark with its
    /// identity.
    pub fn set_dirty(&self, frame: FrameId, sectors: Sectors) {
        if self.dirty(frame) == sectors {
            return;
        }
        let record = self.record(frame);
        let has_mark = record.word().has(PRESENT);
        if has_mark && !sectors.is_empty() {
            self.set_mark(frame, mark_of(frame, record.identity(), sectors));
        }
        self.stores.point();
        record.dirty.store(sectors.0, Ordering::Release);
        if has_mark && sectors.is_empty() {
            self.set_mark(frame, NO_MARK);
        }
    }

    /// Notes a use. Counts to four, the use that the page was brought in for and three more, so that further uses of a
    /// hot page write no cache line.
    #[inline]
    pub fn touch(&self, frame: FrameId) {
        self.touch_at(self.record(frame), frame);
    }

    /// [`PageTable::touch`] of a frame whose record the caller has.
    #[inline]
    pub(crate) fn touch_at(&self, record: &FrameRecord, frame: FrameId) {
        let seen = record.uses.load(Ordering::Relaxed);
        if seen & COUNTED < COUNTED {
            self.count_use(frame, seen, 0);
        }
    }

    /// Notes a use that overwrote a dirty page.
    #[inline]
    pub fn touch_overwritten(&self, frame: FrameId) {
        let seen = self.record(frame).uses.load(Ordering::Relaxed);
        if seen & (OVERWRITTEN | COUNTED) < OVERWRITTEN | COUNTED {
            self.count_use(frame, seen, OVERWRITTEN);
        }
    }

    /// Two uses at once may count as one. Inlined: a hit would have to save registers across a call.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the instructions of a hit are counted")]
    fn count_use(&self, frame: FrameId, seen: u8, with: u8) {
        let uses = &self.record(frame).uses;
        if seen & USED != 0 {
            uses.store((seen | with) + u8::from(seen & COUNTED < COUNTED), Ordering::Relaxed);
        } else if uses
            .compare_exchange(seen, seen & !(UNREAD | HITS) | USED | with, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
            && seen & UNREAD != 0
        {
            uses.fetch_or(ODD, Ordering::Relaxed);
            let slot = self.record(frame).file.load(Ordering::Relaxed);
            self.unread.used(frame, parity(seen), slot);
        }
    }

    /// Checks a dirty page; returns whether it was overwritten since the last check. A concurrent use may be lost.
    pub fn take_overwritten(&self, frame: FrameId) -> bool {
        let uses = &self.record(frame).uses;
        let seen = uses.load(Ordering::Relaxed);
        uses.store(seen & (COUNTED | UNREAD | ODD) | LOOKED_AT, Ordering::Relaxed);
        seen & (LOOKED_AT | OVERWRITTEN) == LOOKED_AT | OVERWRITTEN
    }

    /// Spares an unread page once more. Returns whether that was still possible: three times are.
    pub(crate) fn try_spare_unread(&self, frame: FrameId) -> bool {
        let more = |seen: u8| (seen & UNREAD != 0 && seen & HITS < HITS).then(|| seen + 1);
        self.record(frame).uses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// The number of uses since the last call, two meaning many; resets it.
    pub fn take_uses(&self, frame: FrameId) -> u8 {
        let seen = self.record(frame).uses.fetch_and(UNREAD | ODD, Ordering::Relaxed);
        u8::from(seen & USED != 0) + (seen & HITS)
    }

    /// The number of uses besides the one that the page was brought in for, three meaning many.
    #[cfg(test)]
    pub(crate) fn hits(&self, frame: FrameId) -> u8 {
        self.record(frame).uses.load(Ordering::Relaxed) & HITS
    }

    /// The number of uses besides the one that the page was brought in for, three meaning many; resets it.
    pub(crate) fn take_hits(&self, frame: FrameId) -> u8 {
        let none = |seen: u8| (seen & HITS > 0).then_some(seen & !HITS | TAKEN);
        self.record(frame).uses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, none).map_or(0, |seen| seen & HITS)
    }

    /// Takes away one hit, if there is one. Returns whether there was.
    pub(crate) fn try_drop_hit(&self, frame: FrameId) -> bool {
        let uses = &self.record(frame).uses;
        let less = |seen: u8| (seen & HITS > 0).then(|| (seen - 1) | TAKEN);
        uses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Whether hits were taken away since the last call.
    pub(crate) fn take_hits_mark(&self, frame: FrameId) -> bool {
        let uses = &self.record(frame).uses;
        uses.load(Ordering::Relaxed) & TAKEN != 0 && uses.fetch_and(!TAKEN, Ordering::Relaxed) & TAKEN != 0
    }

    /// Counts the bringing of the page as its first use.
    pub(crate) fn note_used(&self, frame: FrameId) {
        self.record(frame).uses.fetch_or(USED, Ordering::Relaxed);
    }

    /// A page moves to another frame, and retains its uses.
    pub(crate) fn copy_hits(&self, from: FrameId, to: FrameId) {
        let kept = self.record(from).uses.load(Ordering::Relaxed) & COUNTED;
        self.record(to).uses.fetch_or(kept, Ordering::Relaxed);
    }

    /// The number of uses, four meaning many.
    pub fn uses(&self, frame: FrameId) -> u8 {
        let seen = self.record(frame).uses.load(Ordering::Relaxed);
        u8::from(seen & USED != 0) + (seen & HITS)
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
