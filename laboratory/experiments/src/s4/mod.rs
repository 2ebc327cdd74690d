//! Experiment s4: a background threshold in time, `dirty_background_centisecs`, per device.
//!
//! A client copies a file to an NFS server. It sends a window of data, then COMMITs and waits. If a server begins to
//! write only then, its disk idles during the transfer, and its link idles during the writes. A threshold in
//! centiseconds of the disk's time makes the server write earlier. (Seed S4, posted to linux-kernel on 16 September
//! 2012.)
//!
//! Owns: the order of the parts.
//! Does not own: the options (`plan`), the variants (`variants`), the simulated server (`server`) and its rows (`simulated`), the published
//! figures (`published`), tables and sentences (`findings`), the measured part (`measured`).
//! Invariants: rows come from runs.

mod findings;
mod measured;
mod plan;
mod published;
mod server;
mod simulated;
mod variants;

use crate::experiment::{Experiment, Findings, LabError, OptionInfo, Request, Watch};
use plan::Plan;

/// The experiment.
pub(crate) struct S4;

/// The simulated part's share of the time, in a run with a measured part.
const SIMULATED_SHARE: f64 = 0.3;

impl Experiment for S4 {
    fn name(&self) -> &'static str {
        "s4"
    }

    fn about(&self) -> &'static str {
        "A background threshold in time, so that a server writes while it receives"
    }

    fn fitted(&self) -> &'static str {
        "fitted: the 900 MB that may be dirty, which make the background line of 90 MB and so the rates \
         without a threshold; predicted: the thresholds' gains over that"
    }

    fn thread(&self) -> &'static str {
        "Thread: '[PATCH v3 1/2] writeback: add dirty_background_centisecs per bdi variable', Namjae Jeon, linux-kernel, \
         16 September 2012"
    }

    fn words(&self) -> &'static str {
        include_str!("words.md")
    }

    fn options(&self) -> &'static [OptionInfo] {
        plan::OPTIONS
    }

    fn can_measure(&self) -> bool {
        true
    }

    fn run(&self, request: &Request, watch: &mut dyn Watch) -> Result<Findings, LabError> {
        let plan = Plan::read(request)?;
        let share = if request.measured { SIMULATED_SHARE } else { 1.0 };
        let cells = simulated::run(&plan, watch, share)?;
        let mut findings = findings::of_simulated(&plan, &cells);
        if request.measured {
            let measured = measured::run(&plan, request.quick, watch, share)?;
            findings::add_measured(&mut findings, &plan, &measured);
        }
        watch.step("done", 1.0);
        Ok(findings)
    }
}

#[cfg(test)]
mod tests;
