//! The policy's memory of a device.
//!
//! Owns: the device's prices, the effect of readers on them, how many requests the device likes at once, its waiting
//! payers, its trickle; the generation of debts.
//! Does not own: how each of these learns (the crate's other modules).
//! Invariants: each request that ends is reported once.

use afflux_device::policy::{Completed, Direction, View};

use super::portions::Portions;
use super::rates::{Rates, must_take_whole_runs};
use super::read_interference::ReadInterference;
use super::trickle::Trickle;
use super::waiting_payers::WaitingPayers;
use crate::prices::DirectionWork;
use crate::{
    CompletedRequest, Cost, DirectionPrices, Ended, Estimator, EstimatorSnapshot, Facts, Knobs, Parallelism,
    RememberedPrices, Side,
};

/// Fewest requests that may be in flight where all of them cost little.
const REQUESTS_MIN: u32 = 4;

/// The memory of a device.
#[derive(Debug, Default)]
pub struct DeviceMemory {
    /// Prices kept from an earlier start.
    remembered: Option<RememberedPrices>,
    learned: Option<Learned>,
    pub(super) waiting: WaitingPayers,
    pub(super) trickle: Trickle,
    pub(super) portions: Portions,
    pub(super) read_interference: ReadInterference,
    /// Work completed since room was last asked for.
    pub(super) done: DirectionWork,
}

/// Knowledge from the device's completions.
#[derive(Debug)]
struct Learned {
    estimator: Estimator,
    parallelism: Parallelism,
}

impl Learned {
    fn new(remembered: Option<&RememberedPrices>, depth: u32) -> Self {
        let estimator =
            remembered.map_or_else(|| Estimator::new(depth), |remembered| Estimator::restored(depth, remembered));
        Self { estimator, parallelism: Parallelism::new(depth) }
    }
}

impl From<&Completed> for Facts {
    /// The device's clocks and counts at this end.
    fn from(done: &Completed) -> Self {
        let (device, busy) = (done.device, done.device.busy);
        Self {
            now_ns: done.at.0,
            transfers_ns: busy.transfers_ns,
            reads_ns: busy.reads_ns,
            writes_ns: busy.writes_ns,
            calls_alone_ns: busy.calls_alone_ns,
            held_up_ns: busy.held_up_ns,
            oldest_ns: device.oldest_in_flight.map(|at| at.0),
            write_bytes_in_flight: device.bytes_in_flight,
            more_to_write: done.more_to_write,
        }
    }
}

impl CompletedRequest {
    /// The request that the engine reports.
    pub fn reported(done: &Completed, starved: bool) -> Self {
        let side = if done.direction == Direction::Read { Side::Read } else { Side::Write };
        let Completed { at, runs, bytes, latency_ns, unwatched_ns, .. } = *done;
        Self { side, runs, bytes, submitted_ns: at.0.saturating_sub(latency_ns), unwatched_ns, starved }
    }
}

impl DeviceMemory {
    /// The memory of a device whose prices were kept.
    pub(super) fn of_known(remembered: RememberedPrices) -> Self {
        Self { remembered: Some(remembered), ..Self::default() }
    }

    fn learned(&mut self, view: &View) -> &mut Learned {
        self.learned.get_or_insert_with(|| Learned::new(self.remembered.as_ref(), view.request_depth))
    }

    /// The device's known prices and parallelism, to be shown.
    pub(super) fn known(&mut self, view: &View) -> (EstimatorSnapshot, Parallelism) {
        let Learned { estimator, parallelism } = self.learned(view);
        (estimator.snapshot(view.now.0), *parallelism)
    }

    /// The prices to keep for the next start.
    pub(super) fn remembered(&mut self, view: &View) -> Option<RememberedPrices> {
        self.learned(view).estimator.remembered()
    }

    /// The costs of this instant, with its waiting payers noted.
    pub(super) fn rates(&mut self, view: &View) -> Rates {
        self.note_waiting(view);
        let knobs = Knobs::of(&view.knobs);
        let alone = self.prices(&knobs, view);
        let (prices, in_flight_ns) = (self.read_interference.applied(alone), self.in_flight_ns(&knobs, view));
        Rates { knobs, alone, prices, in_flight_ns }
    }

    fn note_waiting(&mut self, view: &View) {
        self.waiting.note(view.now.0, view.device().payers_waiting);
    }

