//! Records and items in memory that outlives the process.
//!
//! A record has one size and appears and goes in one store. An item has any length, and is replaced as a whole: first
//! the pieces of the new version are written, then those of the old one are freed, so a kill leaves one of the two
//! whole. The newest whole version counts.
//!
//! Owns: the state of a record and the check in it, the number of slots in use; the pieces of items, which of two
//! versions counts, the free space for more; the hash of words.
//! Does not own: the memory (worlds), the contents of records and items and their meaning (front ends).
//! Invariants: a kill between two stores leaves each record as it was, or as it is to be. Each slot in use has a state
//! whose check is right, so memory that was changed by others is known. Memory beyond the highest used slot is not
//! touched. A later process finds each item as the last `put` wrote it, or as the one before if that had not returned.
//! An item whose removal had begun may be gone. A change of an item that gets no longer never lacks space. If any piece
//! is in a state that no kill can cause, nothing is found. The hash is part of the forms: another hash is another form.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory as words: all its users read and write it as atomic numbers. A part of a file, say, which a later server
/// finds.
pub type PersistedWords = Arc<dyn AsRef<[AtomicU64]> + Send + Sync>;

/// A slot of a table: its generation, and its record.
pub type PersistedSlot<T> = (u32, Option<T>);

/// A table of records with a state of their own in front.
#[derive(Clone, Copy)]
pub struct PersistedRecordTable {
    /// The table's first word.
    pub at: usize,
    /// Words of a record.
    pub words: usize,
    /// The word with one more than the highest slot in use.
    pub used_at: usize,
    /// Words behind the state that its check covers. Those after them have checks of their own.
    pub covered: usize,
}

impl PersistedRecordTable {
    /// The words of a record, the state first.
    pub fn record<'a>(&self, all: &'a PersistedWords, slot: usize) -> &'a [AtomicU64] {
        let start = self.at + slot * self.words;
        &(**all).as_ref()[start..start + self.words]
    }

    /// The generation, whether the record is valid, and the check of both and of the words that count with them.
    fn state(&self, all: &PersistedWords, slot: usize, generation: u32, is_there: bool) -> u64 {
        let covered = if is_there { &self.record(all, slot)[1..=self.covered] } else { &[] };
        let head = u64::from(generation) << 1 | u64::from(is_there);
        let words = covered.iter().map(|word| word.load(Ordering::Relaxed));
        head << 32 | words_checksum([slot as u64, head].into_iter().chain(words)) >> 32
    }

    fn set_state(&self, all: &PersistedWords, slot: usize, generation: u32, is_there: bool) {
        let state = self.state(all, slot, generation, is_there);
        self.record(all, slot)[0].store(state, Ordering::Release);
    }

    /// One more than the highest slot in use; none if the word is damaged.
    fn used(&self, all: &PersistedWords) -> Option<usize> {
        let word = (**all).as_ref()[self.used_at].load(Ordering::Acquire);
        (word == self.used_word(word >> 32)).then_some((word >> 32) as usize)
    }

    /// Sets the number of slots in use. To be called with zero before the first record.
    pub fn set_used(&self, all: &PersistedWords, used: usize) {
        (**all).as_ref()[self.used_at].store(self.used_word(used as u64), Ordering::Release);
    }

    fn used_word(&self, used: u64) -> u64 {
        used << 32 | words_checksum([self.used_at as u64, used]) >> 32
    }

    /// Writes a record and then, in one store, makes it valid. The slot has none.
    pub fn put(&self, all: &PersistedWords, slot: usize, generation: u32, body: impl IntoIterator<Item = u64>) {
        if self.used(all).is_none_or(|used| used <= slot) {
            self.set_state(all, slot, 0, false);
            self.set_used(all, slot + 1);
        }
        for (at, value) in (1..self.words).zip(body) {
            self.record(all, slot)[at].store(value, Ordering::Relaxed);
        }
        self.set_state(all, slot, generation, true);
    }

    /// The record is gone, in one store: its slot has this generation.
    pub fn free(&self, all: &PersistedWords, slot: usize, generation: u32) {
        self.set_state(all, slot, generation, false);
    }

    /// All slots in use, with the results of `read`. None if a slot or a record is in a state that no kill leaves.
    pub fn all<T>(
        &self,
        all: &PersistedWords,
        most: usize,
        read: impl Fn(usize, u32, &[AtomicU64]) -> Option<T>,
    ) -> Option<Vec<PersistedSlot<T>>> {
        let used = self.used(all).filter(|used| *used <= most)?;
        let slot = |slot| {
            let record = self.record(all, slot);
            let state = record[0].load(Ordering::Acquire);
            let (generation, is_there) = ((state >> 33) as u32, state >> 32 & 1 == 1);
            if state != self.state(all, slot, generation, is_there) {
                return None;
            }
            let found = if is_there { Some(read(slot, generation, record)?) } else { None };
            Some((generation, found))
        };
        (0..used).map(slot).collect()
    }
}

