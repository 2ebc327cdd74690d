//! How many requests a device likes at once: p, learned from latencies.
//!
//! The amount in flight is bounded in device time. A device that works on many requests at once is faster than its
//! prices say: so p requests may be in flight at any cost. A round is p completions. While requests are held back, p
//! doubles with each fast round. The mean latency of a fast round is at most half above that of an unloaded device, or
//! at most the device time that may be in flight anyway. A slower round takes an eighth of p away, and from then on p
//! grows by an eighth.
//!
//! The latency of an unloaded device is measured every 10 s, in a round with half as many requests in flight, or one.
//! If it is much less than before, the device was loaded, and half of p is enough. Before the first measurement it is
//! an average over large requests. Each of these had at most a quarter of p in flight when it was submitted, no more
//! than 4, or was alone. Without such requests, p doubles as long as that brings an eighth more bytes a second; then
//! the latency is measured. A store with long calls must not be mistaken for an overloaded one. The latency is also
//! measured when calls became slower and much larger.
//!
//! The shortest recent latency is the least time of a call. The work in flight must last longer than that, or the
//! device idles meanwhile: then its bytes look dear, so that less is sent, and they look dearer still.
//!
//! A device that is refused requests, because its store gets too many, has p in flight at most. A round with a refusal
//! counts as slow, and p does not grow for a second.
//!
//! Owns: p, rounds, the latency of an unloaded device, the shortest latency.
//! Does not own: clocks, the submission of requests.
//! Invariants: 1 to the device's depth; always 1 for a device that takes one request at a time. While nothing is held
//! back, p stays as it is.

use afflux_device::policy::Completed;

use crate::prices::mul_div;
use crate::{Cost, MILLISECOND};

/// p of an unknown device.
const START: u64 = 4;
/// How often the latency of an unloaded device is measured, and for how long the shortest is remembered at least.
const MEASURE_NS: u64 = 10_000 * MILLISECOND;
/// After a refusal p does not grow for so long: each request too many is refused more than once until it is taken.
const REFUSED_NS: u64 = 1000 * MILLISECOND;
/// A measurement is given up after so many rounds in which more are in flight all the time: such requests are cheap,
/// and p decides nothing.
const GIVE_UP_ROUNDS: u64 = 4;
/// The part of a latency in the average before the first measurement.
const AVERAGE_PART: u64 = 8;
/// Twice as many requests have to bring this part more, where nothing else shows whether they are too many.
const GAIN_PART: u64 = 8;
const SECOND_NS: u64 = 1000 * MILLISECOND;

/// Completions since a round began.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    began_ns: u64,
    completions: u64,
    held_back: u64,
    latency_ns: u128,
    bytes: u64,
    is_too_many: bool,
}

impl Round {
    fn add(&mut self, done: &Completed) {
        self.completions += 1;
        self.held_back += u64::from(done.held_back);
        self.latency_ns += u128::from(done.latency_ns);
        self.bytes = self.bytes.saturating_add(done.bytes);
        self.is_too_many |= done.too_many;
    }

    /// The next round, if this one ends now.
    fn next(now_ns: u64) -> Self {
        Self { began_ns: now_ns, ..Self::default() }
    }

    fn bytes_per_s(&self, now_ns: u64) -> u64 {
        mul_div(self.bytes, SECOND_NS, now_ns.saturating_sub(self.began_ns).max(1))
    }

    fn mean_ns(&self) -> u64 {
        (self.latency_ns / u128::from(self.completions.max(1))) as u64
    }

    fn mean_bytes(&self) -> u64 {
        self.bytes / self.completions.max(1)
    }

    /// Whether the bound held requests back for most of the round.
    fn was_bound(&self) -> bool {
        self.held_back * 2 > self.completions
    }
}

/// How long calls took, and how large they were in the mean.
#[derive(Clone, Copy, Debug)]
struct Calls {
    ns: u64,
    bytes: u64,
}

/// The latency of an unloaded device.
#[derive(Clone, Copy, Debug)]
enum Unloaded {
    Unknown,
    Guessed(Calls),
    Measured(Calls),
}

