//! Waits for a condition that has no event, such as the state of another process.
//!
//! Owns: the interval between two looks, the longest wait.
//! Does not own: the condition.
//! Invariants: a condition that holds ends the wait within one interval. Every wait has an end.

use std::thread;
use std::time::{Duration, Instant};

/// Interval between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// A guard against hangs, far above the usual time of any condition on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `holds` returns true.
///
/// # Panics
/// When that takes two minutes, with `what`.
#[track_caller]
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    assert!(within(PATIENCE, holds), "not within {PATIENCE:?}: {what}");
}

/// Waits until `holds` returns true, at most for `limit`. Returns whether it did.
pub fn within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() >= limit {
            return false;
        }
        thread::sleep(LOOK_EVERY);
    }
    true
}

#[cfg(test)]
mod tests;
