//! The curve: how long a payer waits for cost that it adds to a backlog.
//!
//! Owns: the band, its stretch by the number of payers, the wait for a unit of cost, the memory guard.
//! Does not own: a payer's debt (`payer`), the cost of a backlog (`prices`).
//! Invariants: the properties 1, 2 and 12 of the crate's page.

use crate::wide::mul_div;
use crate::{Cost, MILLISECOND, ONE};

/// Longest wait for a unit of cost, in units.
const FACTOR_MAX: u64 = 16 * ONE;

/// The band that a backlog is steered into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// T: the budget in force. At or above it nobody enters.
    pub end_ns: Cost,
}

/// The effect of a backlog on payers that want to add to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionRule {
    /// Each unit of new cost waits for this many 1,024ths of a unit; 0 means no wait.
    Factor(u64),
    /// Nobody enters, except light payers and payers admitted by completions.
    Stopped,
}

impl Band {
    /// The requested budget, stretched until all payers that wait on average have runs worth a seek:
    /// `clamp(8 r N, H, max(8 H, 3 r N))`.
    pub fn stretched(budget_ns: Cost, run_ns: u64, payers: u64) -> Self {
        let runs = run_ns.saturating_mul(payers);
        let most = budget_ns.saturating_mul(8).max(runs.saturating_mul(3));
        Self { end_ns: runs.saturating_mul(8).clamp(budget_ns, most) }
    }

    /// The band, at most `times` budgets long.
    #[must_use]
    pub fn at_most(self, budget_ns: Cost, times: u64) -> Self {
        Self { end_ns: self.end_ns.min(budget_ns.saturating_mul(times.max(1))) }
    }

    /// F: nobody waits up to this backlog. The rest is for smooth pauses, and for a device that stalls.
    pub const fn free_ns(self) -> Cost {
        self.end_ns / 4 * 3
    }

    /// Light payers enter up to this backlog although the band is used up.
    pub const fn light_end_ns(self) -> Cost {
        self.end_ns.saturating_add(self.end_ns / 8)
    }

    /// The entry at this backlog.
    pub fn entry(self, backlog_ns: Cost) -> AdmissionRule {
        let over = backlog_ns.saturating_sub(self.free_ns());
        match self.end_ns.checked_sub(backlog_ns) {
            None | Some(0) => AdmissionRule::Stopped,
            Some(left) => AdmissionRule::Factor(mul_div(ONE, over, left).min(FACTOR_MAX)),
        }
    }

    /// The most credit of each of `payers` payers. All together have T / 8, which light payers may add above the band.
    pub fn credit_ns_max(self, payers: u64) -> Cost {
        (self.light_end_ns() - self.end_ns) / payers.max(1)
    }
}

/// Unpaid debt at which a payer's verdict is due: less if the band is nearly used up or many wait.
pub fn snapshot_debt_ns(band: Band, backlog_ns: Cost, payers: u64) -> Cost {
    let left = band.end_ns.saturating_sub(backlog_ns) / 8;
    (left.min(4 * MILLISECOND) / payers.max(1)).clamp(MILLISECOND / 50, MILLISECOND)
}

/// The backlog to count when memory gets short. A device with as many dirty pages as the memory guard leaves to it is
/// at the end of its band.
pub fn guarded_backlog_ns(band: Band, backlog_ns: Cost, dirty_pages: u64, guard_pages: u64) -> Cost {
    backlog_ns.max(mul_div(band.end_ns, dirty_pages, guard_pages.max(1)))
}

#[cfg(test)]
mod tests;
