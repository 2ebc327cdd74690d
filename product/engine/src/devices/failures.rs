//! The failed writes and flushes of a device, and its dirty pages that cannot be written now: all of a file whose last
//! write failed, or does not end, and withheld ones.
//!
//! Such pages stay dirty for an unknown time. If they used up a policy's limit in device time, the writers of all other
//! files would wait for them. While the device itself hangs, writes that do not end are its own, and count as all
//! others.
//!
//! Owns: the failures in a row, the last error, the counts of failed files and pages; the sums of pages that cannot be
//! written, the bound up to which they do not count against the limit.
//! Does not own: a file's error and its retries (`file`), which files count (`file`), the limit in memory (`dirty`),
//! whether the device hangs (`hang`).
//! Invariants: the counts are the sums over the device's files, as these reported last. The lock is a leaf.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afflux_device::error::DeviceError;
use afflux_pages::wait::lock;

/// After so many files have failed in a row, without a successful write in between, all writers that wait to be
/// admitted get the error. An error that concerns one file does not count.
const FAILURES_BEFORE_TELLING: u32 = 3;

/// Pages of a file whose last write failed, or is set aside.
#[derive(Clone, Copy, Default)]
pub(super) struct FailedPages {
    pub(super) all: u64,
    /// The same pages if the file's writes keep failing, else 0.
    pub(super) failing: u64,
}

#[derive(Default)]
pub(crate) struct Failures {
    latest: Mutex<Latest>,
    files: AtomicU64,
    /// Pages whose last write failed, or is set aside.
    pages: AtomicU64,
    /// Failed pages of files whose writes keep failing.
    failing_pages: AtomicU64,
    /// The pages added to the limit for failed pages.
    extra_pages: AtomicU64,
}

#[derive(Default)]
struct Latest {
    /// Failed writes and flushes since the last success.
    in_row: u32,
    error: Option<DeviceError>,
}

impl Latest {
    fn keeps_failing(&self) -> Option<DeviceError> {
        self.error.filter(|_| self.in_row >= FAILURES_BEFORE_TELLING)
    }
}

impl Failures {
    /// A write or flush failed, of a file that had no error.
    pub(crate) fn file_fails(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// A file has no error any more.
    pub(crate) fn file_recovers(&self) {
        self.files.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// Pages whose last write failed, or is set aside.
    pub(crate) fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    /// Failed pages of files whose writes keep failing.
    pub(crate) fn failing_pages(&self) -> u64 {
        self.failing_pages.load(Ordering::Relaxed)
    }

    /// The failed pages of a file have changed since the last report.
    pub(super) fn note_pages(&self, before: FailedPages, now: FailedPages) {
        // Differences may be below zero: they wrap, and so does the sum.
        self.pages.fetch_add(now.all.wrapping_sub(before.all), Ordering::Relaxed);
        self.failing_pages.fetch_add(now.failing.wrapping_sub(before.failing), Ordering::Relaxed);
    }

    /// Sets the added pages; returns the number before.
    pub(crate) fn replace_extra_pages(&self, pages: u64) -> u64 {
        self.extra_pages.swap(pages, Ordering::Relaxed)
    }

    /// Notes how a write or flush ended. `known`: it failed as the file's write before it did. An error that concerns
    /// one file says nothing about the device. Returns whether that began or ended [`Failures::keeps_failing`].
    pub(super) fn note(&self, result: Result<(), DeviceError>, known: bool) -> bool {
        let mut latest = lock(&self.latest);
        let before = latest.keeps_failing().is_some();
        match result {
            Ok(()) => latest.in_row = 0,
            Err(error) if known || error.is_of_one_file() => {}
            Err(error) => *latest = Latest { in_row: latest.in_row.saturating_add(1), error: Some(error) },
        }
        latest.keeps_failing().is_some() != before
    }

    /// The error for writers that would wait to be admitted, if the device keeps failing.
    pub(crate) fn keeps_failing(&self) -> Option<DeviceError> {
        lock(&self.latest).keeps_failing()
    }

    /// The error of the last write or flush that failed.
    pub(crate) fn last_error(&self) -> Option<DeviceError> {
        lock(&self.latest).error
    }
}

/// Dirty pages and their runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Amount {
    pub(crate) pages: u64,
    pub(crate) runs: u64,
}

impl Amount {
    pub(super) fn and(self, other: Self) -> Self {
        Self { pages: self.pages + other.pages, runs: self.runs + other.runs }
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self { pages: self.pages.saturating_sub(other.pages), runs: self.runs.saturating_sub(other.runs) }
    }

