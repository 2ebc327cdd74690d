//! Recorded calls, and the checks of each.
//!
//! Owns: the contents of a trace, the limits of a call.
//! Does not own: the formats (`csv`, `recorded`).
//! Invariants: the times of checked calls do not run backwards, and their ranges lie within a file.

use std::collections::BTreeMap;
use std::fmt;

use afflux_volume::FILE_BYTES_MAX as OFFSET_MAX;

/// Most bytes of a call.
pub const CALL_BYTES_MAX: u64 = 1 << 30;

/// Most calls of a trace.
pub const CALLS_MAX: usize = 1 << 25;

/// Largest file that is read as a trace.
pub const FILE_BYTES_MAX: u64 = 2 << 30;

/// Most files of a trace.
pub const FILES_MAX: usize = 100_000;

/// The operation of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TracedOperation {
    /// The client read file bytes.
    Read,
    /// The client wrote file bytes.
    Write,
    /// Made the file durable.
    Sync,
}

impl TracedOperation {
    /// All operations, in the order of their numbers in a trace.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Sync];

    /// Its number in records: from 1 on.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The operation with this number.
    pub fn of_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| u64::from(operation.number()) == number)
    }

    /// Name in a trace's text form.
    pub fn name(self) -> &'static str {
        ["read", "write", "sync"][self as usize]
    }
}

/// A call of a client, as a trace has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TracedCall {
    /// The time since the trace began.
    pub at_us: u64,
    /// The file's number.
    pub file: u64,
    /// Operation of the call.
    pub operation: TracedOperation,
    /// The first byte.
    pub offset: u64,
    /// The length; 0 for a sync.
    pub bytes: u64,
}

/// A recorded trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// The calls in the order in which they were made.
    pub calls: Vec<TracedCall>,
    /// Calls that the recorder lost.
    pub lost: u64,
}

/// An error in a trace, and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// The line of text or the record, from 1.
    pub number: u64,
    /// Whether it is a line.
    pub is_line: bool,
    /// Fault of the line, in words.
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
    /// Each file, and the end of its last byte in calls.
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

/// Calls during parsing, each checked against the calls before it.
#[derive(Default)]
pub(super) struct Checked {
    pub(super) trace: Trace,
    files: std::collections::BTreeSet<u64>,
}

impl Checked {
    pub(super) fn push(&mut self, call: TracedCall) -> Result<(), String> {
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
