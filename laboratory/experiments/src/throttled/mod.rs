//! The simulator against the real machine: the same jobs on a throttled disk, simulated and measured; and `linux-6.1`
//! in the simulator, alone and against a recorded 6.1.
//!
//! Owns: the list of cases.
//! Does not own: the options and labels (`plan`), the cases (`jobs`, `kernel`, `recorded`), their worlds (`simulated`,
//! `real`), the slow disk (`hardware`).
//! Invariants: both sides run the same operations in the same order, from the same seed.

mod compare;
mod jobs;
mod kernel;
mod plan;
mod real;
mod recorded;
mod simulated;

use clap::Args;

use crate::experiment::{Experiment, Findings, LabError, Request, StoredRows};
use plan::{Case, CaseOptions};

/// The experiment.
pub(crate) static THROTTLED: Experiment = Experiment {
    name: "throttled",
    about: "The simulator against the real thing: a disk with a byte rate, simulated and measured",
    labels: plan::LABELS,
    thread: "Thread: none. It asks whether the simulator that other experiments use may be trusted; the law beside the kernel is \
         'IO-less dirty throttling', Wu Fengguang, linux-kernel, 2010 and 2011",
    words: include_str!("words.md"),
    options: CaseOptions::augment_args,
    can_measure: true,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let options: CaseOptions = request.read()?;
    match options.case {
        Case::Jobs => jobs::run(request, watch),
        Case::Kernel => kernel::run(&options, watch),
        Case::Recorded => recorded::run(watch),
    }
}
