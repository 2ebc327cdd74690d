//! How much storage a file is told to take while some of it may not be on the host.
//!
//! Owns: the upper bound of what was written since the host was last asked.
//! Does not own: the host's figure, the size, unwritten pages (`inode` and the engine know them).
//! Invariants: a file is never told to take less than its data needs, since backup tools take that
//! for holes and leave the data out. What is told too much is told until the host is asked again, and
//! never more than the whole file in pages, unless the host says so.

use std::ops::Range;

const PAGE_BYTES: u64 = 4096;

/// What was written, against what the host knew when it was last asked.
#[derive(Default)]
pub(crate) struct Usage {
    /// Bytes of whole pages in all writes there ever were. Only grows, so that answers of the host
    /// may come in any order.
    written: u64,
    /// Right before the host gave the figure that is held.
    asked: Mark,
}

/// The moment right before the host is asked.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mark {
    written: u64,
    unwritten: u64,
}

impl Usage {
    /// Notes a write of these bytes.
    pub(crate) fn wrote(&mut self, range: &Range<u64>) {
        let start = range.start - range.start % PAGE_BYTES;
        self.written = self.written.saturating_add(range.end.next_multiple_of(PAGE_BYTES) - start);
    }

    /// To be taken before `unwritten` is counted, and that before the host is asked.
    pub(crate) fn mark(&self) -> Mark {
        Mark { written: self.written, unwritten: 0 }
    }

    /// The host was asked after `mark`: what had been written before, and was on the host, is in its
    /// answer.
    pub(crate) fn renewed(&mut self, mark: Mark) {
        self.asked = mark;
    }

    /// What a file of `size` bytes is told to take, if the host said `used`.
    pub(crate) fn told(&self, used: u64, size: u64) -> u64 {
        let since = (self.written - self.asked.written).saturating_add(self.asked.unwritten);
        used.saturating_add(since).min(used.max(size.next_multiple_of(PAGE_BYTES)))
    }
}

impl Mark {
    /// Bytes of pages that the host does not have at this moment.
    pub(crate) fn with_unwritten(self, unwritten: u64) -> Self {
        Self { unwritten, ..self }
    }
}

#[cfg(test)]
mod tests;
