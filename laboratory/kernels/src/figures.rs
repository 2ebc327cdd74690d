//! The figures of a running kernel.
//!
//! Owns: the counts, the paths of calls of `balance_dirty_pages`, the first events of a run.
//! Does not own: the counters that laws read (`vmstat`).
//! Invariants: a call's path is counted when the call returns.

use std::collections::BTreeMap;

use crate::vmstat::Reads;

/// Counts since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Pages that became dirty.
    pub dirtied: u64,
    /// Pages that were written.
    pub written: u64,
    /// Calls of `balance_dirty_pages`.
    pub calls: u64,
    /// Passes of these calls through their loop.
    pub passes: u64,
    /// Reads of counters in these calls.
    pub reads: Reads,
    /// Waits in these calls.
    pub waits: u64,
    /// Nanoseconds of these waits.
    pub wait_ns: u64,
    /// Pages that writers wrote back in these calls.
    pub written_by_writers: u64,
    /// Requests for background writeback that found no idle pdflush thread.
    pub pdflush_refused: u64,
    /// Most pdflush threads at a time.
    pub pdflush_threads: u64,
}

/// The course of a call, one letter a step: `C` the writer goes on, `W` it writes back, `P` it waits. An `f` at the end
/// says that background writeback of the device was under way, so the call did not have to start it.
///
/// The reads belong to the key: the merged form takes the same steps with different reads.
pub type Path = (String, Reads);

/// The first events since [`Kernel::mark`](crate::Kernel::mark).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstEvents {
    /// Pages of the device that were dirty or under writeback at the first wait of a writer.
    pub wait_pages: Option<u64>,
    /// The instant of the first request for background writeback, in nanoseconds of virtual time.
    pub background_ns: Option<u64>,
}

#[derive(Default)]
pub(crate) struct Records {
    pub(crate) figures: Figures,
    pub(crate) paths: BTreeMap<Path, u64>,
    pub(crate) first: FirstEvents,
}
