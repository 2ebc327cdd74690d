//! Runs the checks of [`afflux_nfs_client::check`] on a server.
//!
//! Owns: its arguments, a line for each check. Does not own: the checks.
//! Invariants: exit code 0 if all rules hold, 1 if not, 2 for wrong usage or an unreachable server.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is its purpose")]

use std::path::Path;
use std::process::ExitCode;

use afflux_nfs_client::check::{CHECKS, Failure, More, Target, make_links};

const USAGE: &str = "usage: protocol-check HOST:PORT EXPORT [--mount HOST:PORT] [--small EXPORT] [--read-only EXPORT]
       protocol-check --links DIR
Checks an NFSv3 server, in directories that it makes in EXPORT and removes. Some checks need further exports: a
small one of an ext4 of its own, which --links has filled on the server's host, and a read-only one with `file` and
`directory` in it.";

fn target(arguments: &[String]) -> Option<Target> {
    let (nfs, export) = (arguments.first()?.parse().ok()?, arguments.get(1)?.clone());
    let mut target = Target { nfs, mount: nfs, export, more: More::default() };
    for pair in arguments[2..].chunks(2) {
        let [option, value] = pair else { return None };
        match option.as_str() {
            "--mount" => target.mount = value.parse().ok()?,
            "--small" => target.more.small = Some(value.clone()),
            "--read-only" => target.more.read_only = Some(value.clone()),
            _ => return None,
        }
    }
    Some(target)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [option, directory] = &arguments[..]
        && option == "--links"
    {
        return match make_links(Path::new(directory)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {directory}: {error}");
                ExitCode::from(2)
            }
        };
    }
    let Some(target) = target(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if let Err(error) = target.reach() {
        eprintln!("error: {} at {}: {error}", target.export, target.nfs);
        return ExitCode::from(2);
    }
    let (mut broken, mut left_out) = (0, 0);
    for check in CHECKS {
        match check.run(&target) {
            Ok(()) => println!("holds   {}", check.name),
            Err(Failure::Missing(what)) => {
                left_out += 1;
                println!("left out {}: needs {what}", check.name);
            }
            Err(failure) => {
                broken += 1;
                println!("broken  {}: {failure}\n        ({})", check.name, check.rule);
            }
        }
    }
    println!("{} of {} rules hold", CHECKS.len() - broken - left_out, CHECKS.len() - left_out);
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
