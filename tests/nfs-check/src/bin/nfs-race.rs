//! Races our server with nfs-ganesha in a separate network, which `cargo xtask race-nfs` sets up.
//!
//! Owns: its arguments, the output of progress and table. Does not own: the race (`afflux_nfs_check::race`).
//! Invariants: standard output has only the table.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is its purpose")]

use std::path::PathBuf;
use std::process::ExitCode;

use afflux_nfs_check::race::{Options, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, afflux, rest @ ..] = &arguments[..] else {
        eprintln!("usage: nfs-race DIR AFFLUX [--quick] [--bridge PROGRAM] [--bare PROGRAM] [--only WORDS]...");
        return ExitCode::from(2);
    };
    let after = |option: &str| -> Vec<String> {
        let pairs = rest.windows(2).filter(|pair| pair[0] == option);
        pairs.map(|pair| pair[1].clone()).collect()
    };
    let options = Options {
        directory: PathBuf::from(directory),
        afflux: PathBuf::from(afflux),
        bridge: after("--bridge").pop().map(PathBuf::from),
        bare: after("--bare").pop().map(PathBuf::from),
        quick: rest.iter().any(|argument| argument == "--quick"),
        only: after("--only"),
    };
    match run(&options, &mut |line| eprintln!("{line}")) {
        Ok(table) => {
            print!("{table}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
