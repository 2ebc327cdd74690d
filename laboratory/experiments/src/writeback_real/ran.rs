//! The results of a run.
//!
//! Owns: the record of figures, of looks at the run and of the engine's delays.
//! Does not own: the races (`full_speed`, `small_sync`, `burst`, `direct`), the names of the figures (`findings`).

use serde_json::Value;

/// The results of a run.
#[derive(Default)]
pub(super) struct Ran {
    /// By name, as listed in `findings`.
    pub(super) metrics: Vec<(&'static str, f64)>,
    pub(super) looks: Vec<Look>,
    /// The waits of calls; `None` for the kernel, which does not report them.
    pub(super) delays: Option<Value>,
}

/// The state of a run at an instant.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) at_s: f64,
    pub(super) dirty_bytes: u64,
    pub(super) accepted_bytes: u64,
}
