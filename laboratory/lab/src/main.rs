//! The `afflux-lab` command.
//!
//! Owns: the choice of the subcommand, the exit code (0 done, 1 failed, 2 wrong use).
//! Does not own: simulated machines, workloads and experiments. It connects the owners' crates. No crate imports `lab`.
//! Invariants: an error names the operation that failed, its object, and the next step. Bad input causes no panic.
#![forbid(unsafe_code)]

mod args;
mod calibrate;
mod devices;
mod experiment;
mod knobs;
mod simulate;
mod trace_file;

use std::process::ExitCode;

use afflux_report::failure::Failure;
use afflux_report::output;
use args::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::read();
    let outcome = match &arguments.command {
        Command::Simulate(simulate) => simulate::run(simulate),
        Command::Replay(replay) => simulate::replay(replay),
        Command::Devices(devices) => devices::run(devices),
        Command::Calibrate(calibrate) => calibrate::run(calibrate),
        Command::List(list) => experiment::list(list),
        Command::Run(run) => experiment::run(run),
        Command::Manual(manual) => manual.run(Arguments::described()),
    };
    let lost = output::failure().map(|why| Failure::failed(format!("standard output is not whole: {why}")));
    match outcome.and_then(|()| lost.map_or(Ok(()), Err)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::remark(format_args!("error: {failure}"));
            failure.exit_code()
        }
    }
}
