//! Kills servers under one load in a separate network, which `cargo xtask race-kills` sets up. With `--asking` the caller
//! kills the server.
//!
//! Owns: its arguments, the output. Does not own: the comparison (`afflux_nfs_check::kills`).
//! Invariants: standard output has only the figures, and `kill` where the caller kills.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is its purpose")]

use std::process::ExitCode;

use afflux_nfs_check::kills::{Options, Server, run, run_with};

const USAGE: &str = "usage: kill-race DIR AFFLUX ROUNDS [--json], or kill-race --asking NAME NFS MOUNT EXPORT ROUNDS";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(outcome) = obey(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match outcome {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// `None` for wrong usage.
fn obey(arguments: &[&str]) -> Option<Result<String, afflux_nfs_check::race::Failure>> {
    match arguments {
        ["--asking", name, nfs, mount, path, rounds] => {
            let server = Server { nfs: nfs.parse().ok()?, mount: mount.parse().ok()?, path: (*path).to_owned() };
            let text = run_with(&server, name, rounds.parse().ok()?, &mut |word| println!("{word}"));
            Some(text.map(|text| format!("end {text}\n")))
        }
        [directory, afflux, rounds, rest @ ..] => {
            let options = Options {
                directory: directory.into(),
                afflux: afflux.into(),
                rounds: rounds.parse().ok()?,
                json: rest.contains(&"--json"),
            };
            Some(run(&options, &mut |line| eprintln!("{line}")))
        }
        _ => None,
    }
}
