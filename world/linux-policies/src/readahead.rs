//! Readahead as in Linux 6.1 (`mm/readahead.c`, `ondemand_readahead`).
//!
//! Owns: the kernel's rules: window, marker, context; windows of at most 128 KiB, the kernel's default. Does not own:
//! the kernel's reads of mapped files.
//! Invariants: sizes and starts are the kernel's. The state learns of every read, hits too, since the kernel's state
//! knows where each read ended. The kernel has a state for each open file; here it is the file's.

use std::ops::Range;

use afflux_engine::{Advice, Cached, Readahead, ReadaheadLimits, ReadaheadPolicy};

use crate::limits::PAGE_BYTES;

/// The readahead of Linux 6.1.
pub const LINUX_READAHEAD: Readahead = Readahead::Other { name: "linux", new: || Box::new(Window::default()) };

/// `read_ahead_kb`, in pages.
const WINDOW_PAGES: u64 = 32;

/// The number of remembered markers: in the kernel they are flags of pages.
const MARKERS: usize = 8;

/// The state of a file (`file_ra_state`).
#[derive(Clone, Debug)]
struct Window {
    /// The most pages without advice.
    most: u64,
    start: u64,
    size: u64,
    /// Pages of the window that the reader has not reached when the next window is read.
    asynchronous: u64,
    /// The page of the byte after the last read (`prev_pos`).
    after: Option<u64>,
    /// Pages whose read starts the next window, the newest last.
    markers: [Option<u64>; MARKERS],
    advice: Advice,
    /// The power of two by which failures have divided the largest window.
    divided: u32,
}

/// The first window.
fn init(asked: u64, most: u64) -> u64 {
    let size = asked.next_power_of_two();
    if size <= most / 32 {
        size * 4
    } else if size <= most / 4 {
        size * 2
    } else {
        most
    }
}

/// The next window.
fn next(size: u64, most: u64) -> u64 {
    if size < most / 16 {
        size * 4
    } else if size <= most / 2 {
        size * 2
    } else {
        most
    }
}

impl Default for Window {
    fn default() -> Self {
        Self::of(WINDOW_PAGES)
    }
}

impl ReadaheadPolicy for Window {
    fn missed(&mut self, pages: &Range<u64>, limits: &ReadaheadLimits, cached: &dyn Cached) -> Range<u64> {
        let most = self.most(limits);
        if most == 0 || self.advice == Advice::Random {
            return 0..0;
        }
        let window = self.on_demand(pages, false, most, limits.request_pages, cached).unwrap_or(0..0);
        window.start.max(pages.end)..window.end.max(pages.end)
    }

    fn used(&mut self, bytes: &Range<u64>, limits: &ReadaheadLimits, cached: &dyn Cached) -> Range<u64> {
        let pages = bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES);
        self.used_pages(&pages, bytes.end / PAGE_BYTES, limits, cached)
    }

    fn failed(&mut self) {
        // The kernel shrinks the file's largest window for good (`shrink_readahead_size_eio`).
        self.divided = (self.divided + 2).min(63);
    }

    fn advise(&mut self, advice: Advice) {
        self.advice = advice;
    }
}

impl Window {
    fn of(most: u64) -> Self {
        let (start, size, asynchronous, after, markers) = (0, 0, 0, None, [None; MARKERS]);
        Self { most, start, size, asynchronous, after, markers, advice: Advice::Normal, divided: 0 }
    }

    /// A read that ended before the byte at `after`, in pages.
    fn used_pages(
        &mut self,
        pages: &Range<u64>,
        after: u64,
        limits: &ReadaheadLimits,
        cached: &dyn Cached,
    ) -> Range<u64> {
        let most = self.most(limits);
        self.after = Some(after);
        let marker = self.markers.iter_mut().find(|marker| marker.is_some_and(|page| pages.contains(&page)));
        let Some(page) = marker.and_then(Option::take).filter(|_| most > 0) else { return 0..0 };
        self.on_demand(&(page..pages.end), true, most, limits.request_pages, cached).unwrap_or(0..0)
    }

    fn most(&self, limits: &ReadaheadLimits) -> u64 {
        let most = if self.advice == Advice::Sequential { 2 * self.most } else { self.most };
        (most >> self.divided).min(limits.most)
    }

    /// The window to read, if it is larger than the pages asked for.
    fn on_demand(
        &mut self,
        pages: &Range<u64>,
        marked: bool,
        most: u64,
        request_pages: u64,
        cached: &dyn Cached,
    ) -> Option<Range<u64>> {
        let (index, asked) = (pages.start, pages.end - pages.start);
        let most = if asked > most { most.max(asked.min(request_pages)) } else { most };
        let end = self.start + self.size;
        if index != 0 && (index == end.wrapping_sub(self.asynchronous) || index == end) {
            self.start = end;
            self.size = next(self.size, most);
            self.asynchronous = self.size;
        } else if index != 0 && marked {
            self.start = cached.first_absent(index + 1, most)?;
            self.size = next(self.start - index + asked, most);
            self.asynchronous = self.size;
        } else if index == 0 || asked > most || self.after.is_some_and(|after| index.wrapping_sub(after) <= 1) {
            self.begin(index, asked, most);
        } else {
            let history = cached.before(index, most);
            if history <= asked {
                return None;
            }
            let history = if history >= index { 2 * history } else { history };
            (self.start, self.size, self.asynchronous) = (index, (history + asked).min(most), 1);
        }
        if index == self.start && self.size == self.asynchronous {
            let more = next(self.size, most);
            if self.size + more <= most {
                self.asynchronous = more;
                self.size += more;
            } else {
                self.size = most;
                self.asynchronous = most / 2;
            }
        }
        self.markers.rotate_left(1);
        self.markers[MARKERS - 1] = Some(self.start + self.size - self.asynchronous);
        Some(self.start..self.start + self.size)
    }

    fn begin(&mut self, index: u64, asked: u64, most: u64) {
        (self.start, self.size) = (index, init(asked, most));
        self.asynchronous = if self.size > asked { self.size - asked } else { self.size };
    }
}

#[cfg(test)]
mod tests;
