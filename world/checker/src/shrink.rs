//! Makes a failing scenario smaller while it still fails.
//!
//! Owns: the smaller scenarios to try, and their number.
//! Does not own: running them (`run`).
//! Invariants: the result fails like the original; the number of runs is bounded.

use crate::report::RunOptions;
use crate::run::run_with;
use crate::text::{Op, Scenario};

/// Seeds to try for each smaller candidate: with fewer operations, the same fault needs another order.
const SEEDS_TRIED: u64 = 6;
/// Most candidates.
const RUNS_MAX: u32 = 6_000;
/// Most steps of all candidates together.
const STEPS_MAX: u64 = 100_000_000;

/// The reduced form of a failing scenario.
pub struct Shrunk {
    /// The smallest scenario that was found.
    pub scenario: Scenario,
    /// Its failure.
    pub failure: String,
    /// The number of runs.
    pub runs: u32,
    steps: u64,
}

impl Shrunk {
    fn is_enough(&self) -> bool {
        self.runs >= RUNS_MAX || self.steps >= STEPS_MAX
    }
}

/// The kind of a failure: its first words, without the numbers.
pub fn kind(failure: &str) -> String {
    let mut kind = String::new();
    for char in failure.chars() {
        let char = if char.is_ascii_digit() { '#' } else { char };
        if !(char == '#' && kind.ends_with('#')) {
            kind.push(char);
        }
    }
    kind.chars().take(48).collect()
}

/// Tries smaller scenarios as long as one fails with the same kind of error as `failure`.
pub fn shrink(scenario: &Scenario, failure: &str) -> Shrunk {
    let mut best = Shrunk { scenario: scenario.clone(), failure: failure.to_owned(), runs: 0, steps: 0 };
    loop {
        let before = best.scenario.clone();
        plain_world(&mut best);
        drop_tasks(&mut best);
        drop_operations(&mut best);
        drop_faults(&mut best);
        simplify_world(&mut best);
        simplify_numbers(&mut best);
        if best.scenario == before || best.is_enough() {
            return best;
        }
    }
}

/// Accepts the candidate if it fails with the same kind of error. Tries its own seed and the next few.
fn accept(best: &mut Shrunk, candidate: &Scenario) -> bool {
    if *candidate == best.scenario {
        return false;
    }
    for step in 0..SEEDS_TRIED {
        if best.is_enough() {
            return false;
        }
        best.runs += 1;
        let tried = Scenario { seed: candidate.seed.wrapping_add(step), ..candidate.clone() };
        let report = run_with(&tried, &RunOptions::default());
        best.steps += report.steps;
        if let Err(failure) = report.result
            && kind(&failure) == kind(&best.failure)
        {
            best.scenario = tried;
            best.failure = failure;
            return true;
        }
    }
    false
}

fn drop_tasks(best: &mut Shrunk) {
    let mut at = best.scenario.tasks.len();
    while at > 0 {
        at -= 1;
        let mut candidate = best.scenario.clone();
        candidate.tasks.remove(at);
        accept(best, &candidate);
    }
}

fn drop_operations(best: &mut Shrunk) {
    for task in 0..best.scenario.tasks.len() {
        let mut chunk = best.scenario.tasks[task].len().div_ceil(2);
        while chunk > 0 {
            let mut start = 0;
            while start < best.scenario.tasks[task].len() {
                let mut candidate = best.scenario.clone();
                let end = (start + chunk).min(candidate.tasks[task].len());
                candidate.tasks[task].drain(start..end);
                if !accept(best, &candidate) {
                    start = end;
                }
            }
            chunk /= 2;
        }
    }
}

/// Drops the faults that begin with the run. Faults that operations make are dropped with the operations.
fn drop_faults(best: &mut Shrunk) {
    for at in (0..best.scenario.fail_requests.len()).rev() {
        let mut candidate = best.scenario.clone();
        candidate.fail_requests.remove(at);
        accept(best, &candidate);
    }
    let changes: [fn(&mut Scenario); 2] = [|scenario| scenario.fail_allocation = 0, |scenario| scenario.crash_step = 0];
    for change in changes {
        let mut candidate = best.scenario.clone();
        change(&mut candidate);
        accept(best, &candidate);
    }
}

/// Simplifies the machine first. A failure on plain disks, without CPUs and without a kernel's policy, is the easiest
/// to analyze and the quickest to try.
fn plain_world(best: &mut Shrunk) {
    let changes: [fn(&mut Scenario); 3] =
        [|scenario| scenario.policy = None, |scenario| scenario.cpus = None, |scenario| scenario.eviction = None];
    for change in changes {
        let mut candidate = best.scenario.clone();
        change(&mut candidate);
        accept(best, &candidate);
    }
    for at in 0..best.scenario.devices.len() {
        let mut candidate = best.scenario.clone();
        candidate.devices[at].model = None;
        accept(best, &candidate);
    }
}

fn simplify_world(best: &mut Shrunk) {
    for at in (0..best.scenario.rare.len()).rev() {
        let mut candidate = best.scenario.clone();
        candidate.rare.remove(at);
        accept(best, &candidate);
    }
    for at in (0..best.scenario.knobs.len()).rev() {
        let mut candidate = best.scenario.clone();
        candidate.knobs.remove(at);
        accept(best, &candidate);
    }
    let changes: [fn(&mut Scenario); 5] = [
        |scenario| scenario.crash_us = 0,
        |scenario| scenario.devices.iter_mut().for_each(|device| device.inline_per_mille = 0),
        |scenario| scenario.devices.iter_mut().for_each(|device| device.capacity = 1 << 50),
        |scenario| scenario.files.iter_mut().for_each(|file| file.size = 0),
        |scenario| scenario.files.iter_mut().for_each(|file| file.device = 0),
    ];
    for change in changes {
        let mut candidate = best.scenario.clone();
        change(&mut candidate);
        accept(best, &candidate);
    }
}

fn simplify_numbers(best: &mut Shrunk) {
    for task in 0..best.scenario.tasks.len() {
        for at in 0..best.scenario.tasks[task].len() {
            let fields = best.scenario.tasks[task][at].numbers().len();
            for field in 0..fields {
                for rule in [|_| 0, |number| number / 4096 * 4096, |number| number / 512 * 512, |number| number / 2] {
                    let mut candidate = best.scenario.clone();
                    let op: &mut Op = &mut candidate.tasks[task][at];
                    let mut numbers = op.numbers();
                    let (name, number) = &mut numbers[field];
                    let rule: fn(u64) -> u64 = rule;
                    let least = if *name == "len" { 1 } else { 0 };
                    **number = rule(**number).max(least.min(**number));
                    accept(best, &candidate);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
