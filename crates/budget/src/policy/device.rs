//! What the policy remembers of a device.
//!
//! Owns: its prices, how many requests it likes at once, those who wait, what trickles in; the generation of debts.
//! Does not own: how each of these learns (the crate's other modules).
//! Invariants: it is told of each request that ends, once.

use engine::policy::{Completed, Direction, View};

use super::trickle::Trickle;
use super::waiting::Waiting;
use crate::{Completion, Cost, Ended, Estimator, Knobs, Parallelism, Prices, Side};

/// What is remembered of a device.
#[derive(Debug, Default)]
pub struct DeviceMemory {
    learned: Option<Learned>,
    pub(super) waiting: Waiting,
    pub(super) trickle: Trickle,
    /// Cost of what has completed since room was last asked for.
    pub(super) done_ns: Cost,
    /// Which prices debts are made at.
    pub(super) generation: u64,
    /// The prices of this generation.
    marked: Option<Prices>,
}

/// What its completions taught.
#[derive(Debug)]
struct Learned {
    estimator: Estimator,
    parallelism: Parallelism,
    /// Busy time at the end of the last request.
    busy_ns: u64,
}

impl DeviceMemory {
    fn learned(&mut self, view: &View) -> &mut Learned {
        let depth = view.request_depth;
        self.learned.get_or_insert_with(|| Learned {
            estimator: Estimator::new(depth),
            parallelism: Parallelism::new(depth),
            busy_ns: 0,
        })
    }

    /// The prices to count writes by.
    pub(super) fn prices(&mut self, knobs: &Knobs, view: &View) -> Prices {
        self.learned(view).estimator.prices(knobs.budget_ns, view.request_bytes)
    }

    /// Whether too little is known of it.
    pub(super) fn is_cold(&mut self, view: &View) -> bool {
        self.learned(view).estimator.is_cold()
    }

    /// How many requests it likes at once.
    pub(super) fn requests(&mut self, view: &View) -> u64 {
        self.learned(view).parallelism.requests()
    }

    /// Debts of other prices say nothing once these have moved twofold.
    pub(super) fn mark(&mut self, prices: Prices) {
        let twofold = |old: u64, new: u64| new > old.saturating_mul(2) || old > new.saturating_mul(2);
        if self.marked.is_none_or(|old| twofold(old.run_ns, prices.run_ns) || twofold(old.mib_ns, prices.mib_ns)) {
            self.generation += 1;
            self.marked = Some(prices);
        }
    }

    /// A request has ended, at a time when requests had so many bytes.
    pub(super) fn completed(&mut self, view: &View, knobs: &Knobs, done: &Completed, request_bytes: u64) {
        if done.direction == Direction::Write {
            self.done_ns += self.prices(knobs, view).cost_ns(done.runs, done.bytes);
            let ended = Ended {
                latency_ns: done.latency_ns,
                in_flight: done.in_flight,
                held_back: done.held_back,
                is_large: done.bytes >= request_bytes / 4 * 3,
            };
            self.learned(view).parallelism.ended(view.now.0, knobs.in_flight_ns, &ended);
        }
        let side = if done.direction == Direction::Read { Side::Read } else { Side::Write };
        let submitted_ns = view.now.0.saturating_sub(done.latency_ns);
        let completion = Completion { side, runs: done.runs, bytes: done.bytes, submitted_ns, unwatched_ns: 0 };
        let learned = self.learned(view);
        let took_ns = view.device().busy_ns.saturating_sub(learned.busy_ns);
        learned.busy_ns = view.device().busy_ns;
        learned.estimator.ended(view.now.0, took_ns, completion);
    }
}
