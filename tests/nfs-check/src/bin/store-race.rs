//! Compares ways to files in an object store, which `cargo xtask race-stores` sets up.
//!
//! Owns: nothing. Does not own: the comparison (`afflux_nfs_check::stores`), the words and the output
//! (`afflux_rig::words`).

#![forbid(unsafe_code)]

use std::process::ExitCode;

use afflux_nfs_check::stores::{Options, run};
use afflux_rig::words::program;

fn main() -> ExitCode {
    program(|places, words, told| run(&Options::of(places, &words)?, told))
}
