//! A stretch of work, and the cost that a device's volatile cache may hide in it.
//!
//! Until its cache is full, a device answers at once, even to writes that will cost much; from then on it takes its
//! time. While the device rests, it empties the cache, and a flush empties the cache too. So its first seconds after
//! either prove no speed. A device that got slow in these seconds has a cache, and its earlier times prove nothing.
//!
//! Owns: how long the device has been at work since; the prices known before.
//! Does not own: which windows are believed (`estimator`).
//! Invariants: rests count for more than work, so a device that rests a part of the time is never found out. The prices
//! known before a stretch were learned past the caches of an earlier one, or are the prior.

use super::facts::Elapsed;
use crate::MILLISECOND;
use crate::prices::DirectionPrices;

/// A cache is full after this much work: it fills at the speed of the interface.
const FILLED_NS: u64 = 2000 * MILLISECOND;
/// A rest undoes this many times as much work.
const REST_WEIGHT: u64 = 4;
/// A rest of this length begins a new stretch.
const REST_NS: u64 = 50 * MILLISECOND;

/// Work with little rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    worked_ns: u64,
    before: DirectionPrices,
}

impl Stretch {
    pub(super) fn new(before: DirectionPrices) -> Self {
        Self { worked_ns: 0, before }
    }

    /// Adds the time passed up to a completion; `prices` are the known ones.
    pub(super) fn advance(&mut self, passed: Elapsed, prices: DirectionPrices) {
        if passed.rested_ns >= REST_NS && !self.may_be_cached() {
            *self = Self::new(prices);
        }
        let worked_ns = passed.either_ns + passed.calls_alone_ns;
        self.worked_ns = self.worked_ns.saturating_sub(passed.rested_ns.saturating_mul(REST_WEIGHT)) + worked_ns;
    }

    /// Whether writes may have gone to a cache that was not full.
    pub(super) fn may_be_cached(&self) -> bool {
        self.worked_ns < FILLED_NS
    }

    /// A flush emptied the cache: it takes writes at once again.
    pub(super) fn mark_emptied(&mut self, prices: DirectionPrices) {
        let before = if self.may_be_cached() { self.before } else { prices };
        *self = Self::new(before);
    }

    /// The cache is full. Returns the prices known before writes went to it.
    pub(super) fn mark_filled(&mut self) -> DirectionPrices {
        self.worked_ns = FILLED_NS;
        self.before
    }

    pub(super) fn before(&self) -> DirectionPrices {
        self.before
    }
}

#[cfg(test)]
mod tests;
