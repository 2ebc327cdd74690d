//! The decisions of Linux kernels about dirty pages and writeback, as laws behind seams.
//!
//! Owns: the laws by name, each in prose with its source above the code.
//! Does not own: the mechanism (`engine`), experiments with it (`lab`).
//! Invariants: integers only; a decision depends on its view and memory alone.

#![forbid(unsafe_code)]

mod control;
mod jiffies;
mod knobs;
mod limits;
mod needs;
mod proportions;
mod registry;

pub use knobs::{KNOBS, KernelKnob};
pub use registry::{NAMES, Policy, UnknownPolicy, WITH_TICKS, policy};
