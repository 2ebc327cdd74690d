//! Every small scenario: two files of two pages on two devices, up to four operations, a power loss after each step.
//!
//! Owns: the operations to combine, the order of the combinations.
//! Does not own: the run and its checks (`run`); sharing the work among threads.
//! Invariants: the numbers 0 to `count() - 1` give each combination once.

use crate::report::RunOptions;
use crate::run::run_with;
use crate::text::{DeviceSpec, FileSpec, Op, Scenario};

const PAGE: u64 = 4096;
/// Operations for each file: see `operation`.
const EACH: u64 = 6;
/// Machines: flushers that wait for a sync or begin at once; one task for all operations or a task for each.
const MACHINES: u64 = 4;

/// The operation of a number. Files start with one page, so that the second page is past their end.
fn operation(number: u64) -> Op {
    let file = number / EACH;
    match number % EACH {
        0 => Op::Write { file, offset: 0, len: PAGE },
        1 => Op::Write { file, offset: PAGE - 512, len: 1500 },
        2 => Op::Write { file, offset: PAGE, len: PAGE },
        3 => Op::SetSize { file, size: PAGE / 2 },
        4 => Op::Punch { file, offset: 0, len: PAGE },
        _ => Op::Sync { file, offset: 0, len: 0 },
    }
}

/// The number of combinations of `operations` operations.
pub fn count(operations: u32) -> u64 {
    MACHINES * (2 * EACH).pow(operations)
}

/// A combination by its number.
pub fn scenario(operations: u32, number: u64) -> Scenario {
    let (machine, mut rest) = (number % MACHINES, number / MACHINES);
    let mut ops = Vec::new();
    for _ in 0..operations {
        ops.push(operation(rest % (2 * EACH)));
        rest /= 2 * EACH;
    }
    let device = |volatile, block| DeviceSpec {
        model: None,
        block,
        request_max: 8192,
        depth: 4,
        volatile,
        latency_ns: 10_000,
        rate: 1_000_000_000,
        capacity: 1 << 50,
        inline_per_mille: 0,
    };
    Scenario {
        seed: number,
        frames: 64,
        step_ns: 1_000,
        knobs: if machine % 2 == 1 { vec![("dirty_background_ratio".to_owned(), 0)] } else { Vec::new() },
        devices: vec![device(1, 512), device(0, 4096)],
        files: (0..2).map(|device| FileSpec { device, size: PAGE }).collect(),
        tasks: if machine / 2 == 1 { ops.into_iter().map(|op| vec![op]).collect() } else { vec![ops] },
        ..Scenario::default()
    }
}

/// Runs a scenario to its end, then with a power loss after each step of its operations. Returns the number of runs,
/// and the first that failed.
pub fn run_with_crashes(scenario: &Scenario) -> (u64, Option<(Scenario, String)>) {
    let whole = run_with(scenario, &RunOptions::default());
    if let Err(failure) = whole.result {
        return (1, Some((scenario.clone(), failure)));
    }
    for crash_step in 1..=whole.work_steps + 1 {
        let crashed = Scenario { crash_step, ..scenario.clone() };
        if let Err(failure) = run_with(&crashed, &RunOptions::default()).result {
            return (1 + crash_step, Some((crashed, failure)));
        }
    }
    (2 + whole.work_steps, None)
}
