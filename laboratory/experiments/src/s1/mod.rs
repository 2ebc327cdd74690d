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

use crate::experiment::{Experiment, Findings, LabError, OptionInfo, Request, Watch};
use findings::{Rows, findings};
use options::{Case, SharedOptions};

/// The experiment.
pub(crate) struct S1;

impl Experiment for S1 {
    fn name(&self) -> &'static str {
        "s1"
    }

    fn about(&self) -> &'static str {
        "Flushers by device that block for requests, against pdflush and congestion"
    }

    fn fitted(&self) -> &'static str {
        "fitted: in twelve-disks the disks' 60 MB/s and requests of 64 KB; predicted: differences between kernels; \
         hold-out: none; put in: machines, request sizes, places of files, CPU time"
    }

    fn thread(&self) -> &'static str {
        "Thread: 'regression in page writeback', begun by Shaohua Li, linux-kernel, 22 and 23 September 2009 (Wu Fengguang, \
         Chris Mason, Andrew Morton)"
    }

    fn words(&self) -> &'static str {
        include_str!("words.md")
    }

    fn options(&self) -> &'static [OptionInfo] {
        options::ALL
    }

    fn can_measure(&self) -> bool {
        false
    }

    fn run(&self, request: &Request, watch: &mut dyn Watch) -> Result<Findings, LabError> {
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
}
