//! Every request and every allocation of a scenario failing in turn.
//!
//! Owns: the scenarios that are swept, how each request can fail.
//! Does not own: the run and its checks (`run`).
//! Invariants: a sweep ends when the failure asked for no longer happens: then every one has had its
//! turn. Each run goes on to the end, with the liveness phase.

use crate::report::{Report, RunOptions};
use crate::run::run_with;
use crate::text::{FailRequest, Scenario};

/// Requests of one disk that are failed in turn, at most.
const REQUESTS_MAX: u64 = 2_000;
/// How a request fails: with an I/O error, no space, without an answer, losing what was written.
const WAYS: [u64; 4] = [0, 1, 2, 5];

/// The scenarios that are swept, by name.
const SWEPT: [(&str, &str); 3] = [
    ("mixed", include_str!("../seeds/swept-mixed.scenario")),
    ("small-cache", include_str!("../seeds/swept-small-cache.scenario")),
    ("reshaping", include_str!("../seeds/swept-reshaping.scenario")),
];

/// What a sweep came to.
#[derive(Default)]
pub struct Sweep {
    /// Runs in all.
    pub runs: u64,
    /// Scenarios that failed, and how.
    pub failures: Vec<(Scenario, String)>,
}

/// The scenarios to sweep, by name.
///
/// # Errors
/// One that cannot be read, with its name.
pub fn scenarios() -> Result<Vec<(&'static str, Scenario)>, String> {
    let read = |(name, text): (&'static str, &str)| {
        Scenario::parse(text).map(|scenario| (name, scenario)).map_err(|error| format!("{name}: {error}"))
    };
    SWEPT.into_iter().map(read).collect()
}

impl Sweep {
    /// Fails each request of each disk in turn, in each way.
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

    /// Has each request for frames find none in turn.
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
