//! The cost of a device's work, learned from completions.
//!
//! The mechanism's clocks run while any request is in flight, at any depth. A window of such time closes at a
//! completion and yields the work done in it. The ratio of its time to the modelled cost corrects the prices. Reads and
//! writes have separate windows and prices.
//!
//! A window knows its time between bounds. Some of the time may not have been the device's: nobody checked for
//! completions, a flush was in the way, or the flusher had too little to write. For a device of long calls that
//! overlap, too little is fewer calls than it likes. Only the rest of the time can prove the device slow. A flush that
//! follows writes may have written out data in volatile memory: only with its time added can a window prove the device
//! fast. While a request is in flight that all others overtook, prices do not fall. One stalled window moves a price
//! little; two that agree are a change of speed. A window in which a run began is compared with other such windows
//! only: where few runs begin, the cost of a run would look like a stall. The first windows are short. The first
//! windows of runs are short as well, if many runs prove far cheaper than their price.
//!
//! A volatile cache answers at once until it is full. A device that gets slow in the first seconds of a stretch of work
//! has such a cache. The estimator then forgets the prices learned in that stretch. From then on no such beginning
//! proves the device fast, and single completions do not tell its runs from its bytes. A flush empties the cache, so
//! another such beginning follows. A window then lasts a second, and the time of its flushes is the writes'. Until more
//! bytes were written than any cache holds, the price of bytes in force falls no faster than the backlog it allows was
//! proven twice over.
//!
//! On a device that writes blocks of its own, the cost of a run depends on the length of runs: whole blocks hide it. So
//! the price of a run in force fades slowly once it is known. Otherwise the policy that made runs long because they are
//! dear would make them short again.
//!
//! Reads beside writes: time is not a sum there. A disk does one or the other, a drive of many dies does both, and a
//! head that goes back and forth takes more than either. So the prices of writes stand while reads have more than a
//! quarter of the time, and reads are slowly charged with the time that writes leave. Two windows in a row may show a
//! change that no such charge explains. Writes alone cost more than all the time there was, or both together less than
//! half of it. Then both prices move until they explain the time. The larger the reads' part of the time, the later
//! each price is right.
//!
//! Owns: which windows are believed and how far; which direction is blamed for time that both used; stretches of work;
//! the held price of a run; the generation of prices.
//! Does not own: prices and their step (`prices`); the clocks; the callers.
//! Invariants: time stands still while nothing is in flight. Prices move when a window closes. A single completion
//! moves one price against the other only.

mod remembered;
mod window;

pub use remembered::{EstimatorSnapshot, KnownPrices, RememberedPrices};

use afflux_device::policy::{Completed, Direction};

use crate::prices::{DirectionPrices, DirectionWork, mul_div};
use crate::{Cost, MIB, MILLISECOND, ONE};
use window::{ClocksAtEnd, Elapsed, EstimatorWindow, OTHER_PART};

/// Windows up to which an estimator is young.
const YOUNG_WINDOWS: u32 = 8;
/// More completions than come in one bunch.
const MANY_COMPLETIONS: u64 = 64;
/// Windows before prices count as known.
const COLD_WINDOWS: u32 = 4;
/// Completed runs before the price of a run counts as known.
const COLD_RUNS: u64 = 256;
/// Runs are dear if bytes leave more than this part of the time unexplained, in 1,024ths. The first holds where single
/// completions tell runs from bytes, more or less; the second where a cache hides them.
const UNEXPLAINED: u64 = ONE * 2 / 3;
const UNEXPLAINED_CACHED: u64 = ONE / 5;
/// No volatile cache is expected to hold more than this.
const CACHE_BYTES_MAX: u64 = 512 * MIB;
/// Two windows above this ratio, while a cache may not have been full, show that it is full now.
const FILLED_RATIO: u64 = ONE * 3 / 2;
/// The step of a single completion.
const COMPLETION_DAMPING: u64 = 64;
/// The step of reads that are charged with the time that writes did not use.
const REST_DAMPING: u64 = 16;
/// A ratio above which one window alone is not believed.
const STALL_RATIO: u64 = 2 * ONE;
/// A ratio below which writes are faster than they would be without the reads beside them.
const FAST_RATIO: u64 = ONE * 7 / 8;
/// The largest ratio that one completion may prove.
const COMPLETION_RATIO_MAX: u64 = 4 * ONE;
/// Reads beside writes count as alone if writes took at most one part in so many. Writes beside reads may leave a
/// larger part ([`OTHER_PART`]): otherwise reads would take the whole change of a device's speed.
const WRITES_PART: u64 = 16;
/// A change of speed beside the other direction is over when the error of the modelled time is below this.
const SETTLED: u64 = ONE / 16;
/// A device that takes several requests at once is not at work with less device time in flight than this.
const DRY_NS: u64 = 50 * MILLISECOND;
/// The budget by which prices in force are compared.
const NOMINAL_BUDGET_NS: Cost = 1000 * MILLISECOND;