/// The check of some words.
pub fn words_checksum(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(0x51_7c_c1_b7_27_22_0a_95, |hash, word| {
        let mixed = (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    })
}

const MAGIC: u64 = u64::from_le_bytes(*b"AFXITEMS");
/// Words of the magic number, of the number of pieces with the check of both, and of the slots in use.
const HEADER_WORDS: usize = 4;
/// The state, the tag, the version, and the bytes.
const PIECE_WORDS: usize = 16;
const BODY_AT: usize = 3;
/// Bytes of an item in one piece.
pub const PERSISTED_PIECE_BYTES: usize = (PIECE_WORDS - BODY_AT) * 8;
/// Bits of the number and of the count of an item's pieces.
const COUNT_BITS: u32 = 12;
/// Most pieces of an item.
const PIECES_MAX: usize = (1 << COUNT_BITS) - 1;
const NONE: u32 = u32::MAX;

/// An item's slot in the memory; the default is none yet.
#[derive(Debug)]
pub struct PersistedItem(u32);

impl Default for PersistedItem {
    fn default() -> Self {
        Self(NONE)
    }
}

/// An item of an earlier process.
pub struct FoundItem {
    /// The kind that it was put with.
    pub kind: u8,
    /// The number that it was put with.
    pub id: u32,
    /// Slot of the item in the memory.
    pub item: PersistedItem,
    /// Its bytes, with zeros up to the end of the last piece.
    pub bytes: Vec<u8>,
}

/// Items that a front end persists in memory for the next server.
pub struct PersistedItems {
    words: PersistedWords,
    pieces: PersistedRecordTable,
    count: usize,
    at: usize,
    table: Mutex<ItemTable>,
}

struct ItemTable {
    free: Vec<u32>,
    /// The next piece of an item, by slot.
    next: Vec<u32>,
    version: u64,
}

/// Kind, number and version of an item: the newest version comes first.
type Version = (u8, u32, std::cmp::Reverse<u64>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Tag {
    kind: u8,
    id: u32,
    count: u16,
    index: u16,
}

impl Tag {
    fn word(self) -> u64 {
        let (count, index) = (u64::from(self.count), u64::from(self.index));
        u64::from(self.id) << 32 | u64::from(self.kind) << (2 * COUNT_BITS) | count << COUNT_BITS | index
    }

    fn of(word: u64) -> Self {
        let part = |shift: u32| (word >> shift) as u16 & PIECES_MAX as u16;
        Self {
            kind: (word >> (2 * COUNT_BITS)) as u8,
            id: (word >> 32) as u32,
            count: part(COUNT_BITS),
            index: part(0),
        }
    }
}

impl PersistedItems {
    /// The items in this memory from word `at` on, with those of an earlier process. Any bytes will do. None for the
    /// found ones if the memory has none, or is damaged: then it is begun anew.
    pub fn new(words: PersistedWords, at: usize) -> (Self, Option<Vec<FoundItem>>) {
        let len = (*words).as_ref().len();
        let count = len.saturating_sub(at + HEADER_WORDS) / PIECE_WORDS;
        let pieces = PersistedRecordTable {
            at: at + HEADER_WORDS,
            words: PIECE_WORDS,
            used_at: at + 2,
            covered: PIECE_WORDS - 1,
        };
        let table = ItemTable { free: Vec::new(), next: vec![NONE; count], version: 0 };
        let items = Self { words, pieces, count, at, table: Mutex::new(table) };
        let is_ours = len > at + HEADER_WORDS && items.header() == [MAGIC, items.form()];
        let found = if is_ours { items.find() } else { None };
        if found.is_none() && len > at + HEADER_WORDS {
            items.clear();
        }
        (items, found)
    }

    fn form(&self) -> u64 {
        words_checksum([MAGIC, self.count as u64, PIECE_WORDS as u64])
    }

    fn header(&self) -> [u64; 2] {
        [0, 1].map(|word| (*self.words).as_ref()[self.at + word].load(Ordering::Acquire))
    }

    /// Forgets all items. The first word is stored last.
    pub fn clear(&self) {
        let store = |word: usize, value| (*self.words).as_ref()[self.at + word].store(value, Ordering::Release);
        store(0, 0);
        self.pieces.set_used(&self.words, 0);
        store(1, self.form());
        store(0, MAGIC);
        let mut table = self.lock();
        table.free = (0..self.count as u32).rev().collect();
        table.next.fill(NONE);
    }

    fn lock(&self) -> MutexGuard<'_, ItemTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pieces for all items together.
    pub fn capacity(&self) -> usize {
        self.count
    }

    /// Pieces that an item has.
    pub fn pieces(&self, item: &PersistedItem) -> usize {
        self.lock().slots_of(item).count()
    }

    /// Pieces of an item with so many bytes.
    pub fn pieces_of(bytes: usize) -> usize {
        bytes.div_ceil(PERSISTED_PIECE_BYTES).max(1)
    }

    /// Whether so many bytes would fit in place of an item's earlier ones.
    pub fn has_space(&self, item: &PersistedItem, bytes: usize) -> bool {
        self.lock().has_space_for(item, Self::pieces_of(bytes), self.count)
    }

    fn find(&self) -> Option<Vec<FoundItem>> {
        let piece = |_, _, record: &[std::sync::atomic::AtomicU64]| {
            let word = |at: usize| record[at].load(Ordering::Relaxed);
            Some((Tag::of(word(1)), word(2)))
        };
        let slots = self.pieces.all(&self.words, self.count, piece)?;
        // By item and from the newest version on: the slots of its pieces in their order.
        let mut versions: BTreeMap<Version, Vec<(Tag, u32)>> = BTreeMap::new();
        let (mut table, mut is_free) = (self.lock(), vec![true; self.count]);
        for (slot, (_, piece)) in slots.into_iter().enumerate() {
            let Some((tag, version)) = piece else { continue };
            versions.entry((tag.kind, tag.id, std::cmp::Reverse(version))).or_default().push((tag, slot as u32));
            table.version = table.version.max(version);
        }
        let mut found: Vec<FoundItem> = Vec::new();
        for ((kind, id, _), mut pieces) in versions {
            pieces.sort_unstable();
            let is_whole = pieces.iter().enumerate().all(|(index, (tag, _))| usize::from(tag.index) == index)
                && pieces.iter().all(|(tag, _)| usize::from(tag.count) == pieces.len());
            if !is_whole || found.last().is_some_and(|newer| (newer.kind, newer.id) == (kind, id)) {
                pieces.iter().for_each(|(_, slot)| self.pieces.free(&self.words, *slot as usize, 0));
                continue;
            }
            let behind = pieces.iter().skip(1).map(|(_, slot)| *slot).chain([NONE]);
            for ((_, slot), next) in pieces.iter().zip(behind) {
                table.next[*slot as usize] = next;
                is_free[*slot as usize] = false;
            }
            let words = pieces.iter().flat_map(|(_, slot)| &self.pieces.record(&self.words, *slot as usize)[BODY_AT..]);
            let bytes = words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
            found.push(FoundItem { kind, id, item: PersistedItem(pieces[0].1), bytes });
        }
        table.free = (0..self.count as u32).rev().filter(|slot| is_free[*slot as usize]).collect();
        Some(found)
    }

    /// Writes an item in place of its earlier version. False if there is no space; then the earlier version stays.
    pub fn try_put(&self, kind: u8, id: u32, item: &mut PersistedItem, bytes: &[u8]) -> bool {
        let count = Self::pieces_of(bytes.len());
        let mut table = self.lock();
        if !table.has_space_for(item, count, self.count) {
            return false;
        }
        table.version += 1;
        let version = table.version;
        let mut first = NONE;
        for index in (0..count).rev() {
            let Some(slot) = table.free.pop() else { return false };
            let body = bytes[index * PERSISTED_PIECE_BYTES..].chunks(8).map(|chunk| {
                let mut value = [0; 8];
                value[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(value)
            });
            let body = body.chain(std::iter::repeat(0)).take(PIECE_WORDS - BODY_AT);
            let tag = Tag { kind, id, count: count as u16, index: index as u16 };
            self.pieces.put(&self.words, slot as usize, 0, [tag.word(), version].into_iter().chain(body));
            table.next[slot as usize] = first;
            first = slot;
        }
        self.free(&mut table, item);
        item.0 = first;
        true
    }

    /// Removes an item.
    pub fn remove(&self, item: &mut PersistedItem) {
        self.free(&mut self.lock(), item);
    }

    fn free(&self, table: &mut ItemTable, item: &mut PersistedItem) {
        let mut slot = std::mem::take(item).0;
        while slot != NONE {
            self.pieces.free(&self.words, slot as usize, 0);
            table.free.push(slot);
            slot = std::mem::replace(&mut table.next[slot as usize], NONE);
        }
    }
}

impl ItemTable {
    /// Whether enough of `all` pieces are free for a new version of the item.
    fn has_space_for(&self, item: &PersistedItem, pieces: usize, all: usize) -> bool {
        // A change has both versions for a moment.
        let spare = if pieces > self.slots_of(item).count() { all / 8 } else { 0 };
        pieces <= PIECES_MAX && self.free.len() >= pieces + spare
    }

    fn slots_of(&self, item: &PersistedItem) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(item.0).filter(|slot| *slot != NONE), |slot| {
            Some(self.next[*slot as usize]).filter(|next| *next != NONE)
        })
    }
}

#[cfg(test)]
mod tests;
