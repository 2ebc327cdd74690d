//! The host's files: the list of devices, their counters, the values of their bdis.
//!
//! Owns: the modules for these files.
//! Does not own: decisions.
//! Invariants: an error about a file that cannot be written names the file and the command that helps.

mod backlog;
mod bdi;
mod block;
mod mounts;

pub(crate) use backlog::Backlogs;
pub use bdi::{FileUseError, Host};
pub use block::{BdiKind, Disk};
pub(crate) use block::{CounterFile, NO_MEDIUM};
pub use mounts::Mounted;

#[cfg(test)]
mod tests;