/// The state of one direction.
#[derive(Clone, Copy, Debug)]
struct DirectionState {
    prices: DirectionPrices,
    windows: u32,
    /// Windows that were mostly about runs.
    run_windows: u32,
    done: DirectionWork,
    /// The last ratios as measured, the newest first: of windows in which no run began, and of those in which one did.
    raws: [[u64; 3]; 2],
    window: EstimatorWindow,
    /// The prices that single completions suggest; they come into force with the window.
    single: DirectionPrices,
    /// The clocks at the last completion.
    last: ClocksAtEnd,
    learned_at_ns: Option<u64>,
    /// Whether the last window beside reads took less time than its writes alone would.
    fast: bool,
    stretch: Stretch,
    /// Whether the device has shown that it accepts data faster than it stores data.
    is_cached: bool,
    held: HeldRunCost,
}

/// Learns a device's prices.
#[derive(Clone, Debug)]
pub struct Estimator {
    reads: DirectionState,
    writes: DirectionState,
    /// Whether the device takes several requests at once.
    queues: bool,
    /// Whether the device is changing its speed while both directions are at work.
    changing: bool,
    /// The prices in force at the last generation.
    mark: DirectionPrices,
    generation: u64,
}

impl Estimator {
    /// An estimator for a device that takes `depth` requests at once.
    pub fn new(depth: u32) -> Self {
        let known = DirectionState::new(DirectionPrices::default());
        let mark = DirectionPrices::default();
        Self { reads: known, writes: known, queues: depth > 1, changing: false, mark, generation: 0 }.marked()
    }

    /// An estimator with prices learned earlier, as for a known device.
    pub fn restored(depth: u32, remembered: &RememberedPrices) -> Self {
        let known = |prices| DirectionState {
            windows: YOUNG_WINDOWS,
            run_windows: YOUNG_WINDOWS,
            done: DirectionWork { runs: COLD_RUNS, bytes: CACHE_BYTES_MAX },
            raws: [[ONE; 3]; 2],
            ..DirectionState::new(prices)
        };
        Self { reads: known(remembered.reads()), writes: known(remembered.writes()), ..Self::new(depth) }.marked()
    }

    /// The prices to persist for the next start; `None` before enough is known.
    pub fn remembered(&self) -> Option<RememberedPrices> {
        (!self.is_cold()).then(|| RememberedPrices::of(self.reads.prices, self.writes.prices))
    }

    fn both(&mut self, direction: Direction) -> (&mut DirectionState, &mut DirectionState) {
        match direction {
            Direction::Read => (&mut self.reads, &mut self.writes),
            Direction::Write => (&mut self.writes, &mut self.reads),
        }
    }

    fn known(&self, direction: Direction) -> &DirectionState {
        match direction {
            Direction::Read => &self.reads,
            Direction::Write => &self.writes,
        }
    }

    /// The prices as they were learned.
    pub fn learned(&self, direction: Direction) -> DirectionPrices {
        self.known(direction).prices
    }

    /// The cost of a run, once enough work was done to know it; 0 before.
    pub fn known_run_ns(&self) -> u64 {
        if self.writes.held.is_settled() { self.writes.prices.run_ns } else { 0 }
    }

    /// The cost of a run where runs are short, as far as found; 0 before.
    pub fn held_run_ns(&self) -> u64 {
        self.writes.held.run_ns()
    }

    /// Whether too little is known for the learned prices to be used as they are.
    pub fn is_cold(&self) -> bool {
        self.writes.windows < COLD_WINDOWS
    }

