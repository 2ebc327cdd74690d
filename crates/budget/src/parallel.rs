//! How many requests a device likes at once: p, learned from latencies.
//!
//! What may be in flight is bounded in device time, and a device that works on many requests at once is faster than
//! its prices say: so p requests may be in flight whatever they cost. A round is p completions. While requests are
//! held back, p doubles with each round of a mean latency no more than a quarter above that of an unloaded device, or
//! no more than what may be in flight anyway. A round that was slower takes an eighth of p away, and from then on p
//! grows by an eighth.
//!
//! The latency of an unloaded device is measured every 10 s: a round with half as many in flight, or one. Before the
//! first it is an average of large requests that had a quarter of p in flight at most when they were submitted, or
//! were alone.
//!
//! Owns: p, rounds, the latency of an unloaded device.
//! Does not own: clocks, the submission of requests.
//! Invariants: 1 to the device's depth; always 1 for a device that takes one request at a time. Where nothing is held
//! back p stays as it is.

use crate::{Cost, MILLISECOND};

/// p of a device of which nothing is known.
const START: u64 = 4;
/// How often the latency of an unloaded device is measured.
const MEASURE_NS: u64 = 10_000 * MILLISECOND;
/// Rounds after which a measurement is given up in which more are in flight all the time: they are cheap, and p
/// decides nothing.
const GIVE_UP_ROUNDS: u64 = 4;
/// The part of a latency in the average before the first measurement.
const AVERAGE_PART: u64 = 8;

/// A write that completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// From its submission to its end.
    pub latency_ns: u64,
    /// Writes in flight when it was submitted, itself included.
    pub in_flight: u64,
    /// Somebody waited to submit another.
    pub held_back: bool,
    /// It carried as much as a request may, or nearly.
    pub is_large: bool,
}

/// Completions since a round began.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    completions: u64,
    held_back: u64,
    latency_ns: u128,
}

impl Round {
    fn add(&mut self, ended: &Ended) {
        self.completions += 1;
        self.held_back += u64::from(ended.held_back);
        self.latency_ns += u128::from(ended.latency_ns);
    }

    fn mean_ns(&self) -> u64 {
        (self.latency_ns / u128::from(self.completions.max(1))) as u64
    }

    /// Whether the bound held requests back for most of it.
    fn was_bound(&self) -> bool {
        self.held_back * 2 > self.completions
    }
}

/// The latency of an unloaded device.
#[derive(Clone, Copy, Debug)]
enum Unloaded {
    Unknown,
    Guessed(u64),
    Measured(u64),
}

/// p of a device.
#[derive(Clone, Copy, Debug)]
pub struct Parallelism {
    depth: u64,
    p: u64,
    /// No round was slow yet.
    doubles: bool,
    round: Round,
    unloaded: Unloaded,
    /// When it is measured again, from the first completion on.
    measure_at_ns: Option<u64>,
    /// It is being measured; so many completions are left until that is given up.
    measuring: Option<u64>,
}

impl Parallelism {
    /// Of a device that takes so many requests at once.
    pub fn new(depth: u32) -> Self {
        let depth = u64::from(depth).max(1);
        let (round, unloaded) = (Round::default(), Unloaded::Unknown);
        Self { depth, p: START.min(depth), doubles: true, round, unloaded, measure_at_ns: None, measuring: None }
    }

    /// How many requests may be in flight now, whatever they cost.
    pub fn requests(&self) -> u64 {
        if self.measuring.is_some() { (self.p / 2).max(1) } else { self.p }
    }

    /// p, whether or not it is in force at this moment.
    pub fn learned(&self) -> u64 {
        self.p
    }

    /// The latency of an unloaded device, as far as it is known.
    pub fn unloaded_ns(&self) -> Option<u64> {
        match self.unloaded {
            Unloaded::Unknown => None,
            Unloaded::Guessed(ns) | Unloaded::Measured(ns) => Some(ns),
        }
    }

    /// A write completed, at a time when so much may be in flight.
    pub fn ended(&mut self, now_ns: u64, in_flight_ns: Cost, ended: &Ended) {
        if self.depth == 1 {
            return;
        }
        let measure_at_ns = *self.measure_at_ns.get_or_insert(now_ns.saturating_add(MEASURE_NS));
        if let Some(left) = self.measuring {
            self.measure(now_ns, left, ended);
            return;
        }
        self.guess(ended);
        self.round.add(ended);
        if self.round.completions < self.p {
            return;
        }
        let round = std::mem::take(&mut self.round);
        self.adapt(in_flight_ns, &round);
        if now_ns >= measure_at_ns {
            self.measuring = Some(GIVE_UP_ROUNDS * self.p.max(START));
        }
    }

    fn guess(&mut self, ended: &Ended) {
        if !ended.is_large || ended.in_flight > (self.p / 4).max(1) {
            return;
        }
        match &mut self.unloaded {
            Unloaded::Unknown => self.unloaded = Unloaded::Guessed(ended.latency_ns),
            Unloaded::Guessed(ns) => *ns = *ns - *ns / AVERAGE_PART + ended.latency_ns / AVERAGE_PART,
            Unloaded::Measured(_) => {}
        }
    }

    fn measure(&mut self, now_ns: u64, left: u64, ended: &Ended) {
        if ended.in_flight <= self.requests() {
            self.round.add(ended);
        }
        let is_over = self.round.completions >= self.requests().max(START);
        if is_over {
            self.unloaded = Unloaded::Measured(self.round.mean_ns());
        }
        self.measuring = Some(left - 1).filter(|left| !is_over && *left > 0);
        if self.measuring.is_none() {
            self.round = Round::default();
            self.measure_at_ns = Some(now_ns.saturating_add(MEASURE_NS));
        }
    }

    fn adapt(&mut self, in_flight_ns: Cost, round: &Round) {
        if !round.was_bound() {
            return;
        }
        let unloaded_ns = self.unloaded_ns().unwrap_or(0);
        let slow_ns = unloaded_ns.saturating_add(unloaded_ns / 4).max(in_flight_ns);
        let is_slow = round.mean_ns() > slow_ns;
        self.doubles &= !is_slow;
        let p = match (is_slow, self.doubles) {
            (true, _) => self.p * 7 / 8,
            (false, true) => self.p * 2,
            (false, false) => self.p + (self.p / 8).max(1),
        };
        self.p = p.clamp(1, self.depth);
    }
}

#[cfg(test)]
mod tests;
