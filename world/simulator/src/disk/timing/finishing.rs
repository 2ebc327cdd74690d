//! Commands with a known end.
//!
//! Owns: the order of their ends.
//! Does not own: the models that compute the ends, the processing of ended commands (`mechanism`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Commands with a known end, in the order of their ends; those with equal ends in the order of arrival.
#[derive(Default)]
pub(super) struct Finishing {
    ends: BinaryHeap<Reverse<(u64, u64, usize)>>,
    added: u64,
}

impl Finishing {
    pub(super) fn add(&mut self, end_ns: u64, token: usize) {
        self.added += 1;
        self.ends.push(Reverse((end_ns, self.added, token)));
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.ends.peek().map(|end| end.0.0)
    }

    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<usize> {
        self.next_ns().filter(|end_ns| *end_ns <= now_ns)?;
        self.ends.pop().map(|end| end.0.2)
    }
}