/// p of a device.
#[derive(Clone, Copy, Debug)]
pub struct Parallelism {
    depth: u64,
    p: u64,
    /// No round was slow yet.
    doubles: bool,
    /// Bytes a second with half of p.
    with_half: u64,
    round: Round,
    unloaded: Unloaded,
    /// When the latency is measured again, from the first completion on.
    measure_at_ns: Option<u64>,
    /// Remaining completions before the running measurement is given up.
    measuring: Option<u64>,
    /// The mean latency of the round before the measurement.
    before_ns: u64,
    /// The shortest latencies of this period and of the last one.
    shortest_ns: [u64; 2],
    period_ends_ns: u64,
    /// The last refusal.
    refused_at_ns: Option<u64>,
}

impl Parallelism {
    /// p of a device that takes `depth` requests at once.
    pub fn new(depth: u32) -> Self {
        let depth = u64::from(depth).max(1);
        let (round, unloaded) = (Round::default(), Unloaded::Unknown);
        Self {
            depth,
            p: START.min(depth),
            doubles: true,
            with_half: 0,
            round,
            unloaded,
            measure_at_ns: None,
            measuring: None,
            before_ns: 0,
            shortest_ns: [u64::MAX; 2],
            period_ends_ns: 0,
            refused_at_ns: None,
        }
    }

    /// The number of requests that may be in flight now, at any cost.
    pub fn requests(&self) -> u64 {
        if self.measuring.is_some() { (self.p / 2).max(1) } else { self.p }
    }

    /// The most requests in flight, whatever they cost: p for some time after a refusal.
    pub fn requests_max(&self, now_ns: u64) -> u64 {
        if self.was_refused(now_ns, MEASURE_NS) { self.p } else { self.depth }
    }

    /// p, whether or not it is in force at this moment.
    pub fn learned(&self) -> u64 {
        self.p
    }

    /// The latency of an unloaded device, as far as it is known.
    pub fn unloaded_ns(&self) -> Option<u64> {
        self.unloaded().map(|calls| calls.ns)
    }

    fn unloaded(&self) -> Option<Calls> {
        match self.unloaded {
            Unloaded::Unknown => None,
            Unloaded::Guessed(calls) | Unloaded::Measured(calls) => Some(calls),
        }
    }

    /// How long a call takes at least; 0 if that is not known.
    pub fn call_ns(&self) -> u64 {
        let [now, last] = self.shortest_ns;
        Some(now.min(last)).filter(|ns| *ns < u64::MAX).unwrap_or(0)
    }

    fn shortest(&mut self, now_ns: u64, latency_ns: u64) {
        if now_ns >= self.period_ends_ns {
            self.shortest_ns = [u64::MAX, self.shortest_ns[0]];
            self.period_ends_ns = now_ns.saturating_add(MEASURE_NS);
        }
        self.shortest_ns[0] = self.shortest_ns[0].min(latency_ns);
    }

    /// A write completed, while `in_flight_ns` of device time may be in flight. A request of `large_bytes` carries the
    /// most that a request may, or nearly.
    pub fn ended(&mut self, done: &Completed, in_flight_ns: Cost, large_bytes: u64) {
        let now_ns = done.at.0;
        self.shortest(now_ns, done.latency_ns);
        if self.depth == 1 {
            return;
        }
        if done.too_many {
            self.refused_at_ns = Some(now_ns);
        }
        self.measure_at_ns.get_or_insert(now_ns.saturating_add(MEASURE_NS));
        if let Some(left) = self.measuring {
            self.measure(left, done);
            return;
        }
        if done.bytes >= large_bytes {
            self.guess(done);
        }
        self.round.add(done);
        if self.round.completions < self.p {
            return;
        }
        let round = std::mem::replace(&mut self.round, Round::next(now_ns));
        self.adapt(now_ns, in_flight_ns, &round);
        if self.measure_at_ns.is_some_and(|at_ns| now_ns >= at_ns) {
            (self.measuring, self.before_ns) = (Some(GIVE_UP_ROUNDS * self.p.max(START)), round.mean_ns());
        }
    }

