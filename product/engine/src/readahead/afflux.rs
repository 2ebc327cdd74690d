//! Windows in the device's own time: as large as the device needs them, no larger than the reader has shown to use.
//!
//! Owns: one file's stream: where it is, how far it was read ahead of, what it may be trusted with.
//! Does not own: what suits the device (`law`), strides (`strides`), how much there may be unread in all (`reading`).
//! Invariants: a window is never larger than what the stream has consumed, but for the first. It opens at the file's
//! start, on exact succession, or where what comes before is cached; what is read elsewhere is read exactly, and
//! closes it. At most two windows are ahead: the next is read when the reader enters the last.
//!
//! Reads at random succeed each other by chance, in a small file often. So reads elsewhere raise a doubt, which makes
//! what a chance may open a smaller part of the file; a stream that goes on takes it back.
//!
//! Calls need not come in order: a client with many in flight does not send them quite so. Near the end of an open
//! stream a read is the stream's, and where none is open yet, pages that are on their way count as cached.

use std::ops::Range;

use super::strides::Strides;
use super::{Advice, Ahead, Cached, Came, Terms};

/// How many reads may overtake another: a client has 8 to 16 under way.
const OVERTAKEN_MAX: u64 = 16;
/// And how far they may in a small file: everything is near there.
const OVERTAKEN_PART: u64 = 4;
/// The smallest window that memory, or a failure, leaves.
const CAP_MIN: u64 = 4;
/// The most doubt, and from where on a file is one that is read at random.
const DOUBT_MAX: u8 = 16;
const RANDOM: u8 = 12;
/// What must be cached before a miss to be history: so many times what is asked; in a file that is read at random, so
/// many pages.
const HISTORY: u64 = 3;
const HISTORY_RANDOM: u64 = 32;

/// One file's stream.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// Whether there is one: it is read ahead of.
    open: bool,
    /// Where it began.
    run_start: u64,
    /// The page after the furthest one that it asked for.
    next: u64,
    /// With this page the reader enters the last window.
    mark: u64,
    /// The page after the last one to be read ahead.
    end: u64,
    /// Up to where that has happened.
    issued: u64,
    /// Pages of the last window.
    size: u64,
    /// Most pages that a window may have, by what memory has kept of windows.
    cap: u64,
    doubt: u8,
    /// The last read that missed, of the stream or not.
    last: Range<u64>,
    strides: Strides,
    advice: Advice,
}

impl Default for Window {
    /// Of a file that nobody has read.
    fn default() -> Self {
        Self {
            open: false,
            run_start: 0,
            next: 0,
            mark: 0,
            end: 0,
            issued: 0,
            size: 0,
            cap: u64::MAX,
            doubt: 0,
            last: 0..0,
            strides: Strides::default(),
            advice: Advice::Normal,
        }
    }
}

/// How a read that missed stands to the stream.
enum Place {
    /// The rest of the read before: that one was served in parts.
    SameRead,
    /// The stream goes on behind what was read ahead.
    On,
    /// Others have overtaken it, or the pages are about to be read ahead.
    Late,
    /// It was read ahead, and is not there any more.
    Evicted,
    /// What comes before is cached, though it is too little to be a history.
    Near,
    /// A stream begins, having read from there on.
    Opens {
        run_start: u64,
    },
    Elsewhere,
}

impl Window {
    pub(super) fn missed(&mut self, pages: &Range<u64>, terms: &Terms, cached: &dyn Cached) -> Ahead {
        if terms.most == 0 || self.advice == Advice::Random {
            self.close();
            return Ahead::NONE;
        }
        if let Some(ahead) = self.strides.reads(pages.start, terms) {
            self.last = pages.clone();
            return ahead;
        }
        let place = self.place(pages, terms, cached);
        let before = std::mem::replace(&mut self.last, pages.clone());
        match place {
            Place::SameRead if self.open && pages.end == self.next => Ahead::one(pages.end..self.end.max(pages.end)),
            Place::SameRead => Ahead::NONE,
            Place::Late => {
                self.next = self.next.max(pages.end);
                Ahead::NONE
            }
            Place::Near => {
                self.close();
                (self.run_start, self.next) = (pages.start, pages.end);
                Ahead::NONE
            }
            Place::Evicted => {
                self.cap = (self.size.min(self.cap) / 2).max(CAP_MIN);
                self.doubts(1);
                self.go_on(pages, terms)
            }
            Place::On => {
                self.doubt = self.doubt.saturating_sub(1);
                self.widen_cap(pages.end - pages.start);
                self.go_on(pages, terms)
            }
            Place::Opens { run_start } => self.opens(run_start, pages, terms),
            Place::Elsewhere => self.elsewhere(&before, pages, terms),
        }
    }

    pub(super) fn used(&mut self, pages: &Range<u64>, terms: &Terms) -> Ahead {
        if terms.most == 0 {
            self.close();
            return Ahead::NONE;
        }
        if self.strides.is_armed() {
            return self.strides.reads(pages.start, terms).unwrap_or(Ahead::NONE);
        }
        if !self.open || pages.end <= self.mark {
            return Ahead::NONE;
        }
        if pages.start > self.end + OVERTAKEN_MAX * (pages.end - pages.start) {
            self.doubts(1);
            if self.doubt == DOUBT_MAX {
                self.close();
            }
            return Ahead::NONE;
        }
        self.doubt = self.doubt.saturating_sub(1);
        if self.cap < terms.law.most {
            self.cap += (self.cap / 8).max(1);
        }
        self.next = self.next.max(pages.end);
        let from = self.end.max(self.next);
        self.reads_ahead(from, pages.end - pages.start, terms)
    }

