//! Items of any length in memory that outlives the process, each replaced as a whole.
//!
//! Owns: the pieces of items, which of two versions counts, the room for more.
//! Does not own: the state of a piece (`persisted_records`), the meaning of items and their number (front ends).
//! Invariants: a later process finds each item as the last `put` left it, or as the one before if that had not
//! returned. An item whose removal had begun may be gone. A change of an item that gets no longer never lacks room. If
//! any piece is in a state that no kill leaves, nothing is found.
//!
//! First the pieces of the new version are written, then those of the old one are freed, so a kill leaves one of the
//! two whole. The newest whole version counts.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::checksum::words_checksum;
use crate::persisted_records::{PersistedRecordTable, PersistedWords};

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

/// Items that a front end keeps in the memory for the next server.
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

    /// Whether so many bytes would have room in place of an item's earlier ones.
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

    /// Writes an item in place of its earlier version. False if there is no room; then the earlier version stays.
    pub fn try_put(&self, (kind, id): (u8, u32), item: &mut PersistedItem, bytes: &[u8]) -> bool {
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
    /// Whether the room of `all` pieces has enough free ones for a new version of the item.
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
