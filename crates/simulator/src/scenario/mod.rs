//! Scenarios: a machine, its disks, files and tasks, run on the real engine against the model.
//!
//! Owns: what a scenario says (`text`), where one comes from (a seed: `generate`, `habits`; every small one:
//! `scopes`; one with each request failing in turn: `sweep`), the machine of it (`machine`), running it
//! (`run`, `ops`, `rest`), making a failing one smaller (`shrink`).
//! Does not own: the world, disks and the model that it runs on; which scenarios are run, and when.
//! Invariants: a scenario and its seed say everything about a run.

mod generate;
mod habits;
mod machine;
mod ops;
mod rest;
mod run;
pub mod scopes;
mod shrink;
pub mod sweep;
mod text;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use generate::{generate, generate_on, policies_and_models};
pub use run::{Report, RunOptions, run, run_with};
pub use shrink::{Shrunk, kind, shrink};
pub use text::{CpuSpec, DeviceSpec, FailRequest, FileSpec, Op, Scenario};

/// A check that failed inside leaves nothing half done that the next one would trip over.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