    pub(super) fn issued(&mut self, came: Came) {
        self.issued = self.end;
        let (Came::NoRequest(end) | Came::NoFrame(end)) = came else { return };
        if end < self.end {
            (self.end, self.issued) = (end, end);
            self.mark = self.mark.min(end);
            if matches!(came, Came::NoFrame(_)) {
                self.cap = (self.size / 2).max(CAP_MIN);
            }
        }
    }

    /// For a time windows are small: they begin anew, and grow with each that is used.
    pub(super) fn failed(&mut self) {
        self.close();
        self.cap = CAP_MIN;
    }

    pub(super) fn advise(&mut self, advice: Advice) {
        let (cap, doubt) = (u64::MAX, 0);
        *self = Self { advice, cap, doubt, last: self.last.clone(), ..Self::default() };
    }

    pub(super) fn trigger(&self) -> Option<u64> {
        if self.strides.is_armed() { self.strides.trigger() } else { self.open.then_some(self.mark) }
    }

    fn place(&self, pages: &Range<u64>, terms: &Terms, cached: &dyn Cached) -> Place {
        let (start, asked) = (pages.start, pages.end - pages.start);
        let tolerance = (OVERTAKEN_MAX * asked).min(terms.file_pages / OVERTAKEN_PART);
        if pages.end == self.last.end && start > self.last.start {
            return Place::SameRead;
        }
        if start > 0 && self.open && (self.next.saturating_sub(tolerance)..=self.end + tolerance).contains(&start) {
            return match start {
                _ if start >= self.end => Place::On,
                _ if start >= self.next && start < self.issued => Place::Evicted,
                _ => Place::Late,
            };
        }
        let follows = start == self.last.end && !self.last.is_empty();
        if start == 0 || self.advice == Advice::Sequential {
            return Place::Opens { run_start: start };
        }
        if follows {
            let run_start = if self.next == start { self.run_start } else { self.last.start };
            return Place::Opens { run_start };
        }
        let history = if self.doubt < RANDOM { HISTORY * asked } else { HISTORY_RANDOM.max(HISTORY * asked) };
        let most = terms.law.most.max(history);
        match cached.before(start, most) {
            found if found >= history => Place::Opens { run_start: start - found },
            found if found >= asked => Place::Near,
            _ => Place::Elsewhere,
        }
    }

    fn opens(&mut self, run_start: u64, pages: &Range<u64>, terms: &Terms) -> Ahead {
        self.strides.disarm();
        if pages.start == 0 && self.open && self.next < terms.file_pages {
            // It was not read through from its start the last time.
            self.doubts(2);
        }
        self.run_start = run_start;
        self.next = pages.end;
        let (asked, run) = (pages.end - pages.start, pages.end - run_start);
        if run > asked {
            self.widen_cap(asked);
        }
        // Three reads in a row are no chance: as much again may be read. Fewer may be one.
        let trusted = if run >= HISTORY * asked { run } else { asked };
        let all = self.advice == Advice::Sequential;
        let wished = if all { terms.law.most } else { terms.law.first.max(2 * asked).max(trusted) };
        let size = wished.min(self.chance(terms).max(trusted)).min(asked + terms.law.most);
        let size = size.min(self.cap).min((terms.left)() / 2).min(asked + terms.most).max(asked);
        self.open = size > asked;
        (self.mark, self.end, self.issued) = (pages.end, pages.start + size, pages.end);
        self.size = size;
        Ahead::one(pages.end..self.end)
    }

    /// A window that is no larger than what is asked for is never used, and would stay so for ever.
    fn widen_cap(&mut self, asked: u64) {
        self.cap = self.cap.max(2 * asked);
    }

    /// The stream is where nothing was read ahead.
    fn go_on(&mut self, pages: &Range<u64>, terms: &Terms) -> Ahead {
        self.next = self.next.max(pages.end);
        self.reads_ahead(self.next, pages.end - pages.start, terms)
    }

    /// The next window, from a page on.
    fn reads_ahead(&mut self, from: u64, asked: u64, terms: &Terms) -> Ahead {
        let run = if self.advice == Advice::Sequential { u64::MAX } else { self.next - self.run_start };
        let first = terms.law.first.min(self.chance(terms));
        let most = terms.law.most.min(self.cap).min(terms.most).min((terms.left)() / 2);
        let size = first.max(run).min(most);
        self.mark = from;
        self.end = self.end.max(from);
        if size < asked.max(CAP_MIN).min(terms.law.most).min(terms.most) {
            // So little is not worth a request; the reader is looked at again when it misses.
            return Ahead::NONE;
        }
        self.issued = self.issued.max(from);
        (self.end, self.size) = (from + size, size);
        Ahead::one(from..self.end)
    }

    fn elsewhere(&mut self, before: &Range<u64>, pages: &Range<u64>, terms: &Terms) -> Ahead {
        let asked = pages.end - pages.start;
        let overtakes_the_first = before.is_empty() && pages.start <= OVERTAKEN_MAX * asked;
        if !overtakes_the_first {
            self.doubts(1);
        }
        self.close();
        (self.run_start, self.next) = (pages.start, pages.end);
        if !before.is_empty() && self.strides.leaps(before.start, pages, self.doubt) {
            return self.strides.reads_first(terms);
        }
        Ahead::NONE
    }

    fn doubts(&mut self, by: u8) {
        self.doubt = (self.doubt + by).min(DOUBT_MAX);
    }

    fn close(&mut self) {
        self.open = false;
        self.strides.stop();
        (self.run_start, self.size) = (self.next, 0);
    }

    /// How much a chance may open: the more reads were elsewhere, the smaller a part of the file.
    fn chance(&self, terms: &Terms) -> u64 {
        if self.doubt == 0 { u64::MAX } else { terms.file_pages >> (3 + self.doubt / 4) }
    }
}

#[cfg(test)]
mod tests;
