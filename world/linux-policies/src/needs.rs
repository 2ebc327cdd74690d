//! The needs of all kernels' policies.
//!
//! Owns: the common needs: decisions after pages were dirtied, counters of all devices, ratios of memory.
//! Does not own: the decisions.
//! Invariants: the engine's memory guard stands above the policies, as no kernel's law is trusted to leave free frames.

use afflux_engine::policy::{IgnoredKnob, Needs};
use afflux_engine::settings::BackgroundBase;

use crate::knobs::KNOBS;

/// The needs of each of them.
pub(crate) const NEEDS: Needs = Needs {
    paces: true,
    shared_counters: true,
    memory_guard: true,
    background_base: BackgroundBase::OfMemory,
    knobs: Some(&KNOBS),
    ..Needs::NONE
};

const SLICE: IgnoredKnob =
    IgnoredKnob { name: "writeback_slice_bytes", instead: "none: the kernel's law has its slices" };
const MIN_BYTES: IgnoredKnob = IgnoredKnob { name: "min_bytes", instead: "min_ratio" };
const MAX_BYTES: IgnoredKnob = IgnoredKnob { name: "max_bytes", instead: "max_ratio" };
const STRICT_LIMIT: IgnoredKnob = IgnoredKnob { name: "strict_limit", instead: "max_ratio" };
const CENTISECS: IgnoredKnob = IgnoredKnob { name: "dirty_background_centisecs", instead: "dirty_background_bytes" };

const EXTENT: IgnoredKnob =
    IgnoredKnob { name: "extent_pages", instead: "none: each request ends the writeback of its pages" };

/// The knobs that 3.6 lacks.
pub(crate) const LACKING_IN_3_6: &[IgnoredKnob] = &[SLICE, MIN_BYTES, MAX_BYTES, STRICT_LIMIT, EXTENT];
/// The knobs that 6.1 lacks.
pub(crate) const LACKING_IN_6_1: &[IgnoredKnob] = &[SLICE, CENTISECS];