    /// How often r or b of the write prices in force have moved twofold. Debts of an earlier generation mean nothing.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The known prices, for display.
    pub fn snapshot(&self, now_ns: u64) -> EstimatorSnapshot {
        let shown = |known: &DirectionState| KnownPrices {
            prices: known.prices,
            windows: known.windows,
            age_ns: known.learned_at_ns.map(|at_ns| now_ns.saturating_sub(at_ns)),
        };
        let (is_cold, generation) = (self.is_cold(), self.generation);
        EstimatorSnapshot { reads: shown(&self.reads), writes: shown(&self.writes), is_cold, generation }
    }

    /// The prices by which writes are counted. While little is known, they bound the first backlog and fall as work
    /// completes: the proof that a device is fast doubles with each round, like a slow start.
    pub fn prices(&self, budget_ns: Cost, preferred_bytes: u64) -> DirectionPrices {
        let DirectionState { mut prices, windows, done, is_cached, .. } = self.writes;
        let is_cold = windows < COLD_WINDOWS;
        if is_cold || !is_cached && done.bytes < CACHE_BYTES_MAX {
            let least = (4 * MIB).max(preferred_bytes.saturating_mul(8));
            let proven = least.saturating_add(done.bytes.saturating_mul(2));
            let mib_ns = mul_div(budget_ns, MIB, proven).max(1);
            prices.mib_ns = if is_cold { mib_ns } else { prices.mib_ns.max(mib_ns) };
        }
        if done.runs < COLD_RUNS {
            prices.run_ns = prices.run_ns.max(budget_ns / (16 + 2 * done.runs));
        }
        prices
    }

    /// A request completed. `starved`: the flusher had too little to write for a device whose calls are long and
    /// overlap.
    pub fn completed(&mut self, done: &Completed, starved: bool) {
        let queues = self.queues;
        let (own, other) = self.both(done.direction);
        let passed = own.last.advance_to(done);
        if done.bytes == 0 {
            // A failed request proves nothing about time.
            return;
        }
        own.stretch.advance(passed, own.prices);
        let dry = queues && done.direction == Direction::Write && (starved || own.is_dry(done, passed));
        let work = DirectionWork::of(done);
        own.done.add(work);
        own.window.add(done, passed, dry);
        if own.is_cached && passed.held_up_ns + passed.calls_alone_ns > 0 {
            own.flushed(passed, dry);
        }
        other.window.other.add(work);
        own.learn_from_one(done, passed, dry);
        if own.is_window_full() {
            self.close(done);
        }
        self.raise_generation();
    }

    fn close(&mut self, done: &Completed) {
        let (mut changing, direction) = (self.changing, done.direction);
        let (own, other) = self.both(direction);
        own.adopt_singles();
        let window = own.window;
        let others_ns = window.others_ns(&other.prices);
        let part = if direction == Direction::Write { OTHER_PART } else { WRITES_PART };
        let (raw, damping) = if window.is_undisturbed(others_ns, own.modelled_ns(), part) {
            changing = false;
            (window.own_bounds(others_ns).ratio(own.modelled_ns()), None)
        } else if direction == Direction::Write {
            (own.beside_reads(&other.prices, other.windows >= YOUNG_WINDOWS, &mut changing), None)
        } else if changing {
            // Windows of writes move both.
            (ONE, None)
        } else {
            own.beside_writes(&other.prices)
        };
        let least = if window.has_straggler(done) { ONE } else { 0 };
        let raw = if direction == Direction::Write { own.beside_cache(raw) } else { raw };
        let ratio = own.learn(raw.max(least), damping, done.at.0);
        if changing && direction == Direction::Write {
            other.speed_changed(window.other, ratio);
        }
        self.changing = changing;
    }

    fn marked(mut self) -> Self {
        self.mark = self.prices(NOMINAL_BUDGET_NS, 0);
        self
    }

    fn raise_generation(&mut self) {
        let now = self.prices(NOMINAL_BUDGET_NS, 0);
        let moved = |a: u64, b: u64| a.max(b) / 2 >= a.min(b);
        if moved(now.run_ns, self.mark.run_ns) || moved(now.mib_ns, self.mark.mib_ns) {
            self.mark = now;
            self.generation += 1;
        }
    }
}

impl DirectionState {
    fn new(prices: DirectionPrices) -> Self {
        Self {
            prices,
            windows: 0,
            run_windows: 0,
            done: DirectionWork::default(),
            raws: [[0; 3]; 2],
            window: EstimatorWindow::default(),
            single: prices,
            last: ClocksAtEnd::default(),
            learned_at_ns: None,
            fast: false,
            stretch: Stretch::new(prices),
            is_cached: false,
            held: HeldRunCost::default(),
        }
    }

