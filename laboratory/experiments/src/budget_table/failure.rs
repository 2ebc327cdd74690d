//! Turns any error of a run into the experiment's error.
//!
//! Owns: the conversion. Does not own: the errors.
//! Invariants: none.

use crate::experiment::LabError;

pub(super) fn failed(error: impl std::fmt::Display) -> LabError {
    LabError::Failed(error.to_string())
}
