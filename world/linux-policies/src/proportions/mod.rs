//! A device's share of the dirty limit: its fraction of recent completions.
//!
//! Owns: the method to count it since Linux 3.6. Does not own: the use of a share.
//! Invariants: events are pages written; a fraction is a numerator and a denominator above 0.

pub(crate) mod flexible;

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
