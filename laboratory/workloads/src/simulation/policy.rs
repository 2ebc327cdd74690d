//! The setup of a run's engine, according to the description.
//!
//! Owns: the knobs of a description that change nothing under its policy.
//! Does not own: policies by name (`afflux_simulator::Setup`), the policies.
//! Invariants: each run has its own setup, so that estimates begin afresh.

use afflux_engine::settings::KnobInfo;
use afflux_simulator::{POLICY_KNOBS, Setup};

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
        let own = setup.policies.policy.needs().knobs;
        let of_others = POLICY_KNOBS.iter().filter(|table| own != Some(**table)).flat_map(|table| table.rows);
        let of_others: Vec<_> = of_others.collect();
        let kernel = afflux_linux_policies::policy(&self.policy).ok();
        let ignored = |knob: &&KnobInfo| of_others.contains(knob) || kernel.as_ref().is_some_and(|it| it.ignores(knob));
        let knobs = self.knobs.iter().filter_map(|text| setup.settings.parse(text).ok());
        knobs.map(|(knob, _)| setup.settings.info(knob)).filter(ignored).map(|knob| knob.name).collect()
    }
}
