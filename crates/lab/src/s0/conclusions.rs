//! What s0 shows and what it does not, in sentences.
//!
//! Owns: the sentences. Does not own: the figures.
//! Invariants: each claim is made from the runs at hand.

use super::{Cell, PathsOf};

pub(super) fn conclusions(_: &[Cell], _: &PathsOf) -> Vec<String> {
    Vec::new()
}
