//! The storage that a file is reported to use while some of its data may not be on the host.
//!
//! Owns: the upper bound of the writes since the host was last asked.
//! Does not own: the host's figure, the size, unwritten pages (`inode` and the engine know them).
//! Invariants: the figure is never less than the file's data needs, since backup tools take the difference for holes
//! and leave the data out. A figure that is too large lasts until the host is asked again. It never exceeds the whole
//! file in pages, unless the host's figure does.

use std::ops::Range;

const PAGE_BYTES: u64 = 4096;

/// The writes, relative to the host's state at its last answer.
#[derive(Default)]
pub(crate) struct ReportedUsage {
    /// Bytes of whole pages in all writes ever made. It only grows, so that answers of the host may come in any order.
    written: u64,
    /// The moment right before the host gave the current figure.
    asked: UsageMark,
}

/// The moment right before the host is asked.
#[derive(Clone, Copy, Default)]
pub(crate) struct UsageMark {
    written: u64,
    unwritten: u64,
}

impl ReportedUsage {
    /// Records a write of these bytes.
    pub(crate) fn wrote(&mut self, range: &Range<u64>) {
        let start = range.start - range.start % PAGE_BYTES;
        self.written = self.written.saturating_add(range.end.next_multiple_of(PAGE_BYTES) - start);
    }

    /// Called before `unwritten` is counted; both come before the question to the host.
    pub(crate) fn mark(&self) -> UsageMark {
        UsageMark { written: self.written, unwritten: 0 }
    }

    /// The host was asked after `mark`: its answer includes earlier writes that were on the host.
    pub(crate) fn renewed(&mut self, mark: UsageMark) {
        self.asked = mark;
    }

    /// The storage to report for a file of `size` bytes, if the host's figure is `used`.
    pub(crate) fn reported_bytes(&self, used: u64, size: u64) -> u64 {
        let since = (self.written - self.asked.written).saturating_add(self.asked.unwritten);
        used.saturating_add(since).min(used.max(size.next_multiple_of(PAGE_BYTES)))
    }
}

impl UsageMark {
    /// Bytes of pages that the host does not have at this moment.
    pub(crate) fn with_unwritten(self, unwritten: u64) -> Self {
        Self { unwritten, ..self }
    }
}

#[cfg(test)]
mod tests;
