//! What is let in although the budget is used up: a part of what completes.
//!
//! Owns: how much of it is left. Does not own: those who wait for it (the engine's queue).
//! Invariants: at most a sixteenth of the device time that completes is let in while the backlog is above the budget,
//! so that the backlog falls at fifteen sixteenths of the device's speed. Nothing is saved up below it.

use crate::Cost;

/// The part of what completes.
const PART: Cost = 16;

/// What may still enter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trickle {
    left_ns: Cost,
    /// The backlog when it was looked at last.
    backlog_ns: Cost,
}

impl Trickle {
    /// Requests of so much cost have completed and left this backlog, of which `end_ns` may be. Says up to where
    /// those who wait are let in.
    pub(super) fn completed(&mut self, done_ns: Cost, backlog_ns: Cost, end_ns: Cost) -> Cost {
        // What is there beyond what was, less what completed, came in.
        let entered = backlog_ns.saturating_sub(self.backlog_ns.saturating_sub(done_ns));
        self.left_ns = self.left_ns.saturating_sub(entered) + done_ns / PART;
        self.backlog_ns = backlog_ns;
        if backlog_ns < end_ns {
            self.left_ns = 0;
        }
        end_ns.max(backlog_ns.saturating_add(self.left_ns))
    }
}

#[cfg(test)]
mod tests;
