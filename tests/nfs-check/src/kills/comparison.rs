//! The kills of all servers by turns, and of one that somebody else kills.
//!
//! Owns: the options, the order of the rounds.
//! Does not own: a round (`round`), the servers' processes (`processes`), the table (`report`).
//! Invariants: each server gets the same loads, by the same seeds.

use std::io::{self, BufRead};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use afflux_rig::words::Races;
use afflux_rig::{Raced, ganesha};
use afflux_scratch::Scratch;

use super::figures::Figures;
use super::killed::{Killed, Server};
use super::processes::{Process, Which};
use super::report;
use super::round::{names, round};
use crate::failure::{Failure, host};

/// Kills of each server, usually.
const ROUNDS: usize = 20;

/// The options of a comparison.
#[derive(Debug)]
pub struct Options {
    /// A directory for all files, which is there.
    pub directory: PathBuf,
    /// The `afflux` program.
    pub afflux: PathBuf,
    /// The figures of each kill as JSON instead of the table.
    pub json: bool,
    /// The servers and the number of kills of each.
    pub words: Races,
}

/// Kills each server by turns, tells each kill, and returns the figures.
pub fn run(options: &Options, told: &mut dyn FnMut(String)) -> Result<String, Failure> {
    let memory = Scratch::new("/dev/shm".as_ref(), "kills").map_err(host("/dev/shm"))?;
    let mut port_mapper = Command::new(ganesha::PORT_MAPPER);
    let _port_mapper = ganesha::port_mapper(&mut port_mapper, &options.directory).map_err(host("rpcbind"))?;
    let servers: Vec<Which> = Which::ALL.into_iter().filter(|which| options.words.is_wanted(which.word())).collect();
    let kills = Raced::new(&servers, options.words.rounds_or(ROUNDS), |which, number| {
        let mut process = Process::start(which, &options.afflux, &options.directory, memory.path())?;
        let server = process.server();
        let figures = round(&server, number as u64, &mut || process.kill(&names()))?;
        told(format!("{number}: {}", report::json(which.word(), &figures)));
        Ok(figures)
    });
    let kills: Raced<Which, Figures, Failure> = kills.whole()?;
    Ok(if options.json { report::lines(&kills) } else { report::table(&kills) })
}

/// Runs the same load on a server of the caller. The caller kills it when this program prints `kill`, and then answers
/// with a line. Returns the figures as JSON, in one line.
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
