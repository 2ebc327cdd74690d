//! The search for faults: random scenarios on the real engine, checked against the reference models.
//!
//! Owns: the parts of the search. A scenario is a text (`text`). It comes from a seed (`generate`, `offsets`,
//! `patterns`), from all small ones (`scopes`), or from failing each request in turn (`sweep`). It runs on its machine
//! (`machine`) with all checks (`run`, `bench`, `ops`, `excuses`, `quiesce`), or in several lives with kills (`kills`).
//! A failing one is made smaller (`shrink`). The command for many scenarios is `src/bin/soak.rs`.
//! Does not own: the world and its disks (the crate `simulator`), the models (`reference`), the choice of scenarios to
//! run.
//! Invariants: a scenario with its seed determines a run.

#![forbid(unsafe_code)]

mod bench;
mod excuses;
mod generate;
mod kills;
mod locking;
mod machine;
mod offsets;
mod ops;
mod patterns;
mod quiesce;
mod report;
mod run;
pub mod scopes;
mod shrink;
pub mod sweep;
mod text;

pub use generate::{generate, generate_on, policies_and_models};
pub use kills::{KillCounts, run_with_kills};
pub use report::{Report, RunOptions};
pub use run::{run, run_with};
pub use shrink::{Shrunk, kind, shrink};
pub use text::{CpuSpec, DeviceSpec, FailRequest, FileSpec, Op, Scenario};
