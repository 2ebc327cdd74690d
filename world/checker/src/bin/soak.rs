//! Runs many random scenarios on all cores, for `cargo xtask soak`. See `--help`.
//!
//! Owns: the words of the command, the threads, the count of failures, the directory of reduced scenarios.
//! Does not own: scenarios and their checks (the library).
//! Invariants: each scenario runs on one thread, so its outcome does not depend on the number of threads.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is its purpose")]

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use afflux_checker::sweep::{self, Sweep};
use afflux_checker::{
    RunOptions, Scenario, generate, generate_on, kind, policies_and_models, run, run_with, scopes, shrink,
};
use afflux_engine::eviction::EvictionKind;
use afflux_simulator::Setup;

mod words {
    //! The words of this program.
    #![allow(unreachable_pub, reason = "a macro makes types of the declaration")]

    use std::path::PathBuf;

    xflags::xflags! {
        /// Run random scenarios in the simulator, each under a policy of its own.
        cmd soak {
            /// Scenarios to run (1000)
            optional --seeds n: u64
            /// Stop after so long, also before all seeds have run
            optional --minutes n: u64
            /// The first seed (0); the same seed is the same scenario in one version of the code
            optional --first seed: u64
            /// Worlds at once (one a core)
            optional --threads n: u64
            /// Count failures by kind instead of stopping at the first
            optional --keep-going
            /// With --keep-going: do not reduce the first of each kind either
            optional --no-reduce
            /// Where reduced scenarios go (target/soak)
            optional --out dir: PathBuf
            /// All of them under this policy
            optional --policy name: String
            /// All of them under this eviction policy
            optional --eviction name: String
            /// Instead: every scenario of up to so many operations, 1 to 4, on 2 files of 2 pages on 2 devices, with a
            /// power loss after each step
            optional --scopes operations: u64
            /// Instead: so many seeds under each policy on each device of the catalogue
            optional --matrix seeds: u64
            /// Instead: each request and each allocation of the swept scenarios failing in turn
            optional --sweeps
            /// Instead: the scenario of this file
            optional --scenario file: PathBuf
            /// With --scenario: print its last events
            optional --trace
        }
    }
}

/// A run that takes longer is named, because it may never end.
const LONG: Duration = Duration::from_secs(20);
/// More than two months.
const MINUTES_MAX: u64 = 100_000;

struct Arguments {
    seeds: u64,
    first: u64,
    time_max: Duration,
    threads: u64,
    out: PathBuf,
    eviction: Option<EvictionKind>,
    words: words::Soak,
}

/// The number that a word gives, which is in this range.
fn number(word: &str, given: Option<u64>, usual: u64, range: RangeInclusive<u64>) -> Result<u64, String> {
    let number = given.unwrap_or(usual);
    let wrong = || format!("{word} {number}: a number from {} to {} is wanted", range.start(), range.end());
    if range.contains(&number) { Ok(number) } else { Err(wrong()) }
}

fn arguments(words: words::Soak) -> Result<Arguments, String> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    if let Some(name) = &words.policy {
        Setup::of(name).map_err(|error| error.to_string())?;
    }
    // Those that choose what runs have no usual number: 1 stands for none here.
    number("--scopes", words.scopes, 1, 1..=4)?;
    number("--matrix", words.matrix, 1, 1..=1_000_000)?;
    Ok(Arguments {
        seeds: number("--seeds", words.seeds, 1000, 1..=u64::MAX / 2)?,
        first: number("--first", words.first, 0, 0..=u64::MAX / 2)?,
        time_max: Duration::from_secs(60 * number("--minutes", words.minutes, MINUTES_MAX, 1..=MINUTES_MAX)?),
        threads: number("--threads", words.threads, cores, 1..=1024)?,
        out: words.out.clone().unwrap_or_else(|| PathBuf::from("target/soak")),
        eviction: words.eviction.as_deref().map(afflux_linux_policies::eviction).transpose()?,
        words,
    })
}

/// The state that all threads share.
struct Soak {
    arguments: Arguments,
    began: Instant,
    next: AtomicU64,
    done: AtomicU64,
    runs: AtomicU64,
    stop: AtomicBool,
    /// The running scenarios, with their start.
    running: Mutex<BTreeMap<u64, Instant>>,
    /// For each kind, the first seed that failed like this, and the number of such failures.
    failures: Mutex<BTreeMap<String, (u64, u64)>>,
}

impl Soak {
    fn over(&self) -> bool {
        self.began.elapsed() >= self.arguments.time_max || self.stop.load(Ordering::Relaxed)
    }

