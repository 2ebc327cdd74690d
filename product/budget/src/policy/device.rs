//! The policy's memory of a device.
//!
//! Owns: the device's learned prices and parallelism, the effect of readers on them, its waiting payers, its trickle,
//! when it counts as hung; the generation of debts.
//! Does not own: how prices and parallelism are learned (`estimator`, `parallel`); the watching of a device that hangs,
//! the writers that wait (the engine).
//! Invariants: each request that ends is reported once. Requests in flight have eight times their cost before the
//! device counts as hung, 2 s at least and 30 s at most: without a ceiling a price learned from a stall would excuse
//! the next one.

use afflux_device::policy::{BusyTimes, Completed, Direction, HangLimits, PayerCounts, View};

use crate::knobs::BudgetKnob;
use crate::policy::portions::Portions;
use crate::policy::rates::{Rates, must_take_whole_runs};
use crate::prices::{DirectionWork, PAGE_BYTES, mul_div};
use crate::{
    Cost, DirectionPrices, Estimator, EstimatorSnapshot, Knobs, MILLISECOND, ONE, Parallelism, RememberedPrices,
};

/// Fewest requests that may be in flight where all of them cost little.
const REQUESTS_MIN: u32 = 4;

/// The memory of a device.
#[derive(Debug, Default)]
pub struct DeviceMemory {
    /// Prices persisted by an earlier start.
    remembered: Option<RememberedPrices>,
    learned: Option<Learned>,
    pub(super) waiting: WaitingPayers,
    pub(super) trickle: Trickle,
    pub(super) portions: Portions,
    pub(super) read_interference: ReadInterference,
    /// Work completed since the charge bounds were last asked for.
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

impl DeviceMemory {
    /// The memory of a device whose prices were persisted.
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

    /// The prices to persist for the next start.
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

    /// The prices for counting writes.
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

    /// Requests have ended. Reads are learned from without the prices of writes. Writes that are reported together are
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
                let work = DirectionWork::of(done);
                self.done.add(work);
                self.read_interference.completed(&done.device.busy, work.cost_ns(&terms.alone));
                learned.parallelism.ended(done, terms.in_flight_ns, terms.large_bytes);
            }
            learned.estimator.completed(done, starved);
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

/// The part of completed work.
const TRICKLE_PART: u64 = 16;

fn signed(ns: Cost) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// The part of the budget that may be overdrawn: sixteen times as much is written before more is admitted.
const TAKEN_PART: Cost = 4;

/// The trickle: a part of completed work that is admitted although the budget is used up. At most a sixteenth of the
/// completed device time is admitted while the backlog is above the budget, so the backlog falls at fifteen sixteenths
/// of the device's speed. A write is admitted whole: later writes make up for the excess. Nothing is saved up below the
/// budget.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trickle {
    /// Negative: more was admitted than allowed.
    remaining_ns: i64,
    /// Work that was dirty at the last question: in work, since prices move.
    dirty: DirectionWork,
}

impl Trickle {
    /// Some work completed; `dirty` work remains, which costs `backlog_ns` at these prices; the limit is `end_ns`.
    /// Returns the backlog up to which waiting writers are admitted.
    pub(super) fn completed(
        &mut self,
        done: DirectionWork,
        dirty: DirectionWork,
        prices: &DirectionPrices,
        backlog_ns: Cost,
        end_ns: Cost,
    ) -> Cost {
        // The dirty work has entered, except for earlier work that did not complete.
        let entered_ns = signed(dirty.without(self.dirty.without(done)).cost_ns(prices));
        self.dirty = dirty;
        if backlog_ns < end_ns {
            self.remaining_ns = 0;
            return end_ns;
        }
        // No writer waits for long because of others' work.
        let least_ns = -signed(end_ns / TAKEN_PART);
        let remaining_ns = self.remaining_ns.saturating_sub(entered_ns).max(least_ns);
        self.remaining_ns = remaining_ns.saturating_add(signed(done.cost_ns(prices) / TRICKLE_PART));
        end_ns.max(backlog_ns.saturating_add_signed(self.remaining_ns))
    }
}

/// Time over which a payer's part is averaged.
const SHORT_AVERAGE_NS: u64 = 100 * MILLISECOND;
/// Time over which the number of payers that stretches the budget is averaged.
const LONG_AVERAGE_NS: u64 = 1000 * MILLISECOND;

/// How many payers wait, now and on average. A count holds until the next, and is averaged in 1,024ths: in its own time
/// an average follows the count as a charged capacitor would, taken linearly.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WaitingPayers {
    now: u64,
    seen_ns: u64,
    short: u64,
    long: u64,
    others: Others,
}

/// Clients with waiting payers, beside the client of the payer in question.
#[derive(Clone, Copy, Debug, Default)]
struct Others {
    now: u64,
    seen_ns: u64,
    short: u64,
}

fn towards(average: u64, count: u64, passed_ns: u64, over_ns: u64) -> u64 {
    if passed_ns == 0 || average == count * ONE {
        return average;
    }
    let (from, to, part) = (u128::from(average), u128::from(count * ONE), u128::from(passed_ns.min(over_ns)));
    ((from * (u128::from(over_ns) - part) + to * part) / u128::from(over_ns)) as u64
}

