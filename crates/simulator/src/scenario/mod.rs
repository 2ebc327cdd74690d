//! Scenarios: a machine, its disks, files and tasks, run on the real engine against the model.
//!
//! Owns: what a scenario says (`text`), where one comes from (a seed: `generate`; every small one:
//! `scopes`; one with each request failing in turn: `sweep`), running it (`run`), making a failing one
//! smaller (`shrink`).
//! Does not own: the world, disks and the model that it runs on; which scenarios are run, and when.
//! Invariants: a scenario and its seed say everything about a run.

mod generate;
mod ops;
mod run;
pub mod scopes;
mod shrink;
pub mod sweep;
mod text;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use generate::generate;
pub use run::{Report, RunOptions, run, run_with};
pub use shrink::{Shrunk, kind, shrink};
pub use text::{DeviceSpec, FailRequest, FileSpec, Op, Scenario};

/// A check that failed inside leaves nothing half done that the next one would trip over.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
