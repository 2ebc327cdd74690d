//! Costs charged to the callers of a run, as figures and in words.
//!
//! Owns: the choice of a table's costs for a run.
//! Does not own: the table (`costs`), charging (`simulated`).
//! Invariants: a run describes the costs of its calls and copies, and the costs that it leaves out.

use afflux_simulator::CallerCost;

use super::{Callers, Simulation};
use crate::caller::{CPU_CACHE_BYTES, Copies};

impl Simulation {
    /// Whether the callers call our engine rather than a kernel.
    fn is_ours(&self) -> bool {
        afflux_linux_policies::policy(&self.policy).is_err()
    }

    /// Nanoseconds of a read's and of a write's call, and the costs of copies, if any.
    pub(super) fn caller_costs(&self) -> ([u64; 2], Option<Copies>) {
        let own = [self.call_ns; 2];
        if self.callers == Callers::InProcess {
            return (own, None);
        }
        let kernels = [CallerCost::ReadCall, CallerCost::WriteCall].map(|cost| self.costs.caller_ps(cost) / 1000);
        // A table may lack the cost of a kernel's call; a call that does nothing is the minimum.
        let calls = if self.is_ours() { own } else { [own[0].max(kernels[0]), own[1].max(kernels[1])] };
        (calls, Some(Copies::new(&self.costs)).filter(Copies::cost_something))
    }

    /// [`Self::caller_costs`] in words.
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
