//! The decisions of Linux kernels about dirty pages, writeback and reclaim, as laws behind seams.
//!
//! Owns: the laws by name, each in prose with its source above the code.
//! Does not own: the mechanism (`engine`), experiments with it (`lab`).
//! Invariants: integers only; a decision depends on its view and memory alone.

#![forbid(unsafe_code)]

mod balance;
mod control;
mod jiffies;
mod knobs;
mod limits;
mod needs;
mod pdflush;
mod proportions;
pub mod reclaim;
mod registry;

pub use balance::Part;
pub use knobs::{KNOBS, KernelKnob};
pub use registry::{CongestionWaits, NAMES, Policy, UnknownPolicy, WITH_TICKS, policy, policy_changed, policy_with};
