//! The cost of a run where runs are short, held for a while after runs become long.
//!
//! Long runs hide the cost of a run: bytes are most of their cost, and on flash that is written in whole blocks a run
//! of whole blocks costs nothing. The price that explains such time is right, but would make runs short again. So the
//! cost that short runs leave unexplained by the price of bytes is held, and fades. A run never costs more than the
//! time that it took. So a device that gets faster, as at the end of another program, shows it at once if runs are
//! short.
//!
//! Owns: the time, bytes and runs of windows in which runs began, on average; the price that follows.
//! Does not own: the prices in force. Invariants: 0 until a few seconds of work were done.

use crate::prices::{DirectionPrices, DirectionWork};
use crate::wide::mul_div;
use crate::{MILLISECOND, ONE};

/// The part of a window in the average.
const PART: u64 = 16;
/// The held cost fades over this much time of work.
const FADES_NS: u64 = 30_000 * MILLISECOND;
/// Work and windows required before anything is held.
const SETTLED_NS: u64 = 2000 * MILLISECOND;
const SETTLED_WINDOWS: u32 = 8;
/// Runs are counted in these parts, so that an average does not lose a few runs.
const RUN: u64 = 1 << 16;

/// The price of a run that is held.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldRunCost {
    runs: u64,
    bytes: u64,
    ns: u64,
    windows: u32,
    worked_ns: u64,
    run_ns: u64,
}

impl HeldRunCost {
    pub(super) fn run_ns(&self) -> u64 {
        self.run_ns
    }

    /// Whether enough work was done to know the cost of runs at all.
    pub(super) fn is_settled(&self) -> bool {
        self.windows >= SETTLED_WINDOWS && self.worked_ns >= SETTLED_NS
    }

    /// Adds a window with this work, believed to have taken `ns`, and the prices learned by now. If bytes leave less
    /// than `part` 1,024ths of the time unexplained, that is the error of their price.
    pub(super) fn add(&mut self, work: DirectionWork, ns: u64, prices: &DirectionPrices, part: u64) {
        self.windows = self.windows.saturating_add(1);
        self.worked_ns = self.worked_ns.saturating_add(ns);
        if work.runs > 0 {
            let average = |of: u64, new: u64| of - of / PART + new / PART;
            self.runs = average(self.runs, work.runs.min(1 << 32) * RUN);
            self.bytes = average(self.bytes, work.bytes);
            self.ns = average(self.ns, ns);
        }
        self.run_ns -= mul_div(self.run_ns, ns.min(FADES_NS), FADES_NS);
        if self.is_settled() && self.runs > 0 {
            let most_ns = mul_div(self.ns, RUN, self.runs);
            self.run_ns = self.run_ns.max(self.unexplained_ns(prices, part)).min(most_ns);
        }
    }

    /// The time of a run that its bytes do not explain.
    fn unexplained_ns(&self, prices: &DirectionPrices, part: u64) -> u64 {
        let of_runs_ns = self.ns.saturating_sub(prices.cost_ns(0, self.bytes));
        if u128::from(of_runs_ns) * u128::from(ONE) < u128::from(self.ns) * u128::from(part) {
            return 0;
        }
        mul_div(of_runs_ns, RUN, self.runs)
    }
}

#[cfg(test)]
mod tests;
