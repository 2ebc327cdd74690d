//! What a device's work costs, learned from completions.
//!
//! A clock runs while anything is in flight, whatever the depth: its time is what the device was busy. A window of
//! busy time closes at a completion and yields what was done in it; the modelled cost against the measured time
//! corrects the prices. Reads and writes have prices of their own: a window corrects one of them, by the time that
//! the other is not known to have taken, and only if that is the larger part.
//!
//! What a window may prove is restricted by how it came about:
//! - the flusher ran dry, or completions were looked for late: it may prove the device faster, never slower;
//! - a request older than the window is in flight: it may prove the device slower, never faster;
//! - a single stalled window moves a price little; two that agree are a change of speed.
//!
//! Owns: the busy clock, windows, which of them are believed and how far.
//! Does not own: prices and their step (`prices`); who asks.
//! Invariants: time stands still while nothing is in flight. Between two windows prices move by completions, and
//! by little.

use std::collections::VecDeque;

use crate::prices::Prices;
use crate::{Cost, MIB, MILLISECOND, ONE};

/// Busy time of a window: a young estimator's, an ordinary one's, and where completions are few.
const WINDOW_YOUNG_NS: u64 = 5 * MILLISECOND;
const WINDOW_NS: u64 = 50 * MILLISECOND;
const WINDOW_NS_MAX: u64 = 200 * MILLISECOND;
/// Completions of an ordinary window.
const WINDOW_COMPLETIONS: u64 = 8;
/// Windows of an estimator that is young.
const YOUNG_WINDOWS: u32 = 8;
/// Windows before prices count as known.
const COLD_WINDOWS: u32 = 4;
/// Completed runs before the price of a run counts as known.
const COLD_RUNS: u64 = 256;
/// The step of a single completion.
const COMPLETION_DAMPING: u64 = 64;
/// A ratio above which one window alone is not believed.
const STALL_RATIO: u64 = 2 * ONE;
/// Most that one completion may prove.
const COMPLETION_RATIO_MAX: u64 = 4 * ONE;
/// The part of a window's time that the other direction may have taken.
const OTHER_PART: u64 = 4;
/// The part of a window for which nobody may have looked for completions.
const LATE_PART: u64 = 8;

/// Reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

/// A request that completed.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// Its direction.
    pub side: Side,
    /// 1, or 0 if it continued the request before it.
    pub runs: u64,
    /// Its bytes.
    pub bytes: u64,
    /// When it was submitted.
    pub submitted_ns: u64,
    /// For how long before now nobody had looked for completions.
    pub unwatched_ns: u64,
}

/// What was done in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    runs: u64,
    bytes: u64,
}

/// What is known of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    prices: Prices,
    windows: u32,
    done: Work,
    /// The last ratios as measured, the newest first.
    raw: [u64; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    busy_ns: u64,
    unwatched_ns: u64,
    completions: u64,
    reads: Work,
    writes: Work,
    ran_dry: bool,
}

/// Learns a device's prices.
#[derive(Clone, Debug)]
pub struct Estimator {
    reads: Known,
    writes: Known,
    window: Window,
    window_began_ns: u64,
    /// When each was submitted, and its direction.
    in_flight: VecDeque<(u64, Side)>,
    busy_since_ns: u64,
    /// Busy time since the last completion.
    since_completion_ns: u64,
    /// Whether the device takes several requests at once.
    queues: bool,
}

impl Estimator {
    /// Of a device that takes so many requests at once.
    pub fn new(depth: u32) -> Self {
        Self {
            reads: Known::default(),
            writes: Known::default(),
            window: Window::default(),
            window_began_ns: 0,
            in_flight: VecDeque::new(),
            busy_since_ns: 0,
            since_completion_ns: 0,
            queues: depth > 1,
        }
    }

    /// With prices that were learned before, as of a device that is known.
    pub fn restored(depth: u32, reads: Prices, writes: Prices) -> Self {
        let known =
            |prices| Known { prices, windows: YOUNG_WINDOWS, done: Work { runs: COLD_RUNS, bytes: 0 }, raw: [ONE; 3] };
        Self { reads: known(reads), writes: known(writes), ..Self::new(depth) }
    }

    fn known(&self, side: Side) -> &Known {
        match side {
            Side::Read => &self.reads,
            Side::Write => &self.writes,
        }
    }

    /// The prices as they were learned.
    pub fn learned(&self, side: Side) -> Prices {
        self.known(side).prices
    }

    /// Whether too little is known for the learned prices to be used as they are.
    pub fn is_cold(&self) -> bool {
        self.writes.windows < COLD_WINDOWS
    }

    /// The prices to count writes by. While little is known they bound the first backlog, and fall as work
    /// completes: the proof that a device is fast doubles with each round, like a slow start.
    pub fn prices(&self, budget_ns: Cost, preferred_bytes: u64) -> Prices {
        let Known { mut prices, windows, done, .. } = self.writes;
        if windows < COLD_WINDOWS {
            let least = (4 * MIB).max(preferred_bytes.saturating_mul(8));
            let proven = u128::from(least) + 2 * u128::from(done.bytes);
            prices.mib_ns = (u128::from(budget_ns) * u128::from(MIB) / proven).max(1).min(u128::from(u64::MAX)) as u64;
        }
        if done.runs < COLD_RUNS {
            prices.run_ns = prices.run_ns.max(budget_ns / (16 + 2 * done.runs));
        }
        prices
    }

