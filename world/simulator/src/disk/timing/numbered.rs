//! A table by the numbers of requests, which are never used twice.
//!
//! Owns: the hash of a number: a multiplication, the same in each run.
//! Does not own: the order of what is in it: nobody may go by that.
//! Invariants: none beyond those of a hash table.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Numbers to what is known of them.
pub(super) type Numbered<T> = HashMap<u64, T, BuildHasherDefault<ByNumber>>;

/// Numbers that follow each other are far apart in their upper bits, too, which a table looks at.
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
