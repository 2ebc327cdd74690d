//! The shared parts of all races: words, turns, ratios, tables, processes, trees for tar.
//!
//! Owns: the order of turns, the form of a ratio and of a table; the start and the end of a mount; the configuration of
//! nfs-ganesha.
//! Does not own: the cases, the contenders, their programs; the median (`afflux_figures`).
//! Invariants: one contender works at a time. A ratio compares figures of one round. Nothing stays mounted.

#![forbid(unsafe_code)]

mod bound;
mod choice;
mod ending;
pub mod ganesha;
mod mounted;
mod raced;
mod ready;
mod table;
mod tree;
mod usage;
pub mod words;

pub use afflux_figures::{MedianAndRange, median_and_range};
pub use bound::Bound;
pub use ending::Ending;
pub use mounted::Mounted;
pub use raced::{Raced, remarks, run_order};
pub use ready::Ready;
pub use table::{Table, ratio, short};
pub use tree::archive;
pub use usage::{Measurement, Usage};
