//! Results of s0's runs: a cell for each law, machine and size, and the paths of calls.
//!
//! Owns: a cell's figures over its runs.
//! Does not own: the runs (`mapped_writes`), the tables of figures (`findings`).
//! Invariants: a cell has at least three runs, and the mean of its speed leaves out the fastest and the slowest.

use std::collections::BTreeMap;

use afflux_kernels::Path;

use super::mapped_writes::{MEMORY_MIB, Ran, Rig};
use super::parts::{AS_IT_IS, Change};
use super::plan::Case;
use super::published::{Line, SPEEDS};
use crate::machine::PAGE_BYTES;
use crate::statistics::{Estimate, Samples};

/// One law on one machine at one size.
pub(super) struct Cell {
    pub(super) case: Case,
    pub(super) change: Change,
    pub(super) rig: Rig,
    pub(super) size_mib: u64,
    pub(super) speed: Estimate,
    pub(super) runs: Vec<Ran>,
}

impl Cell {
    pub(super) fn variant(&self) -> &'static str {
        self.change.variant.name
    }

    pub(super) fn is_changed(&self) -> bool {
        self.change.label != AS_IT_IS
    }

    /// The published line of this size, if the machine is the seed's.
    pub(super) fn published(&self) -> Option<&'static Line> {
        let is_seeds = (self.rig.memory_mib, self.rig.writers) == (MEMORY_MIB, 1);
        SPEEDS.iter().find(|line| is_seeds && line.0 == self.size_mib)
    }

    /// The mean of a figure over the runs.
    pub(super) fn mean(&self, of: impl Fn(&Ran) -> f64) -> f64 {
        self.runs.iter().map(of).sum::<f64>() / self.runs.len() as f64
    }

    /// The mean over the runs that have the figure.
    fn mean_of_some(&self, of: impl Fn(&Ran) -> Option<f64>) -> Option<f64> {
        let some: Vec<f64> = self.runs.iter().filter_map(of).collect();
        (!some.is_empty()).then(|| some.iter().sum::<f64>() / some.len() as f64)
    }

    /// MiB of the disk that were dirty or under writeback when the writer first had to wait.
    pub(super) fn first_pause_mib(&self) -> Option<f64> {
        self.mean_of_some(|run| run.first_wait_pages.map(|pages| (pages * PAGE_BYTES) as f64 / MIB))
    }

    /// Time of the first request for background writeback, in seconds of a run.
    pub(super) fn background_s(&self) -> Option<f64> {
        self.mean_of_some(|run| run.background_ns.map(|ns| ns as f64 / 1e9))
    }
}

const MIB: f64 = (1 << 20) as f64;

/// For each variant, its paths with their reads, and the number of calls on each.
pub(super) type PathsOf = BTreeMap<&'static str, BTreeMap<Path, u64>>;

/// The mean of all runs except the fastest and the slowest.
pub(super) fn middle(runs: &[Ran]) -> Estimate {
    let mut speeds: Vec<f64> = runs.iter().map(|run| run.mib_per_s).collect();
    speeds.sort_by(f64::total_cmp);
    let mut samples = Samples::default();
    speeds[1..speeds.len() - 1].iter().for_each(|speed| samples.push(*speed));
    samples.estimate()
}
