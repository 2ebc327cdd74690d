//! A race of two NFS servers on one host: the same calls on the same directory, in turns, with one CPU for the servers
//! and the host's own loops, and one for the client.
//!
//! Owns: the rounds, the refusal of figures from a machine with stolen time.
//! Does not own: the cases (`cases`), starting the servers (`servers`), their network (the caller's).
//! Invariants: only one server has calls at a time. A ratio compares two consecutive runs.

mod beside;
mod cases;
mod cold;
mod cpus;
mod data_files;
mod disk;
mod figure;
mod host;
mod names;
mod options;
mod other_program;
mod report;
mod scale;
mod servers;
mod sessions;
mod tree;

use std::time::Instant;

use afflux_rig::{self as rig, short};
use afflux_scratch::{Processors, Stolen};
use cases::Case;
use cpus::Cpus;
use report::Raced;
use scale::Scale;
use servers::Servers;

use crate::failure::{Failure, host};

pub use options::Options;

/// Runs the race, reports each run to `told`, and returns the table as Markdown.
pub fn run(options: &Options, told: &mut dyn FnMut(String)) -> Result<String, Failure> {
    let words = &options.words;
    let scale = Scale::new(words.quick);
    let (begin, processors) = (Instant::now(), Processors::now());
    told("making files, starting servers".to_owned());
    let files = host::scratch(&options.directory)?;
    let export = host::prepare(files.path(), &scale)?;
    let cpus = Cpus::choose(files.path()).map_err(host("the choice of CPUs"))?;
    let mut servers = Servers::start(options, cpus.clone(), files.path(), &export)?;
    cpus.pin_client().map_err(host("keeping to a CPU"))?;
    let cases: Vec<Case> = cases::all().into_iter().filter(|case| words.is_wanted(case.name)).collect();
    if cases.is_empty() {
        let names: Vec<&str> = cases::all().iter().map(|case| case.name).collect();
        return Err(Failure::Server(format!("no case has such a name; there are: {}", names.join("; "))));
    }
    let mut raced: Vec<Raced> = Vec::new();
    let steps = cases.len();
    for (at, case) in cases.into_iter().enumerate() {
        let rounds = words.rounds_or(case.rounds());
        let figures = rig::Raced::new(&case.participants(), rounds, |which, round| {
            let figure = case.run(&mut servers, which, &scale, round)?;
            let (percent, seconds, rate) = (at * 100 / steps, begin.elapsed().as_secs(), short(figure.rate));
            told(format!("[{percent:>2} %, {seconds} s] {}, {}: {rate} {}/s", case.name, which.word(), case.unit));
            Ok(figure)
        });
        raced.push(Raced { case, figures: figures.whole()? });
    }
    judge(words.quick, processors.stolen())?;
    let file_system = disk::file_system(files.path()).map_err(host("findmnt"))?;
    Ok(format!("{} Files on {file_system}.\n\n{}", cpus.words(), report::table(&raced)))
}

/// Refuses figures from a machine with stolen time. A quick run only shows that it works.
fn judge(quick: bool, stolen: Stolen) -> Result<(), Failure> {
    if quick || !stolen.spoils_figures() { Ok(()) } else { Err(Failure::Stolen { per_mille: stolen.per_mille }) }
}

#[cfg(test)]
mod tests;