    /// A large request completed.
    fn guess(&mut self, done: &Completed) {
        if done.in_flight > (self.p / 4).clamp(1, START) {
            return;
        }
        match &mut self.unloaded {
            Unloaded::Unknown => {
                self.unloaded = Unloaded::Guessed(Calls { ns: done.latency_ns, bytes: done.bytes });
            }
            Unloaded::Guessed(Calls { ns, bytes }) => {
                *ns = *ns - *ns / AVERAGE_PART + done.latency_ns / AVERAGE_PART;
                *bytes = *bytes - *bytes / AVERAGE_PART + done.bytes / AVERAGE_PART;
            }
            Unloaded::Measured(_) => {}
        }
    }

    fn measure(&mut self, left: u64, done: &Completed) {
        let now_ns = done.at.0;
        if done.in_flight <= self.requests() {
            self.round.add(done);
        }
        let is_over = self.round.completions >= self.requests().max(START);
        if is_over {
            self.measured(Calls { ns: self.round.mean_ns(), bytes: self.round.mean_bytes() });
        }
        self.measuring = Some(left - 1).filter(|left| !is_over && *left > 0);
        if self.measuring.is_none() {
            self.round = Round::next(now_ns);
            self.measure_at_ns = Some(now_ns.saturating_add(MEASURE_NS));
        }
    }

    /// Takes the latency of calls with half as many in flight. If it is much less than before, calls waited for each
    /// other, and may do so still. If it is much more, the device is busy with data that its cache had taken in.
    fn measured(&mut self, calls: Calls) {
        let (less_ns, more_ns) = (self.before_ns / 8 * 5, self.before_ns.saturating_add(self.before_ns / 2));
        if (less_ns..=more_ns).contains(&calls.ns) {
            self.unloaded = Unloaded::Measured(calls);
        } else {
            (self.doubles, self.p) = (false, (self.p / 2).max(1));
        }
    }

    fn adapt(&mut self, now_ns: u64, in_flight_ns: Cost, round: &Round) {
        if round.is_too_many {
            self.doubles = false;
            self.p = (self.p * 7 / 8).max(1);
            return;
        }
        if !round.was_bound() {
            return;
        }
        let p = match self.unloaded() {
            _ if round.mean_ns() <= in_flight_ns => self.more(),
            None => self.by_gain(now_ns, round.bytes_per_s(now_ns)),
            Some(Calls { ns, .. }) if round.mean_ns() <= ns.saturating_add(ns / 2) => self.more(),
            Some(Calls { bytes, .. }) if round.mean_bytes() / 2 > bytes => {
                // Larger calls may be slower by nature.
                self.measure_at_ns = Some(now_ns);
                self.p
            }
            Some(_) => {
                self.doubles = false;
                self.p * 7 / 8
            }
        };
        let most = if self.was_refused(now_ns, REFUSED_NS) { self.p } else { self.depth };
        self.p = p.clamp(1, most);
    }

    /// Whether the device was refused a request in the last `ns`.
    fn was_refused(&self, now_ns: u64, ns: u64) -> bool {
        self.refused_at_ns.is_some_and(|at_ns| now_ns < at_ns.saturating_add(ns))
    }

    fn more(&self) -> u64 {
        if self.doubles { self.p * 2 } else { self.p + (self.p / 8).max(1) }
    }

    /// Twice as many while the last doubling was worth it; otherwise the latency is measured now.
    fn by_gain(&mut self, now_ns: u64, bytes_per_s: u64) -> u64 {
        let wanted = self.with_half.saturating_add(self.with_half / GAIN_PART);
        if !self.doubles {
            return self.p;
        }
        if bytes_per_s >= wanted {
            (self.with_half, self.doubles) = (bytes_per_s, self.p < self.depth);
            return self.p * 2;
        }
        self.measure_at_ns = Some(now_ns);
        self.p
    }
}

#[cfg(test)]
mod tests;
