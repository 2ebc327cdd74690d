//! A window: the work of one direction in a stretch of its time, and the ratios that it may prove.
//!
//! Owns: the time between two completions; when a window is full; the bounds of the device's time for it.
//! Does not own: the clocks (the mechanism's), learning (`estimator`), the prices.
//! Invariants: a window proves the prices wrong only if no time within its bounds would make them right.

use afflux_device::platform::Nanos;
use afflux_device::policy::{BusyTimes, Completed, Direction};

use crate::prices::{DirectionPrices, DirectionWork, ratio};
use crate::{MILLISECOND, ONE};

/// Time of a window: a young estimator's, an ordinary one's, and where completions are few.
const YOUNG_NS: u64 = 5 * MILLISECOND;
const ORDINARY_NS: u64 = 50 * MILLISECOND;
const LONGEST_NS: u64 = 200 * MILLISECOND;
/// Time of a window beside flushes of a volatile cache: a flush, and the writes that filled the cache before.
const FLUSHED_NS: u64 = 1000 * MILLISECOND;
/// Flushes take much of a window's time if they take one part in so many.
const FLUSHED_PART: u64 = 8;
/// Completions of an ordinary window.
const COMPLETIONS: u64 = 8;

/// A request this many times slower than any other proves nothing about the device.
const OUTLIER: u64 = 4;

/// If the other direction had at most this part of a window (one in four), the rest is known.
pub(super) const OTHER_PART: u64 = 4;

/// The time between two completions of one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elapsed {
    /// Time with requests of the direction in flight.
    pub(super) own_ns: u64,
    /// Time with requests of both directions in flight.
    pub(super) both_ns: u64,
    /// Time with requests of either direction in flight.
    pub(super) either_ns: u64,
    pub(super) held_up_ns: u64,
    pub(super) calls_alone_ns: u64,
    /// Time with nothing in flight.
    pub(super) rested_ns: u64,
}

/// The device's clocks at a completion.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClocksAtEnd {
    at: Nanos,
    busy: BusyTimes,
}

impl ClocksAtEnd {
    /// Advances to this completion; returns the time since the one before.
    pub(super) fn advance_to(&mut self, done: &Completed) -> Elapsed {
        let (busy, before) = (&done.device.busy, &self.busy);
        let reads_ns = busy.reads_ns.saturating_sub(before.reads_ns);
        let writes_ns = busy.writes_ns.saturating_sub(before.writes_ns);
        let either_ns = busy.transfers_ns.saturating_sub(before.transfers_ns);
        let calls_alone_ns = busy.calls_alone_ns.saturating_sub(before.calls_alone_ns);
        let passed = Elapsed {
            own_ns: if done.direction == Direction::Read { reads_ns } else { writes_ns },
            both_ns: (reads_ns + writes_ns).saturating_sub(either_ns),
            either_ns,
            held_up_ns: busy.held_up_ns.saturating_sub(before.held_up_ns),
            calls_alone_ns,
            rested_ns: done.at.since(self.at).saturating_sub(either_ns + calls_alone_ns),
        };
        // Two threads may report their completions in either order.
        if busy.transfers_ns >= before.transfers_ns {
            *self = Self { at: done.at, busy: *busy };
        }
        passed
    }
}

/// The work of one direction between two closings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EstimatorWindow {
    began_ns: u64,
    /// Time with requests of the direction in flight.
    pub(super) own_ns: u64,
    /// Time with requests of the other direction in flight, too.
    both_ns: u64,
    /// Time with requests of either direction in flight.
    either_ns: u64,
    /// Time that may not have been the device's: nobody checked for completions, a call was in the way, or the flusher
    /// had too little to write.
    doubtful_ns: u64,
    /// Time with only calls in flight. A flush writes out data in the device's memory.
    calls_ns: u64,
    /// Time of flushes, with and without other requests in flight, that wrote out data in a volatile cache.
    flushes_ns: u64,
    completions: u64,
    latency_ns_max: u64,
    pub(super) work: DirectionWork,
    /// The other direction's work completed meanwhile.
    pub(super) other: DirectionWork,
}

/// Bounds of the device's time for some work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) least_ns: u64,
    pub(super) most_ns: u64,
}

impl EstimatorWindow {
    /// The next window, if this one closes now.
    pub(super) fn next(now_ns: u64) -> Self {
        Self { began_ns: now_ns, ..Self::default() }
    }