    /// Takes numbers below `count` until none is left, on every thread.
    fn each(&self, count: u64, one: impl Fn(u64) + Sync) {
        self.next.store(0, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let work = || {
                while !self.over() {
                    let number = self.next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    self.running().insert(number, Instant::now());
                    one(number);
                    self.running().remove(&number);
                    self.done.fetch_add(1, Ordering::Relaxed);
                }
            };
            let threads: Vec<_> = (0..self.arguments.threads).map(|_| scope.spawn(work)).collect();
            let mut told = Instant::now();
            while !threads.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                std::thread::sleep(Duration::from_millis(50));
                if told.elapsed() >= Duration::from_secs(10) {
                    told = Instant::now();
                    self.tell(count);
                }
            }
        });
    }

    fn tell(&self, count: u64) {
        let (done, seconds) = (self.done.load(Ordering::Relaxed), self.began.elapsed().as_secs_f64());
        let failed: u64 = self.failures().values().map(|(_, count)| count).sum();
        eprintln!("{done} of {count}, {:.0} s, {:.0} a second, {failed} failed", seconds, done as f64 / seconds);
        for (number, since) in self.running().iter().filter(|(_, since)| since.elapsed() > LONG) {
            eprintln!("  {} has run for {:.0} s", self.arguments.first + number, since.elapsed().as_secs_f64());
        }
    }

    fn running(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Instant>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (u64, u64)>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a failure; reduces the first of its kind and writes it to a file.
    fn failed(&self, scenario: &Scenario, failure: &str) {
        let first = {
            let mut failures = self.failures();
            let entry = failures.entry(kind(failure)).or_insert((scenario.seed, 0));
            entry.1 += 1;
            entry.1 == 1
        };
        if !self.arguments.words.keep_going {
            self.stop.store(true, Ordering::Relaxed);
        }
        if !first {
            return;
        }
        eprintln!("seed {} fails: {failure}", scenario.seed);
        if !self.arguments.words.keep_going {
            eprintln!("{}", scenario.to_text());
        }
        if self.arguments.words.no_reduce {
            return;
        }
        let shrunk = shrink(scenario, failure);
        let words = kind(failure).to_lowercase();
        let name: String = words.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' }).collect();
        let path = self.arguments.out.join(format!("{}-{name}.scenario", scenario.seed));
        let text = format!("# {}\n{}", shrunk.failure, shrunk.scenario.to_text());
        let before = format!("# {failure}\n{}", scenario.to_text());
        let written = std::fs::create_dir_all(&self.arguments.out)
            .and_then(|()| std::fs::write(&path, &text))
            .and_then(|()| std::fs::write(path.with_extension("whole"), before));
        if let Err(error) = written {
            eprintln!("{}: {error}", path.display());
        }
        eprintln!(
            "reduced in {} runs from {} operations to {}, in {}:\n{text}",
            shrunk.runs,
            scenario.operations(),
            shrunk.scenario.operations(),
            path.display()
        );
    }

    fn seeds(&self) {
        self.each(self.arguments.seeds, |number| {
            let mut scenario = generate(self.arguments.first + number);
            if let Some(name) = &self.arguments.words.policy {
                scenario.policy = Some(name.clone());
            }
            scenario.eviction = self.arguments.eviction.or(scenario.eviction);
            self.runs.fetch_add(1, Ordering::Relaxed);
            if let Err(failure) = run(&scenario) {
                self.failed(&scenario, &failure);
            }
        });
    }

    /// Runs every policy on every device model, then the next seeds.
    fn matrix(&self, seeds: u64) {
        let cells = policies_and_models();
        self.each(seeds * cells.len() as u64, |number| {
            let (policy, model) = cells[(number % cells.len() as u64) as usize];
            let scenario = generate_on(self.arguments.first + number, policy, model);
            self.runs.fetch_add(1, Ordering::Relaxed);
            if let Err(failure) = run(&scenario) {
                self.failed(&scenario, &failure);
            }
        });
    }

    fn scopes(&self, operations_max: u32) {
        for operations in 1..=operations_max {
            self.each(scopes::count(operations), |number| {
                let (runs, failed) = scopes::run_with_crashes(&scopes::scenario(operations, number));
                self.runs.fetch_add(runs, Ordering::Relaxed);
                if let Some((scenario, failure)) = failed {
                    self.failed(&scenario, &failure);
                }
            });
            self.tell(scopes::count(operations));
        }
    }

    fn one(&self, path: &std::path::Path) -> Result<(), String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let scenario = Scenario::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        self.runs.fetch_add(1, Ordering::Relaxed);
        let report =
            run_with(&scenario, &RunOptions { keep_lines: self.arguments.words.trace, ..RunOptions::default() });
        report.lines.iter().for_each(|line| println!("{line}"));
        if let Err(failure) = report.result {
            self.failed(&scenario, &failure);
        }
        Ok(())
    }

    fn sweeps(&self) -> Result<(), String> {
        for (name, base) in sweep::scenarios()? {
            let mut sweep = Sweep::default();
            sweep.requests(&base);
            sweep.allocations(&base);
            println!("{name}: {} runs, {} failed", sweep.runs, sweep.failures.len());
            self.runs.fetch_add(sweep.runs, Ordering::Relaxed);
            for (scenario, failure) in &sweep.failures {
                self.failed(scenario, failure);
            }
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let arguments = match arguments(words::Soak::from_env_or_exit()) {
        Ok(arguments) => arguments,
        Err(text) => {
            eprintln!("{text}; --help shows all words");
            return ExitCode::from(2);
        }
    };
    let soak = Soak {
        arguments,
        began: Instant::now(),
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        runs: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        running: Mutex::default(),
        failures: Mutex::default(),
    };
    if let Some(operations) = soak.arguments.words.scopes {
        soak.scopes(operations as u32);
    } else if let Some(seeds) = soak.arguments.words.matrix {
        soak.matrix(seeds);
    } else if soak.arguments.words.sweeps || soak.arguments.words.scenario.is_some() {
        let outcome = soak.arguments.words.scenario.as_ref().map_or_else(|| soak.sweeps(), |path| soak.one(path));
        if let Err(error) = outcome {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    } else {
        println!("seeds from {}", soak.arguments.first);
        soak.seeds();
    }
    let (runs, seconds) = (soak.runs.load(Ordering::Relaxed), soak.began.elapsed().as_secs_f64());
    println!("{runs} runs in {seconds:.0} s, {:.0} a second", runs as f64 / seconds);
    let failures = soak.failures();
    for (kind, (first, count)) in &*failures {
        println!("{count:7}  first {first}: {kind}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
