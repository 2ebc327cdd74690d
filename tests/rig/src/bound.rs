//! The bound on a figure, or on a ratio, that a case wants.
//!
//! Owns: the comparison.
//! Does not own: the words about it (the tables).
//! Invariants: a figure at the bound meets it.

/// A bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
}

impl Bound {
    /// Whether a figure meets it.
    pub fn is_met(self, figure: f64) -> bool {
        match self {
            Self::AtMost(most) => figure <= most,
            Self::AtLeast(least) => figure >= least,
        }
    }
}
