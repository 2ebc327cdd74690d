//! The results of a run.
//!
//! Owns: the record of figures and of looks at the run.
//! Does not own: the runs (`simulated`, `measured`), the names of the figures (`findings`).

/// The results of a run.
#[derive(Debug, Default)]
pub(super) struct Ran {
    /// By name, as listed in `findings`.
    pub(super) metrics: Vec<(&'static str, f64)>,
    pub(super) looks: Vec<Look>,
}

/// The state of a run at an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) at_s: f64,
    pub(super) dirty_bytes: u64,
    pub(super) limit_bytes: u64,
}
