//! The curve: how long those wait who add to a backlog.
//!
//! Owns: the band, how the number of payers stretches it, what a unit of cost waits, the guard of memory.
//! Does not own: what a payer owes (`payer`), what a backlog costs (`prices`).
//! Invariants: the properties 1, 2 and 12 of the crate's page.

use crate::wide::mul_div;
use crate::{Cost, MILLISECOND, ONE};

/// Most that a unit of cost waits, in units.
const FACTOR_MAX: u64 = 16 * ONE;

/// The band that a backlog is steered into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// T: the budget in force. At or above it nobody enters.
    pub end_ns: Cost,
}

/// What a backlog means to those who want to add to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Each unit of new cost waits for so many 1,024ths of a unit; 0 is not at all.
    Factor(u64),
    /// Nobody enters, but for light payers and by what completes.
    Stopped,
}

impl Band {
    /// The budget that was asked for, stretched where as many payers as wait on average need it to have runs of a
    /// length that is worth a seek: `clamp(8 r N, H, max(8 H, 3 r N))`.
    pub fn stretched(budget_ns: Cost, run_ns: u64, payers: u64) -> Self {
        let runs = run_ns.saturating_mul(payers);
        let most = budget_ns.saturating_mul(8).max(runs.saturating_mul(3));
        Self { end_ns: runs.saturating_mul(8).clamp(budget_ns, most) }
    }

    /// No longer than so many times the budget.
    #[must_use]
    pub fn at_most(self, budget_ns: Cost, times: u64) -> Self {
        Self { end_ns: self.end_ns.min(budget_ns.saturating_mul(times.max(1))) }
    }

    /// F: up to here nobody waits. The rest is for pauses that change smoothly, and for a device that stalls.
    pub const fn free_ns(self) -> Cost {
        self.end_ns / 4 * 3
    }

    /// Up to here light payers enter although the band is used up.
    pub const fn light_end_ns(self) -> Cost {
        self.end_ns.saturating_add(self.end_ns / 8)
    }

    /// What a backlog means.
    pub fn entry(self, backlog_ns: Cost) -> Entry {
        let over = backlog_ns.saturating_sub(self.free_ns());
        match self.end_ns.checked_sub(backlog_ns) {
            None | Some(0) => Entry::Stopped,
            Some(left) => Entry::Factor(mul_div(ONE, over, left).min(FACTOR_MAX)),
        }
    }

    /// Most credit of one of so many payers: all together have what light payers may add above the band, T / 8.
    pub fn credit_ns_max(self, payers: u64) -> Cost {
        (self.light_end_ns() - self.end_ns) / payers.max(1)
    }
}

/// Unpaid debt at which a payer is asked about: less where the band is nearly used up or many wait.
pub fn snapshot_debt_ns(band: Band, backlog_ns: Cost, payers: u64) -> Cost {
    let left = band.end_ns.saturating_sub(backlog_ns) / 8;
    (left.min(4 * MILLISECOND) / payers.max(1)).clamp(MILLISECOND / 50, MILLISECOND)
}

/// The backlog as it counts where memory gets short: a device with as many dirty pages as the memory guard leaves to it is
/// at the end of its band.
pub fn guarded_backlog_ns(band: Band, backlog_ns: Cost, dirty_pages: u64, guard_pages: u64) -> Cost {
    backlog_ns.max(mul_div(band.end_ns, dirty_pages, guard_pages.max(1)))
}

#[cfg(test)]
mod tests;
