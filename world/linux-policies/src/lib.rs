//! The decisions of Linux kernels about dirty pages and writeback, as laws behind seams.
//!
//! Owns: the laws, the kernel's two lists and its readahead by name, each in prose with its source above the code.
//! Does not own: the mechanism (`engine`), experiments with it (`lab`).
//! Invariants: integers only; a decision depends on its view and memory alone.

#![forbid(unsafe_code)]

mod control;
mod jiffies;
mod knobs;
mod limits;
mod needs;
mod proportions;
mod readahead;
mod registry;
mod two_lists;

pub use knobs::{KNOBS, KernelKnob};
pub use readahead::LINUX_READAHEAD;
pub use registry::{EVICTIONS, NAMES, Policy, READAHEADS, UnknownPolicy, WITH_TICKS, eviction, policy, readahead};
pub use two_lists::TWO_LISTS;
