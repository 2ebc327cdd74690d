//! Fails every request and every allocation of a scenario in turn.
//!
//! Owns: the scenarios of a sweep, the forms of a request's failure.
//! Does not own: the run and its checks (`run`).
//! Invariants: a sweep ends when the requested failure no longer occurs, so every request has failed once. Each run
//! goes on to the end, with the liveness phase.

use crate::report::{Report, RunOptions};
use crate::run::run_with;
use crate::text::{FailRequest, Scenario};

/// Most requests of one disk to fail in turn.
const REQUESTS_MAX: u64 = 2_000;
/// The forms of a failure: I/O error, no space, no answer, an error that loses written data.
const WAYS: [u64; 4] = [0, 1, 2, 5];

/// The scenarios of a sweep, by name.
const SWEPT: [(&str, &str); 3] = [
    ("mixed", include_str!("../seeds/swept-mixed.scenario")),
    ("small-cache", include_str!("../seeds/swept-small-cache.scenario")),
    ("reshaping", include_str!("../seeds/swept-reshaping.scenario")),
];

/// The results of a sweep.
#[derive(Default)]
pub struct Sweep {
    /// The number of runs.
    pub runs: u64,
    /// The failing scenarios, with their failures.
    pub failures: Vec<(Scenario, String)>,
}

/// The scenarios to sweep, by name.
///
/// # Errors
/// A scenario that cannot be read, with its name.
pub fn scenarios() -> Result<Vec<(&'static str, Scenario)>, String> {
    let read = |(name, text): (&'static str, &str)| {
        Scenario::parse(text).map(|scenario| (name, scenario)).map_err(|error| format!("{name}: {error}"))
    };
    SWEPT.into_iter().map(read).collect()
}

impl Sweep {
    /// Fails each request of each disk in turn, in each form.
    pub fn requests(&mut self, base: &Scenario) {
        for device in 0..base.devices.len() as u64 {
            for what in WAYS {
                for nth in 1..=REQUESTS_MAX {
                    let fail_requests = vec![FailRequest { device, nth, what }];
                    if self.run(Scenario { fail_requests, ..base.clone() }).requests_failed == 0 {
                        break;
                    }
                }
            }
        }
    }

    /// Fails each request for frames in turn.
    pub fn allocations(&mut self, base: &Scenario) {
        let mut nth = 1;
        while nth <= self.run(Scenario { fail_allocation: nth, ..base.clone() }).allocations {
            nth += 1;
        }
    }

    fn run(&mut self, scenario: Scenario) -> Report {
        self.runs += 1;
        let report = run_with(&scenario, &RunOptions::default());
        if let Err(failure) = &report.result {
            self.failures.push((scenario, failure.clone()));
        }
        report
    }
}