impl WaitingPayers {
    /// `count` payers wait at this instant.
    pub(super) fn note(&mut self, now_ns: u64, count: u64) {
        let passed = now_ns.saturating_sub(self.seen_ns);
        self.short = towards(self.short, self.now, passed, SHORT_AVERAGE_NS);
        self.long = towards(self.long, self.now, passed, LONG_AVERAGE_NS);
        (self.now, self.seen_ns) = (count, now_ns);
    }

    /// N: the number of payers that share the device.
    pub(super) fn sharing(&self) -> u64 {
        self.now.max(self.short.div_ceil(ONE)).max(1)
    }

    /// The same for one payer: the device is divided among the clients, and a client's part among its payers.
    pub(super) fn sharing_with(&mut self, now_ns: u64, payer: &PayerCounts) -> u64 {
        let Others { now, seen_ns, short } = self.others;
        let others = payer.clients.saturating_sub(1);
        if others == 0 && now == 0 && short == 0 {
            return self.sharing();
        }
        let short = towards(short, now, now_ns.saturating_sub(seen_ns), SHORT_AVERAGE_NS);
        self.others = Others { now: others, seen_ns: now_ns, short };
        match others.max(short.div_ceil(ONE)) {
            0 => self.sharing(),
            // Payers without a client are not counted while no client waits.
            others if payer.client_payers == 0 => (others + 1).saturating_mul(self.sharing()),
            others => (others + 1).saturating_mul(payer.client_payers),
        }
    }

    /// How many payers want to write at the same time, over the last second.
    pub(super) fn on_average(&self) -> u64 {
        self.long.div_ceil(ONE).max(1)
    }
}

/// Time with writes in flight after which the factor is updated.
const FACTOR_WINDOW_NS: u64 = 250 * MILLISECOND;
/// The part of that time in which reads must be in flight, too.
const SHARED_PART: u64 = 8;
/// A larger factor means that readers starve writes: the backlog must not vanish for that.
const FACTOR_MAX: u64 = 8 * ONE;

/// How much longer writes take beside reads than by themselves: 1 to [`FACTOR_MAX`], and the window that will correct
/// it. 1 where reads are rare beside writes.
///
/// Prices are those of writes alone. A device that serves readers too has less time for writes: a second's work takes
/// two if reads take half of the time. The promise is in wall time, so dirty data is counted at prices that are as many
/// times higher. The factor is measured, not derived from the time with reads in flight. A drive of many dies reads and
/// writes at once, and a head that goes back and forth takes more than either. The limit in flight and the size of
/// requests stay as without readers, since a seek for each small write would only add to the work.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadInterference {
    factor: u64,
    /// The cost of the window's writes by themselves.
    cost_ns: Cost,
    writes_ns: u64,
    both_ns: u64,
}

impl Default for ReadInterference {
    fn default() -> Self {
        Self { factor: ONE, cost_ns: 0, writes_ns: 0, both_ns: 0 }
    }
}

impl ReadInterference {
    /// A write of this cost has ended.
    pub(super) fn completed(&mut self, busy: &BusyTimes, cost_ns: Cost) {
        self.cost_ns = self.cost_ns.saturating_add(cost_ns);
        let writes_ns = busy.writes_ns.saturating_sub(self.writes_ns);
        if writes_ns < FACTOR_WINDOW_NS {
            return;
        }
        let both_ns = (busy.reads_ns + busy.writes_ns).saturating_sub(busy.transfers_ns);
        let shared = both_ns.saturating_sub(self.both_ns) >= writes_ns / SHARED_PART;
        let measured = mul_div(writes_ns, ONE, self.cost_ns.max(1));
        let measured = if shared { measured.clamp(ONE, FACTOR_MAX) } else { ONE };
        *self = Self { factor: self.factor.midpoint(measured), cost_ns: 0, writes_ns: busy.writes_ns, both_ns };
    }

    /// The prices of writes beside the readers of the moment.
    pub(super) fn applied(&self, prices: DirectionPrices) -> DirectionPrices {
        DirectionPrices { run_ns: self.times(prices.run_ns), mib_ns: self.times(prices.mib_ns) }
    }

    /// The wall time that this device time takes.
    pub(super) fn times(&self, ns: u64) -> u64 {
        mul_div(ns, self.factor, ONE)
    }
}

const HANG_NS_MIN: u64 = 2000 * MILLISECOND;
const HANG_NS_MAX: u64 = 30_000 * MILLISECOND;
const HANG_TIMES: u64 = 8;

/// How long a device with this much in flight may complete nothing.
fn stalled_after_ns(in_flight_ns: Cost) -> u64 {
    in_flight_ns.saturating_mul(HANG_TIMES).clamp(HANG_NS_MIN, HANG_NS_MAX)
}

/// The limits in force for the device.
pub(super) fn hang_limits(view: &View, device: &mut DeviceMemory) -> HangLimits {
    let (counts, prices) = (view.device(), device.rates(view).prices);
    let in_flight_ns = prices.cost_ns(counts.runs_in_flight, counts.writeback * PAGE_BYTES);
    let refused_ns = match view.knobs.own.get(BudgetKnob::HangErrorMs) {
        0 => u64::MAX,
        ms => ms * MILLISECOND,
    };
    HangLimits { stalled_ns: stalled_after_ns(in_flight_ns), refused_ns }
}

#[cfg(test)]
mod tests;
