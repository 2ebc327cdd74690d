//! A time budget for a disk of the stock kernel: without one, with the right limit set by hand, and governed.
//!
//! Owns: the order of runs, the rows.
//! Does not own: the options (`plan`), a run in virtual time under `linux-6.1` (`simulated`) or on a throttled disk
//! (`measured`), tables and charts (`findings`).
//! Invariants: the simulated governor decides by the same code as the measured one, which is the command's.

mod findings;
mod measured;
mod plan;
mod simulated;

use afflux_report::{Fields, FigureSource, Row};
use clap::Args;

use crate::contenders::ran::Ran;
use crate::experiment::{Experiment, Findings, LabError, Request, StoredRows, Watch};
use crate::host::load;
use crate::machine;
use crate::options::Named;
use plan::{GovernRace, Plan, Subject};

/// The experiment.
pub(crate) static GOVERN: Experiment = Experiment {
    name: "govern",
    about: "A time budget for a disk of the stock kernel: without, with the right limit by hand, and governed",
    labels: findings::LABELS,
    thread: "Thread: none. The kernel's limits that it sets are 'mm/block: add bdi sysfs knobs', Stefan Roesch, linux-mm, October 2022",
    words: include_str!("words.md"),
    options: Plan::augment_args,
    can_measure: true,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let plan = Plan::read(request)?;
    let load = request.measured.then(load).flatten();
    let mut all = Vec::new();
    let mut jobs: Vec<(FigureSource, GovernRace, Subject)> = Vec::new();
    if !plan.measured_only {
        jobs.extend(plan.simulated().into_iter().map(|(race, subject)| (FigureSource::Simulated, race, subject)));
    }
    let stage = request.measured.then(|| measured::Stage::new(&plan)).transpose().map_err(LabError::Failed)?;
    if stage.is_some() {
        jobs.extend(plan.measured().into_iter().map(|(race, subject)| (FigureSource::Measured, race, subject)));
    }
    for (at, (source, race, subject)) in jobs.iter().copied().enumerate() {
        let what = format!("{}: {}, {}", findings::said(source), race.name(), subject.name());
        watch.step(&what, at as f64 / jobs.len() as f64);
        let ran = match (&stage, source) {
            (Some(stage), FigureSource::Measured) => measured::run(stage, race, subject),
            _ => simulated::run(&plan, race, subject).map_err(|error| error.to_string()),
        };
        let ran = ran.map_err(|why| LabError::Failed(format!("{what}: {why}")))?;
        watch.row(&row(&plan, source, race, subject, &ran));
        all.push((source, race, subject, ran));
    }
    Ok(findings::findings(&plan, &all, &watch.rows, load))
}

fn row(plan: &Plan, source: FigureSource, race: GovernRace, subject: Subject, ran: &Ran) -> Row {
    let params = Fields::new()
        .with("race", race.name())
        .with("rate_bytes_per_s", plan.race.rate_bytes_per_s)
        .with("budget_ms", plan.budget_ms)
        .with("seconds", plan.race.seconds);
    Row { source, ..machine::row("govern", subject.name(), params, ran.metrics(), Fields::new()) }
}

#[cfg(test)]
mod tests;
