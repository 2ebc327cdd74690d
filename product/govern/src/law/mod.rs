//! The decisions, from plain values.
//!
//! Owns: a device's speed, and whether it always had bytes to write (`speed`); the limit that follows (`limit`), the
//! origin of a device's values (`ownership`).
//! Does not own: reading and writing values; time.
//! Invariants: pure functions: the same calls give the same answers. Integers only.

mod limit;
mod ownership;
mod speed;

pub use limit::{BUDGET_NS_MAX, BUDGET_NS_MIN, DEFAULT_BUDGET_NS, LimitChoice, LimitTarget, MachineLimits, choose};
pub use ownership::{Ownership, OwnershipStep, Values};
pub use speed::{Backlog, BlockCounters, Flow, Speed};

/// A millisecond in ns.
const MILLISECOND: u64 = 1_000_000;
/// A second in ns.
const SECOND: u64 = 1_000_000_000;
