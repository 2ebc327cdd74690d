//! Dirty pages that cannot be written now: all of a file whose last write failed, or does not end, and withheld ones.
//!
//! They stay dirty for an unknown time. If they took the room of a policy in device time, the writers of all other
//! files would wait for them. While the device itself hangs, writes that do not end are its own, and take room as all
//! others.
//!
//! Owns: their sums over a device's files, the bound up to which they take no room.
//! Does not own: which files count (`file`), the room in memory (`dirty::failing`), whether the device hangs (`hang`).
//! Invariants: the sums are those that the files reported last.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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

    /// At most so many pages take no room.
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

    /// The pages and runs that take no room now.
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
