//! What the engine of a run starts with, as far as the description says it.
//!
//! Owns: which knobs of a description change nothing under its policy.
//! Does not own: policies by name (`simulator::Setup`), the policies.
//! Invariants: each run has a setup of its own, so that estimates begin afresh.

use engine::settings::{Knob, Settings};
use simulator::Setup;

use super::description::{Simulation, SimulationError};

/// What only kernels' laws look at.
const OF_KERNELS: &[Knob] = &[Knob::MinRatio, Knob::MaxRatio, Knob::MinBytes, Knob::MaxBytes, Knob::StrictLimit];

impl Simulation {
    /// Checks the policy's name and the knobs.
    ///
    /// # Errors
    /// When there is no such policy or knob, or a value is out of range.
    pub fn check_settings(&self) -> Result<(), SimulationError> {
        self.setup().map(|_| ())
    }

    /// What the engine starts with.
    pub(super) fn setup(&self) -> Result<Setup, SimulationError> {
        let setup = Setup::of(&self.policy)?.with_knobs(&self.knobs)?;
        setup.settings.background_is_below_limit(setup.shares(self.memory_bytes))?;
        Ok(setup)
    }

    /// Names of the knobs that are set and that the policy does not have: they change nothing.
    pub fn ignored_knobs(&self) -> Vec<&'static str> {
        let kernel = linux_policies::policy(&self.policy).ok();
        let ignored = |knob: Knob| match &kernel {
            Some(kernel) => kernel.ignores(knob),
            None => OF_KERNELS.contains(&knob),
        };
        let knobs = self.knobs.iter().filter_map(|text| Settings::new().parse(text).ok());
        knobs.filter(|(knob, _)| ignored(*knob)).map(|(knob, _)| knob.info().name).collect()
    }
}
