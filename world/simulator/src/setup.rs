//! Setups of an engine: a policy by its name, and the knobs.
//!
//! Owns: the list of names, the initial knobs of a policy.
//! Does not own: the policies (`engine`, `budget`, `linux-policies`).
//! Invariants: each engine has its own policies, so that estimates begin afresh; the user's knobs are set last.

use std::sync::Arc;

use afflux_budget::{Budget, OWN_POLICY};
use afflux_engine::eviction::EvictionKind;
use afflux_engine::policy::EQUAL_PARTS_POLICY;
use afflux_engine::settings::{KnobError, KnobTable, RatioBases, Settings, did_you_mean};
use afflux_engine::{Policies, Readahead};
use afflux_linux_policies::{Policy, WITH_TICKS};

/// The names of all policies, each with a description in a line.
pub fn policies() -> Vec<(&'static str, &'static str)> {
    let own = (OWN_POLICY, "the flush budget: each device owes at most so much of its own time");
    let others = afflux_linux_policies::NAMES.iter().filter_map(|name| afflux_linux_policies::policy(name).ok());
    let parts = (EQUAL_PARTS_POLICY, "each device an equal part of the dirty limit, in bytes");
    [own, parts].into_iter().chain(others.map(|policy| (policy.name, policy.about))).collect()
}

/// The reason that a setup is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The policy does not exist; the text lists the names.
    #[error("{0}")]
    UnknownPolicy(String),
    /// A knob's name or value is wrong.
    #[error(transparent)]
    Knob(#[from] KnobError),
}

/// The policies' own knobs. Any of them can be set, so that runs under several policies can share one list.
pub const POLICY_KNOBS: &[&KnobTable] = &[&afflux_budget::KNOBS, &afflux_linux_policies::KNOBS];

/// The setup of one engine. The default is equal parts, with every knob at its default.
pub struct Setup {
    /// The knobs of the engine, of a volume over it, and of all policies.
    pub settings: Settings,
    /// The policies.
    pub policies: Policies,
}

impl Default for Setup {
    fn default() -> Self {
        let settings = Settings::with(POLICY_KNOBS.iter().copied().chain([&afflux_volume::KNOBS]));
        Self { settings, policies: Policies::default() }
    }
}

impl Setup {
    /// The setup of the policy called `name`: [`OWN_POLICY`], [`EQUAL_PARTS_POLICY`], or a name of `linux-policies`.
    ///
    /// # Errors
    /// When the policy does not exist; the error lists the names.
    pub fn of(name: &str) -> Result<Self, SetupError> {
        if name == EQUAL_PARTS_POLICY {
            return Ok(Self::default());
        }
        if name == OWN_POLICY {
            let policy = Arc::new(Budget);
            return Ok(Self { policies: Policies { policy, ..Policies::default() }, ..Self::default() });
        }
        let unknown = |_| {
            let names: Vec<&str> = policies().iter().map(|(name, _)| *name).collect();
            let near = did_you_mean(name, names.iter().copied());
            let what = format!("there is no policy '{name}'{near}; there are {} ({WITH_TICKS})", names.join(", "));
            SetupError::UnknownPolicy(what)
        };
        Ok(Self::of_kernel(afflux_linux_policies::policy(name).map_err(unknown)?)?)
    }

    /// The setup of a kernel's policy.
    ///
    /// # Errors
    /// When the engine refuses the kernel's knobs.
    pub fn of_kernel(policy: Policy) -> Result<Self, KnobError> {
        let mut setup = Self { policies: policy.policies.clone(), ..Self::default() };
        policy.prepare(&mut setup.settings)?;
        Ok(setup)
    }

    /// Replaces the policy for readahead.
    pub fn with_readahead(mut self, readahead: Option<Readahead>) -> Self {
        self.policies.readahead = readahead.unwrap_or(self.policies.readahead);
        self
    }

    /// Replaces the policy for eviction.
    pub fn with_eviction(mut self, eviction: Option<EvictionKind>) -> Self {
        self.policies.eviction = eviction.unwrap_or(self.policies.eviction);
        self
    }

    /// Sets knobs, each as `KNOB=VALUE`.
    ///
    /// # Errors
    /// When a knob does not exist, or its value is out of range.
    pub fn with_knobs<T: AsRef<str>>(mut self, knobs: &[T]) -> Result<Self, KnobError> {
        for knob in knobs {
            self.settings.set_text(knob.as_ref())?;
        }
        Ok(self)
    }

    /// The amounts that ratios among the knobs refer to, on a machine with this much memory.
    pub fn shares(&self, memory_bytes: u64) -> RatioBases {
        self.policies.ratio_bases(memory_bytes)
    }
}

#[cfg(test)]
mod tests;
