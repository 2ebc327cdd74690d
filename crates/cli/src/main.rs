//! The `afflux` command.
//!
//! Owns: the dispatch to subcommands, the exit code (0 done, 1 failed, 2 wrong use).
//! Does not own: caching, files, protocols: it wires the crates that do, and no crate imports it.
//! Invariants: an error names the failure, its object, and the next step for the user; nothing panics on bad input.
#![forbid(unsafe_code)]

mod args;
mod bounded_file;
mod cache_size;
mod calibrate;
mod command_line;
mod configuration;
mod control;
mod delays;
mod devices;
mod drain;
mod eject;
mod failure;
mod govern;
mod knobs;
mod lab;
mod log;
mod metrics;
mod output;
mod port_holder;
mod progress;
mod serve;
mod service;
mod set;
mod simulate;
mod stat;
mod top;
mod trace;
mod trace_file;

use std::process::ExitCode;

use args::{Arguments, Command};
use report::units;

fn main() -> ExitCode {
    let arguments = Arguments::read();
    let outcome = match &arguments.command {
        Command::Serve(serve) => serve::run(serve),
        Command::Stat(stat) => stat::run(stat),
        Command::Top(top) => top::run(top),
        Command::Delays(delays) => delays::run(delays),
        Command::Trace(trace) => trace::run(trace),
        Command::Set(set) => set::run(set),
        Command::Drain(drain) => drain::run(drain),
        Command::Simulate(simulate) => simulate::run(simulate),
        Command::Devices(devices) => devices::run(devices),
        Command::Calibrate(calibrate) => calibrate::run(calibrate),
        Command::Lab(lab) => lab::run(lab),
        Command::Govern(govern) => govern::run(govern),
        Command::Eject(eject) => eject::run(eject),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            log::failed(&failure);
            failure.exit_code()
        }
    }
}
