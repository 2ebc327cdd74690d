//! The model test: random operations from several tasks on the real engine, in virtual time, on disks
//! that fail, checked against a reference model of every byte of every file.
//!
//! `cargo test` runs a fixed number of short seeds and all kept scenarios. `AFFLUX_SEEDS=5000` runs so
//! many (from `AFFLUX_FIRST_SEED`), `AFFLUX_SCENARIO=FILE` one scenario file with its trace;
//! `AFFLUX_POLICY=linux-6.1` runs them under a kernel's policy.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test crate, also outside its test functions")]

mod generate;
mod ops;
mod run;
mod scenario;
mod shrink;

use generate::generate;
use run::{run_quietly, run_scenario};
use scenario::Scenario;

const SEEDS_DEFAULT: u64 = 300;

fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_operations_match_the_model() {
    let first = number_from_env("AFFLUX_FIRST_SEED", 0);
    let count = number_from_env("AFFLUX_SEEDS", SEEDS_DEFAULT);
    let keep_going = std::env::var_os("AFFLUX_KEEP_GOING").is_some();
    let mut kinds = std::collections::BTreeMap::<String, (u64, u64)>::new();
    for seed in first..first + count {
        if std::env::var_os("AFFLUX_LOUD").is_some() {
            eprintln!("seed {seed}");
        }
        let scenario = generate(seed);
        if let Err(failure) = run_quietly(&scenario) {
            if keep_going {
                kinds.entry(shrink::kind(&failure)).or_insert((seed, 0)).1 += 1;
                continue;
            }
            report_and_panic(&scenario, &failure);
        }
    }
    if !kinds.is_empty() {
        panic!("{count} seeds, failures by kind (first seed, how many): {kinds:#?}");
    }
}

fn report_and_panic(scenario: &Scenario, failure: &str) -> ! {
    let seed = scenario.seed;
    eprintln!("seed {seed} fails: {failure}\n{}", scenario.to_text());
    if std::env::var_os("AFFLUX_NO_SHRINK").is_some() {
        panic!("seed {seed}: {failure}");
    }
    let shrunk = shrink::shrink(scenario, failure);
    eprintln!(
        "reduced in {} runs from {} operations to {}; keep it under crates/simulator/seeds/ with the fault it shows:\n\
         # {}\n{}",
        shrunk.runs,
        scenario.operations(),
        shrunk.scenario.operations(),
        shrunk.failure,
        shrunk.scenario.to_text()
    );
    panic!("seed {seed}: {failure}; reduced: {}", shrunk.failure);
}

#[test]
fn kept_scenarios_pass() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|ending| ending == "scenario")) {
        let text = std::fs::read_to_string(path).unwrap();
        let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if let Err(failure) = run_quietly(&scenario) {
            panic!("{}: {failure}", path.display());
        }
    }
}

#[test]
fn one_scenario_from_the_environment() {
    let Some(path) = std::env::var_os("AFFLUX_SCENARIO") else { return };
    let scenario = Scenario::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    let report = run_scenario(&scenario, true);
    report.lines.iter().for_each(|line| eprintln!("{line}"));
    if let Err(failure) = report.result {
        if std::env::var_os("AFFLUX_SHRINK").is_some() {
            report_and_panic(&scenario, &failure);
        }
        panic!("{failure}");
    }
}

#[test]
fn one_seed_from_the_environment_with_its_trace() {
    let Some(_) = std::env::var_os("AFFLUX_SEED") else { return };
    let scenario = generate(number_from_env("AFFLUX_SEED", 0));
    let report = run_scenario(&scenario, true);
    report.lines.iter().for_each(|line| eprintln!("{line}"));
    eprintln!("{}", scenario.to_text());
    if let Err(failure) = report.result {
        panic!("{failure}");
    }
}

#[test]
fn a_scenario_survives_its_text() {
    for seed in 0..50 {
        let scenario = generate(seed);
        assert_eq!(Scenario::parse(&scenario.to_text()).unwrap(), scenario);
    }
    let error = Scenario::parse("world seed=1 frames=64 step_ns=0 crash_us=0\ntask\n  wriet file=0").unwrap_err();
    assert_eq!(error, "line 3: no operation is called 'wriet'");
}

#[test]
fn the_same_scenario_twice_gives_the_same_trace() {
    let mut hashes = std::collections::BTreeSet::new();
    for seed in 1000..1030 {
        let scenario = generate(seed);
        let (first, second) = (run_scenario(&scenario, false), run_scenario(&scenario, false));
        assert_eq!(
            (first.hash, first.steps, &first.result),
            (second.hash, second.steps, &second.result),
            "seed {seed}"
        );
        hashes.insert(first.hash);
    }
    assert_eq!(hashes.len(), 30, "different seeds give different traces");
}
