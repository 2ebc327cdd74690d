//! A device's share of the dirty limit: its fraction of recent completions.
//!
//! Owns: the two ways in which kernels counted that. Does not own: what a share is made of it.
//! Invariants: events are pages written; a fraction is a numerator and a denominator above 0.

pub(crate) mod flexible;
pub(crate) mod floating;

/// A fraction as the kernel hands it on: not reduced.
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
