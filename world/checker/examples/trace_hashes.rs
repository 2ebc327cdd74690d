//! What every policy does on every disk, as one number a run: before a change that is to leave behaviour alone,
//! and after it.
//!
//!     cargo run -p afflux-checker --example trace_hashes > target/before
//!
//! A line is a run: policy, disk and workload (or the seed of a random scenario), the hash of its trace, and a
//! hash of its figures: all counters, and the limits that the engine's status showed over the run. The
//! run's trace is what happened and when, so equal lines are equal behaviour. A file of an earlier run as the
//! only argument: prints the lines that moved, and fails if any did.
//!
//! A handful of these runs is held in a file and compared by a test: `world/checker/tests/behaviour/main.rs`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what it is for")]

//! rule: 11: the same seed gives the same trace

#[path = "../tests/behaviour/runs.rs"]
mod runs;

use std::collections::BTreeMap;
use std::process::ExitCode;

use afflux_checker::{RunOptions, generate, policies_and_models, run_with};
use runs::{runs_of, scenario_told};

/// Seeds of random scenarios on disks of their own choice.
const SEEDS: u64 = 1000;

/// Every run: its name, and what it came to.
fn runs(mut each: impl FnMut(String, String)) -> Result<(), String> {
    for (policy, model) in policies_and_models() {
        runs_of(policy, model, &mut each)?;
    }
    for seed in 0..SEEDS {
        let report = run_with(&generate(seed), &RunOptions::default());
        each(format!("scenario {seed}"), scenario_told(&report));
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
    let outcome = match std::env::args().nth(1) {
        None => runs(|name, told| println!("{name}: {told}")),
        Some(path) => {
            std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}")).and_then(|text| compare(&text))
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("error: {what}");
            ExitCode::FAILURE
        }
    }
}
