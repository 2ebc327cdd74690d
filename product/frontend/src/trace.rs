//! Replaying a trace: calls that somebody made once, again, at the times at which they were made.
//!
//! Owns: what a trace is, and reading it from text and from the format that `afflux trace record` writes.
//! Does not own: the files of a run and its waiting (`simulation::replaying`), recording (the front end).
//! Invariants: a trace that was read can be replayed: its times do not run backwards, its ranges lie within a file. What
//! is wrong is told with its line or record and the reason.

mod csv;
mod recorded;

use std::collections::BTreeMap;
use std::fmt;

use afflux_volume::FILE_BYTES_MAX as OFFSET_MAX;

pub use recorded::{RECORD_BYTES, encode, end};

/// Most bytes that one call may have.
pub const CALL_BYTES_MAX: u64 = 1 << 30;

/// Most calls of a trace.
pub const CALLS_MAX: usize = 1 << 25;

/// Largest file that is read as a trace.
pub const FILE_BYTES_MAX: u64 = 2 << 30;

/// Most files of a trace.
pub const FILES_MAX: usize = 100_000;

/// What a call did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TracedOperation {
    /// Read bytes.
    Read,
    /// Wrote bytes.
    Write,
    /// Made the file durable.
    Sync,
}

/// A call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TracedCall {
    /// When, since the trace began.
    pub at_us: u64,
    /// Of which file.
    pub file: u64,
    /// What.
    pub operation: TracedOperation,
    /// From where on.
    pub offset: u64,
    /// How much; of a sync 0.
    pub bytes: u64,
}

/// What was recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// In the order in which they were made.
    pub calls: Vec<TracedCall>,
    /// How many calls the recorder lost.
    pub lost: u64,
}

/// What is wrong with a trace, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// A line of text, or a record, from 1 on.
    pub number: u64,
    /// Whether it is a line.
    pub is_line: bool,
    /// What is wrong with it.
    pub why: String,
}

impl std::error::Error for TraceError {}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_line { "line" } else { "record" };
        write!(f, "{what} {}: {}", self.number, self.why)
    }
}

impl Trace {
    /// Reads a trace, whichever of the two it is.
    ///
    /// # Errors
    /// For the first line or record that makes no sense.
    pub fn read(bytes: &[u8]) -> Result<Self, TraceError> {
        if recorded::is_recorded(bytes) { recorded::read(bytes) } else { csv::read(bytes) }
    }

    /// Each file, and how far into it the calls reach.
    pub fn files(&self) -> BTreeMap<u64, u64> {
        let mut files = BTreeMap::new();
        for call in &self.calls {
            let end = files.entry(call.file).or_insert(0);
            *end = (*end).max(call.offset + call.bytes);
        }
        files
    }

    /// Bytes that are read and written.
    pub fn moved_bytes(&self) -> u64 {
        self.calls.iter().map(|call| call.bytes).sum()
    }
}

/// Calls as they are read, each checked against what came before.
#[derive(Default)]
struct Checked {
    trace: Trace,
    files: std::collections::BTreeSet<u64>,
}

impl Checked {
    fn push(&mut self, call: TracedCall) -> Result<(), String> {
        if let Some(before) = self.trace.calls.last().filter(|before| before.at_us > call.at_us) {
            return Err(format!(
                "its time, {} us, is before that of the call above it, {} us",
                call.at_us, before.at_us
            ));
        }
        match call.offset.checked_add(call.bytes) {
            Some(end) if end <= OFFSET_MAX => {}
            _ => return Err(format!("{} bytes at offset {} end past 2^63 - 1", call.bytes, call.offset)),
        }
        if call.bytes > CALL_BYTES_MAX {
            return Err(format!("{} bytes in one call; at most {CALL_BYTES_MAX} can be", call.bytes));
        }
        if call.operation != TracedOperation::Sync && call.bytes == 0 {
            return Err("a call of 0 bytes".to_owned());
        }
        if self.trace.calls.len() == CALLS_MAX {
            return Err(format!("more than {CALLS_MAX} calls"));
        }
        if self.files.insert(call.file) && self.files.len() > FILES_MAX {
            return Err(format!("more than {FILES_MAX} files"));
        }
        self.trace.calls.push(call);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
