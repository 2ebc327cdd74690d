//! What an engine may answer: reference models, for simulated runs and for looking for faults.
//!
//! Owns: the model of a file byte by byte (`file`, `size`) and by the stamps of its pages (`stamps`, `runs`),
//! the words that both have in common (`change`), what of an engine never appears or goes missing
//! (`conservation`).
//! Does not own: the engine, worlds and disks: callers bring what these answered.
//! Invariants: a model never rejects what an engine may do.

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
