//! Races our server with nfs-ganesha in a separate network, which `cargo xtask race-nfs` sets up.
//!
//! Owns: nothing. Does not own: the race (`afflux_nfs_check::race`), the words and the output (`afflux_rig::words`).

#![forbid(unsafe_code)]

use std::process::ExitCode;

use afflux_nfs_check::race::{Options, run};
use afflux_rig::words::program;

fn main() -> ExitCode {
    program(|[directory, afflux, bridge, bare], words, told| {
        run(&Options { directory, afflux, bridge, bare, words }, told)
    })
}
