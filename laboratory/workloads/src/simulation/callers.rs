//! What the callers of a run are charged with, as figures and in words.
//!
//! Owns: which of a table's costs a run uses.
//! Does not own: the table (`costs`), charging (`workload`).
//! Invariants: a run says in words what its calls and copies cost, and what is left out.

use afflux_simulator::CallerCost;

use super::{Callers, Simulation};
use crate::caller::{CPU_CACHE_BYTES, Copies};

impl Simulation {
    /// Whether it is an engine of ours that is called, and not a kernel.
    fn is_ours(&self) -> bool {
        afflux_linux_policies::policy(&self.policy).is_err()
    }

    /// Nanoseconds of a read's and a write's call, and what copies cost, if they do.
    pub(super) fn caller_costs(&self) -> ([u64; 2], Option<Copies>) {
        let own = [self.call_ns; 2];
        if self.callers == Callers::InProcess {
            return (own, None);
        }
        let kernels = [CallerCost::ReadCall, CallerCost::WriteCall].map(|cost| self.costs.caller_ps(cost) / 1000);
        // A table that does not know what a kernel's call costs: at least a call that does nothing.
        let calls = if self.is_ours() { own } else { [own[0].max(kernels[0]), own[1].max(kernels[1])] };
        (calls, Some(Copies::new(&self.costs)).filter(Copies::cost_something))
    }

    /// What [`Self::caller_costs`] come to.
    pub(super) fn callers_in_words(&self) -> String {
        let ([read_ns, write_ns], copies) = self.caller_costs();
        let calls = match self.is_ours() {
            true => format!("{read_ns} ns a call: the engine in the caller's process, behind a bare system call"),
            false => format!("{read_ns} ns a read and {write_ns} ns a write: a kernel's"),
        };
        let cache = CPU_CACHE_BYTES >> 20;
        match copies {
            Some(_) => format!("{calls}; copies of more than {cache} MiB at the speed of memory"),
            None => format!("{calls}; all copies at the speed of the CPU's cache"),
        }
    }
}
