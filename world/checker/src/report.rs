//! What is asked of a run, and what a run says.
//!
//! Owns: both shapes.
//! Does not own: running (`run`).
//! Invariants: plain data.

/// How a run went.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was found wrong.
    pub result: Result<(), String>,
    /// All that happened, as one number.
    pub hash: u64,
    /// Steps in all.
    pub steps: u64,
    /// Steps until the last operation had ended.
    pub work_steps: u64,
    /// Requests for frames until then.
    pub allocations: u64,
    /// Requests of all disks that did not succeed.
    pub requests_failed: u64,
    /// The last events in words, if they were asked for.
    pub lines: Vec<String>,
}

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Steps after which a run has failed.
    pub steps_max: u64,
    /// Keep the last events in words.
    pub keep_lines: bool,
    /// Print panics as they happen.
    pub loud: bool,
}

impl Default for RunOptions {
    /// 2 million steps, nothing kept or printed.
    fn default() -> Self {
        Self { steps_max: 2_000_000, keep_lines: false, loud: false }
    }
}
