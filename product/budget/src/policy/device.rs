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
    kept: Option<RememberedPrices>,
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
    pub(super) fn of_known(kept: RememberedPrices) -> Self {
        Self { kept: Some(kept), ..Self::default() }
    }

    fn learned(&mut self, view: &View) -> &mut Learned {
        let depth = view.request_depth;
        self.learned.get_or_insert_with(|| {
            let estimator = match &self.kept {
                Some(kept) => Estimator::restored(depth, kept),
                None => Estimator::new(depth),
            };
            Learned { estimator, parallelism: Parallelism::new(depth) }
        })
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
    pub(super) fn is_cold(&mut self, view: &View) -> bool {
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

    /// A request has ended. Reads are learned from without the prices of writes.
    pub(super) fn completed(&mut self, view: &View, done: &Completed) {
        // Runs cost nothing where small calls share one: all time is the bytes'.
        let runs = if must_take_whole_runs(view) && done.direction == Direction::Write { 0 } else { done.runs };
        let done = &Completed { runs, ..*done };
        // A lone call lasts as long as one of many.
        let likes = self.learned(view).parallelism.requests();
        let starved = must_take_whole_runs(view) && !done.held_back && done.in_flight < likes;
        if done.direction == Direction::Read {
            self.note_waiting(view);
        } else {
            let rates = self.rates(view);
            let (cost_ns, in_flight_ns) = (rates.alone.cost_ns(done.runs, done.bytes), rates.in_flight_ns);
            self.done.add(DirectionWork { runs: done.runs, bytes: done.bytes });
            self.read_interference.completed(&done.device.busy, cost_ns);
            let request_bytes = rates.request_bytes(view);
            let ended = Ended {
                latency_ns: done.latency_ns,
                in_flight: done.in_flight,
                held_back: done.held_back,
                is_large: done.bytes >= request_bytes / 4 * 3,
                bytes: done.bytes,
                is_too_many: done.too_many,
            };
            self.learned(view).parallelism.ended(done.at.0, in_flight_ns, &ended);
        }
        self.learned(view).estimator.completed(&Facts::from(done), CompletedRequest::reported(done, starved));
    }
}
