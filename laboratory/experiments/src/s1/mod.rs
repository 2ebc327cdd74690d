//! Experiment s1: pdflush and congestion, against flushers by device that block for requests.
//!
//! Owns: the list of cases.
//! Does not own: the cases, their options (`options`), their common parts (`machines`).
//! Invariants: rows come from runs of a kernel of the model, or of the engine; each carries the counters of its
//! software.

mod blocking_rival;
mod findings;
mod machines;
mod options;
mod pool_alone;
mod sync_of_two;
mod twelve_disks;
mod two_superblocks;
mod two_writers;

use clap::Args;

use crate::experiment::{Experiment, Findings, LabError, Request, StoredRows};
use options::{Case, SharedOptions};

/// The experiment.
pub(crate) static S1: Experiment = Experiment {
    name: "s1",
    about: "Flushers by device that block for requests, against pdflush and congestion",
    labels: findings::LABELS,
    thread: "Thread: 'regression in page writeback', begun by Shaohua Li, linux-kernel, 22 and 23 September 2009 (Wu Fengguang, \
         Chris Mason, Andrew Morton)",
    words: include_str!("words.md"),
    options: SharedOptions::augment_args,
    can_measure: false,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let common = SharedOptions::read(request)?;
    let mut plotted = Vec::new();
    for case in &common.cases {
        match case {
            Case::TwoWriters => plotted = two_writers::run(&common, watch)?,
            Case::PoolAlone => pool_alone::run(&common, watch)?,
            Case::TwoSuperblocks => two_superblocks::run(&common, watch)?,
            Case::SyncOfTwo => sync_of_two::run(&common, watch)?,
            Case::TwelveDisks => twelve_disks::run(&common, watch)?,
            Case::BlockingRival => blocking_rival::run(&common, watch)?,
        }
    }
    Ok(findings::findings(&watch.rows, &plotted))
}
