//! Experiment budget: the flush budget beside three other laws, on every kind of device, under every kind of load.
//!
//! Owns: running the cells, and their rows.
//! Does not own: the choice of cells (`plan`), the machine (`rig`), the loads (`loads`), the laws
//! (`laws`), the devices (`devices`, `raw`), the goals (`goals`), tables and charts (`findings`).
//! Invariants: each row is one cell, simulated by the engine; whether a goal is met is computed from rows.

mod devices;
mod figures;
mod findings;
mod goals;
mod laws;
mod loads;
mod plan;
mod raw;
mod rig;

use afflux_report::{Fields, Row};
use clap::Args;

use self::findings::Cell;
use self::loads::RawRates;
use self::plan::{Case, CellOptions, Plan};
use crate::experiment::{Experiment, Findings, LabError, Request, StoredRows, Watch};
use crate::machine::row;
use crate::options::Named;

/// The experiment.
pub(crate) static BUDGET_TABLE: Experiment = Experiment {
    name: "budget",
    about: "The flush budget beside Linux, ZFS and a plain limit: every device, every load",
    labels: findings::LABELS,
    thread: "Thread: none: the flush budget is this project's. Beside it stand the law of 'IO-less dirty throttling', Wu Fengguang, \
         linux-kernel, 2010 and 2011, and the write throttle of OpenZFS",
    words: include_str!("words.md"),
    options: CellOptions::augment_args,
    can_measure: false,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let plan = Plan::read(request)?;
    let (mut raw, mut cells) = (RawRates::default(), Vec::<Cell>::new());
    for (number, case) in plan.cases.iter().enumerate() {
        let what = format!("{} on {} under {}", case.load.name(), case.device.name, case.law.name());
        watch.step(&what, number as f64 / plan.cases.len() as f64);
        let outcome = case.run(&mut raw).map_err(|error| LabError::Failed(format!("{what}: {error}")))?;
        let row = row("budget", &case.law.name(), params(case), outcome.metrics, Fields::new());
        watch.row(&row);
        cells.push(Cell { row, backlogs_ns: outcome.backlogs_ns });
    }
    let goals = goals::rows(&cells);
    goals.iter().for_each(|goal: &Row| watch.row(goal));
    watch.step("done", 1.0);
    Ok(findings::of(&cells, &goals))
}

/// The parameters of a cell.
fn params(case: &Case) -> Fields {
    Fields::new()
        .with("load", case.load.name())
        .with("device", case.device.name)
        .with("seconds", case.seconds)
        .with("memory_bytes", case.memory_bytes)
        .with("seed", case.seed)
}

#[cfg(test)]
mod tests;
