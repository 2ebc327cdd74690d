//! Records of one size, in memory that outlives the process.
//!
//! Owns: the state of a record and the check in it, the number of slots in use.
//! Does not own: the memory (worlds), the contents of records and their meaning (front ends).
//! Invariants: a record appears and goes in one store. A kill between two stores leaves each record as it was, or as it
//! is to be. Each slot in use has a state whose check is right, so memory that was changed by others is known. Memory
//! beyond the highest used slot is not touched.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::checksum::words_checksum;

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

    /// The generation, whether the record stands, and the check of both and of the words that count with them.
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

    /// Writes a record and then, in one store, that it stands. The slot has none.
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
