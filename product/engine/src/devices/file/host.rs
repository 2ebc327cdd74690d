//! The host's file, as far as the engine changes it.
//!
//! Owns: its size, the count of our changes, whether the cache is being cut to its size.
//! Does not own: the size that readers of the cache see (`cache`).
//! Invariants: the count moves before a waiter learns that a change has ended.

pub(crate) struct HostSide {
    size: u64,
    cutting: bool,
    changes: u64,
}

impl HostSide {
    pub(super) fn new(size: u64) -> Self {
        Self { size, cutting: false, changes: 0 }
    }

    /// Bytes on the device; bytes past this size read as zeros without a request.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn set_size(&mut self, size: u64) {
        self.size = size;
    }

    /// The file is at least so large.
    pub(crate) fn reaches(&mut self, size: u64) {
        self.size = self.size.max(size);
    }

    /// How many of our changes to the host's file have ended: writes, even failed ones, sizes and holes.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// A change of ours has ended.
    pub(crate) fn note_change(&mut self) {
        self.changes += 1;
    }

    /// Whether a new size is being applied to the pages: writers wait.
    pub(crate) fn is_cutting(&self) -> bool {
        self.cutting
    }

    pub(crate) fn set_cutting(&mut self, cutting: bool) {
        self.cutting = cutting;
    }
}
