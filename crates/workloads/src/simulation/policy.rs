//! Whose policies a run has, by name.
//!
//! Owns: the list of names, the knobs that a run starts with.
//! Does not own: the policies (`engine`, `linux-policies`).
//! Invariants: each run has policies of its own, so that estimates begin afresh; the user's knobs come last.

use engine::settings::{Knob, Settings, Shares};
use engine::throttle::Policies;
use linux_policies::WITH_TICKS;

use super::description::{Simulation, SimulationError};

/// What only kernels' laws look at.
const OF_KERNELS: &[Knob] = &[Knob::MinRatio, Knob::MaxRatio, Knob::MinBytes, Knob::MaxBytes, Knob::StrictLimit];

/// The name of the engine's own policies.
pub const OWN_POLICY: &str = "afflux";

/// All names, each with what it is in a line.
pub fn policies() -> Vec<(&'static str, &'static str)> {
    let own = (OWN_POLICY, "the engine's own: each device a share of the dirty limit and a flusher");
    let others = linux_policies::NAMES.iter().filter_map(|name| linux_policies::policy(name).ok());
    std::iter::once(own).chain(others.map(|policy| (policy.name, policy.about))).collect()
}

impl Simulation {
    /// Checks the policy's name and the knobs.
    ///
    /// # Errors
    /// When there is no such policy or knob, or a value is out of range.
    pub fn check_settings(&self) -> Result<(), SimulationError> {
        self.settings().map(|_| ())
    }

    /// The knobs in force at the start, and the policies if they are not the engine's own.
    pub(super) fn settings(&self) -> Result<(Settings, Option<Policies>), SimulationError> {
        let mut settings = Settings::new();
        let mut policies = None;
        if self.policy != OWN_POLICY {
            let unknown = |_| {
                let names: Vec<&str> = self::policies().iter().map(|(name, _)| *name).collect();
                let what =
                    format!("there is no policy '{}'; there are {} ({WITH_TICKS})", self.policy, names.join(", "));
                SimulationError::Description(what)
            };
            let policy = linux_policies::policy(&self.policy).map_err(unknown)?;
            policy.prepare(&mut settings)?;
            policies = Some(policy.policies);
        }
        for knob in &self.knobs {
            settings.set_text(knob)?;
        }
        let shares = Shares { memory_bytes: self.memory_bytes, by_law: policies.is_some() };
        settings.background_is_below_limit(shares)?;
        Ok((settings, policies))
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
