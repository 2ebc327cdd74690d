//! `afflux-lab simulate`: predicts how jobs would run on another machine.
//!
//! Owns: the order: describe the run, run it, show it; the conditions for failure.
//! Does not own: the machine and its figures (the simulator); the reading of the request (`description`); the
//! destination of pages and events (`destination`). The modules `text`, `comparison`, `json`, `html`, and the crate
//! `report` own the looks of figures.
//! Invariants: every check of the input comes before the run; the output says that it was simulated. A run that is cut
//! shows its figures so far, and the command fails.

mod answer;
mod built_in;
mod check;
mod comparison;
mod curves;
mod description;
mod destination;
pub(crate) mod disks;
mod ended_run;
mod ending;
mod fio_json;
mod html;
mod input_file;
mod interruption;
mod json;
mod logs;
mod memory;
mod progress;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use afflux_workloads::simulation::{OWN_POLICY, Outcome as Figures, Simulation, SimulationError};

use crate::args;
use afflux_report::command_line;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use afflux_report::units;
use description::NamedInputs;
use destination::Destinations;
use ended_run::Run;
use html::PageInputs;
use interruption::Interruption;
use progress::RunDisplay;

pub(crate) fn run(args: &args::Simulate) -> Outcome {
    run_all(&NamedInputs { jobs: &args.jobs, size: args.size.as_deref(), traces: &args.trace_in }, &args.machine)
}

pub(crate) fn replay(args: &args::Replay) -> Outcome {
    run_all(&NamedInputs { jobs: &[], size: None, traces: &args.traces }, &args.machine)
}

fn run_all(work: &NamedInputs<'_>, args: &args::MachineArguments) -> Outcome {
    if args.trace.is_some() && args.policies.len() > 1 {
        return Err(Failure::wrong_use("--trace: the events are of one run; give one --policy"));
    }
    if args.trace.is_some() && args.runs > 1 {
        return Err(Failure::wrong_use("--trace: the events are of one run; leave --runs out"));
    }
    let destinations = Destinations::of(args)?;
    let described = description::read(work, args)?;
    for warning in &described.warnings {
        output::remark(format_args!("warning: {warning}"));
    }
    if args.check {
        return check::show(&described.simulations, args.json || args.output_format == "json");
    }
    let interruption = Interruption::watch()?;
    let fio_names = args.output_format == "json";
    let mut runs: Vec<Run> = Vec::new();
    for simulation in &described.simulations {
        if runs.last().is_some_and(|run| run.all().any(|figures| figures.cut)) {
            break;
        }
        let run = carry_out(&described.jobs, simulation, args.runs, &interruption)?;
        if args.json {
            output::say(json::object(&run));
        }
        if fio_names {
            output::say(format!("{:#}", fio_json::object(&run)));
        }
        runs.push(run);
    }
    if let [run] = &runs[..] {
        destinations.events(&run.figures.trace_lines)?;
        logs::write(&run.figures.logs)?;
    }
    let asked =
        PageInputs { command: command_line::own("afflux-lab"), files: described.files, replayed: described.replayed };
    destinations.page(|| html::page(&runs, &asked))?;
    if !args.json && !fio_names {
        let text = match &runs[..] {
            [run] => text::summary(run, destinations.terminal()),
            _ => comparison::summary(&runs, destinations.terminal()),
        };
        destinations.report(&text);
    }
    let left_out = described.simulations.iter().skip(runs.len()).map(|simulation| simulation.policy.as_str());
    verdict(&runs, &left_out.collect::<Vec<_>>())
}

fn carry_out(jobs: &str, simulation: &Simulation, runs: u64, interruption: &Interruption) -> Outcome<Run> {
    if let Some(what) = memory::long_preparation(simulation) {
        output::remark(what);
    }
    let start = Instant::now();
    let figures = run_once(simulation, interruption)?;
    let mut run = Run {
        jobs: jobs.to_owned(),
        policy: simulation.policy.clone(),
        figures,
        real: start.elapsed(),
        shifted: Vec::new(),
    };
    for shift in 1..runs {
        if run.all().any(|figures| figures.cut) {
            break;
        }
        run.shifted.push(run_once(&Simulation { shift, ..simulation.clone() }, interruption)?);
        run.real = start.elapsed();
    }
    Ok(run)
}

fn run_once(simulation: &Simulation, interruption: &Interruption) -> Outcome<Figures> {
    let mut display = RunDisplay::new();
    let outcome = simulation.run_while(&mut |progress| {
        display.show(progress);
        if interruption.is_asked_for() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    display.finish();
    match outcome {
        Ok(figures) => Ok(figures),
        Err(SimulationError::Knob(error)) => Err(Failure::wrong_use(format!("--set: {error}"))),
        Err(SimulationError::Description(what)) => Err(Failure::wrong_use(what)),
        Err(error) => Err(Failure::failed(format!("under {}: {error}", simulation.policy))),
    }
}

/// Fails if a job failed (from any error, as with fio), some bytes could never be written, or a run was cut. The
/// figures are shown even then.
fn verdict(runs: &[Run], left_out: &[&str]) -> Outcome {
    let mut wrong = Vec::new();
    for run in runs {
        let under = if run.policy == OWN_POLICY { String::new() } else { format!(" under {}", run.policy) };
        for figures in run.all() {
            let errors = figures.jobs.iter().flat_map(|job| job.errors.iter().map(move |(what, _)| (job, what)));
            wrong.extend(errors.map(|(job, what)| format!("{} failed{under}: {what}", job.name)));
            let unwritten = figures.unwritten.iter();
            wrong.extend(unwritten.map(|left| format!("never written{under}: {}: {}", left.what, left.why)));
            if figures.cut {
                let at = units::time(Duration::from_nanos(figures.virtual_ns));
                let missing =
                    if left_out.is_empty() { String::new() } else { format!("; not run: {}", left_out.join(", ")) };
                wrong.push(format!("cut at {at} of virtual time{under}{missing}"));
            }
        }
    }
    // Runs with shifted starts mostly fail alike.
    let mut told = BTreeSet::new();
    wrong.retain(|what| told.insert(what.clone()));
    if wrong.is_empty() { Ok(()) } else { Err(Failure::failed(wrong.join("\nerror: "))) }
}
