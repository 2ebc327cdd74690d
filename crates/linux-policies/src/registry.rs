//! The policies by name.
//!
//! Owns: the names, what each is made of, the knobs it starts with.
//! Does not own: the laws.
//! Invariants: every name in [`NAMES`] is known to [`policy`]; each call makes policies of its own, so
//! that estimates begin afresh.

use std::sync::Arc;

use engine::settings::{Knob, KnobError, Settings};
use engine::throttle::{Driver, Policies, Throttle};

use crate::control::{Control, Era};

/// All names.
pub const NAMES: &[&str] = &["linux-3.6", "linux-6.1"];

/// There is no such policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no policy '{name}'; there are: {}", NAMES.join(", "))]
pub struct UnknownPolicy {
    /// What was asked for.
    pub name: String,
}

/// A kernel's policies.
#[derive(Clone)]
pub struct Policy {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// For one engine.
    pub policies: Policies,
}

/// Knobs as these kernels start with them.
const DEFAULTS: &[(Knob, u64)] = &[
    (Knob::DirtyRatio, 20),
    (Knob::BackgroundRatio, 10),
    (Knob::ExpireCentisecs, 3000),
    (Knob::WritebackCentisecs, 500),
    (Knob::WriteDepth, 128),
];

impl Policy {
    /// Sets the knobs to what the kernel starts with: 20 and 10 percent, 30 and 5 seconds, 128 requests.
    pub fn prepare(&self, settings: &mut Settings) -> Result<(), KnobError> {
        DEFAULTS.iter().try_for_each(|(knob, value)| settings.set(*knob, *value))
    }
}

/// The policy of that name, for one engine.
///
/// # Errors
/// When there is none; the error lists the names.
pub fn policy(name: &str) -> Result<Policy, UnknownPolicy> {
    let flushers = |law| Policies { throttle: Throttle::Law(law), driver: Driver::FlusherEach };
    let unknown = || UnknownPolicy { name: name.to_owned() };
    let name = *NAMES.iter().find(|known| **known == name).ok_or_else(unknown)?;
    let (about, policies) = match name {
        "linux-3.6" => (
            "position control, rate limits and bandwidth estimates; with dirty_background_centisecs",
            flushers(Arc::new(Control(Era::V3_6))),
        ),
        "linux-6.1" => (
            "the same ten years later: strict limits, minimum and maximum in bytes",
            flushers(Arc::new(Control(Era::V6_1))),
        ),
        _ => return Err(unknown()),
    };
    Ok(Policy { name, about, policies })
}

#[cfg(test)]
mod tests;
