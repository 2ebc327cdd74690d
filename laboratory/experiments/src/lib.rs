//! The experiments: their runs, the published figures, the results.
//!
//! Owns: a module for each experiment, and the shared parts. These are the description (`experiment`), a simulated
//! machine of 2009 (`machine`), forms of options (`options`), the labels of figures (`labels`), the tables and charts
//! of rows (`views`), prose (`prose`) and the confidence in a mean (`statistics`). Measured runs share slow hardware
//! (`hardware`), the host's memory and load (`host`) and files written side by side (`contenders`).
//! Does not own: the engine, the simulator, the drawing of rows and plots (`report`).
//! Invariants: a figure comes from a run, and says whether the run was simulated or measured. A published figure is
//! shown beside it and never instead of it.

#![forbid(unsafe_code)]

mod budget_table;
mod classes;
mod contenders;
mod delays;
mod eviction;
mod experiment;
mod govern;
pub mod hardware;
mod host;
mod kernel_machine;
mod labels;
mod machine;
mod options;
mod pick;
mod prose;
mod s0;
mod s1;
mod s2;
mod s3;
mod s4;
pub mod statistics;
#[cfg(test)]
mod tests;
mod throttled;
mod views;
mod writeback_real;

pub use experiment::{Experiment, Findings, LabError, Request, StoredRows, Watch};
pub use labels::{Cells, Label};

use afflux_engine::settings::did_you_mean;

/// All experiments, in the order of the list.
pub const EXPERIMENTS: &[&Experiment] = &[
    &s0::S0,
    &s1::S1,
    &s2::S2,
    &s3::S3,
    &s4::S4,
    &throttled::THROTTLED,
    &writeback_real::WRITEBACK_REAL,
    &classes::CLASSES,
    &budget_table::BUDGET_TABLE,
    &eviction::EVICTION,
    &govern::GOVERN,
];

/// The experiment called `name`.
///
/// # Errors
/// [`LabError::Unknown`] with all names.
pub fn experiment(name: &str) -> Result<&'static Experiment, LabError> {
    EXPERIMENTS.iter().copied().find(|experiment| experiment.name == name).ok_or_else(|| LabError::Unknown {
        name: name.to_owned(),
        near: did_you_mean(name, EXPERIMENTS.iter().map(|experiment| experiment.name)),
        known: EXPERIMENTS.iter().map(|experiment| experiment.name).collect::<Vec<_>>().join(", "),
    })
}
