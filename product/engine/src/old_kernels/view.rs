//! A law's reads of a view, tallied.
//!
//! Owns: the reads. Does not own: the view (`policy`).
//! Invariants: plain values, as in the rest of a view.

use super::counts::{Global, GlobalCounts, Reads, SharedCounts};
use crate::policy::{DeviceCounts, View};

impl View {
    /// The view with these shared counts.
    #[must_use]
    pub fn with_shared(mut self, counts: GlobalCounts) -> Self {
        self.shared.counts = counts;
        self
    }

    /// Hides the shared counts, for questions that must not depend on them.
    pub(crate) fn forget_shared(&mut self) {
        self.shared = SharedCounts::default();
    }

    /// Reads a shared counter.
    pub fn read(&self, which: Global) -> u64 {
        let mut reads = self.shared.reads.get();
        reads.global += 1;
        let counts = &self.shared.counts;
        let (value, dirty) = match which {
            Global::Free => (counts.free, false),
            Global::ActiveFile => (counts.active_file, false),
            Global::InactiveFile => (counts.inactive_file, false),
            Global::Dirty => (counts.dirty, true),
            Global::Writeback => (counts.writeback, true),
            Global::Unstable => (counts.unstable, true),
        };
        reads.dirty += u64::from(dirty);
        self.shared.reads.set(reads);
        value
    }

    fn read_device(&self) -> &DeviceCounts {
        let mut reads = self.shared.reads.get();
        reads.device += 1;
        self.shared.reads.set(reads);
        self.device()
    }

    /// Reads how many pages of the device are dirty and not under writeback.
    pub fn device_reclaimable(&self) -> u64 {
        self.read_device().reclaimable
    }

    /// Reads how many pages of the device are under writeback.
    pub fn device_writeback(&self) -> u64 {
        self.read_device().writeback
    }

    /// Pages that ordinary allocations do not get: a constant of the machine, not tallied.
    pub fn reserve_pages(&self) -> u64 {
        self.shared.counts.reserve
    }

    /// The reads of this view so far.
    pub fn reads(&self) -> Reads {
        self.shared.reads.get()
    }
}
