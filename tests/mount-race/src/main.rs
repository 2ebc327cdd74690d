//! The race of our mount with the host and with other file systems in user space, which `cargo xtask race-mount`
//! builds.
//!
//! Owns: the order of cases.
//! Does not own: the cases (`cases`, `build`, `calls`, `names`, `slow`), the contenders, their turns
//! (`afflux_rig`), the tables (`report`).
//! Invariants: a contender that cannot run is a remark, not the end of the race.
#![forbid(unsafe_code)]

mod bare;
mod build;
mod calls;
mod cases;
mod contenders;
mod figure;
mod names;
mod options;
mod report;
mod slow;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use afflux_rig::words::{printed, program};
use afflux_scratch::Processors;
use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use cases::{Case, Raced};
use contenders::Contenders;
use options::Options;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [word, point] if word == bare::WORD => printed(bare::serve(Path::new(point)).map(|()| String::new())),
        _ => program(|places, words, told| race(&Options::new(places, words), told)),
    }
}

fn race(options: &Options, told: &mut dyn FnMut(String)) -> Result<String> {
    let (begin, processors) = (Instant::now(), Processors::now());
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cases: Vec<Case> = cases::all().into_iter().filter(|case| options.words.is_wanted(case.name)).collect();
    if cases.is_empty() {
        let names: Vec<&str> = cases::all().iter().map(|case| case.name).collect();
        bail!("no case has such a name; there are: {}", names.join("; "));
    }
    let cpus = sched_getaffinity(None).context("the CPUs")?;
    let mut contenders = Contenders::new(options);
    let mut raced: Vec<Raced> = Vec::new();
    for case in cases {
        // All later threads and processes of this thread have its CPUs.
        let mut own = cpus;
        if let Some(cpu) = options.cpu().filter(|_| !case.uses_all_cpus()) {
            own = CpuSet::new();
            own.set(cpu);
        }
        sched_setaffinity(None, &own).context("the choice of CPUs")?;
        let figures = afflux_rig::Raced::new(case.who, case.rounds(options), |who, round| {
            let figure = case.run(&mut contenders, who, round, options).map_err(|error| format!("{error:#}"));
            let shown = figure.as_ref().map_or_else(Clone::clone, |figure| report::value(case.unit, figure.value));
            told(format!("[{:>3} s] {}: {}: {shown}", begin.elapsed().as_secs(), case.name, who.word()));
            figure
        });
        raced.push(Raced { case, figures });
    }
    let load = load.split(' ').next().unwrap_or("?");
    let machine = report::Machine { load, stolen_ms: processors.stolen().ms, cpu: options.cpu() };
    told(format!("[{:>3} s] done", begin.elapsed().as_secs()));
    Ok(report::text(&raced, &machine))
}
