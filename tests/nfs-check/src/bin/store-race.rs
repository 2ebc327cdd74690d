//! Compares ways to files in an object store, which `cargo xtask race-stores` sets up.
//!
//! Owns: its arguments, the output of progress and table. Does not own: the comparison (`afflux_nfs_check::stores`).
//! Invariants: standard output has only the table.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is its purpose")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use afflux_nfs_check::stores::{Options, run};

const USAGE: &str = "usage: store-race DIR AFFLUX BRIDGE [--quick] [--delay-ms N] [--network-mbit-per-s N] [--minutes N] \
                     [--only NAME]...";

fn options(arguments: &[String]) -> Option<Options> {
    let [directory, afflux, bridge, rest @ ..] = arguments else { return None };
    let mut options = Options {
        directory: PathBuf::from(directory),
        afflux: PathBuf::from(afflux),
        bridge: PathBuf::from(bridge),
        delay: Duration::from_millis(30),
        bandwidth_bytes_per_s: 0,
        time: Duration::from_secs(7 * 60),
        quick: false,
        only: Vec::new(),
    };
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--quick" => options.quick = true,
            "--delay-ms" => options.delay = Duration::from_millis(rest.next()?.parse().ok()?),
            "--network-mbit-per-s" => {
                options.bandwidth_bytes_per_s = rest.next()?.parse::<u64>().ok()?.checked_mul(1_000_000 / 8)?;
            }
            "--minutes" => options.time = Duration::from_secs(rest.next()?.parse::<u64>().ok()?.checked_mul(60)?),
            "--only" => options.only.push(rest.next()?.clone()),
            _ => return None,
        }
    }
    Some(options)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(options) = options(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
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
