//! The setup of a run's engine, according to the description.
//!
//! Owns: the knobs of a description that change nothing under its policy.
//! Does not own: policies by name (`afflux_simulator::Setup`), the policies.
//! Invariants: each run has its own setup, so that estimates begin afresh.

use afflux_engine::settings::KnobId;
use afflux_simulator::Setup;

use super::description::{Simulation, SimulationError};

impl Simulation {
    /// Checks the policy's name and the knobs.
    ///
    /// # Errors
    /// When a policy or a knob does not exist, or a value is out of range.
    pub fn check_settings(&self) -> Result<(), SimulationError> {
        self.setup().map(|_| ())
    }

    /// The setup of the engine.
    pub(super) fn setup(&self) -> Result<Setup, SimulationError> {
        let setup = Setup::of(&self.policy)?;
        let mut setup = setup.with_readahead(self.readahead).with_eviction(self.eviction);
        setup.settings.add(&afflux_nfs::KNOBS);
        let setup = setup.with_knobs(&self.knobs)?;
        setup.settings.background_is_below_limit(setup.shares(self.memory_bytes))?;
        Ok(setup)
    }

    /// Names of the set knobs that the policy does not have, and which change nothing.
    pub fn ignored_knobs(&self) -> Vec<&'static str> {
        let Ok(setup) = self.setup() else {
            return Vec::new();
        };
        let knobs = self.knobs.iter().filter_map(|text| setup.settings.parse(text).ok());
        let ignored = |knob: &KnobId| setup.policies.refuse_ignored(&setup.settings, *knob).is_err();
        knobs.map(|(knob, _)| knob).filter(ignored).map(|knob| setup.settings.info(knob).name).collect()
    }
}
