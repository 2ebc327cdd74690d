//! The `afflux` command.
//!
//! Owns: the dispatch to subcommands, the exit code (0 done, 1 failed, 2 wrong use).
//! Does not own: caching, files, protocols: it wires the crates that do, and no crate imports it.
//! Invariants: an error names the failure, its object, and the next step for the user; nothing panics on bad input.
#![forbid(unsafe_code)]

mod args;
mod change;
mod clients;
mod configuration;
mod control;
mod delays;
mod eject;
mod govern;
mod knobs;
mod log;
mod metrics;
mod private_directory;
mod processes;
mod progress;
mod serve;
mod service;
mod settings;
mod stat;
#[cfg(feature = "object")]
mod stores;
#[cfg(test)]
mod tests;
mod top;
mod trace;
mod unmounter;
mod watch;

use std::process::ExitCode;

use afflux_report::failure::Failure;
use args::{Command, CommandLine};

fn main() -> ExitCode {
    let arguments = CommandLine::read();
    let outcome = match &arguments.command {
        Command::Serve(serve) => serve::run(serve),
        Command::Mount(mount) => serve::run_mount(mount),
        Command::UnmountAtEnd { point } => unmounter::run(point),
        Command::Stat(stat) => stat::run(stat),
        Command::Top(top) => top::run(top),
        Command::Clients(clients) => clients::run(clients),
        Command::Delays(delays) => delays::run(delays),
        Command::Trace(trace) => trace::run(trace),
        Command::Set(set) => change::set(set),
        Command::Drain(drain) => change::drain(drain),
        Command::Unlock(unlock) => change::unlock(unlock),
        Command::Simulate { .. } => Err(moved()),
        Command::Govern(govern) => govern::run(govern),
        Command::Eject(eject) => eject::run(eject),
        Command::Umount(umount) => eject::umount(umount),
        #[cfg(feature = "object")]
        Command::Volumes(volumes) => volumes.run(),
        #[cfg(feature = "object")]
        Command::Check(check) => check.run(),
        #[cfg(feature = "object")]
        Command::Snapshot(snapshot) => snapshot.run(),
        Command::Manual(manual) => manual.run(CommandLine::described()),
    };
    // The work of a server is not its output.
    let is_server = matches!(arguments.command, Command::Serve(_) | Command::Mount(_) | Command::UnmountAtEnd { .. });
    match outcome.and_then(|()| lost_output().filter(|_| !is_server).map_or(Ok(()), Err)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            log::failed(&failure);
            failure.exit_code()
        }
    }
}

/// The failure of a command whose output is not whole.
fn lost_output() -> Option<Failure> {
    let why = afflux_report::output::failure()?;
    Some(Failure::failed(format!("standard output is not whole: {why}")))
}

/// The answer to a command that `afflux-lab` has.
fn moved() -> Failure {
    let words: Vec<String> = std::env::args().skip(1).skip_while(|word| word == "lab").collect();
    Failure::wrong_use(format!(
        "simulations and experiments are commands of afflux-lab (its Debian package has that name, too): afflux-lab {}",
        words.join(" ")
    ))
}
