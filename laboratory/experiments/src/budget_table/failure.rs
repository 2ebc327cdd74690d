//! What cannot go on, in words.
//!
//! Owns: turning any error of a run into the experiment's. Does not own: which errors there are.
//! Invariants: none.

use crate::experiment::LabError;

pub(super) fn failed(error: impl std::fmt::Display) -> LabError {
    LabError::Failed(error.to_string())
}