    /// The last ratios of windows like the present one.
    fn raw(&self) -> [u64; 3] {
        self.raws[usize::from(self.window.work.runs > 0)]
    }

    fn modelled_ns(&self) -> u64 {
        self.window.work.cost_ns(&self.prices)
    }

    /// Whether the flusher had too little to write up to now to occupy the device. The device did the little in a
    /// moment, and nothing is in flight or nothing more is dirty.
    fn is_dry(&self, done: &Completed, passed: Elapsed) -> bool {
        let bytes_in_flight = done.device.bytes_in_flight;
        let cost_ns = self.prices.cost_ns(done.runs, done.bytes.saturating_add(bytes_in_flight));
        let little = passed.own_ns < DRY_NS && cost_ns < DRY_NS;
        little && (bytes_in_flight == 0 || !done.more_to_write)
    }

    /// A flush emptied the device's cache. Its time was the writes', unless the flusher had too little to write.
    fn flushed(&mut self, passed: Elapsed, dry: bool) {
        self.stretch.mark_emptied(self.prices);
        if !dry {
            self.window.add_flushes(passed);
        }
    }

    fn is_window_full(&self) -> bool {
        let young = self.windows < YOUNG_WINDOWS || self.has_cheap_runs();
        self.window.is_full(young, self.is_cached && self.stretch.may_be_cached())
    }

    /// Whether many runs took less than a quarter of their price, and runs are not known yet. A device that has
    /// streamed for hours still has the prior price of a run
    /// (`runs_after_a_long_stream_are_learned_in_short_windows`).
    fn has_cheap_runs(&self) -> bool {
        let is_much = self.window.completions() >= MANY_COMPLETIONS && self.is_about_runs();
        self.run_windows < YOUNG_WINDOWS && is_much && self.modelled_ns() / 4 > self.window.own_ns
    }

    fn is_about_runs(&self) -> bool {
        self.window.work.runs.saturating_mul(self.prices.run_ns) > self.modelled_ns() / 2
    }

    /// Many equal streams cannot tell the price of a run from the price of bytes; single completions can.
    fn learn_from_one(&mut self, done: &Completed, passed: Elapsed, dry: bool) {
        let clean = passed.both_ns == 0 && passed.held_up_ns == 0 && done.unwatched_ns == 0;
        if self.windows < YOUNG_WINDOWS || self.is_cached || !clean {
            return;
        }
        let ratio = self.single.ratio(done.runs, done.bytes, passed.own_ns).min(COMPLETION_RATIO_MAX);
        let ratio = if dry { ratio.min(ONE) } else { ratio };
        self.single.learn(done.runs, done.bytes, ratio, COMPLETION_DAMPING);
    }

    /// Completions come in bunches, and the ratio that each may prove is bounded: from them alone prices would drift.
    /// So they move one price against the other, and leave the window's total cost unchanged.
    fn adopt_singles(&mut self) {
        let DirectionWork { runs, bytes } = self.window.work;
        let ratio = self.single.ratio(runs, bytes, self.prices.cost_ns(runs, bytes));
        // A larger drift comes from the bunches.
        if self.window.is_exact() && (ONE / 2..=2 * ONE).contains(&ratio) {
            self.single.learn(runs, bytes, ratio, 1);
            self.prices = self.single;
        }
    }

    /// The ratio that a window of writes proves beside reads at these prices. One alone may be a burst, or a stall.
    fn beside_reads(&mut self, reads: &DirectionPrices, reads_known: bool, changing: &mut bool) -> u64 {
        let (whole, alone_ns) = (self.window.bounds(0), self.modelled_ns());
        let together_ns = alone_ns.saturating_add(self.window.other.cost_ns(reads));
        let (alone, together) = (whole.ratio(alone_ns), whole.ratio(together_ns));
        let (fast, slow) = (alone < FAST_RATIO, together > STALL_RATIO && reads_known);
        let fast_again = std::mem::replace(&mut self.fast, fast) && fast;
        if *changing && together.abs_diff(ONE) < SETTLED {
            *changing = false;
        } else if fast_again || slow && believed([together, self.raw()[0], self.raw()[1]]) > STALL_RATIO {
            *changing = true;
        }
        if *changing || slow { together } else { ONE }
    }

