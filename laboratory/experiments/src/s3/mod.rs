//! Experiment s3: the benefit of direct reclaim, and its cost for the reclaiming tasks.
//!
//! A thousand tasks read sparse files of 1 GB on eight CPUs and 3 GB, so that they wait for memory and CPUs only.
//! Readahead allocates without retrying. How often that fails, and how long direct reclaims take, depends on the target
//! of a reclaim. (Seed S3, posted to linux-kernel on 28 and 29 April 2011.)
//!
//! Owns: the order of the parts.
//! Does not own: the options (`plan`), the load on the kernel (`run`) and on the engine (`own`), a run's figures
//! (`cell`), the published figures (`published`), the goals (`goals`), tables and charts (`findings`).
//! Invariants: rows come from runs.

mod cell;
mod findings;
mod goals;
mod own;
mod plan;
mod published;
mod run;
#[cfg(test)]
mod tests;

use clap::Args;

use crate::experiment::{Experiment, Findings, LabError, Request, StoredRows, Watch};
use cell::Cell;
use plan::{LoadOptions, Plan};

/// The experiment.
pub(crate) static S3: Experiment = Experiment {
    name: "s3",
    about: "Direct reclaim under a thousand readers: how much it is to bring, and how long it may take",
    labels: findings::LABELS,
    thread: "Threads: '[RFC][PATCH] mm: cut down __GFP_NORETRY page allocation failures' and 'mm: limit direct reclaim delays', \
         Wu Fengguang, linux-kernel, 28 and 29 April 2011",
    words: include_str!("words.md"),
    options: LoadOptions::augment_args,
    can_measure: false,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let plan = Plan::read(request)?;
    if plan.part > 1 {
        let part = plan.part;
        watch.remark(&format!(
            "One {part}th of each file is read. Times are multiplied by {part}, and counts by as many times as the whole files \
             have pages after memory is full; --full reads all."
        ));
    }
    let mut cells = Vec::with_capacity(plan.variants.len());
    for variant in &plan.variants {
        watch.step(variant.name(), cells.len() as f64 / plan.variants.len() as f64);
        let cell = Cell::run(&plan, *variant)?;
        watch.row(&cell.row());
        cells.push(cell);
    }
    watch.step("done", 1.0);
    Ok(findings::findings(&cells, &watch.rows))
}
