//! The race of our mount with the host and with other file systems in user space, which `cargo xtask race-mount` builds.
//!
//! Standard output is the tables as Markdown; standard error has the progress.
//!
//! Owns: the arguments, the order of turns.
//! Does not own: the cases (`cases`, `build`, `calls`, `names`, `slow`), the contenders, the tables (`report`).
//! Invariants: one contender works at a time, and a round goes through the contenders in the other direction than the
//! round before. A contender that cannot run is a remark, not the end of the race.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

mod bare;
mod build;
mod calls;
mod cases;
mod contenders;
mod figure;
mod names;
mod options;
mod processes;
mod report;
mod slow;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use afflux_scratch::Processors;
use anyhow::{Context, Result, bail};

use cases::{Case, Raced};
use contenders::{Contenders, Who};
use options::Options;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match &words[..] {
        [word, point] if word == bare::WORD => bare::serve(Path::new(point)),
        _ => Options::of(&words).and_then(|options| race(&options)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn race(options: &Options) -> Result<()> {
    let (begin, processors) = (Instant::now(), Processors::now());
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cases: Vec<Case> = cases::all().into_iter().filter(|case| options.wants(case.name)).collect();
    if cases.is_empty() {
        let names: Vec<&str> = cases::all().iter().map(|case| case.name).collect();
        bail!("no case has such a name; there are: {}", names.join("; "));
    }
    let cpus = processes::cpus().context("the CPUs")?;
    let mut contenders = Contenders::new(options);
    let mut raced: Vec<Raced> = Vec::new();
    for case in cases {
        let told = |what: String| eprintln!("[{:>3} s] {}: {what}", begin.elapsed().as_secs(), case.name);
        match options.cpu.filter(|_| !case.uses_all_cpus()) {
            Some(cpu) => processes::keep_to(cpu),
            None => processes::use_cpus(&cpus),
        }
        .context("the choice of CPUs")?;
        raced.push(run(case, &mut contenders, options, &told));
    }
    let load = load.split(' ').next().unwrap_or("?");
    let remarks = contenders.remarks();
    print!(
        "{}",
        report::text(&raced, &remarks, &report::Machine { load, stolen_ms: processors.stolen().ms, cpu: options.cpu })
    );
    eprintln!("[{:>3} s] done", begin.elapsed().as_secs());
    Ok(())
}

/// All rounds of a case.
fn run(case: Case, contenders: &mut Contenders<'_>, options: &Options, told: &dyn Fn(String)) -> Raced {
    let mut raced = Raced { case, rounds: Vec::new(), failed: Vec::new() };
    let mut turns: Vec<Who> = case.who.to_vec();
    for round in 0..case.rounds(options) {
        let mut figures = Vec::new();
        for who in &turns {
            match case.run(contenders, *who, round, options) {
                Ok(Some(figure)) => {
                    told(format!("{}: {}", who.name(), report::value(case.unit, figure.value)));
                    figures.push((*who, figure));
                }
                Ok(None) => {}
                Err(error) => {
                    told(format!("{}: {error:#}", who.name()));
                    raced.failed.push(format!("{}, {}: {error:#}", case.name, who.name()));
                }
            }
        }
        raced.rounds.push(figures);
        turns.reverse();
    }
    raced
}
