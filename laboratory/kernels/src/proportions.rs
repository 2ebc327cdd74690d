//! Floating proportions: fractions of recent events. All counts are halved every half period of events.
//!
//! Linux 2.6.24 to 3.5, `lib/proportions.c`, from memory. A period is 2^shift events of all devices together. For
//! devices the shift is 2 + log2(dirty limit − 1), so a period is two to four times the limit. A local count is halved
//! for each half period that it missed, at the next access. The fraction is the local count over half a period plus the
//! global count modulo half a period. A device above its largest fraction gets no further event.
//!
//! Owns: the counts. Does not own: the dirty limit that sets the period.
//! Invariants: a denominator is at least half a period.

/// A fraction, not reduced, as the kernel passes it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fraction {
    pub(crate) numerator: u64,
    pub(crate) denominator: u64,
}

impl Fraction {
    /// `of` times the fraction, truncated.
    pub(crate) fn of(self, of: u64) -> u64 {
        (u128::from(of) * u128::from(self.numerator) / u128::from(self.denominator.max(1))) as u64
    }
}

/// 1 in the unit of largest fractions.
pub(crate) const WHOLE: u64 = 1024;

/// The period for a dirty limit, as a power of two.
pub(crate) fn shift_for(dirty_pages: u64) -> u32 {
    2 + dirty_pages.saturating_sub(1).checked_ilog2().unwrap_or(0)
}

/// All events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Global {
    events: u64,
}

/// The events of one device or of one writer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Local {
    events: u64,
    /// The half period of the last access, as the event count at its start.
    period: u64,
}

impl Global {
    fn catch_up(&self, local: &mut Local, shift: u32) {
        let period = self.events & !((1 << (shift - 1)) - 1);
        let missed = period.saturating_sub(local.period) >> (shift - 1);
        local.events = if missed < 64 { local.events >> missed } else { 0 };
        local.period = period;
    }

    /// Counts pages in periods of 2^`shift`, unless the fraction is above the largest (of [`WHOLE`]).
    pub(crate) fn add(&mut self, local: &mut Local, pages: u64, largest: u64, shift: u32) {
        let fraction = self.fraction(local, shift);
        if largest < WHOLE && fraction.numerator * WHOLE > fraction.denominator * largest {
            return;
        }
        local.events += pages;
        self.events += pages;
    }

    /// The local fraction of the events.
    pub(crate) fn fraction(&self, local: &mut Local, shift: u32) -> Fraction {
        self.catch_up(local, shift);
        let half = 1 << (shift - 1);
        Fraction { numerator: local.events, denominator: half + (self.events & (half - 1)) }
    }
}

#[cfg(test)]
mod tests;
