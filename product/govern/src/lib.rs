//! A time budget for every disk of a stock kernel.
//!
//! The kernel bounds what is dirty by memory, so a slow disk owes minutes of writing. It can hold a device to a limit of
//! its own (`strict_limit` and `max_ratio_fine` of its bdi, Linux 6.2 and later), but does not know which: here each
//! device's speed is measured, and its limit kept at what it writes in its budget.
//!
//! Owns: the decisions (`law`), the host's files (`host`), what is to be put back (`journal`), the loop's steps
//! (`governor`).
//! Does not own: clocks, signals, the command line (the command); what a device costs (`budget`).
//! Invariants: every value that is changed is written down before, and put back unless somebody else changed it since.
//! Nothing is ever set above what the kernel has by itself.

#![forbid(unsafe_code)]

mod governor;
mod host;
mod journal;
mod law;
#[cfg(test)]
mod made_up;

pub use governor::{Event, Governor, Known, Options, Row, What};
pub use host::{Disk, Host, HostError, Kind};
pub use journal::{Entry, Journal, JournalError, Restored, restore, running};
pub use law::{
    BUDGET_NS_MAX, BUDGET_NS_MIN, Backlog, Choice, Counters, DEFAULT_BUDGET_NS, Flow, Machine, Seat, Speed, Step,
    Values, Wanted, choose,
};
