//! The bound on a figure, or on a ratio, that a case wants.
//!
//! Owns: the comparison, and the words for a bound.
//! Does not own: the figures.
//! Invariants: a figure at the bound meets it.

use std::fmt::{self, Display, Formatter};

/// A bound. It is shown with the precision that is asked for.
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

impl Display for Bound {
    fn fmt(&self, form: &mut Formatter<'_>) -> fmt::Result {
        let (side, value) = match self {
            Self::AtMost(most) => ("at most ", most),
            Self::AtLeast(least) => ("at least ", least),
        };
        form.write_str(side)?;
        value.fmt(form)
    }
}