    /// A request completed. `dry`: the flusher had too little to write since the one before.
    pub(super) fn add(&mut self, done: &Completed, passed: Elapsed, dry: bool) {
        let doubtful_ns = passed.held_up_ns.saturating_add(done.unwatched_ns).min(passed.own_ns);
        self.own_ns += passed.own_ns;
        self.both_ns += passed.both_ns;
        self.either_ns += passed.either_ns;
        self.calls_ns += passed.calls_alone_ns;
        self.doubtful_ns += if dry { passed.own_ns } else { doubtful_ns };
        self.completions += 1;
        self.latency_ns_max = self.latency_ns_max.max(done.latency_ns);
        self.work.add(DirectionWork::of(done));
    }

    /// The device has a volatile cache, and a flush in this time carried out writes.
    pub(super) fn add_flushes(&mut self, passed: Elapsed) {
        self.flushes_ns += passed.held_up_ns.min(passed.own_ns) + passed.calls_alone_ns;
    }

    /// Whether all time of the window was the device's.
    pub(super) fn is_exact(&self) -> bool {
        self.doubtful_ns == 0 && self.calls_ns == 0
    }

    pub(super) fn completions(&self) -> u64 {
        self.completions
    }

    /// `filling`: writes may go to a cache that is not full.
    pub(super) fn is_full(&self, young: bool, filling: bool) -> bool {
        let ns = self.own_ns + self.calls_ns;
        if (filling || self.is_flushed()) && !young {
            return ns >= FLUSHED_NS;
        }
        young && ns >= YOUNG_NS || ns >= ORDINARY_NS && self.completions >= COMPLETIONS || ns >= LONGEST_NS
    }

    /// Whether flushes took much of the time. The disk then took writes into its cache and wrote them during the
    /// flushes: only both times together are the time of the writes.
    pub(super) fn is_flushed(&self) -> bool {
        self.flushes_ns > (self.own_ns + self.calls_ns) / FLUSHED_PART
    }

    /// Whether a request is in flight that all others overtook: the request was there when the window began, and none
    /// that completed in the window had taken half as long. A request that is slower still does not count. One call in
    /// a hundred to a store takes ten times as long as others: among many in flight there is always one, and prices
    /// would never fall.
    pub(super) fn has_straggler(&self, done: &Completed) -> bool {
        let overtaken = self.latency_ns_max.saturating_mul(2)..self.latency_ns_max.saturating_mul(OUTLIER);
        done.device
            .oldest_in_flight
            .is_some_and(|since| since.0 < self.began_ns && overtaken.contains(&done.at.since(since).saturating_sub(1)))
    }

    /// The most of the window's time that the other direction, at these prices, may have taken.
    pub(super) fn others_ns(&self, prices: &DirectionPrices) -> u64 {
        self.other.cost_ns(prices).min(self.both_ns)
    }

    /// Whether the time is clearly this direction's: the two seldom overlapped, or the other direction's cost is at
    /// most one part in `part` of both costs. The model's own sum counts: when all requests got slow, a part of the
    /// measured time proves nothing.
    pub(super) fn is_undisturbed(&self, others_ns: u64, own_ns: u64, part: u64) -> bool {
        self.both_ns <= self.own_ns / OTHER_PART || others_ns <= others_ns.saturating_add(own_ns) / part
    }

    /// The device's time for this work if a part of the time is in doubt: the other direction may have had that part,
    /// or the device did both at once.
    pub(super) fn own_bounds(&self, others_ns: u64) -> Bounds {
        let Bounds { least_ns, .. } = self.bounds(others_ns.min(self.own_ns / OTHER_PART));
        Bounds { least_ns, ..self.bounds(0) }
    }

    /// The time of either direction, less the cost of the other's work at these prices; at most this direction's time.
    pub(super) fn unused_by_others_ns(&self, prices: &DirectionPrices) -> u64 {
        self.either_ns.saturating_sub(self.other.cost_ns(prices)).min(self.own_ns)
    }

    /// The device's time for this work, if `others_ns` of it were the other direction's.
    pub(super) fn bounds(&self, others_ns: u64) -> Bounds {
        let most_ns = self.own_ns.saturating_sub(others_ns);
        let flushes_ns = if self.is_flushed() { self.flushes_ns } else { 0 };
        let least_ns = (most_ns + flushes_ns).saturating_sub(self.doubtful_ns);
        Bounds { least_ns, most_ns: most_ns + self.calls_ns }
    }
}

impl Bounds {
    /// The error of a modelled time, in 1,024ths: the ratio of the bound that it passes to the modelled time.
    pub(super) fn ratio(self, modelled_ns: u64) -> u64 {
        ratio(self.least_ns, modelled_ns).max(ONE.min(ratio(self.most_ns, modelled_ns)))
    }
}
