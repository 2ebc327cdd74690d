//! What is let in although the budget is used up: a part of what completes.
//!
//! Owns: how much of it is left, or was taken too much. Does not own: those who wait for it (the engine's queue).
//! Invariants: at most a sixteenth of the device time that completes is let in while the backlog is above the budget,
//! so that the backlog falls at fifteen sixteenths of the device's speed. A write is let in whole: what it costs beyond
//! what was left is made up for by those after it. Nothing is saved up below the budget.

use crate::prices::Work;
use crate::{Cost, Prices};

/// The part of what completes.
const PART: u64 = 16;

fn signed(ns: Cost) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// Of the budget, the part that may have been taken too much: sixteen times as much is written before more is let in.
const TAKEN_PART: Cost = 4;

/// What may still enter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trickle {
    /// Negative: more was let in than might be.
    left_ns: i64,
    /// What was dirty when it was looked at last: in work, since prices move.
    dirty: Work,
}

impl Trickle {
    /// So much has completed and left so much dirty, which at these prices is the backlog, of which `end_ns` may be.
    /// Says up to where those who wait are let in.
    pub(super) fn completed(
        &mut self,
        (done, dirty): (Work, Work),
        prices: &Prices,
        backlog_ns: Cost,
        end_ns: Cost,
    ) -> Cost {
        // What is there beyond what was, less what completed, came in.
        let entered_ns = signed(dirty.without(self.dirty.without(done)).cost_ns(prices));
        self.dirty = dirty;
        if backlog_ns < end_ns {
            self.left_ns = 0;
            return end_ns;
        }
        // Nobody is kept out for long for what others took.
        let least_ns = -signed(end_ns / TAKEN_PART);
        let left_ns = self.left_ns.saturating_sub(entered_ns).max(least_ns);
        self.left_ns = left_ns.saturating_add(signed(done.cost_ns(prices) / PART));
        end_ns.max(backlog_ns.saturating_add_signed(self.left_ns))
    }
}

#[cfg(test)]
mod tests;
