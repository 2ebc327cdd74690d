//! Experiment s0.
//!
//! Owns: what is run and what was published.
//! Does not own: the engine, the simulator.
//! Invariants: rows come from runs.

use crate::experiment::{Experiment, Findings, LabError, OptionInfo, Request, Watch};

/// The experiment.
pub(crate) struct S0;

impl Experiment for S0 {
    fn name(&self) -> &'static str {
        "s0"
    }

    fn about(&self) -> &'static str {
        "How often balance_dirty_pages reads hot shared counters, and what that costs a writer"
    }

    fn options(&self) -> &'static [OptionInfo] {
        &[]
    }

    fn can_measure(&self) -> bool {
        false
    }

    fn run(&self, _: &Request, _: &mut dyn Watch) -> Result<Findings, LabError> {
        Err(LabError::Failed("not there yet".to_owned()))
    }
}
