//! A time budget for every disk of a stock kernel.
//!
//! The kernel bounds dirty memory in bytes, so that a slow disk may owe minutes of writing. It can hold a device to a
//! limit of its own (`strict_limit` and `max_ratio_fine` of its bdi, Linux 6.2 and later), but does not know the right
//! one. This crate measures each device's speed, and keeps the limit at the bytes that the device writes within its
//! budget.
//!
//! Owns: the decisions (`law`), the host's files (`host`), the values to put back (`journal`), the loop's steps
//! (`governor`).
//! Does not own: clocks, signals, the command line (the command); a device's prices (`budget`).
//! Invariants: every changed value is in the journal before the change, and is put back unless another program has
//! changed it since. No limit is ever above the kernel's own.

#![forbid(unsafe_code)]

mod governor;
mod host;
mod journal;
mod law;
#[cfg(test)]
mod tests;

pub use governor::{EventKind, Governor, GovernorEvent, GovernorOptions, GovernorRow, PriceLookup};
pub use host::{BdiKind, Disk, FileUseError, Host, Mounted};
pub use journal::{Journal, JournalEntry, JournalError, Restored, restore, running};
pub use law::{
    BUDGET_NS_MAX, BUDGET_NS_MIN, Backlog, BlockCounters, DEFAULT_BUDGET_NS, Flow, LimitChoice, LimitTarget,
    MachineLimits, Ownership, OwnershipStep, Speed, Values, choose,
};
