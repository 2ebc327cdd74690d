//! What is decided, from plain values.
//!
//! Owns: how fast a device is (`speed`), whether it always had something to write (`backlog`), which limit that makes (`limit`), whose values a device has (`seat`).
//! Does not own: where values are read and written; time.
//! Invariants: pure: the same calls give the same answers. Integers only.

mod backlog;
mod limit;
mod seat;
mod speed;

pub use backlog::{Backlog, Flow};
pub use limit::{BUDGET_NS_MAX, BUDGET_NS_MIN, Choice, DEFAULT_BUDGET_NS, Machine, Wanted, choose};
pub use seat::{Seat, Step, Values};
pub use speed::{Counters, Speed};

/// A millisecond in ns.
const MILLISECOND: u64 = 1_000_000;
/// A second in ns.
const SECOND: u64 = 1_000_000_000;
