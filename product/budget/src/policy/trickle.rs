//! The trickle: a part of completed work that is admitted although the budget is used up.
//!
//! Owns: how much of the trickle is left, or overdrawn. Does not own: the writers that wait for it (the engine's
//! queue).
//! Invariants: at most a sixteenth of the completed device time is admitted while the backlog is above the budget. So
//! the backlog falls at fifteen sixteenths of the device's speed. A write is admitted whole: later writes make up for
//! the excess. Nothing is saved up below the budget.

use crate::prices::DirectionWork;
use crate::{Cost, DirectionPrices};

/// The part of completed work.
const PART: u64 = 16;

fn signed(ns: Cost) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// The part of the budget that may be overdrawn: sixteen times as much is written before more is admitted.
const TAKEN_PART: Cost = 4;

/// The cost that may still enter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trickle {
    /// Negative: more was admitted than allowed.
    remaining_ns: i64,
    /// Work that was dirty at the last look: in work, since prices move.
    dirty: DirectionWork,
}

impl Trickle {
    /// Some work completed and left `dirty` work, which costs `backlog_ns` at these prices; the limit is `end_ns`.
    /// Returns the backlog up to which waiting writers are admitted.
    pub(super) fn completed(
        &mut self,
        (done, dirty): (DirectionWork, DirectionWork),
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
        // No writer is kept out for long because of others' work.
        let least_ns = -signed(end_ns / TAKEN_PART);
        let remaining_ns = self.remaining_ns.saturating_sub(entered_ns).max(least_ns);
        self.remaining_ns = remaining_ns.saturating_add(signed(done.cost_ns(prices) / PART));
        end_ns.max(backlog_ns.saturating_add_signed(self.remaining_ns))
    }
}

#[cfg(test)]
mod tests;
