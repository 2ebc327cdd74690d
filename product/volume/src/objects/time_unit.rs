//! The unit of the times that a file system keeps.
//!
//! Owns: the unit as the tree tells it, or as it was learnt from a time that was set.
//! Does not own: the times (`inode`), the units of known file systems (the tree).
//! Invariants: it only grows.

use crate::tree::stat::Timestamp;
use std::sync::atomic::{AtomicU32, Ordering};

/// The units of file systems: NTFS, network protocols, exFAT, old ext4, FAT.
const UNITS_NS: [u32; 6] = [100, 1_000, 1_000_000, 10_000_000, 1_000_000_000, 2_000_000_000];

#[derive(Debug)]
pub(crate) struct FileTimeUnit(AtomicU32);

impl Default for FileTimeUnit {
    fn default() -> Self {
        Self(AtomicU32::new(1))
    }
}

impl FileTimeUnit {
    pub(crate) fn ns(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, known_ns: u32) {
        if known_ns > self.ns() {
            self.0.fetch_max(known_ns, Ordering::Relaxed);
        }
    }

    /// The host was given a time, and kept another one. A host that limits years, or that sets no times, does not
    /// count as one with a coarser unit.
    pub(crate) fn learn(&self, given: Timestamp, cached: Timestamp) {
        if let Some(unit) = UNITS_NS.iter().find(|unit| given.cut_to(**unit) == cached).filter(|_| cached != given) {
            self.note(*unit);
        }
    }
}

#[cfg(test)]
mod tests;
