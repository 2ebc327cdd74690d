//! Sets of pages of a file, as disjoint ranges.
//!
//! Owns: insertion, removal, the search for the next page.
//! Does not own: what membership means (`inode`).
//! Invariants: ranges are disjoint, not empty, and no two of them touch.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of page numbers: the end of each range by its start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the pages; returns how many were not in the set.
    pub(crate) fn insert(&mut self, pages: Range<u64>) -> u64 {
        if pages.is_empty() {
            return 0;
        }
        let (mut joined, mut present) = (pages.clone(), 0);
        while let Some((start, end)) = self.0.range(..=pages.end).next_back().map(|(start, end)| (*start, *end)) {
            if end < pages.start {
                break;
            }
            self.0.remove(&start);
            present += end.min(pages.end).saturating_sub(start.max(pages.start));
            joined = joined.start.min(start)..joined.end.max(end);
        }
        self.0.insert(joined.start, joined.end);
        pages.end - pages.start - present
    }

    /// Removes the pages; returns how many were in the set.
    pub(crate) fn remove(&mut self, pages: Range<u64>) -> u64 {
        let mut removed = 0;
        while let Some((start, end)) = self.0.range(..pages.end).next_back().map(|(start, end)| (*start, *end)) {
            if end <= pages.start {
                break;
            }
            self.0.remove(&start);
            if start < pages.start {
                self.0.insert(start, pages.start);
            }
            if end > pages.end {
                self.0.insert(pages.end, end);
            }
            removed += end.min(pages.end) - start.max(pages.start);
        }
        removed
    }

    /// Removes all pages; returns how many there were.
    pub(crate) fn clear(&mut self) -> u64 {
        std::mem::take(&mut self.0).into_iter().map(|(start, end)| end - start).sum()
    }

    /// The first pages of the set in a range, in one piece.
    pub(crate) fn first_in(&self, within: Range<u64>) -> Option<Range<u64>> {
        let before = self.0.range(..=within.start).next_back().filter(|(_, end)| **end > within.start);
        let (start, end) = before.or_else(|| self.0.range(within.start..within.end).next())?;
        let piece = (*start).max(within.start)..(*end).min(within.end);
        (!piece.is_empty()).then_some(piece)
    }
}

#[cfg(test)]
mod tests;
