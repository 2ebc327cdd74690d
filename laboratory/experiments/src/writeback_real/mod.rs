//! Races on real disks, throttled by the kernel. Three contenders run side by side: the kernel's page cache with its
//! defaults, the page cache tuned for the device, and the engine in this process.
//!
//! Owns: the order of the runs, the rows.
//! Does not own: the options (`plan`), disks and contenders and the races (`races`), goals and tables and charts
//! (`findings`).
//! Invariants: in each repeat every contender runs every race, one after the other; each run has a disk that the kernel
//! has not seen before. A race that is impossible on a machine is left out, with a remark.

mod findings;
mod plan;
mod races;

use afflux_report::{Fields, Row};
use clap::Args;

use crate::contenders::ran::Ran;
use crate::contenders::{self, announce, ordered_runs};
use crate::experiment::{Experiment, Findings, LabError, Request, StoredRows, Watch};
use crate::host::load;
use crate::machine::measured_row;
use crate::options::Named;
use plan::{Plan, Subject, WritebackRace};
use races::Stage;

/// The experiment.
pub(crate) static WRITEBACK_REAL: Experiment = Experiment {
    name: "writeback-real",
    about: "Writers on really throttled disks: the kernel's page cache, the same tuned, and the engine",
    labels: findings::LABELS,
    thread: "Thread: none of its own. The kernel's limits that it is tuned with are 'mm/block: add bdi sysfs knobs', Stefan \
         Roesch, linux-mm, October 2022",
    words: include_str!("words.md"),
    options: Plan::augment_args,
    can_measure: true,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let plan = Plan::read(request)?;
    let (mut left_out, mut races) = (Vec::new(), Vec::new());
    for race in &plan.races {
        match race.missing() {
            Some(why) => left_out.push(format!("{} was left out: {why}.", race.name())),
            None => races.push(*race),
        }
    }
    if races.is_empty() {
        return Err(LabError::Failed(format!("nothing can be run here. {}", left_out.join(" "))));
    }
    announce(watch, &left_out, plan.expected_s(&races), plan.race.run.repeats);
    let (mut full_speed, load) = (Vec::new(), load());
    let disks = contenders::Stage::new(&plan.directory, "races").map_err(LabError::Failed)?;
    let stage = Stage { disks, plan: &plan };
    let ordered_runs = ordered_runs(plan.race.run.repeats, &races, |race, _| plan.subjects(race));
    for (at, (repeat, race, subject)) in ordered_runs.iter().enumerate() {
        let what = format!("{}, {}, {repeat} of {}", race.name(), subject.name(), plan.race.run.repeats);
        watch.step(&what, at as f64 / ordered_runs.len() as f64);
        let ran = stage.run(*race, subject, *repeat);
        let ran = ran.map_err(|why| LabError::Failed(format!("{what}: {why}")))?;
        watch.row(&row(&plan, *race, subject, *repeat, &ran));
        if *race == WritebackRace::FullSpeed {
            full_speed.push((subject.name(), ran));
        }
    }
    drop(stage);
    Ok(findings::findings(std::mem::take(&mut watch.rows), &full_speed, left_out, load))
}

fn row(plan: &Plan, race: WritebackRace, subject: &Subject, repeat: u64, ran: &Ran) -> Row {
    let mut metrics = ran.metrics();
    if !ran.looks.is_empty() {
        let by_second = |at: u64| {
            let after = ran.looks.partition_point(|look| look.at_s <= at as f64);
            after.checked_sub(1).map_or(0, |look| ran.looks[look].accepted_bytes / 1_000_000)
        };
        metrics.push("accepted_mb_at_second", (1..=plan.race.seconds).map(by_second).collect::<Vec<u64>>());
    }
    if let Some(delays) = &ran.delays {
        metrics.push("delays", delays.clone());
    }
    let params = Fields::new()
        .with("race", race.name())
        .with("repeat", repeat)
        .with("rate_bytes_per_s", plan.race.rate_bytes_per_s)
        .with("seconds", plan.race.seconds)
        .with("block_bytes", plan::BLOCK_BYTES)
        .with("max_bytes", plan.max_bytes)
        .with("memory_bytes", plan.engine.memory_bytes);
    measured_row("writeback-real", &subject.name(), params, metrics, Fields::new())
}

#[cfg(test)]
mod tests;
