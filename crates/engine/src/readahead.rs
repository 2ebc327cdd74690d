//! Readahead: how far beyond what was asked a sequential reader's file is read.
//!
//! Owns: the window of one file: where the next sequential read is expected, how much is ahead.
//! Does not own: frames and requests (`read`).
//! Invariants: pure arithmetic on pages. A window grows only by sequential use and never passes the
//! knob; a jump closes it.

use std::ops::Range;

/// How far from the expected page a read may start and still count as sequential: a client with many
/// calls in flight does not send them quite in order.
const TOLERANCE_PAGES: u64 = 512;
/// The first window.
const START_PAGES: u64 = 16;

/// One file's window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// The page after the last one asked for.
    next: u64,
    /// How many pages to keep ahead.
    size: u64,
    /// The page after the last one read, or being read, ahead.
    end: u64,
}

impl Window {
    /// A read of `pages` missed its first page. Returns the pages to read ahead, after `pages`.
    pub(crate) fn missed(&mut self, pages: &Range<u64>, size_max: u64) -> Range<u64> {
        let sequential = pages.start.abs_diff(self.next) <= TOLERANCE_PAGES;
        let asked = pages.end - pages.start;
        let grown = if self.size == 0 { START_PAGES.max(2 * asked) } else { 2 * self.size };
        self.size = if sequential { grown.min(size_max) } else { 0 };
        self.next = pages.end;
        self.end = pages.end + self.size;
        pages.end..self.end
    }

    /// A read that ended before page `page` used up half of what was ahead. Returns what to read now.
    pub(crate) fn used(&mut self, page: u64, size_max: u64) -> Range<u64> {
        self.next = page;
        if self.size == 0 {
            return 0..0;
        }
        self.size = (2 * self.size).min(size_max);
        let from = self.end.max(page);
        self.end = (page + self.size).max(from);
        from..self.end
    }

    /// The page that, once passed by a read, calls for more; nothing when there is no window.
    pub(crate) fn trigger(&self) -> Option<u64> {
        (self.size > 0).then(|| self.end.saturating_sub(self.size / 2))
    }
}

#[cfg(test)]
mod tests;
