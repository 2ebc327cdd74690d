//! What all kernels' policies ask of the engine.
//!
//! Owns: that they are asked after pages were dirtied, look at counters that all devices share, and take ratios of
//! memory.
//! Does not own: their decisions.
//! Invariants: the engine's memory guard stands above them, as no kernel's law is trusted to leave frames.

use afflux_engine::policy::{Asked, Needs};
use afflux_engine::settings::BackgroundShare;

use crate::knobs::KNOBS;

/// The same for all of them.
pub(crate) const NEEDS: Needs = Needs {
    asked: Asked::After,
    shared_counters: true,
    memory_guard: true,
    background_share: BackgroundShare::OfMemory,
    knobs: Some(&KNOBS),
    ..Needs::NONE
};
