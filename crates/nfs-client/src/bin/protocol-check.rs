//! Runs the checks of [`nfs_client::check`] on a server.
//!
//! Owns: its arguments, a line for each check. Does not own: the checks.
//! Invariants: exit code 0 if all rules hold, 1 if not, 2 for wrong use or a server that cannot be reached.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what it is for")]

use std::process::ExitCode;

use nfs_client::check::{CHECKS, Target};

const USAGE: &str = "usage: protocol-check HOST:PORT EXPORT [MOUNT-HOST:PORT]
Checks an NFSv3 server, in directories that it makes in EXPORT and removes.";

fn target(arguments: &[String]) -> Option<Target> {
    let (nfs, export) = (arguments.first()?.parse().ok()?, arguments.get(1)?.clone());
    let mount = match arguments.get(2) {
        Some(mount) => mount.parse().ok()?,
        None => nfs,
    };
    (arguments.len() <= 3).then_some(Target { nfs, mount, export })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(target) = target(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if let Err(error) = target.reach() {
        eprintln!("error: {} at {}: {error}", target.export, target.nfs);
        return ExitCode::from(2);
    }
    let mut broken = 0;
    for check in CHECKS {
        match check.run(&target) {
            Ok(()) => println!("holds   {}", check.name),
            Err(failure) => {
                broken += 1;
                println!("broken  {}: {failure}\n        ({})", check.name, check.rule);
            }
        }
    }
    println!("{} of {} rules hold", CHECKS.len() - broken, CHECKS.len());
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
