//! Experiment s1: pdflush and congestion, against flushers by device that block for requests.
//!
//! Owns: the list of cases.
//! Does not own: the cases, their options (`options`), their common parts (`machines`).
//! Invariants: rows come from runs of a kernel of the model, or of the engine; each carries the counters of its software.

mod blocking_rival;
mod findings;
mod machines;
mod options;
mod pool_alone;
mod sync_of_two;
mod twelve_disks;
mod two_superblocks;
mod two_writers;

use crate::experiment::{Experiment, Findings, LabError, Labels, Request, Watch};
use findings::{Rows, findings};
use options::{Case, SharedOptions};

/// The experiment.
pub(crate) static S1: Experiment = Experiment {
    name: "s1",
    about: "Flushers by device that block for requests, against pdflush and congestion",
    labels: Labels {
        put_in: "machines, request sizes, places of files, CPU time",
        chosen: "in twelve-disks the disks' 60 MB/s and requests of 64 KB",
        predicted: "differences between kernels",
        hold_out: "in twelve-disks the second pair, 484 and 450 MB/s, and the size of a writer's piece",
    },
    thread: "Thread: 'regression in page writeback', begun by Shaohua Li, linux-kernel, 22 and 23 September 2009 (Wu Fengguang, \
         Chris Mason, Andrew Morton)",
    words: include_str!("words.md"),
    options: options::ALL,
    can_measure: false,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut dyn Watch) -> Result<Findings, LabError> {
    let common = SharedOptions::read(request)?;
    let (mut rows, mut plotted) = (Rows::default(), Vec::new());
    for case in &common.cases {
        match case {
            Case::TwoWriters => (rows.two_writers, plotted) = two_writers::run(&common, watch)?,
            Case::PoolAlone => rows.pool_alone = pool_alone::run(&common, watch)?,
            Case::TwoSuperblocks => rows.two_superblocks = two_superblocks::run(&common, watch)?,
            Case::SyncOfTwo => rows.sync_of_two = sync_of_two::run(&common, watch)?,
            Case::TwelveDisks => rows.twelve_disks = twelve_disks::run(&common, watch)?,
            Case::BlockingRival => rows.blocking_rival = blocking_rival::run(&common, watch)?,
        }
    }
    Ok(findings(&rows, &plotted))
}
