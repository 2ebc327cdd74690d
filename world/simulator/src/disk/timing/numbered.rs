//! A table keyed by request numbers, which are never reused.
//!
//! Owns: the hash of a number: a multiplication, the same in each run.
//! Does not own: the order of its entries, on which no caller may depend.
//! Invariants: none beyond those of a hash table.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hash table keyed by number.
pub(super) type Numbered<T> = HashMap<u64, T, BuildHasherDefault<ByNumber>>;

/// Spreads consecutive numbers in the upper bits too, which a table uses.
#[derive(Default)]
pub(super) struct ByNumber(u64);

impl Hasher for ByNumber {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
