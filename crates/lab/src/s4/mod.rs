//! Experiment s4.
//!
//! Owns: what is run and what was published.
//! Does not own: the engine, the simulator.
//! Invariants: rows come from runs.

use crate::experiment::{Experiment, Findings, LabError, OptionInfo, Request, Watch};

/// The experiment.
pub(crate) struct S4;

impl Experiment for S4 {
    fn name(&self) -> &'static str {
        "s4"
    }

    fn about(&self) -> &'static str {
        "A background threshold in time, so that a server writes while it receives"
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