    /// The ratio that a window of reads proves beside writes at these prices, and its damping if that is special.
    fn beside_writes(&self, writes: &DirectionPrices) -> (u64, Option<u64>) {
        let alone = self.window.bounds(0).ratio(self.modelled_ns());
        let remaining_ns = self.window.unused_by_others_ns(writes);
        let left = self.window.bounds(self.window.own_ns - remaining_ns).ratio(self.modelled_ns());
        if alone < ONE {
            // Reads alone cost more than all the time.
            (alone, None)
        } else if self.windows < YOUNG_WINDOWS {
            (left, None)
        } else {
            (left.min(STALL_RATIO), Some(REST_DAMPING))
        }
    }

    /// Learns from a window with this ratio; returns the ratio that was believed.
    fn learn(&mut self, raw: u64, damping: Option<u64>, now_ns: u64) -> u64 {
        let (DirectionWork { runs, bytes }, before) = (self.window.work, self.raw());
        let raws = [raw, before[0], before[1]];
        self.raws[usize::from(runs > 0)] = raws;
        let ratio = if self.windows < COLD_WINDOWS { raw } else { believed(raws) };
        self.windows = self.windows.saturating_add(1);
        self.run_windows = self.run_windows.saturating_add(u32::from(self.is_about_runs()));
        let believed_ns = mul_div(self.modelled_ns(), ratio, ONE);
        self.prices.learn(runs, bytes, ratio, damping.unwrap_or(self.damping(ratio)));
        let part = if self.is_cached { UNEXPLAINED_CACHED } else { UNEXPLAINED };
        self.held.add(self.window.work, believed_ns, &self.prices, part);
        (self.single, self.window) = (self.prices, EstimatorWindow::next(now_ns));
        self.learned_at_ns = Some(now_ns);
        ratio
    }

    /// The ratio to believe of a window whose writes may have gone to a cache that was not full.
    fn beside_cache(&mut self, raw: u64) -> u64 {
        if !self.stretch.may_be_cached() || self.window.is_flushed() {
            return raw;
        }
        let DirectionWork { runs, bytes } = self.window.work;
        let got_slow = raw.min(self.raw()[0]) > FILLED_RATIO && self.windows >= COLD_WINDOWS;
        if got_slow && self.stretch.before().cost_ns(runs, bytes) > self.modelled_ns() {
            self.is_cached = true;
            self.prices = self.stretch.mark_filled();
            self.held = HeldRunCost::default();
            return ONE;
        }
        if self.is_cached && raw < FILLED_RATIO { ONE } else { raw }
    }

    /// The step is large only if two windows in a row were far off on the same side: one may be chance.
    fn damping(&self, ratio: u64) -> u64 {
        let before = if self.windows <= YOUNG_WINDOWS { ratio } else { self.raw()[1] };
        let nearer = if ratio > ONE { ratio.min(before.max(ONE)) } else { ratio.max(before.min(ONE)) };
        DirectionPrices::window_damping(nearer)
    }

    /// A window of the other direction, with this work and ratio, has found the device's new speed.
    fn speed_changed(&mut self, work: DirectionWork, ratio: u64) {
        for prices in [&mut self.prices, &mut self.single] {
            prices.learn(work.runs, work.bytes, ratio, DirectionPrices::window_damping(ratio));
        }
    }
}

/// The ratio to learn from, given the last three as measured, the newest first. A single stalled window is ignored.
fn believed(raw: [u64; 3]) -> u64 {
    if raw[0] <= STALL_RATIO {
        return raw[0];
    }
    let mut sorted = raw;
    sorted.sort_unstable();
    sorted[1].max(ONE)
}

/// The part of a window in the average.
const HELD_PART: u64 = 16;
/// The held cost fades over this much time of work.
const HELD_FADES_NS: u64 = 30_000 * MILLISECOND;
/// Work and windows required before anything is held.
const HELD_AFTER_NS: u64 = 2000 * MILLISECOND;
const HELD_AFTER_WINDOWS: u32 = 8;
/// Runs are counted in these parts, so that an average does not lose a few runs.
const RUN_PARTS: u64 = 1 << 16;

