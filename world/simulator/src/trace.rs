//! The trace of a run: its events in order, folded into one number.
//!
//! Owns: the hash, and the last lines in words if they are requested.
//! Does not own: the choice of events, which the executor, the disks and the tests make.
//! Invariants: the hash depends only on the events' times, kinds, numbers and order.

use std::collections::VecDeque;

/// Most lines stored; the oldest are dropped first.
const LINES_MAX: usize = 20_000;

pub(crate) struct Trace {
    hash: u64,
    lines: Option<VecDeque<String>>,
}

impl Trace {
    pub(crate) fn new(keep_lines: bool) -> Self {
        Self { hash: 0xa55e_55ed_0af1_0c5e, lines: keep_lines.then(VecDeque::new) }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.iter().flatten().cloned().collect()
    }

    /// Adds one event. `words` are its numbers, never an address.
    #[inline]
    pub(crate) fn event(&mut self, now_ns: u64, kind: &str, words: &[u64]) {
        self.fold(now_ns);
        for bytes in kind.as_bytes().chunks(8) {
            self.fold(bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
        for word in words {
            self.fold(*word);
        }
        if self.lines.is_some() {
            self.keep_line(now_ns, kind, words);
        }
    }

    #[cold]
    fn keep_line(&mut self, now_ns: u64, kind: &str, words: &[u64]) {
        let Some(lines) = &mut self.lines else { return };
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(format!("{now_ns:>12} {kind} {words:?}"));
    }

    #[inline]
    fn fold(&mut self, word: u64) {
        self.hash = (self.hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.hash ^= self.hash >> 29;
    }
}
