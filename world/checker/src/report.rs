//! The options and the report of a run.
//!
//! Owns: both types. Does not own: the run (`run`).
//! Invariants: plain data.

/// The report of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The first failure, if there is one.
    pub result: Result<(), String>,
    /// A hash of all events.
    pub hash: u64,
    /// Number of steps.
    pub steps: u64,
    /// Steps until the last operation ended.
    pub work_steps: u64,
    /// Requests for frames until then.
    pub allocations: u64,
    /// Requests of all disks that did not succeed.
    pub requests_failed: u64,
    /// The last events in words, if the options keep them.
    pub lines: Vec<String>,
}

/// The options of a run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Steps after which a run counts as failed.
    pub steps_max: u64,
    /// Whether to keep the last events in words.
    pub keep_lines: bool,
    /// Whether to print panics as they happen.
    pub loud: bool,
}

impl Default for RunOptions {
    /// 2 million steps, nothing stored or printed.
    fn default() -> Self {
        Self { steps_max: 2_000_000, keep_lines: false, loud: false }
    }
}
