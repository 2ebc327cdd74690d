//! The kills of all servers by turns, and of one that somebody else kills.
//!
//! Owns: the options, the order of the rounds.
//! Does not own: a round (`round`), the servers' processes (`processes`), the table (`report`).
//! Invariants: each server gets the same loads, by the same seeds.

use std::io::{self, BufRead};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use afflux_scratch::Scratch;

use super::figures::Figures;
use super::killed::{Killed, Server};
use super::processes::{self, Process, Which};
use super::report;
use super::round::{names, round};
use crate::race::{Failure, host};

/// The options of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// A directory for all files, which is there.
    pub directory: PathBuf,
    /// The `afflux` program.
    pub afflux: PathBuf,
    /// Kills of each server.
    pub rounds: u64,
    /// The figures of each kill as JSON instead of the table.
    pub json: bool,
}

/// Kills each server by turns, tells each kill, and returns the figures.
///
/// # Errors
/// When a server does not start or a call fails.
pub fn run(options: &Options, told: &mut dyn FnMut(String)) -> Result<String, Failure> {
    let memory = Scratch::new("/dev/shm".as_ref(), "kills").map_err(host("/dev/shm"))?;
    let _port_mapper = processes::port_mapper(&options.directory)?;
    let mut all: Vec<(&str, Figures)> = Vec::new();
    for number in 0..options.rounds {
        for which in Which::ALL {
            let mut process = Process::start(which, &options.afflux, &options.directory, memory.path())?;
            let server = process.server();
            let figures = round(&server, number, &mut || process.kill(&names()))?;
            told(format!("{number}: {}", report::json(which.name(), &figures)));
            all.push((which.name(), figures));
        }
    }
    Ok(if options.json { report::lines(&all) } else { report::table(&Which::ALL.map(Which::name), &all) })
}

/// Runs the same load on a server of the caller. The caller kills it when this program prints `kill`, and then answers
/// with a line. Returns the figures as JSON, in one line.
///
/// # Errors
/// When the server does not come back or a call fails.
pub fn run_with(server: &Server, name: &str, rounds: u64, ask: &mut dyn FnMut(&str)) -> Result<String, Failure> {
    let mut kill = || {
        ask("kill");
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(host("the answer to `kill`"))?;
        Ok(Killed { at: Instant::now(), aside: Duration::ZERO, on_disk: None })
    };
    let rounds: Result<Vec<String>, Failure> =
        (0..rounds).map(|number| Ok(report::json(name, &round(server, number, &mut kill)?))).collect();
    Ok(rounds?.join(" "))
}
