//! The figures of a run.
//!
//! Owns: the record.
//! Does not own: the measurement (`calls`, `names`, `slow`), the tables (`report`).
//! Invariants: a figure that a case does not measure is 0.

/// One run of one contender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    /// Processor time of the caller and of the servers for one call.
    pub(crate) caller_us: f64,
    pub(crate) servers_us: f64,
    /// Context switches of both for one call.
    pub(crate) switches: f64,
    /// Milliseconds that the hypervisor took during the run.
    pub(crate) stolen_ms: u64,
}
