//! The needs of all kernels' policies.
//!
//! Owns: the common needs: decisions after pages were dirtied, counters of all devices, ratios of memory.
//! Does not own: the decisions.
//! Invariants: the engine's memory guard stands above the policies, as no kernel's law is trusted to leave free frames.

use afflux_engine::policy::{DecisionTiming, Needs};
use afflux_engine::settings::BackgroundShare;

use crate::knobs::KNOBS;

/// The needs of each of them.
pub(crate) const NEEDS: Needs = Needs {
    decision_timing: DecisionTiming::After,
    shared_counters: true,
    memory_guard: true,
    background_share: BackgroundShare::OfMemory,
    knobs: Some(&KNOBS),
    ..Needs::NONE
};
