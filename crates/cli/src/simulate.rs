//! `afflux simulate`: what jobs would do on another machine.
//!
//! Owns: the order: describe the run, run it, show it.
//! Does not own: the machine and its figures (the simulator); reading what was asked for
//! (`description`); how figures look (`text`, `comparison`, `json`, `html`, and the crate `report`).
//! Invariants: everything that can be refused is refused before the run; what is shown says that it
//! was simulated.

mod built_in;
mod comparison;
mod curves;
mod description;
pub(crate) mod disks;
mod html;
mod json;
mod progress;
#[cfg(test)]
mod tests;
mod text;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use report::terminal::Terminal;
use workloads::simulation::{Outcome as Figures, Simulation, SimulationError};

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::output;
use progress::RunDisplay;

/// A run that ended.
struct Run {
    /// The job files and workloads, as the user named them.
    jobs: String,
    /// Whose policies it had.
    policy: String,
    figures: Figures,
    /// How long it took here.
    real: Duration,
}

pub(crate) fn run(args: &args::Simulate) -> Outcome {
    if args.trace.is_some() && args.policies.len() > 1 {
        return Err(Failure::wrong_use("--trace: the events are of one run; give one --policy"));
    }
    for path in [&args.html, &args.trace].into_iter().flatten() {
        check_writable(path)?;
    }
    let described = description::read(args)?;
    for warning in &described.warnings {
        output::remark(format_args!("warning: {warning}"));
    }
    let mut runs = Vec::new();
    for simulation in &described.simulations {
        let run = carry_out(&described.jobs, simulation)?;
        if args.json {
            output::say(json::object(&run));
        }
        runs.push(run);
    }
    if let (Some(path), [run]) = (&args.trace, &runs[..]) {
        let mut lines = run.figures.trace_lines.join("\n");
        lines.push('\n');
        write(path, &lines)?;
    }
    if let Some(path) = &args.html {
        write(path, &html::page(&runs))?;
    }
    if args.json {
        return Ok(());
    }
    let terminal = Terminal::of_stdout();
    let text = match &runs[..] {
        [run] => text::summary(run, terminal),
        _ => comparison::summary(&runs, terminal),
    };
    output::say(text.trim_end());
    if let Some(path) = &args.html {
        output::say(format_args!("Plots: {}", path.display()));
    }
    if let Some(path) = &args.trace {
        output::say(format_args!("Events: {}", path.display()));
    }
    Ok(())
}

fn carry_out(jobs: &str, simulation: &Simulation) -> Outcome<Run> {
    let mut display = RunDisplay::new();
    let start = Instant::now();
    let outcome = simulation.run(&mut |progress| display.show(progress));
    display.finish();
    let policy = simulation.policy.clone();
    match outcome {
        Ok(figures) => Ok(Run { jobs: jobs.to_owned(), policy, figures, real: start.elapsed() }),
        Err(SimulationError::Knob(error)) => Err(Failure::wrong_use(format!("--set: {error}"))),
        Err(SimulationError::Description(what)) => Err(Failure::wrong_use(what)),
        Err(error) => Err(Failure::failed(format!("under {policy}: {error}"))),
    }
}

/// Fails early where a file could not be written at the end.
fn check_writable(path: &Path) -> Outcome {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if path.is_dir() {
        return Err(Failure::failed(format!("{} is a directory; name a file in it", path.display())));
    }
    if !directory.is_dir() {
        let (path, directory) = (path.display(), directory.display());
        return Err(Failure::failed(format!("{path} cannot be written: there is no directory {directory}")));
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text).map_err(|error| Failure::failed(format!("{} cannot be written: {error}", path.display())))
}
