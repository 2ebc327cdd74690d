//! The figures of a run.
//!
//! Owns: the record, the measured use of processors.
//! Does not own: the work (`calls`, `names`, `slow`), the tables (`report`).
//! Invariants: a figure that a case does not measure is 0.

use afflux_rig::Usage;

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

impl Figure {
    /// The use of processors for each of so many calls, by the caller and by the servers.
    pub(crate) fn used([caller, servers]: [Usage; 2], calls: usize) -> Self {
        let a_call = |sum: u64| sum as f64 / calls.max(1) as f64;
        Self {
            caller_us: a_call(caller.cpu_ns) / 1e3,
            servers_us: a_call(servers.cpu_ns) / 1e3,
            switches: a_call(caller.plus(servers).switches),
            ..Self::default()
        }
    }
}
