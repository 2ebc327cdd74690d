//! The search for faults: random scenarios on the real engine, checked against the reference models.
//!
//! Owns: what a scenario says (`text`), where one comes from (a seed: `generate`, `places`, `habits`; every
//! small one: `scopes`; one with each request failing in turn: `sweep`), the machine of it (`machine`),
//! running it (`run`, `bench`, `ops`, `excuses`, `rest`), making a failing one smaller (`shrink`). The command that runs
//! many is `src/bin/soak.rs`.
//! Does not own: the world and its disks (the crate `simulator`), the models (`reference`); which scenarios
//! are run, and when.
//! Invariants: a scenario and its seed say everything about a run.

#![forbid(unsafe_code)]

mod bench;
mod excuses;
mod generate;
mod habits;
mod locking;
mod machine;
mod ops;
mod places;
mod report;
mod rest;
mod run;
pub mod scopes;
mod shrink;
pub mod sweep;
mod text;

pub use generate::{generate, generate_on, policies_and_models};
pub use report::{Report, RunOptions};
pub use run::{run, run_with};
pub use shrink::{Shrunk, kind, shrink};
pub use text::{CpuSpec, DeviceSpec, FailRequest, FileSpec, Op, Scenario};
