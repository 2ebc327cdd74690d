//! The failed writes and flushes of a device.
//!
//! Owns: the failures in a row, the last error, the counts of failed files and pages, the room beyond the limit for
//! failed pages.
//! Does not own: a file's error and its retries (`file`), the room's formula (`dirty::failing`).
//! Invariants: the counts are the sums over the device's files. The lock is a leaf.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_device::error::DeviceError;
use afflux_pages::wait::lock;

/// After so many files have failed in a row, without a successful write in between, all writers that wait for room get
/// the error. An error that concerns one file does not count.
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
    /// The room added to the limit for failed pages.
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

    /// Sets the room; returns the one before.
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

    /// The error for writers that would wait for room, if the device keeps failing.
    pub(crate) fn keeps_failing(&self) -> Option<DeviceError> {
        lock(&self.latest).keeps_failing()
    }

    /// The error of the last write or flush that failed.
    pub(crate) fn last_error(&self) -> Option<DeviceError> {
        lock(&self.latest).error
    }
}
