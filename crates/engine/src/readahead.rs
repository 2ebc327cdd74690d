//! Readahead: how far beyond what was asked a sequential reader's file is read.
//!
//! Owns: the window of one file: whether its reads are a stream, how far that has come, how much is
//! ahead.
//! Does not own: frames and requests (`read`).
//! Invariants: pure arithmetic on pages. A window opens when a read starts exactly where the last one
//! ended, or where a stream is already known to go on; it grows by sequential use alone and never
//! passes the knob. Reads elsewhere are read exactly, and close it when there are many.
//!
//! Reads at random succeed each other by chance, in a small file often. So a stream must earn trust:
//! each read that carries it on adds to it, each read elsewhere takes more from it. Below [`PROVEN`]
//! what is read ahead stays a small part of the file, so that chance costs little in files of any size.
//! From there on reads need not come in order: a client with many calls in flight does not send them
//! quite so. Reads at random cannot keep that trust, because a stream only moves towards the end of
//! its file: soon they are all behind it.

use std::ops::Range;

/// The first window.
const START_PAGES: u64 = 16;
/// How many reads may overtake another: a client has 8 to 16 under way.
const OVERTAKEN_MAX: u64 = 16;
/// The trust from which on there is a stream.
const PROVEN: u8 = 3;
/// The trust before the first read: a file is expected to be read from its start.
const TRUST_START: u8 = PROVEN;
/// The most trust.
const TRUST_MAX: u8 = 16;
/// What a read that comes late takes from it.
const LATE_COST: u8 = 1;
/// What a read elsewhere takes from it.
const ELSEWHERE_COST: u8 = 4;
/// The same before a file's start was read, if that read may only have been overtaken.
const FIRST_COST: u8 = 1;
/// Below [`PROVEN`] at most this part of the file is read ahead. A read follows another by chance once
/// in as many reads as the file has places for one, and starts a file as often: this times twice that
/// chance is 1/16 of what was asked.
const UNPROVEN_PART: u64 = 32;

/// What a window may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Most pages ahead.
    pub(crate) size_max: u64,
    /// Pages of the file.
    pub(crate) file_pages: u64,
}

/// One file's window.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// The page after the furthest one that the stream asked for.
    next: u64,
    /// How many pages to keep ahead.
    size: u64,
    /// The page after the last one read, or being read, ahead.
    end: u64,
    trust: u8,
    /// The last read that missed, of the stream or not.
    last: Range<u64>,
}

impl Default for Window {
    /// Of a file that nobody has read.
    fn default() -> Self {
        Self { next: 0, size: 0, end: 0, trust: TRUST_START, last: 0..0 }
    }
}

/// How a read that missed stands to the stream.
enum Place {
    /// The rest of the read before: that one was served in parts.
    SameRead,
    /// Where the stream was expected to go on, or back at the start of the file.
    Next,
    /// Ahead of that, as if it had overtaken others.
    Overtaking,
    /// Behind that, as if others had overtaken it.
    Late,
    /// Right after the last read that missed, which was not of the stream.
    NewStream,
    Elsewhere,
}

impl Window {
    /// A read of `pages` missed its first page. Returns the pages to read ahead, after `pages`.
    pub(crate) fn missed(&mut self, pages: &Range<u64>, bounds: Bounds) -> Range<u64> {
        let asked = pages.end - pages.start;
        let place = self.place(pages, bounds.file_pages);
        self.last = pages.clone();
        match place {
            Place::SameRead if pages.end == self.next => {}
            Place::SameRead => return pages.end..pages.end,
            Place::Next | Place::NewStream => {
                if matches!(place, Place::NewStream) {
                    (self.trust, self.size) = (0, 0);
                }
                self.trust = (self.trust + 1).min(TRUST_MAX);
                self.grow(asked, bounds);
                (self.next, self.end) = (pages.end, pages.end + self.size);
            }
            Place::Overtaking => {
                self.trust = (self.trust + 1).min(TRUST_MAX);
                self.grow(asked, bounds);
                self.next = self.next.max(pages.end);
                self.end = self.end.max(pages.end + self.size);
            }
            Place::Late => self.doubt(LATE_COST),
            Place::Elsewhere => {
                let first = self.next == 0 && pages.start <= OVERTAKEN_MAX * asked;
                self.doubt(if first { FIRST_COST } else { ELSEWHERE_COST });
                return pages.end..pages.end;
            }
        }
        let end = if self.size > 0 { self.end.max(pages.end) } else { pages.end };
        pages.end..end
    }

    /// A read of `pages` found them all and used up half of what was ahead. Returns what to read now.
    pub(crate) fn used(&mut self, pages: &Range<u64>, bounds: Bounds) -> Range<u64> {
        if self.size == 0 {
            return 0..0;
        }
        let late = OVERTAKEN_MAX * (pages.end - pages.start);
        if pages.start > self.end + late {
            self.doubt(ELSEWHERE_COST);
            return 0..0;
        }
        self.trust = (self.trust + 1).min(TRUST_MAX);
        self.grow(0, bounds);
        self.next = self.next.max(pages.end);
        let from = self.end.max(self.next);
        self.end = (self.next + self.size).max(from);
        from..self.end
    }

    /// The page that, once passed by a read, calls for more; nothing when there is no window.
    pub(crate) fn trigger(&self) -> Option<u64> {
        (self.size > 0).then(|| self.end.saturating_sub(self.size / 2))
    }

    fn place(&self, pages: &Range<u64>, file_pages: u64) -> Place {
        let tolerance = OVERTAKEN_MAX * (pages.end - pages.start);
        let start = pages.start;
        // A file is read again from its start by somebody who has read all of it in order.
        let read_through = self.end >= file_pages && self.trust > PROVEN;
        let from_start = start == 0 && (self.next == 0 || read_through);
        if pages.end == self.last.end && start > self.last.start {
            Place::SameRead
        } else if self.trust > 0 && (from_start || start == self.next || start == self.end) {
            Place::Next
        } else if self.trust >= PROVEN && (self.next..=self.end + tolerance).contains(&start) && self.size > 0 {
            Place::Overtaking
        } else if self.trust >= PROVEN && (self.next.saturating_sub(tolerance)..self.next).contains(&start) {
            Place::Late
        } else if start == self.last.end {
            Place::NewStream
        } else {
            Place::Elsewhere
        }
    }

    fn grow(&mut self, asked: u64, bounds: Bounds) {
        let grown = if self.size == 0 { START_PAGES.max(2 * asked) } else { 2 * self.size };
        let max = if self.trust < PROVEN { bounds.file_pages / UNPROVEN_PART } else { u64::MAX };
        self.size = grown.min(max).min(bounds.size_max);
    }

    /// A read was not where the stream was expected.
    fn doubt(&mut self, cost: u8) {
        self.trust = self.trust.saturating_sub(cost);
        if self.trust == 0 {
            self.size = 0;
        }
    }
}

#[cfg(test)]
mod tests;
