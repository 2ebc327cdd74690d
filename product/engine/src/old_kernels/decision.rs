//! A kernel's decisions about a writer that has dirtied pages.
//!
//! Owns: the forms of these decisions. Does not own: asking and carrying out (`writers`), the laws.
//! Invariants: plain values.

use crate::policy::PauseCause;

/// Pages between decisions about payers of a device over its limit (kernel: 32 KiB).
pub const EXCEEDED_PAGES: u64 = 8;

/// A decision that no policy of Afflux makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriterDecision {
    /// The writer writes back so many pages of the device itself; another decision follows.
    WriteBack {
        /// The most pages to write.
        pages: u64,
    },
    /// The writer waits.
    Pause(WriterPause),
}

/// A writer's pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriterPause {
    /// The longest time to wait.
    pub ns: u64,
    /// The cause.
    pub cause: PauseCause,
    /// The event that may end it early.
    pub woken_by: WokenBy,
    /// The next step.
    pub then: AfterPause,
}

/// An event that ends a pause early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WokenBy {
    /// None: the pause ends by time.
    Time,
    /// Any device's queue stops being congested.
    CongestionClears,
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

/// The progress of a writer's call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterCall {
    /// The number of this snapshot in the call, from 0.
    pub pass: u32,
    /// Pages that the writer itself wrote back in this call.
    pub written: u64,
    /// Pages written back after the last [`WriterDecision::WriteBack`].
    pub written_last: u64,
}
