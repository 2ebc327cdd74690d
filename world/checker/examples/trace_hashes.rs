//! The behaviour of every policy on every disk, as one hash a run. Compare it before and after a change that should not
//! alter behaviour.
//!
//!     cargo run -p afflux-checker --example trace_hashes > target/before
//!
//! Each line is a run: policy, disk and workload (or the seed of a random scenario), the hash of its trace, and a hash
//! of its figures. The figures are all counters, and the limits in the engine's status over the run. The trace contains
//! all events with their times, so equal lines are equal behaviour. With the file of an earlier run as its only
//! argument, it prints the lines that differ, and fails if there are any.
//!
//! A file stores a handful of these runs, and a test compares them: `world/checker/tests/behaviour/main.rs`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is its purpose")]

//! rule: 11: the same seed gives the same trace

#[path = "../tests/behaviour/runs.rs"]
mod runs;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use afflux_checker::{RunOptions, generate, policies_and_models, run_with};
use runs::{runs_of, scenario_line};

/// Seeds of random scenarios on disks of their own choice.
const SEEDS: u64 = 1000;

/// Every run: its name and its result.
fn runs(mut each: impl FnMut(String, String)) -> Result<(), String> {
    for (policy, model) in policies_and_models() {
        runs_of(policy, model, &mut each)?;
    }
    for seed in 0..SEEDS {
        let report = run_with(&generate(seed), &RunOptions::default());
        each(format!("scenario {seed}"), scenario_line(&report));
    }
    Ok(())
}

fn compare(before: &str) -> Result<(), String> {
    let before: BTreeMap<&str, &str> = before.lines().filter_map(|line| line.split_once(": ")).collect();
    let (mut same, mut moved) = (0, 0);
    runs(|name, told| match before.get(name.as_str()) {
        Some(then) if *then == told => same += 1,
        then => {
            moved += 1;
            println!("{name}: {} -> {told}", then.unwrap_or(&"nothing"));
        }
    })?;
    println!("{same} runs as before, {moved} others");
    if moved == 0 { Ok(()) } else { Err(format!("{moved} runs moved")) }
}

fn main() -> ExitCode {
    let words = xflags::parse_or_exit! {
        /// The file of an earlier run, to compare with
        optional before: PathBuf
    };
    let outcome = match words.before {
        None => runs(|name, told| println!("{name}: {told}")),
        Some(path) => std::fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}", path.display()))
            .and_then(|text| compare(&text)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("error: {what}");
            ExitCode::FAILURE
        }
    }
}
