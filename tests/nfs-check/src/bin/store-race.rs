//! Compares ways to files in an object store, which `cargo xtask race-stores` sets up.
//!
//! Owns: the output of progress and table. Does not own: the comparison (`afflux_nfs_check::stores`), the words
//! (`afflux_rig::words`).
//! Invariants: standard output has only the table.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is its purpose")]

use std::process::ExitCode;

use afflux_nfs_check::stores::{Options, run};
use afflux_rig::words::Races;

fn main() -> ExitCode {
    let (places, words) = Races::of_program();
    let outcome = Options::of(places, &words).and_then(|options| run(&options, &mut |line| eprintln!("{line}")));
    match outcome {
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
