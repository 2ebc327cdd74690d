//! A set of ranges of a file.
//!
//! Owns: joining them, finding gaps.
//! Does not own: their meaning.
//! Invariants: the ranges do not touch each other, and none is empty.

use std::collections::BTreeMap;

/// Ends by starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub(crate) fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        while let Some((&from, &to)) = self.0.range(..=end).next_back().filter(|(_, to)| **to >= start) {
            self.0.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.0.insert(start, end);
    }

    /// The parts of a range that are in the set.
    pub(crate) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let before = self.0.range(..start).next_back();
        let touched = before.into_iter().chain(self.0.range(start..end));
        touched.map(move |(from, to)| (start.max(*from), end.min(*to))).filter(|(from, to)| from < to)
    }

    /// The first number from `start` to before `end` that no range holds.
    pub(crate) fn gap(&self, start: u64, end: u64) -> Option<u64> {
        let before = self.0.range(..=start).next_back();
        let gap = before.map_or(start, |(_, to)| start.max(*to));
        (gap < end).then_some(gap)
    }
}

#[cfg(test)]
mod tests;
