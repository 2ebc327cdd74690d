//! Where the flusher is in a file, and what that says of the age of what is dirty there.
//!
//! A pass begins where the last one ended, goes on to where the file ended when it began, and then from the file's
//! start to where it began: whatever became dirty before it is on its way when it ends, however fast pages are
//! dirtied anew, before or behind it. So after a pass the file is as old as the pass.
//!
//! A stream may run ahead of the flusher for ever, and what is behind would never have its turn. Where that has
//! become old the flusher steps back at the pass's end; before that it follows the stream, for each step is a seek.
//!
//! Owns: the position, when a pass ends. Does not own: the file's age (`file`), which page is next (`batch`).
//! Invariants: pure. Offsets ascend but for one step back to the start; a step back to where nothing is dirty costs
//! nothing, since the next run is looked for from there.

use crate::platform::Nanos;

/// A pass, and where it is. By pages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pass {
    /// When it began; `None` between two.
    began: Option<Nanos>,
    from: u64,
    end: u64,
    at: u64,
    wrapped: bool,
}

impl Pass {
    /// From where on the next run is looked for, at `now` and in a file of so many pages; `is_old`: what is behind
    /// has to be written.
    pub(crate) fn go_on(&mut self, now: Nanos, file_end: u64, is_old: bool) -> u64 {
        if self.began.is_none() {
            *self = Self { began: Some(now), from: self.at, end: file_end, at: self.at, wrapped: false };
        }
        if is_old && !self.wrapped && self.at >= self.end {
            (self.at, self.wrapped) = (0, true);
        }
        self.at
    }

    /// A run was found, from its first page to the one after its last. Since when its file is dirty at most if
    /// that ended the pass.
    pub(crate) fn went(&mut self, first: u64, next: u64) -> Option<Nanos> {
        // Between the position and the file's end there was nothing.
        let back = first < self.at;
        let ended = match (self.wrapped, back) {
            (true, true) => true,
            (false, false) => self.from == 0 && next >= self.end,
            (true, false) | (false, true) => next >= self.from,
        };
        (self.at, self.wrapped) = (next, self.wrapped || back);
        if ended { self.found_nothing() } else { None }
    }

    /// Nothing is left that could be written: the pass has ended.
    pub(crate) fn found_nothing(&mut self) -> Option<Nanos> {
        self.began.take()
    }
}

#[cfg(test)]
mod tests;