    /// A request was submitted.
    pub fn begins(&mut self, now_ns: u64, side: Side) {
        if self.in_flight.is_empty() {
            self.busy_since_ns = now_ns;
        }
        self.in_flight.push_back((now_ns, side));
    }

    /// What is in flight has come to cost less than half of what may be, and there was nothing to add.
    pub fn ran_dry(&mut self) {
        self.window.ran_dry = true;
    }

    /// A request completed. Whether prices may have moved.
    pub fn completed(&mut self, now_ns: u64, done: Completion) -> bool {
        let Some(at) = self.in_flight.iter().position(|one| *one == (done.submitted_ns, done.side)) else {
            return false;
        };
        self.in_flight.remove(at);
        let busy_ns = now_ns.saturating_sub(self.busy_since_ns);
        self.busy_since_ns = now_ns;
        self.ended(now_ns, busy_ns, done)
    }

    /// A request completed, and the device was busy for so long since the one before.
    pub fn ended(&mut self, now_ns: u64, busy_ns: u64, done: Completion) -> bool {
        self.since_completion_ns += busy_ns;
        let window = &mut self.window;
        window.busy_ns += busy_ns;
        window.unwatched_ns += done.unwatched_ns.min(busy_ns);
        window.completions += 1;
        let work = if done.side == Side::Read { &mut window.reads } else { &mut window.writes };
        (work.runs, work.bytes) = (work.runs + done.runs, work.bytes + done.bytes);
        let took_ns = std::mem::take(&mut self.since_completion_ns);
        let one = self.learn_from_one(done, took_ns);
        let closed = self.is_full() && self.close(now_ns);
        one || closed
    }

    fn is_full(&self) -> bool {
        let Window { busy_ns, completions, .. } = self.window;
        let young = self.reads.windows.max(self.writes.windows) < YOUNG_WINDOWS;
        young && busy_ns >= WINDOW_YOUNG_NS
            || busy_ns >= WINDOW_NS && completions >= WINDOW_COMPLETIONS
            || busy_ns >= WINDOW_NS_MAX
    }

    /// Many equal streams cannot tell the price of a run from that of bytes; single completions can.
    fn learn_from_one(&mut self, done: Completion, took_ns: u64) -> bool {
        let Window { reads, writes, ran_dry, unwatched_ns, .. } = self.window;
        let others = if done.side == Side::Read { writes.bytes } else { reads.bytes };
        let alone = others == 0 && self.in_flight.iter().all(|(_, side)| *side == done.side);
        let known = if done.side == Side::Read { &mut self.reads } else { &mut self.writes };
        if known.windows < YOUNG_WINDOWS || !alone || unwatched_ns > 0 {
            return false;
        }
        let mut ratio = known.prices.ratio(done.runs, done.bytes, took_ns).min(COMPLETION_RATIO_MAX);
        if ran_dry && self.queues {
            ratio = ratio.min(ONE);
        }
        known.prices.learn(done.runs, done.bytes, ratio, COMPLETION_DAMPING);
        true
    }

    fn close(&mut self, now_ns: u64) -> bool {
        let window = std::mem::take(&mut self.window);
        let lagging = self.in_flight.iter().any(|(at, _)| *at <= self.window_began_ns) && self.window_began_ns > 0;
        self.window_began_ns = now_ns;
        let read_ns = self.reads.prices.cost_ns(window.reads.runs, window.reads.bytes);
        let write_ns = self.writes.prices.cost_ns(window.writes.runs, window.writes.bytes);
        let may_be_slower = !(window.ran_dry && self.queues) && window.unwatched_ns <= window.busy_ns / LATE_PART;
        let bounds = (if lagging { ONE } else { 0 }, if may_be_slower { u64::MAX } else { ONE });
        for side in [Side::Write, Side::Read] {
            let (known, work, other_ns) = match side {
                Side::Write => (&mut self.writes, window.writes, read_ns),
                Side::Read => (&mut self.reads, window.reads, write_ns),
            };
            known.done.bytes += work.bytes;
            known.done.runs += work.runs;
            if work.bytes > 0 && other_ns <= window.busy_ns / OTHER_PART {
                known.learn(work, window.busy_ns - other_ns, bounds);
            }
        }
        true
    }
}

impl Known {
    fn learn(&mut self, work: Work, measured_ns: u64, (least, most): (u64, u64)) {
        let raw = self.prices.ratio(work.runs, work.bytes, measured_ns).min(most).max(least);
        self.raw = [raw, self.raw[0], self.raw[1]];
        let ratio = believed(self.raw, self.windows);
        self.windows = self.windows.saturating_add(1);
        self.prices.learn(work.runs, work.bytes, ratio, Prices::window_damping(ratio));
    }
}

/// The ratio that is learned from, given the last three as measured, the newest first: one stalled window alone is
/// overlooked.
fn believed(raw: [u64; 3], windows_before: u32) -> u64 {
    if raw[0] <= STALL_RATIO || windows_before < COLD_WINDOWS {
        return raw[0];
    }
    let mut sorted = raw;
    sorted.sort_unstable();
    sorted[1].max(ONE)
}

#[cfg(test)]
mod tests;
