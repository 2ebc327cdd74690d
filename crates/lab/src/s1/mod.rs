//! Experiment s1.
//!
//! Owns: what is run and what was published.
//! Does not own: the engine, the simulator.
//! Invariants: rows come from runs.

use crate::experiment::{Experiment, Findings, LabError, OptionInfo, Request, Watch};

/// The experiment.
pub(crate) struct S1;

impl Experiment for S1 {
    fn name(&self) -> &'static str {
        "s1"
    }

    fn about(&self) -> &'static str {
        "Flushers by device that block for requests, against pdflush and congestion"
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