    /// At most `pages_max` pages; the runs shrink with the pages.
    fn at_most(self, pages_max: u64) -> Self {
        match self.pages <= pages_max {
            true => self,
            false => {
                let runs = u128::from(self.runs) * u128::from(pages_max) / u128::from(self.pages);
                Self { pages: pages_max, runs: runs as u64 }
            }
        }
    }
}

/// The unwritable pages of one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct FileAmounts {
    /// If its last write failed.
    pub(super) failed: Amount,
    /// If a write of it is set aside, and none failed.
    pub(super) aside: Amount,
    /// If none failed or is set aside: pages withheld. They count in no run.
    pub(super) withheld_pages: u64,
}

#[derive(Default)]
struct Sum {
    pages: AtomicU64,
    runs: AtomicU64,
}

impl Sum {
    /// Differences may be below zero: they wrap, and so does the sum.
    fn note(&self, before: Amount, now: Amount) {
        self.pages.fetch_add(now.pages.wrapping_sub(before.pages), Ordering::Relaxed);
        self.runs.fetch_add(now.runs.wrapping_sub(before.runs), Ordering::Relaxed);
    }

    fn get(&self) -> Amount {
        Amount { pages: self.pages.load(Ordering::Relaxed), runs: self.runs.load(Ordering::Relaxed) }
    }
}

#[derive(Default)]
pub(crate) struct Unwritable {
    failed: Sum,
    aside: Sum,
    withheld: Sum,
    pages_max: AtomicU64,
    /// Whether the device hangs.
    stalled: Arc<AtomicBool>,
}

impl Unwritable {
    pub(super) fn new(stalled: Arc<AtomicBool>) -> Self {
        Self { stalled, ..Self::default() }
    }

    /// A file had reported `before`, and has `now`.
    pub(super) fn note(&self, before: FileAmounts, now: FileAmounts) {
        self.failed.note(before.failed, now.failed);
        self.aside.note(before.aside, now.aside);
        let withheld = |pages| Amount { pages, runs: 0 };
        self.withheld.note(withheld(before.withheld_pages), withheld(now.withheld_pages));
    }

    /// At most so many pages do not count against the limit.
    pub(crate) fn set_most(&self, pages: u64) {
        self.pages_max.store(pages, Ordering::Relaxed);
    }

    pub(crate) fn has_any(&self) -> bool {
        self.failed.get().pages + self.aside.get().pages + self.withheld.get().pages > 0
    }

    /// All dirty pages of files whose last write failed, or is set aside.
    pub(crate) fn failed_pages(&self) -> u64 {
        self.failed.get().pages + self.aside.get().pages
    }

    /// Count of pages that are withheld from writeback.
    pub(crate) fn withheld_pages(&self) -> u64 {
        self.withheld.get().pages
    }

    /// The pages and runs that do not count against the limit now.
    pub(super) fn roomless(&self) -> Amount {
        let failed = self.failed.get().and(self.withheld.get());
        let all = if self.stalled.load(Ordering::Relaxed) { failed } else { failed.and(self.aside.get()) };
        all.at_most(self.pages_max.load(Ordering::Relaxed))
    }

    /// Whether so many charged pages are all unwritable, also while the device hangs.
    pub(super) fn are_all(&self, pages: u64) -> bool {
        pages <= self.failed.get().and(self.aside.get()).at_most(self.pages_max.load(Ordering::Relaxed)).pages
    }
}

#[cfg(test)]
mod tests;
