//! The race of our mount with the host and with other file systems in user space, which `cargo xtask race-mount`
//! builds.
//!
//! Standard output is the tables as Markdown; standard error has the progress.
//!
//! Owns: the order of cases.
//! Does not own: the cases (`cases`, `build`, `calls`, `names`, `slow`), the contenders, their turns
//! (`afflux_rig`), the tables (`report`).
//! Invariants: a contender that cannot run is a remark, not the end of the race.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

mod bare;
mod build;
mod calls;
mod cases;
mod contenders;
mod cpus;
mod figure;
mod names;
mod options;
mod report;
mod slow;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use afflux_scratch::Processors;
use anyhow::{Context, Result, bail};

use cases::{Case, Raced};
use contenders::Contenders;
use options::Options;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match &words[..] {
        [word, point] if word == bare::WORD => bare::serve(Path::new(point)),
        _ => race(&Options::of_program()),
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
    let cases: Vec<Case> = cases::all().into_iter().filter(|case| options.words.is_wanted(case.name)).collect();
    if cases.is_empty() {
        let names: Vec<&str> = cases::all().iter().map(|case| case.name).collect();
        bail!("no case has such a name; there are: {}", names.join("; "));
    }
    let cpus = cpus::all().context("the CPUs")?;
    let mut contenders = Contenders::new(options);
    let mut raced: Vec<Raced> = Vec::new();
    for case in cases {
        cpus::keep_to(options.cpu().filter(|_| !case.uses_all_cpus()), &cpus).context("the choice of CPUs")?;
        let figures = afflux_rig::Raced::new(case.who, case.rounds(options), |who, round| {
            let figure = case.run(&mut contenders, who, round, options).map_err(|error| format!("{error:#}"));
            let told = figure.as_ref().map_or_else(Clone::clone, |figure| report::value(case.unit, figure.value));
            eprintln!("[{:>3} s] {}: {}: {told}", begin.elapsed().as_secs(), case.name, who.name());
            figure
        });
        raced.push(Raced { case, figures });
    }
    let load = load.split(' ').next().unwrap_or("?");
    let machine = report::Machine { load, stolen_ms: processors.stolen().ms, cpu: options.cpu() };
    print!("{}", report::text(&raced, &machine));
    eprintln!("[{:>3} s] done", begin.elapsed().as_secs());
    Ok(())
}
