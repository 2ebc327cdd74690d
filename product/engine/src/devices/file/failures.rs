//! The failed writes and flushes of a file, and its next try. Linux records a file's failed writeback as an `errseq_t`.
//!
//! Owns: the file's error, the failures in a row, the time of the next try, the counts of failed pages and of those
//! written since.
//! Does not own: the pause before a try (`writeback::complete`), the failures of the device.
//! Invariants: requests that fail together are one try.

use afflux_device::error::DeviceError;
use afflux_device::platform::Nanos;

use crate::devices::failures::{Amount, FailedPages, FileAmounts};

/// Failed attempts in a row after which a file's writes count as failing.
pub(crate) const FAILING_TRIES: u32 = 3;

#[derive(Default)]
pub(crate) struct FileFailures {
    /// The error of the last failed write or flush, until everything is durable.
    error: Option<DeviceError>,
    count: u64,
    /// Since the last success; this sets the pause before the next attempt.
    in_row: u32,
    retry_at: Nanos,
    pages: u64,
    /// Pages written since the last failure.
    written_pages: u64,
    /// The load of requests set aside.
    aside: Amount,
    /// The failed pages as last reported to the device.
    reported: FailedPages,
    /// The dirty pages that cannot be written, as last reported.
    reported_unwritable: FileAmounts,
}

impl FileFailures {
    /// The error of the last failed write or flush, until everything is durable.
    pub(crate) fn error(&self) -> Option<DeviceError> {
        self.error
    }

    /// The number of failed writes and flushes.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The number of failed tries since the last success.
    pub(crate) fn in_row(&self) -> u32 {
        self.in_row
    }

    /// Pages whose last write failed.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    pub(crate) fn add_pages(&mut self, pages: u64) {
        self.pages += pages;
    }

    pub(crate) fn remove_pages(&mut self, pages: u64) {
        self.pages -= pages;
    }

    /// Whether a write of the file is set aside.
    pub(crate) fn is_aside(&self) -> bool {
        self.aside.pages > 0
    }

    pub(in crate::devices) fn set_aside(&mut self, write: Amount) {
        self.aside.pages += write.pages;
        self.aside.runs += write.runs;
    }

    pub(in crate::devices) fn take_back(&mut self, write: Amount) {
        self.aside = self.aside.without(write);
    }

    /// Whether the file's pages cannot be written now: its last write failed, or is set aside.
    pub(crate) fn is_unwritable(&self) -> bool {
        self.in_row > 0 || self.is_aside()
    }

    /// The unwritable part of the file's dirty pages, as last reported and now.
    pub(in crate::devices) fn report_unwritable(
        &mut self,
        dirty: Amount,
        withheld_pages: u64,
    ) -> (FileAmounts, FileAmounts) {
        let all = Amount { pages: dirty.pages, runs: dirty.runs + self.aside.runs };
        let now = match (self.in_row > 0, self.is_aside()) {
            (true, _) => FileAmounts { failed: all, ..FileAmounts::default() },
            (false, true) => FileAmounts { aside: all, ..FileAmounts::default() },
            (false, false) => FileAmounts { withheld_pages, ..FileAmounts::default() },
        };
        (std::mem::replace(&mut self.reported_unwritable, now), now)
    }

    /// A write or flush failed; returns whether the file had no error.
    pub(crate) fn insert_error(&mut self, error: DeviceError) -> bool {
        self.count += 1;
        self.error.replace(error).is_none()
    }

    /// A write failed: sets the time of the next try, unless another request of the same try did. `pause_ns` gives the
    /// pause after so many failed tries.
    pub(crate) fn try_fails(&mut self, now: Nanos, pause_ns: impl FnOnce(u32) -> u64) {
        self.written_pages = 0;
        if self.in_row == 0 || self.retry_at <= now {
            self.retry_at = now.after(pause_ns(self.in_row));
            self.in_row += 1;
        }
    }

    pub(crate) fn write_succeeds(&mut self, pages: u64) {
        self.in_row = 0;
        self.written_pages = self.written_pages.saturating_add(pages);
    }

    /// Pages written since the last failure.
    pub(crate) fn written_pages(&self) -> u64 {
        self.written_pages
    }

    /// The file has no error any more; returns whether it had one.
    pub(crate) fn take_error(&mut self) -> bool {
        self.error.take().is_some()
    }

    /// Whether writes of the file keep failing.
    pub(crate) fn is_failing(&self) -> bool {
        self.in_row >= FAILING_TRIES
    }

    /// If the last write failed and the pause before the next try is not over, the pause's end.
    pub(crate) fn backs_off(&self, now: Nanos) -> Option<Nanos> {
        (self.in_row > 0 && self.retry_at > now).then_some(self.retry_at)
    }

    /// The failed pages, and those set aside, as last reported and now.
    pub(in crate::devices) fn report(&mut self) -> (FailedPages, FailedPages) {
        let failing = if self.is_failing() { self.pages } else { 0 };
        let now = FailedPages { all: self.pages + self.aside.pages, failing };
        (std::mem::replace(&mut self.reported, now), now)
    }
}

#[cfg(test)]
mod tests;
