//! The figures of a run.
//!
//! Owns: the record, the measured use of processors.
//! Does not own: the work (`calls`, `names`, `slow`), the tables (`report`).
//! Invariants: a figure that a case does not measure is 0.

use std::time::{Duration, Instant};

use afflux_rig::Usage;

use crate::contenders::Running;

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

/// A measurement that has begun.
pub(crate) struct Measurement<'a> {
    servers: &'a Running,
    before: [Usage; 2],
    begin: Instant,
}

impl<'a> Measurement<'a> {
    pub(crate) fn begin(servers: &'a Running) -> Self {
        Self { servers, before: [Usage::of(std::process::id()), servers.usage()], begin: Instant::now() }
    }

    /// Ends it after so many calls. Returns its time, and the use of processors.
    pub(crate) fn end(self, calls: usize) -> (Duration, Figure) {
        let elapsed = self.begin.elapsed();
        let caller = Usage::of(std::process::id()).since(self.before[0]);
        let servers = self.servers.usage().since(self.before[1]);
        let a_call = |sum: u64| sum as f64 / calls.max(1) as f64;
        let figure = Figure {
            caller_us: a_call(caller.cpu_ns) / 1e3,
            servers_us: a_call(servers.cpu_ns) / 1e3,
            switches: a_call(caller.plus(servers).switches),
            ..Figure::default()
        };
        (elapsed, figure)
    }
}
