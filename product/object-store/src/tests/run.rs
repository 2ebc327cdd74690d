//! Whole runs: writers that are killed, frozen and fenced by others, over a store that fails.
//!
//! Owns: the disturbances, the number of seeds.
//! Does not own: a process's life (`writer`).
//! Invariants: a broken rule that no observer notices fails its test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use object_store::memory::InMemory;

use super::process::Process;
use super::world::{Broken, MS, Shared, TICK_NS, now_ns};
use super::writer::{TestWriter, last, life};

const SEEDS: u64 = 6;
const CONTROL_SEEDS: u64 = 40;
const RUN_NS: u64 = 200_000 * MS;
const PROCESSES_MAX: usize = 4;
/// A disturbance comes in one of so many ticks.
const DISTURBED: u64 = 2_000;
/// A bound for the last opening.
const END_NS: u64 = 600_000 * MS;

/// The outcome of a run.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    violations: Vec<String>,
    commits: u64,
    reads: u64,
    openings: u64,
    requests: u64,
    /// PUTs of the compactor's state.
    compactions: u64,
    trace: u64,
}

struct Running {
    process: Process,
    shall_end: Arc<AtomicBool>,
}

struct Run {
    world: Shared,
    objects: Arc<InMemory>,
    running: Vec<Running>,
    started: u64,
}

impl Run {
    fn writer(&mut self) -> TestWriter {
        self.started += 1;
        TestWriter { world: self.world.clone(), objects: Arc::clone(&self.objects), process: self.started }
    }

    fn start(&mut self) {
        let (writer, shall_end) = (self.writer(), Arc::<AtomicBool>::default());
        let of_process = Arc::clone(&shall_end);
        let process = Process::start(|handle| life(writer, handle, of_process));
        self.running.push(Running { process, shall_end });
    }

    /// All processes that are not frozen take a step, in any order. Then time moves on.
    fn tick(&mut self) {
        if !self.running.is_empty() {
            let first = self.world.world().random.below(self.running.len() as u64) as usize;
            self.running.rotate_left(first);
        }
        self.running.retain_mut(|running| running.process.is_frozen() || !running.process.step());
        self.world.advance();
    }

    fn disturb(&mut self) {
        let (kind, chosen, long_ns) = {
            let random = &mut self.world.world().random;
            (random.below(12), random.below(self.running.len() as u64) as usize, random.below(40_000 * MS))
        };
        match kind {
            0..5 if self.running.len() < PROCESSES_MAX => self.start(),
            5..8 if !self.running.is_empty() => self.running[chosen].process.frozen_until_ns = now_ns() + long_ns,
            8 | 9 if !self.running.is_empty() => drop(self.running.remove(chosen)),
            10 if !self.running.is_empty() => self.running[chosen].shall_end.store(true, Ordering::Relaxed),
            _ => self.world.world().outage_until_ns = now_ns() + long_ns / 4,
        }
    }

    /// Without faults and other processes, a last one finds all that was answered.
    fn settle(&mut self) {
        self.running.clear();
        self.world.world().calm_ns = Some(20 * MS);
        let writer = self.writer();
        let mut process = Process::start(|handle| last(writer, handle));
        for _ in 0..END_NS / TICK_NS {
            if process.step() {
                return;
            }
            self.world.advance();
        }
        self.world.world().observer.violations.push("the last writer does not end".to_owned());
    }
}

fn run(seed: u64, broken: Option<Broken>) -> Outcome {
    let world = Shared::new(seed, broken);
    let mut run = Run { world, objects: Arc::new(InMemory::new()), running: Vec::new(), started: 0 };
    run.start();
    while now_ns() < RUN_NS && run.world.world().observer.violations.is_empty() {
        let is_disturbed = run.world.world().random.below(DISTURBED) == 0;
        if is_disturbed {
            run.disturb();
        }
        if run.running.is_empty() {
            run.start();
        }
        run.tick();
    }
    if run.world.world().observer.violations.is_empty() {
        run.settle();
    }
    run.running.clear();
    let world = run.world.world();
    let observer = &world.observer;
    Outcome {
        violations: observer.violations.clone(),
        commits: observer.commits,
        reads: observer.reads,
        openings: observer.openings,
        requests: world.requests,
        compactions: world.compactions,
        trace: world.trace(),
    }
}

// rule: The database loses no acknowledged byte in virtual time, through faults, kills and frozen writers.
// rule: 11: the same seed gives the same requests of the database
#[test]
fn the_database_in_virtual_time_loses_no_acknowledged_byte() {
    twice(0, SEEDS);
}

#[test]
#[ignore = "runs for minutes; AFFLUX_DATABASE_SEEDS sets the number of seeds"]
fn the_database_in_virtual_time_loses_no_acknowledged_byte_with_many_seeds() {
    let seeds = std::env::var("AFFLUX_DATABASE_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    twice(1_000, seeds.unwrap_or(100));
}

/// Runs each seed twice.
fn twice(first: u64, seeds: u64) {
    let (mut commits, mut openings, mut compactions) = (0, 0, 0);
    for seed in first..first + seeds {
        let outcome = run(seed, None);
        println!("seed {seed}: {outcome:?}");
        assert!(outcome.violations.is_empty(), "seed {seed}: {outcome:?}");
        assert_eq!(run(seed, None), outcome, "seed {seed}, the second time");
        commits += outcome.commits;
        openings += outcome.openings;
        compactions += outcome.compactions;
    }
    println!("{seeds} seeds: {commits} commits, {openings} openings, {compactions} PUTs of the compactor");
    let is_enough = commits > 100 * seeds && openings > 2 * seeds && compactions > seeds;
    assert!(is_enough, "too little happened: {commits}, {openings}, {compactions}");
}

fn is_noticed(broken: Broken, words: &[&str]) {
    for seed in 0..CONTROL_SEEDS {
        let outcome = run(seed, Some(broken));
        if let Some(first) = outcome.violations.first() {
            println!("{broken:?}: seed {seed}: {first}");
            assert!(words.iter().any(|words| first.contains(words)), "{broken:?}, seed {seed}: {first}");
            return;
        }
    }
    panic!("no observer noticed that {broken:?} was broken");
}

#[test]
fn an_answer_before_durability_is_noticed() {
    is_noticed(Broken::AnswerAfterDurable, &["was answered"]);
}

#[test]
fn a_store_that_creates_twice_is_noticed() {
    is_noticed(Broken::CreateOnce, &["was answered", "the last writer", "upkeep", "torn"]);
}

#[test]
fn a_store_that_forgets_is_noticed() {
    is_noticed(Broken::KeepObjects, &["was answered", "the last writer", "upkeep", "torn", "is missing"]);
}
