//! The policies by name.
//!
//! Owns: the names, and the parts and knobs of each policy.
//! Does not own: the laws.
//! Invariants: every name in [`NAMES`] is known to [`policy`]; each call makes new policies, so that estimates begin
//! afresh.

use std::sync::Arc;

use afflux_engine::eviction::EvictionKind;
use afflux_engine::settings::{Knob, KnobError, PageKnob, Settings};
use afflux_engine::{Policies, Readahead};

use crate::control::{Control, Era, Learns};
use crate::jiffies::TickRate;

/// All names.
pub const NAMES: &[&str] = &["linux-3.6", "linux-3.6-completions", "linux-6.1"];

/// The suffixes of a name, in words.
pub const WITH_TICKS: &str = "linux-3.6 and linux-6.1 also with @100, @250, @300 or @1000: ticks a second; kernels before 3.6 run in the experiments s0, s1 and s3";

/// The error for an unknown policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no policy '{name}'; there are: {} ({WITH_TICKS})", NAMES.join(", "))]
pub struct UnknownPolicy {
    /// The requested name.
    pub name: String,
}

/// A kernel's policies.
#[derive(Clone)]
pub struct Policy {
    /// The name.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The policies for one engine.
    pub policies: Policies,
}

/// These kernels' initial knobs.
const DEFAULTS: &[(Knob, u64)] =
    &[(Knob::DirtyRatio, 20), (Knob::ExpireCentisecs, 3000), (Knob::WritebackCentisecs, 500)];
const PAGE_DEFAULTS: &[(PageKnob, u64)] = &[(PageKnob::BackgroundRatio, 10), (PageKnob::WriteDepth, 128)];

impl Policy {
    /// Sets the knobs to the kernel's initial values: 20 and 10 percent, 30 and 5 seconds, 128 requests.
    pub fn prepare(&self, settings: &mut Settings) -> Result<(), KnobError> {
        DEFAULTS.iter().try_for_each(|(knob, value)| settings.set(*knob, *value))?;
        PAGE_DEFAULTS.iter().try_for_each(|(knob, value)| settings.set(*knob, *value))
    }
}

/// The policy of that name, for one engine. After `linux-3.6` and `linux-6.1`, `@` and a number give the kernel's ticks
/// a second (`CONFIG_HZ`): 100, 250, 300 or 1000, which is also the default.
///
/// # Errors
/// If there is none; the error lists the names.
pub fn policy(name: &str) -> Result<Policy, UnknownPolicy> {
    let unknown = || UnknownPolicy { name: name.to_owned() };
    let (base, ticks) = match name.split_once('@') {
        Some((base, hz)) => (base, Some(hz.parse().ok().and_then(TickRate::built).ok_or_else(unknown)?)),
        None => (name, None),
    };
    let known = *NAMES.iter().find(|known| **known == base).ok_or_else(unknown)?;
    let (about, era, learns) = match known {
        "linux-3.6" => (
            "position control, rate limits and bandwidth estimates; with dirty_background_centisecs",
            Era::V3_6,
            Learns::Passes,
        ),
        "linux-3.6-completions" => {
            ("linux-3.6, but bandwidth is also learned at each completed write", Era::V3_6, Learns::Completions)
        }
        _ => (
            "the same ten years later: strict limits, minimum and maximum in bytes; linux-6.1@250: with 250 ticks a second",
            Era::V6_1,
            Learns::Slices,
        ),
    };
    let policies = Policies {
        policy: Arc::new(Control { era, learns, ticks: ticks.unwrap_or(TickRate::DEFAULT) }),
        readahead: Readahead::Linux,
        eviction: EvictionKind::TwoList,
    };
    Ok(Policy { name: known, about, policies })
}

#[cfg(test)]
mod tests;
