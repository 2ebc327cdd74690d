//! A payer: the debt for its dirtied pages, and the curve by which it waits for what it adds to a backlog.
//!
//! Owns: debt and credit of one open file, or of one client's file; the band, its stretch by the number of payers, the
//! wait for a unit of cost, the memory guard.
//! Does not own: the queue of stopped payers, the cost of a backlog (`prices`).
//! Invariants: a debt is paid by waiting, never by a refund. Below F it is forgiven. One pause is [`PAUSE_NS_MAX`] at
//! most; a wait shorter than [`PAUSE_NS_MIN`] is carried. The curve has the properties 1, 2 and 12 of the crate's page.

use crate::prices::mul_div;
use crate::{Cost, MILLISECOND, ONE};

/// The longest pause before a fresh decision.
pub(crate) const PAUSE_NS_MAX: u64 = 100 * MILLISECOND;
/// The shortest pause: a timer costs more than it is worth below it.
pub(crate) const PAUSE_NS_MIN: u64 = MILLISECOND;

/// The debt of a payer; negative is credit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayerDebt {
    debt_ns: i64,
    /// The generation of the prices that the debt was made at.
    generation: u64,
}

/// The decision about a payer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on, and its debt is carried.
    Continue,
    /// It waits for `ns`, a part of `of_ns`, and is decided about again.
    Pause {
        /// Length of the pause.
        ns: u64,
        /// The whole wait for its debt at the present price of waiting.
        of_ns: u64,
    },
    /// It waits in the queue until it is admitted.
    Queue,
}

impl PayerDebt {
    /// The debt in device time; negative is credit.
    pub fn debt_ns(&self) -> i64 {
        self.debt_ns
    }

    /// It dirtied pages of this cost.
    pub fn charge(&mut self, cost_ns: Cost) {
        self.debt_ns = self.debt_ns.saturating_add_unsigned(cost_ns);
    }

    /// It dirtied pages of this cost while the backlog was below F: its credit pays, and the rest is forgiven.
    pub fn charge_forgiven(&mut self, cost_ns: Cost) {
        if cost_ns > 0 {
            self.debt_ns = self.debt_ns.saturating_add_unsigned(cost_ns).min(0);
        }
    }

    /// Forgives the debt if it was made at prices of another generation.
    pub fn repriced(&mut self, generation: u64) {
        if self.generation != generation {
            self.generation = generation;
            self.debt_ns = self.debt_ns.min(0);
        }
    }

    /// It was idle for `idle_ns` while the entry was `entry`: the unused part becomes credit.
    pub fn idled(&mut self, idle_ns: u64, band: Band, entry: AdmissionRule, payers: u64) {
        let factor = if let AdmissionRule::Factor(factor) = entry { factor.max(1) } else { 16 * ONE };
        let share = mul_div(idle_ns, ONE, factor.saturating_mul(payers.max(1)));
        let most = band.credit_ns_max(payers);
        let earned = share.min(most) as i64;
        let least = -(most as i64);
        self.debt_ns = self.debt_ns.saturating_sub(earned).max(least.min(self.debt_ns));
    }

    /// The decision, with `payers` payers waiting.
    pub fn verdict(&mut self, band: Band, backlog_ns: Cost, payers: u64) -> Verdict {
        if backlog_ns <= band.free_ns() {
            self.debt_ns = self.debt_ns.min(0);
            return Verdict::Continue;
        }
        if self.debt_ns < 0 && backlog_ns < band.light_end_ns() {
            return Verdict::Continue;
        }
        let AdmissionRule::Factor(factor) = band.entry(backlog_ns) else { return Verdict::Queue };
        let of_ns = Self::wait_ns(self.debt_ns.max(0) as u64, factor, payers);
        if of_ns < PAUSE_NS_MIN {
            return Verdict::Continue;
        }
        Verdict::Pause { ns: of_ns.min(PAUSE_NS_MAX), of_ns }
    }

    fn wait_ns(debt_ns: u64, factor: u64, payers: u64) -> u64 {
        let weighted = (u128::from(debt_ns) * u128::from(factor)).saturating_mul(u128::from(payers.max(1)));
        let wait = weighted / u128::from(ONE);
        wait.min(u128::from(u64::MAX)) as u64
    }

    /// It waited for `slept_ns` of a wait of `of_ns`: that part of its debt is paid.
    pub fn slept(&mut self, slept_ns: u64, of_ns: u64) {
        let debt = self.debt_ns.max(0) as u64;
        let paid = if of_ns == 0 { debt } else { mul_div(debt, slept_ns, of_ns) };
        self.debt_ns -= paid.min(debt) as i64;
    }
}

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
