//! Reference models of an engine's answers, for simulated runs and for the search for faults.
//!
//! Owns: the model of a file byte by byte (`file`, `size`) and by the stamps of its pages (`stamps`, `runs`), the words
//! that both share (`change`), conservation in an engine (`conservation`).
//! Does not own: the engine, worlds and disks: callers pass in their answers.
//! Invariants: a model never rejects a legal answer of the engine.

#![forbid(unsafe_code)]

mod change;
mod conservation;
mod file;
mod runs;
mod size;
mod stamps;

pub use change::{Ending, Mismatch, Stamp};
pub use conservation::Conservation;
pub use file::{ChangeId, FileModel, pattern};
pub use stamps::{PageStamp, StampLook, StampModel, StampWrite};
