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
    /// Anonymous memory, used lately: none here.
    pub active_anon: u64,
    /// Anonymous memory, not used lately: none here.
    pub inactive_anon: u64,
    /// File pages, used lately.
    pub active_file: u64,
    /// File pages, not used lately; dirty ones are among them.
    pub inactive_file: u64,
    /// Dirty pages, without pages under writeback.
    pub dirty: u64,
    /// Pages under writeback.
    pub writeback: u64,
    /// Pages under writeback through a copy: none here.
    pub writeback_copy: u64,
    /// Pages written to a server and not committed there: none here.
    pub unstable: u64,
}

/// Names one of [`GlobalCounts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Global {
    /// [`GlobalCounts::free`].
    Free,
    /// [`GlobalCounts::active_anon`].
    ActiveAnon,
    /// [`GlobalCounts::inactive_anon`].
    InactiveAnon,
    /// [`GlobalCounts::active_file`].
    ActiveFile,
    /// [`GlobalCounts::inactive_file`].
    InactiveFile,
    /// [`GlobalCounts::dirty`].
    Dirty,
    /// [`GlobalCounts::writeback`].
    Writeback,
    /// [`GlobalCounts::writeback_copy`].
    WritebackCopy,
    /// [`GlobalCounts::unstable`].
    Unstable,
}

impl Global {
    /// Whether an engine has nothing of this kind, so that the count is always 0.
    pub(super) fn is_absent(self) -> bool {
        matches!(self, Self::ActiveAnon | Self::InactiveAnon | Self::WritebackCopy | Self::Unstable)
    }
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
    pub(super) absent_reads: Cell<u64>,
}
