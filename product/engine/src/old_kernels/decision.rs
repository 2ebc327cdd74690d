//! A kernel's decision about a writer that has dirtied pages.
//!
//! Owns: the form of the decision. Does not own: asking and carrying out (`writers`), the laws.
//! Invariants: plain values.

use crate::policy::PauseCause;

/// Pages between decisions about payers of a device over its limit (kernel: 32 KiB).
pub const EXCEEDED_PAGES: u64 = 8;

/// A writer's pause, which ends by time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriterPause {
    /// The time to wait.
    pub ns: u64,
    /// The cause.
    pub cause: PauseCause,
    /// The next step.
    pub then: AfterPause,
}

/// The writer's next step after a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterPause {
    /// The writer goes on.
    Return,
    /// Another snapshot and decision.
    Decide,
}

/// A kernel's instructions until the next decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriterPace {
    /// Pages that all payers of a CPU may dirty before a decision about one of them.
    pub cpu_pages: u64,
    /// Whether the device is over its limit: its payers have a decision after [`EXCEEDED_PAGES`] at most.
    pub dirty_exceeded: bool,
    /// Whether background writeback has to start.
    pub start_background: bool,
}

impl WriterPace {
    /// No instructions.
    pub const NONE: Self = Self { cpu_pages: u64::MAX, dirty_exceeded: false, start_background: false };
}
