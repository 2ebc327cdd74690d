//! A race of two NFS servers on one host: the same calls on the same directory, in turns, with one CPU for the servers
//! and one for the client.
//!
//! Owns: the cases, their order, the figures of the rounds.
//! Does not own: starting the servers (`servers`), their network (the caller's).
//! Invariants: only one server has calls at a time. A ratio compares two consecutive runs.

mod beside;
mod cases;
mod cold;
mod host;
mod names;
mod other_program;
mod report;
mod servers;
mod sessions;
mod tree;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use afflux_rig::words::Races;
use afflux_rig::{self as rig, short};
use afflux_scratch::{Processors, Stolen};
use cases::Case;
use servers::{Running, Servers};

use crate::failure::{Failure, host};

/// The options of a race.
#[derive(Debug)]
pub struct Options {
    /// The place of a new directory for all files; made if there is none.
    pub directory: PathBuf,
    /// The `afflux` program.
    pub afflux: PathBuf,
    /// The program that mounts a server.
    pub bridge: PathBuf,
    /// The bare loop that reads cold data.
    pub bare: PathBuf,
    /// A quick run is a smoke test, with meaningless figures.
    pub words: Races,
}

/// Sizes and times.
#[derive(Clone, Copy)]
struct Scale {
    steady: Duration,
    file_bytes: u64,
    sequential_bytes: u64,
    many_files: u64,
    names: u64,
    cold_bytes: u64,
    cold_calls: u64,
    tree_files: u64,
}

impl Scale {
    fn new(quick: bool) -> Self {
        if quick {
            Self {
                steady: Duration::from_millis(150),
                file_bytes: 16 << 20,
                sequential_bytes: 64 << 20,
                many_files: 3_000,
                names: 48,
                cold_bytes: 16 << 20,
                cold_calls: 1_000,
                tree_files: 60,
            }
        } else {
            Self {
                steady: Duration::from_millis(700),
                file_bytes: 256 << 20,
                sequential_bytes: 1 << 30,
                many_files: 100_000,
                names: 2_000,
                cold_bytes: 512 << 20,
                cold_calls: 50_000,
                tree_files: 2_000,
            }
        }
    }
}

/// One run of one case on one server.
#[derive(Clone, Copy, Debug)]
struct Figure {
    /// Of the case's unit, per second.
    rate: f64,
    /// The server's CPU time for one call.
    cpu_us: f64,
    /// The client's CPU time for one call. If it fills the rest of the time that the rate leaves for a call, the client
    /// is the limit.
    client_us: f64,
    /// The median; below, percentile 99 and percentile 99.9. 0 if single calls were not measured.
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    /// Throughput of a stream of writes beside the calls; 0 if there was none.
    stream_mib: f64,
}

/// A case with the figures of its participants.
struct Raced {
    case: Case,
    figures: rig::Raced<Running, Figure, Failure>,
}

/// Runs the race, reports each run to `told`, and returns the table as Markdown.
///
/// # Errors
/// When a server does not start or a call fails.
pub fn run(options: &Options, told: &mut dyn FnMut(String)) -> Result<String, Failure> {
    let words = &options.words;
    let scale = Scale::new(words.quick);
    let (begin, processors) = (Instant::now(), Processors::now());
    told("making files, starting servers".to_owned());
    let files = host::scratch(&options.directory)?;
    let export = host::prepare(files.path(), &scale)?;
    let mut servers = Servers::start(options, files.path(), &export)?;
    host::pin_client().map_err(host("keeping to a CPU"))?;
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
            told(format!("[{percent:>2} %, {seconds} s] {}, {}: {rate} {}/s", case.name, which.name(), case.unit));
            Ok(figure)
        });
        raced.push(Raced { case, figures: figures.whole()? });
    }
    judge(words.quick, processors.stolen())?;
    Ok(report::table(&raced))
}

/// Refuses figures from a machine with stolen time. A quick run only shows that it works.
fn judge(quick: bool, stolen: Stolen) -> Result<(), Failure> {
    if quick || !stolen.spoils_figures() { Ok(()) } else { Err(Failure::Stolen { per_mille: stolen.per_mille }) }
}

#[cfg(test)]
mod tests;
