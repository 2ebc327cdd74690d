//! A run by seconds: the compared figures of the case `recorded`.
//!
//! Owns: the figures of a second and of a run, the distance of two runs.
//! Does not own: the runs (`recording`, `simulated`).
//! Invariants: a distance is a share of the real figure.

use std::ops::Range;

/// Bytes of the kernel's page.
pub(super) const PAGE_BYTES: u64 = 4096;

/// A side at a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Second {
    /// Pages dirty or under writeback.
    pub(super) dirty: f64,
    /// Pages accepted from the writer since its start.
    pub(super) accepted: f64,
    /// Pages that the disk has written since then.
    pub(super) written: f64,
    /// Pauses of the writer in the second that begins.
    pub(super) pauses: f64,
}

/// A side's run.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    pub(super) rows: Vec<Second>,
    /// The writer's fsync at its end.
    pub(super) sync_s: f64,
    /// The times of a small file's syncs, in order.
    pub(super) small_syncs_s: Vec<f64>,
    /// The times of bursts to another disk and of the sync after each, alternately.
    pub(super) bursts_s: Vec<f64>,
}

/// The largest distance of the two sides in any of these seconds, as a share of the real figure.
pub(super) fn apart(real: &[Second], simulated: &[Second], seconds: Range<usize>, of: fn(&Second) -> f64) -> f64 {
    let pairs = real.iter().zip(simulated).take(seconds.end).skip(seconds.start);
    pairs.map(|(real, simulated)| (of(simulated) / of(real) - 1.0).abs()).fold(0.0, f64::max)
}
