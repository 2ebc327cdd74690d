//! The policies by name.
//!
//! Owns: the names, and the parts and knobs of each policy.
//! Does not own: the laws.
//! Invariants: every name in [`NAMES`] is known to [`policy`]; each call makes new policies, so that estimates begin
//! afresh.

use std::sync::Arc;

use afflux_engine::eviction::EvictionKind;
use afflux_engine::settings::{Knob, KnobError, PageKnob, Settings, did_you_mean};
use afflux_engine::{Policies, Readahead};

use crate::control::{Control, Era, Learns};
use crate::jiffies::TickRate;
use crate::readahead::LINUX_READAHEAD;
use crate::two_lists::TWO_LISTS;

/// All names.
pub const NAMES: &[&str] = &["linux-3.6", "linux-3.6-completions", "linux-6.1"];

/// The eviction policies that an engine may have in a simulation.
pub const EVICTIONS: [EvictionKind; 2] = [TWO_LISTS, EvictionKind::S3_WINDOW];

/// The readahead policies that an engine may have in a simulation.
pub const READAHEADS: [Readahead; 2] = [Readahead::Afflux, LINUX_READAHEAD];

/// The eviction policy of that name.
///
/// # Errors
/// If there is none; the error lists the names.
pub fn eviction(name: &str) -> Result<EvictionKind, String> {
    let names = EVICTIONS.map(|kind| kind.name);
    EVICTIONS.into_iter().find(|kind| kind.name == name).ok_or_else(|| none("eviction policy", name, names))
}

/// The readahead policy of that name.
///
/// # Errors
/// If there is none; the error lists the names.
pub fn readahead(name: &str) -> Result<Readahead, String> {
    let names = READAHEADS.map(Readahead::name);
    READAHEADS.into_iter().find(|policy| policy.name() == name).ok_or_else(|| none("readahead", name, names))
}

fn none(what: &str, name: &str, names: [&'static str; 2]) -> String {
    format!("there is no {what} '{name}'{}; there are {}", did_you_mean(name, names.into_iter()), names.join(" and "))
}

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
        readahead: LINUX_READAHEAD,
        eviction: TWO_LISTS,
    };
    Ok(Policy { name: known, about, policies })
}

#[cfg(test)]
mod tests;
