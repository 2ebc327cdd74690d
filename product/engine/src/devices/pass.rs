//! The flusher's position in a file, and the age of the file's dirty pages that follows from it.
//!
//! A pass begins where the last one ended. It goes on to the file's end at that time, and then from the file's start to
//! its own beginning. All pages that were dirty before the pass are in flight when it ends, however fast pages are
//! dirtied anew, before or behind it. So after a pass the file is as old as the pass.
//!
//! A stream may run ahead of the flusher for ever, and the pages behind would never be written. If those pages have
//! become old, the flusher steps back at the pass's end. Before that it follows the stream, since each step back is a
//! seek.
//!
//! Owns: the position, when a pass ends. Does not own: the file's age (`file`), which page is next (`batch`).
//! Invariants: pure. Offsets ascend except for one step back to the start. A step back to a clean page costs nothing,
//! since the next run is searched for from there.

use afflux_device::platform::Nanos;

/// A pass and its position, in pages.
#[derive(Clone, Copy, Debug, Default)]
struct Pass {
    /// When the pass began; `None` between two passes.
    began: Option<Nanos>,
    from: u64,
    end: u64,
    at: u64,
    wrapped: bool,
}

impl Pass {
    /// The page from which to search for the next run, at `now` and in a file of `file_end` pages. `is_old`: the pages
    /// behind have to be written.
    fn go_on(&mut self, now: Nanos, file_end: u64, is_old: bool) -> u64 {
        if self.began.is_none() {
            *self = Self { began: Some(now), from: self.at, end: file_end, at: self.at, wrapped: false };
        }
        if is_old && !self.wrapped && self.at >= self.end {
            (self.at, self.wrapped) = (0, true);
        }
        self.at
    }

    /// A run was found, from its first page to the page after its last. If that ended the pass, returns the earliest
    /// time at which the file can have become dirty.
    fn went(&mut self, first: u64, next: u64) -> Option<Nanos> {
        // Nothing was found between the position and the file's end.
        let back = first < self.at;
        let ended = match (self.wrapped, back) {
            (true, true) => true,
            (false, false) => self.from == 0 && next >= self.end,
            (true, false) | (false, true) => next >= self.from,
        };
        (self.at, self.wrapped) = (next, self.wrapped || back);
        if ended { self.found_nothing() } else { None }
    }

    /// No writable page remains: the pass has ended.
    fn found_nothing(&mut self) -> Option<Nanos> {
        self.began.take()
    }
}

/// The flusher's position in a file.
#[derive(Default)]
pub(crate) struct Position {
    /// Where the flusher continues.
    cursor: u64,
    /// The page after the last write request.
    write_end: u64,
    /// The position and progress, if the flusher writes in passes.
    pass: Pass,
}

impl Position {
    /// Where the flusher continues.
    pub(crate) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Whether a run that begins at this page follows the last write request.
    pub(crate) fn does_follow(&self, page: u64) -> bool {
        page == self.write_end
    }

    /// A run up to this page was claimed.
    pub(crate) fn claimed_to(&mut self, end: u64) {
        (self.cursor, self.write_end) = (end, end);
    }

    /// The flusher writes in passes: it continues where [`Pass::go_on`] says.
    pub(crate) fn go_on(&mut self, now: Nanos, file_end: u64, is_old: bool) {
        self.cursor = self.pass.go_on(now, file_end, is_old);
    }

    /// As [`Pass::went`], for a run that was claimed from its first page.
    pub(crate) fn went(&mut self, first: u64) -> Option<Nanos> {
        self.pass.went(first, self.cursor)
    }

    /// As [`Pass::found_nothing`].
    pub(crate) fn found_nothing(&mut self) -> Option<Nanos> {
        self.pass.found_nothing()
    }
}

#[cfg(test)]
mod tests;