    /// The prices to count writes by.
    fn prices(&mut self, knobs: &Knobs, view: &View) -> DirectionPrices {
        let held_ns = self.held_run_ns(view);
        let prices = self.learned(view).estimator.prices(knobs.budget_ns, view.request_bytes);
        if must_take_whole_runs(view) {
            return DirectionPrices { run_ns: 0, ..prices };
        }
        DirectionPrices { run_ns: prices.run_ns.max(held_ns), ..prices }
    }

    /// The cost of a run where runs are short, as far as found. 0 for a device that takes whole runs in one request,
    /// like an object store: runs overlap there, and a few long ones would leave the device idle.
    pub(super) fn held_run_ns(&mut self, view: &View) -> u64 {
        if !must_take_whole_runs(view) { self.learned(view).estimator.held_run_ns() } else { 0 }
    }

    /// The cost of a run, as far as found: an unknown cost stretches no budget.
    pub(super) fn known_run_ns(&mut self, view: &View) -> u64 {
        self.learned(view).estimator.known_run_ns()
    }

    /// Whether too little is known of it.
    pub(super) fn check_cold(&mut self, view: &View) -> bool {
        self.learned(view).estimator.is_cold()
    }

    /// How many requests the device likes at once.
    pub(super) fn requests(&mut self, view: &View) -> u64 {
        self.learned(view).parallelism.requests()
    }

    /// The most requests in flight, whatever they cost.
    pub(super) fn requests_max(&mut self, view: &View) -> u64 {
        let most = u64::from(view.request_depth.max(REQUESTS_MIN));
        self.learned(view).parallelism.requests_max(view.now.0).min(most)
    }

    /// L, or the least time of a call if that is longer.
    fn in_flight_ns(&mut self, knobs: &Knobs, view: &View) -> Cost {
        knobs.in_flight_ns.max(self.learned(view).parallelism.call_ns())
    }

    /// The generation of the prices at which debts are made. Debts of another generation mean nothing.
    pub(super) fn generation(&mut self, view: &View) -> u64 {
        self.learned(view).estimator.generation()
    }

    /// Requests have ended. Reads are learned from without the prices of writes. Writes that are told together are
    /// judged by the terms before the first of them.
    pub(super) fn completed(&mut self, view: &View, ends: &[Completed]) {
        let is_write = |done: &Completed| done.direction == Direction::Write;
        let terms = ends.iter().any(is_write).then(|| self.write_terms(view));
        if terms.is_none() {
            self.note_waiting(view);
        }
        let whole_runs = must_take_whole_runs(view);
        let learned = self.learned.get_or_insert_with(|| Learned::new(self.remembered.as_ref(), view.request_depth));
        for done in ends {
            // Runs cost nothing where small calls share one: all time is the bytes'.
            let runs = if whole_runs && is_write(done) { 0 } else { done.runs };
            let done = &Completed { runs, ..*done };
            // A lone call lasts as long as one of many.
            let starved = whole_runs && !done.held_back && done.in_flight < learned.parallelism.requests();
            if let Some(terms) = terms.as_ref().filter(|_| is_write(done)) {
                self.done.add(DirectionWork { runs, bytes: done.bytes });
                self.read_interference.completed(&done.device.busy, terms.alone.cost_ns(runs, done.bytes));
                learned.parallelism.ended(done.at.0, terms.in_flight_ns, &terms.ended(done));
            }
            learned.estimator.completed(&Facts::from(done), CompletedRequest::reported(done, starved));
        }
    }

    fn write_terms(&mut self, view: &View) -> WriteTerms {
        let rates = self.rates(view);
        let large_bytes = rates.request_bytes(view) / 4 * 3;
        WriteTerms { alone: rates.alone, in_flight_ns: rates.in_flight_ns, large_bytes }
    }
}

/// The terms by which writes that have ended are judged.
struct WriteTerms {
    /// Prices of writes by themselves.
    alone: DirectionPrices,
    /// Device time that may be in flight.
    in_flight_ns: Cost,
    /// The least bytes of a large request.
    large_bytes: u64,
}

impl WriteTerms {
    fn ended(&self, done: &Completed) -> Ended {
        Ended {
            latency_ns: done.latency_ns,
            in_flight: done.in_flight,
            held_back: done.held_back,
            is_large: done.bytes >= self.large_bytes,
            bytes: done.bytes,
            is_too_many: done.too_many,
        }
    }
}
