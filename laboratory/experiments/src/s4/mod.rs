//! Experiment s4: a background threshold in time, `dirty_background_centisecs`, per device.
//!
//! A client copies a file to an NFS server. It sends a window of data, then COMMITs and waits. If a server begins to
//! write only then, its disk idles during the transfer, and its link idles during the writes. A threshold in
//! centiseconds of the disk's time makes the server write earlier. (Seed S4, posted to linux-kernel on 16 September
//! 2012.)
//!
//! Owns: the order of the parts.
//! Does not own: the options and variants (`plan`), the seed's arithmetic (`formula`), the simulated
//! server (`server`) and its rows (`simulated`), the published figures (`published`), tables and charts (`findings`),
//! the measured part (`measured`).
//! Invariants: rows come from runs.

mod findings;
mod formula;
mod measured;
mod plan;
mod published;
mod server;
mod simulated;

use clap::Args;

use crate::experiment::{Experiment, Findings, LabError, Request, StoredRows, Watch};
use plan::Plan;

/// The experiment.
pub(crate) static S4: Experiment = Experiment {
    name: "s4",
    about: "A background threshold in time, so that a server writes while it receives",
    labels: findings::LABELS,
    thread: "Thread: '[PATCH v3 1/2] writeback: add dirty_background_centisecs per bdi variable', Namjae Jeon, linux-kernel, \
         16 September 2012",
    words: include_str!("words.md"),
    options: Plan::augment_args,
    can_measure: true,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let plan = Plan::read(request)?;
    let share = if request.measured { SIMULATED_SHARE } else { 1.0 };
    let cells = simulated::run(&plan, watch, share)?;
    findings::gain_by_clients(&plan, &cells).iter().for_each(|row| watch.row(row));
    let copies = if request.measured { measured::run(&plan, request.quick, watch, share)? } else { Vec::new() };
    watch.step("done", 1.0);
    Ok(findings::findings(&plan, &cells, &copies, &watch.rows))
}

/// The simulated part's share of the time, in a run with a measured part.
const SIMULATED_SHARE: f64 = 0.3;

#[cfg(test)]
mod tests;
