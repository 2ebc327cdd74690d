//! Counters that all devices share, and the tally of a law's reads of them.
//!
//! Owns: the counters' names, a snapshot of them. Does not own: the reads (`view`), the counting (`devices`).
//! Invariants: a law that reads a counter twice is counted twice, since its kernel reads the counter twice.

use std::cell::Cell;

/// Counts shared by all devices, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GlobalCounts {
    /// Free frames.
    pub free: u64,
    /// Free frames that ordinary allocations do not get.
    pub reserve: u64,
    /// File pages, used lately.
    pub active_file: u64,
    /// File pages, not used lately; dirty ones are among them.
    pub inactive_file: u64,
    /// Dirty pages, without pages under writeback.
    pub dirty: u64,
    /// Pages under writeback.
    pub writeback: u64,
    /// Pages written to a server and not committed there: none here.
    pub unstable: u64,
}

/// Names one of [`GlobalCounts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Global {
    /// [`GlobalCounts::free`].
    Free,
    /// [`GlobalCounts::active_file`].
    ActiveFile,
    /// [`GlobalCounts::inactive_file`].
    InactiveFile,
    /// [`GlobalCounts::dirty`].
    Dirty,
    /// [`GlobalCounts::writeback`].
    Writeback,
    /// [`GlobalCounts::unstable`].
    Unstable,
}

/// A law's reads of counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Reads of counters that all devices share.
    pub global: u64,
    /// The part of these that read dirty, writeback or unstable pages.
    pub dirty: u64,
    /// Reads of counters of one device.
    pub device: u64,
}

/// The shared counters of a view.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedCounts {
    pub(super) counts: GlobalCounts,
    pub(super) reads: Cell<Reads>,
}