/// The price of a run where runs are short, held for a while after runs become long. 0 until a few seconds of work were
/// done.
///
/// Long runs hide the cost of a run: bytes are most of their cost, and on flash that is written in whole blocks a run
/// of whole blocks costs nothing. The cost that short runs leave unexplained by the price of bytes is held, and fades.
/// A run never costs more than the time that it took. So a device that gets faster, as at the end of another program,
/// shows it at once if runs are short.
#[derive(Clone, Copy, Debug, Default)]
struct HeldRunCost {
    runs: u64,
    bytes: u64,
    ns: u64,
    windows: u32,
    worked_ns: u64,
    run_ns: u64,
}

impl HeldRunCost {
    fn run_ns(&self) -> u64 {
        self.run_ns
    }

    /// Whether enough work was done to know the cost of runs at all.
    fn is_settled(&self) -> bool {
        self.windows >= HELD_AFTER_WINDOWS && self.worked_ns >= HELD_AFTER_NS
    }

    /// Adds a window with this work, believed to have taken `ns`, and the prices learned by now. If bytes leave less
    /// than `part` 1,024ths of the time unexplained, that is the error of their price.
    fn add(&mut self, work: DirectionWork, ns: u64, prices: &DirectionPrices, part: u64) {
        self.windows = self.windows.saturating_add(1);
        self.worked_ns = self.worked_ns.saturating_add(ns);
        if work.runs > 0 {
            let average = |of: u64, new: u64| of - of / HELD_PART + new / HELD_PART;
            self.runs = average(self.runs, work.runs.min(1 << 32) * RUN_PARTS);
            self.bytes = average(self.bytes, work.bytes);
            self.ns = average(self.ns, ns);
        }
        self.run_ns -= mul_div(self.run_ns, ns.min(HELD_FADES_NS), HELD_FADES_NS);
        if self.is_settled() && self.runs > 0 {
            let most_ns = mul_div(self.ns, RUN_PARTS, self.runs);
            self.run_ns = self.run_ns.max(self.unexplained_ns(prices, part)).min(most_ns);
        }
    }

    /// The time of a run that its bytes do not explain.
    fn unexplained_ns(&self, prices: &DirectionPrices, part: u64) -> u64 {
        let of_runs_ns = self.ns.saturating_sub(prices.cost_ns(0, self.bytes));
        if u128::from(of_runs_ns) * u128::from(ONE) < u128::from(self.ns) * u128::from(part) {
            return 0;
        }
        mul_div(of_runs_ns, RUN_PARTS, self.runs)
    }
}

/// A cache is full after this much work: it fills at the speed of the interface.
const FILLED_NS: u64 = 2000 * MILLISECOND;
/// A rest undoes this many times as much work.
const REST_WEIGHT: u64 = 4;
/// A rest of this length begins a new stretch.
const REST_NS: u64 = 50 * MILLISECOND;

/// Work with little rest, and the prices known before it: learned past the caches of an earlier stretch, or the prior.
///
/// While the device rests, it empties its cache, and a flush empties the cache too. Rests count for more than work, so
/// a device that rests a part of the time is never found out.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    worked_ns: u64,
    before: DirectionPrices,
}

impl Stretch {
    fn new(before: DirectionPrices) -> Self {
        Self { worked_ns: 0, before }
    }

    /// Adds the time passed up to a completion; `prices` are the known ones.
    fn advance(&mut self, passed: Elapsed, prices: DirectionPrices) {
        if passed.rested_ns >= REST_NS && !self.may_be_cached() {
            *self = Self::new(prices);
        }
        let worked_ns = passed.either_ns + passed.calls_alone_ns;
        self.worked_ns = self.worked_ns.saturating_sub(passed.rested_ns.saturating_mul(REST_WEIGHT)) + worked_ns;
    }

    /// Whether writes may have gone to a cache that was not full.
    fn may_be_cached(&self) -> bool {
        self.worked_ns < FILLED_NS
    }

    /// A flush emptied the cache: it takes writes at once again.
    fn mark_emptied(&mut self, prices: DirectionPrices) {
        let before = if self.may_be_cached() { self.before } else { prices };
        *self = Self::new(before);
    }

    /// The cache is full. Returns the prices known before writes went to it.
    fn mark_filled(&mut self) -> DirectionPrices {
        self.worked_ns = FILLED_NS;
        self.before
    }

    fn before(&self) -> DirectionPrices {
        self.before
    }
}

#[cfg(test)]
mod tests;
