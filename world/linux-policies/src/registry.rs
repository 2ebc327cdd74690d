//! The policies by name.
//!
//! Owns: the names, and the parts and knobs of each policy.
//! Does not own: the laws.
//! Invariants: every name in [`NAMES`] is known to [`policy`]; each call makes new policies, so that estimates begin
//! afresh.

use std::sync::Arc;

use afflux_engine::eviction::EvictionKind;
use afflux_engine::old_kernels::WokenBy;
use afflux_engine::policy::AnyPolicy;
use afflux_engine::settings::{Knob, KnobError, PageKnob, Settings};
use afflux_engine::{Policies, Readahead};

use crate::balance::{Balance, Form, Part};
use crate::control::{Control, Era, Learns};
use crate::jiffies::TickRate;
use crate::pdflush::Pdflush;

/// All names.
pub const NAMES: &[&str] = &[
    "linux-2.6.31-rc1",
    "linux-2.6.31",
    "s0-july",
    "s0-seed",
    "s0-august",
    "s0-september",
    "s0-merged",
    "linux-2.6.32",
    "linux-3.6",
    "linux-3.6-completions",
    "linux-6.1",
];

/// The suffixes of a name, in words.
pub const WITH_TICKS: &str = "linux-3.6 and linux-6.1 also with @100, @250, @300 or @1000: ticks a second";

/// The event that ends a wait for congestion in the policies of 2.6.31.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionWaits {
    /// A queue that clears, or 100 ms: as in the kernel.
    #[default]
    WokenOnClear,
    /// 100 ms, whatever happens.
    Plain,
}

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
    policy_with(name, CongestionWaits::default())
}

/// [`policy`], with a choice that only the policies of 2.6.31 use.
///
/// # Errors
/// If there is none; the error lists the names.
pub fn policy_with(name: &str, waits: CongestionWaits) -> Result<Policy, UnknownPolicy> {
    policy_changed(name, waits, &[])
}

/// [`policy_with`], with parts of the law of 2009 removed or added; later laws have no such parts.
///
/// # Errors
/// If there is none; the error lists the names.
pub fn policy_changed(name: &str, waits: CongestionWaits, parts: &[(Part, bool)]) -> Result<Policy, UnknownPolicy> {
    let woken_on_clear = waits == CongestionWaits::WokenOnClear;
    let woken_by = if woken_on_clear { WokenBy::CongestionClears } else { WokenBy::Time };
    let balance = |form| Balance::new(form, woken_by).changed(parts);
    let flushers = |policy: Arc<dyn AnyPolicy>| Policies {
        policy,
        readahead: Readahead::Linux,
        eviction: EvictionKind::TwoList,
        old_kernel: None,
    };
    let pool = |form| Policies {
        old_kernel: Some(Arc::new(Pdflush::new(woken_on_clear))),
        ..flushers(Arc::new(balance(form)))
    };
    let unknown = || UnknownPolicy { name: name.to_owned() };
    let (base, ticks) = match name.split_once('@') {
        Some((base, hz)) => (base, Some(hz.parse().ok().and_then(TickRate::built).ok_or_else(unknown)?)),
        None => (name, None),
    };
    let name = *NAMES.iter().find(|known| **known == base).ok_or_else(unknown)?;
    let control = |era, learns| Control { era, learns, ticks: ticks.unwrap_or(TickRate::DEFAULT) };
    let (about, policies) = match name {
        _ if ticks.is_some() && !matches!(name, "linux-3.6" | "linux-3.6-completions" | "linux-6.1") => {
            return Err(unknown());
        }
        "linux-2.6.31-rc1" => ("writers over the limit write back themselves; a pdflush pool", pool(Form::Rc1)),
        "linux-2.6.31" => ("the same, but only if the device's dirty pages exceed its share", pool(Form::Final)),
        "s0-july" => ("linux-2.6.31 with S0's patch as first posted", pool(Form::July)),
        "s0-seed" => ("linux-2.6.31 with S0's patch as its author meant it in the seed", pool(Form::Seed)),
        "s0-august" => ("linux-2.6.31 with S0's patch of August 2009", pool(Form::August)),
        "s0-september" => ("linux-2.6.31 with S0's patch of September 2009", pool(Form::September)),
        "s0-merged" => ("linux-2.6.31 with S0's patch as merged in 2.6.36", pool(Form::Merged)),
        "linux-2.6.32" => (
            "one flusher a device, slices of 1,024 pages; writers still write back themselves",
            flushers(Arc::new(balance(Form::V2_6_32))),
        ),
        "linux-3.6" => (
            "position control, rate limits and bandwidth estimates; with dirty_background_centisecs",
            flushers(Arc::new(control(Era::V3_6, Learns::Passes))),
        ),
        "linux-3.6-completions" => (
            "linux-3.6, but bandwidth is learned at each completed write, as since 5.16",
            flushers(Arc::new(control(Era::V3_6, Learns::Completions))),
        ),
        "linux-6.1" => (
            "the same ten years later: strict limits, minimum and maximum in bytes; linux-6.1@250: with 250 ticks a second",
            flushers(Arc::new(control(Era::V6_1, Learns::Completions))),
        ),
        _ => return Err(unknown()),
    };
    Ok(Policy { name, about, policies })
}

#[cfg(test)]
mod tests;
