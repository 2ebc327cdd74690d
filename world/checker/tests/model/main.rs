//! The model test: random operations from several tasks on the real engine, in virtual time, on disks
//! that fail, checked against a reference model of every byte of every file.
//!
//! `cargo test` runs some seeds, which are new for each commit in CI (`AFFLUX_FIRST_SEED`, `AFFLUX_SEEDS`), and all
//! stored scenarios. `AFFLUX_SCENARIO=FILE` runs one scenario file and prints its trace. `cargo xtask soak` is for many
//! seeds.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test crate, also outside its test functions")]

use afflux_checker::sweep::{self, Sweep};
use afflux_checker::{
    KillCounts, RunOptions, Scenario, generate, generate_on, policies_and_models, run, run_with, run_with_kills,
    scopes, shrink,
};

const SEEDS_DEFAULT: u64 = 300;

fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_operations_match_the_model() {
    let first = number_from_env("AFFLUX_FIRST_SEED", 0);
    let count = number_from_env("AFFLUX_SEEDS", SEEDS_DEFAULT);
    for seed in first..first + count {
        let scenario = generate(seed);
        if let Err(failure) = run(&scenario) {
            report_and_panic(&scenario, &failure);
        }
    }
}

/// Runs of up to eight kills each, about one in four of them during recovery. `AFFLUX_KILL_SEEDS` runs more.
#[test]
fn kills_lose_nothing_that_was_accepted() {
    let (first, count) = (number_from_env("AFFLUX_FIRST_SEED", 0), number_from_env("AFFLUX_KILL_SEEDS", 150));
    let mut counts = KillCounts::default();
    for seed in first..first + count {
        if let Err(failure) = run_with_kills(seed, &RunOptions::default(), &mut counts) {
            panic!("seed {seed} with kills: {failure}; so far {counts:?}");
        }
    }
    eprintln!("{counts:?}");
    assert!(counts.in_recovery * 20 > counts.kills && counts.pages > counts.kills, "{counts:?}");
}

/// One seed each, new for each commit in CI; `cargo xtask soak --matrix` runs more.
#[test]
fn every_policy_passes_on_every_device_model() {
    let first = number_from_env("AFFLUX_FIRST_SEED", 0);
    let cells = policies_and_models();
    assert_eq!(cells.len(), 5 * 11, "our own policy, equal parts and three kernels', eleven models");
    for (at, (policy, model)) in cells.into_iter().enumerate() {
        let scenario = generate_on(first + at as u64, policy, model);
        if let Err(failure) = run(&scenario) {
            report_and_panic(&scenario, &failure);
        }
    }
}

fn report_and_panic(scenario: &Scenario, failure: &str) -> ! {
    let seed = scenario.seed;
    eprintln!("seed {seed} fails: {failure}\n{}", scenario.to_text());
    let shrunk = shrink(scenario, failure);
    eprintln!(
        "reduced in {} runs from {} operations to {}; keep it under world/checker/seeds/ with the fault it shows:\n\
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
        if let Err(failure) = run(&scenario) {
            panic!("{}: {failure}", path.display());
        }
    }
}

#[test]
fn each_request_and_each_allocation_fails_in_turn() {
    for (name, base) in sweep::scenarios().unwrap() {
        let mut sweep = Sweep::default();
        sweep.requests(&base);
        sweep.allocations(&base);
        eprintln!("{name}: {} runs", sweep.runs);
        assert!(sweep.runs > 50, "{name}: {} runs are too few to be all", sweep.runs);
        if let Some((scenario, failure)) = sweep.failures.first() {
            panic!("{name}: {} of {} runs fail; {failure}\n{}", sweep.failures.len(), sweep.runs, scenario.to_text());
        }
    }
}

/// The scopes of up to two operations; `cargo xtask soak --scopes 4` runs them all.
#[test]
fn small_scopes_survive_a_power_loss_after_each_step() {
    let mut runs = 0;
    for operations in 1..=2 {
        for number in 0..scopes::count(operations) {
            let (more, failed) = scopes::run_with_crashes(&scopes::scenario(operations, number));
            runs += more;
            if let Some((scenario, failure)) = failed {
                panic!("{failure}\n{}", scenario.to_text());
            }
        }
    }
    eprintln!("{runs} runs");
}

#[test]
fn one_scenario_from_the_environment() {
    let Some(path) = std::env::var_os("AFFLUX_SCENARIO") else { return };
    let scenario = Scenario::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    let report = run_with(&scenario, &RunOptions { keep_lines: true, ..RunOptions::default() });
    report.lines.iter().for_each(|line| eprintln!("{line}"));
    if let Err(failure) = report.result {
        if std::env::var_os("AFFLUX_SHRINK").is_some() {
            report_and_panic(&scenario, &failure);
        }
        panic!("{failure}");
    }
}

#[test]
fn a_scenario_survives_its_text() {
    let mut scenarios: Vec<Scenario> = (0..200).map(generate).collect();
    scenarios.extend((0..50).map(|number| Scenario { crash_step: number, ..scopes::scenario(3, number) }));
    for scenario in scenarios {
        assert_eq!(Scenario::parse(&scenario.to_text()).unwrap(), scenario);
    }
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    let world = "world seed=1 frames=64 step_ns=0 crash_us=0\n";
    for (text, wanted) in [
        ("task\n  wriet file=0", "line 3: no operation is called 'wriet'"),
        ("rare sunshine per_mille=5", "line 2: no rare path is called 'sunshine'"),
        ("file device=0 size=many", "line 2: 'size=many' is no number"),
        ("cpus count=0 slice_ns=5 switch_per_mille=0", "line 2: 'count=0' is out of range (1 to 1024)"),
        ("file device=0", "line 2: 'size=' is missing"),
        ("", "a scenario has at least one device and one file"),
    ] {
        assert_eq!(Scenario::parse(&format!("{world}{text}")).unwrap_err(), wanted);
    }
    for (text, wanted) in
        [("policy linux-7", "there is no policy 'linux-7'"), ("device tape", "no device is called 'tape'")]
    {
        let error = Scenario::parse(&format!("{world}{text}")).unwrap_err();
        assert!(error.starts_with("line 2: ") && error.contains(wanted) && error.contains("there are"), "{error}");
    }
}

#[test]
fn the_same_scenario_twice_gives_the_same_trace() {
    let mut hashes = std::collections::BTreeSet::new();
    for seed in 1000..1030 {
        let scenario = generate(seed);
        let [first, second] = [0, 1].map(|_| run_with(&scenario, &RunOptions::default()));
        assert_eq!(
            (first.hash, first.steps, &first.result),
            (second.hash, second.steps, &second.result),
            "seed {seed}"
        );
        hashes.insert(first.hash);
    }
    assert_eq!(hashes.len(), 30, "different seeds give different traces");
}
