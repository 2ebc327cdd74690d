//! The knobs of a cache: those of the engine and those of the flush budget.
//!
//! Owns: one type for both, so that a call takes either.
//! Does not own: their names, ranges and effects (the two tables).
//! Invariants: every knob of a `CacheKnob` is in the settings of every cache.

use afflux_budget::BudgetKnob;
use afflux_engine::settings::{Knob, KnobId, Settings, WhichKnob};

/// A knob of a cache: a [`Knob`] or a [`BudgetKnob`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheKnob {
    /// A knob of the engine.
    Engine(Knob),
    /// A knob of the flush budget, the policy of every cache.
    Budget(BudgetKnob),
}

impl From<Knob> for CacheKnob {
    fn from(knob: Knob) -> Self {
        Self::Engine(knob)
    }
}

impl From<BudgetKnob> for CacheKnob {
    fn from(knob: BudgetKnob) -> Self {
        Self::Budget(knob)
    }
}

impl WhichKnob for CacheKnob {
    fn id(self, settings: &Settings) -> KnobId {
        match self {
            Self::Engine(knob) => knob.id(settings),
            Self::Budget(knob) => knob.id(settings),
        }
    }
}
