//! A stretch of work, and what a device's volatile cache may hide in it.
//!
//! A device with a cache answers at once until that is full, whatever the writes will cost it; from then on it takes
//! its time. While it rests it works the cache off. So what it did in the first seconds after a rest proves no speed,
//! and a device that got slow in them has shown that it has a cache, and that nothing it did before proves anything.
//!
//! Owns: for how long the device has been at work, what was known before.
//! Does not own: which windows are believed (`estimator`).
//! Invariants: rests count for more than work, so that one that rests a part of the time is never found out. What is
//! known before a stretch was learned past the caches of an earlier one, or is the prior.

use super::facts::Passed;
use crate::MILLISECOND;
use crate::prices::Prices;

/// A cache is full after so long: it fills at the speed of the interface.
const FILLED_NS: u64 = 2000 * MILLISECOND;
/// A rest undoes so many times as much work.
const REST_WEIGHT: u64 = 4;
/// A rest after which a stretch begins anew.
const REST_NS: u64 = 50 * MILLISECOND;

/// Work with little rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    worked_ns: u64,
    before: Prices,
}

impl Stretch {
    pub(super) fn new(before: Prices) -> Self {
        Self { worked_ns: 0, before }
    }

    /// Time passed up to a completion; `prices` are known.
    pub(super) fn goes_on(&mut self, passed: Passed, prices: Prices) {
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

    /// The cache is full. Returns what was known before writes went to it.
    pub(super) fn is_filled(&mut self) -> Prices {
        self.worked_ns = FILLED_NS;
        self.before
    }

    /// What was known before.
    pub(super) fn before(&self) -> Prices {
        self.before
    }
}

#[cfg(test)]
mod tests;
