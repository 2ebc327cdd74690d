//! Races our server with nfs-ganesha in a separate network, which `cargo xtask race-nfs` sets up.
//!
//! Owns: the output of progress and table. Does not own: the race (`afflux_nfs_check::race`), the words
//! (`afflux_rig::words`).
//! Invariants: standard output has only the table.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is its purpose")]

use std::process::ExitCode;

use afflux_nfs_check::race::{Options, run};
use afflux_rig::words::Races;

fn main() -> ExitCode {
    let ([directory, afflux, bridge, bare], words) = Races::of_program();
    match run(&Options { directory, afflux, bridge, bare, words }, &mut |line| eprintln!("{line}")) {
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
