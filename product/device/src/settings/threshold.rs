//! The two thresholds that must fit together: the background one is below the dirty limit.
//!
//! Owns: the comparison of the two, as far as they can be compared.
//! Does not own: the values (`values`), their use by a policy.
//! Invariants: values that would let writers wait before the flusher starts are refused.

use super::error::{KnobError, Threshold};
use super::table::TableKnob;
use super::values::{KnobId, Settings, WhichKnob, checked};
use super::{Knob, PageKnob};

/// The bases of ratios.
#[derive(Clone, Copy, Debug)]
pub struct RatioBases {
    /// All memory for pages.
    pub memory_bytes: u64,
    /// The base of the background ratio.
    pub background: BackgroundBase,
}

/// The base of `dirty_background_ratio`, as the policy in force declares it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackgroundBase {
    /// The dirty limit: the threshold is then always below it.
    OfLimit,
    /// Memory, as for `dirty_ratio`.
    OfMemory,
}

impl Settings {
    /// Refuses settings whose background threshold is not below the limit, before an engine is made.
    pub fn background_is_below_limit(&self, shares: RatioBases) -> Result<(), KnobError> {
        below_limit(self, Some(shares), &|knob| self.get(knob))
    }

    /// Applies `KNOB=VALUE`, as [`Settings::set`], unless the background threshold in bytes would not be below the
    /// limit in bytes. Values in bytes (`64MiB`, `1GB`) and times (`500ms`, `30s`) may have a unit.
    pub fn set_text(&mut self, text: &str) -> Result<KnobId, KnobError> {
        let (knob, value) = self.parse(text)?;
        would_fit(self, &[(knob, value)], None, &|knob| self.get(knob))?;
        self.set(knob, value)?;
        Ok(knob)
    }
}

/// Refuses a value out of range, or a background threshold that is not below the limit, with these knobs at their new
/// values and the others from `get`. The last value of a knob counts.
pub fn would_fit(
    settings: &Settings,
    changes: &[(KnobId, u64)],
    shares: Option<RatioBases>,
    get: &dyn Fn(KnobId) -> u64,
) -> Result<(), KnobError> {
    for (knob, value) in changes {
        checked(settings.info(*knob), *value, get(*knob))?;
    }
    let compared = [Knob::BackgroundBytes, Knob::DirtyBytes, Knob::DirtyRatio].map(|knob| knob.id(settings));
    let is_compared = |knob: &KnobId| compared.contains(knob) || *knob == PageKnob::BackgroundRatio.id(settings);
    if !changes.iter().any(|(knob, _)| is_compared(knob)) {
        return Ok(());
    }
    let changed = |knob: KnobId| changes.iter().rev().find(|change| change.0 == knob).map(|change| change.1);
    below_limit(settings, shares, &|other| changed(other).unwrap_or_else(|| get(other)))
}

/// The thresholds in force, compared as far as possible: in bytes, or, if the memory is not known, only if both are set
/// in bytes. A background ratio beside a limit in bytes is accepted: a user who sets one need not know of the other.
/// Laws start at half the limit then, as the kernel does.
fn below_limit(settings: &Settings, shares: Option<RatioBases>, get: &dyn Fn(KnobId) -> u64) -> Result<(), KnobError> {
    let threshold = |in_bytes: Knob, ratio: KnobId| match get(in_bytes.id(settings)) {
        0 => {
            let value = get(ratio);
            // In 128 bits every percentage fits.
            let part = |all: RatioBases| (u128::from(all.memory_bytes) * u128::from(value) / 100) as u64;
            Threshold { knob: settings.info(ratio), value, bytes: shares.map(part) }
        }
        value => Threshold { knob: in_bytes.info(), value, bytes: Some(value) },
    };
    let background = threshold(Knob::BackgroundBytes, PageKnob::BackgroundRatio.id(settings));
    let limit = threshold(Knob::DirtyBytes, Knob::DirtyRatio.id(settings));
    let are_ratios = [&background, &limit].map(|threshold| threshold.knob.unit != "bytes");
    let compared = match are_ratios {
        [false, _] => true,
        [true, true] => shares.is_some_and(|shares| shares.background == BackgroundBase::OfMemory),
        [true, false] => false,
    };
    let below = background.bytes.zip(limit.bytes).is_none_or(|(background, limit)| background < limit);
    if !compared || below { Ok(()) } else { Err(KnobError::BackgroundAboveLimit { background, limit }) }
}
