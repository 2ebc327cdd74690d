//! Flexible proportions: fractions of recent events. All counts are halved every period.
//!
//! Linux 3.6 and later, `lib/flex_proportions.c` and the period timer of `mm/page-writeback.c`.
//! The global count starts at 1. A completed page counts 1 in the device's count and in the global one. Every 3 s
//! of wall time the global count is halved and the period number grows. A device's count is halved for each period that
//! it missed, at the next access. When the global count is 1 or less, the timer stops until the next event. A device
//! with a largest fraction (1/1024 as unit) gets no more events than lead to it.
//!
//! Owns: the counts. Does not own: clocks; each call passes the time.
//! Invariants: a denominator is never 0, and never below its numerator.

use afflux_engine::Nanos;

use super::Fraction;

/// Wall time of a period.
const PERIOD_NS: u64 = 3 * Nanos::SECOND;
/// 1 in the unit of largest fractions.
pub(crate) const WHOLE: u64 = 1024;

/// All devices' events.
#[derive(Clone, Debug)]
pub(crate) struct Global {
    events: u64,
    period: u64,
    /// The end of the period; `None` while the timer is stopped.
    ends: Option<Nanos>,
}

impl Default for Global {
    fn default() -> Self {
        Self { events: 1, period: 0, ends: None }
    }
}

/// One device's events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Local {
    events: u64,
    period: u64,
}

impl Global {
    /// Ends a period; returns false, without a change, if nothing is left to halve.
    fn try_new_period(&mut self) -> bool {
        if self.events <= 1 {
            return false;
        }
        self.events >>= 1;
        self.period += 1;
        true
    }

    /// Ends the periods that are over by now.
    pub(crate) fn advance(&mut self, now: Nanos) {
        // 64 halvings leave nothing to halve, so the loop ends.
        while let Some(ends) = self.ends.filter(|ends| *ends <= now) {
            self.ends = self.try_new_period().then(|| ends.after(PERIOD_NS));
        }
    }

    fn catch_up(&self, local: &mut Local) {
        let missed = self.period - local.period;
        local.events = if missed < 64 { local.events >> missed } else { 0 };
        local.period = self.period;
    }

    /// Counts completed pages, but no more than lead to the largest fraction (of [`WHOLE`]).
    pub(crate) fn add(&mut self, local: &mut Local, pages: u64, largest: u64, now: Nanos) {
        self.advance(now);
        let mut pages = pages;
        if largest < WHOLE {
            let fraction = self.fraction(local);
            let remaining = (fraction.denominator * largest).checked_sub(fraction.numerator * WHOLE);
            let Some(remaining) = remaining else { return };
            if remaining < pages * (WHOLE - largest) {
                pages = remaining.div_ceil(WHOLE - largest);
            }
        }
        self.catch_up(local);
        local.events += pages;
        self.events += pages;
        if self.ends.is_none() {
            self.ends = Some(now.after(PERIOD_NS));
        }
    }

    /// The device's fraction of the events, up to the last [`Global::advance`].
    pub(crate) fn fraction(&self, local: &mut Local) -> Fraction {
        self.catch_up(local);
        let numerator = local.events;
        let denominator = if self.events <= numerator { numerator.max(1) } else { self.events };
        Fraction { numerator, denominator }
    }
}

#[cfg(test)]
mod tests;
