//! Recorded calls, and the two formats that they are read from: text, and the records of `afflux trace record`.
//!
//! The text is a block trace of one file: `time_us,op,offset,bytes`, one call per line. A record has 40 bytes, all
//! numbers little-endian.
//!
//! | bytes | first record | a call | last record |
//! | - | - | - | - |
//! | 0 to 7 | `AFXTRACE` | time in microseconds since the start | calls in the file |
//! | 8 to 15 | version, 1 | file: a number, the same for the same file | calls lost by the recorder |
//! | 16 to 23 | 40, a record's size | offset | 0 |
//! | 24 to 31 | 0 | bytes; of a sync 0 | 0 |
//! | 32 | 0 | 1 read, 2 write, 3 sync | 255 |
//! | 33 to 39 | 0 | 0 | 0 |
//!
//! Owns: the contents of a trace, the limits of a call, both formats.
//! Does not own: the files of a replay and its waiting (`simulation::replaying`), recording (`recording`).
//! Invariants: every parsed trace can be replayed: the times of its calls do not run backwards, and their ranges lie
//! within a file. Offsets and lengths stay unchanged, aligned or not. A file without its last record was cut short, and
//! is refused. Reserved fields are 0. An error has its line or record and the reason.

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
    /// All operations, in the order of their codes in a trace.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Sync];

    /// Its code in records: from 1 on.
    pub fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The operation with this code.
    pub fn of_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| u64::from(operation.code()) == code)
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

/// An error in a trace, and its position.
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

impl Trace {
    /// Parses a trace in either format.
    ///
    /// # Errors
    /// For the first line or record that is malformed.
    pub fn read(bytes: &[u8]) -> Result<Self, TraceError> {
        if is_recorded(bytes) { read_records(bytes) } else { read_text(bytes) }
    }
}

const TEXT_HEADER: &str = "time_us,op,offset,bytes";

fn read_text(bytes: &[u8]) -> Result<Trace, TraceError> {
    let mut checked = Checked::default();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let wrong = |why: String| TraceError { number: at as u64 + 1, is_line: true, why };
        let line = std::str::from_utf8(line).map_err(|_| wrong("it is not UTF-8 text".to_owned()))?.trim();
        let is_header = at == 0 && line.eq_ignore_ascii_case(TEXT_HEADER);
        if line.is_empty() || line.starts_with('#') || is_header {
            continue;
        }
        call_of_line(line).and_then(|call| checked.push(call)).map_err(wrong)?;
    }
    if checked.trace.calls.is_empty() {
        return Err(TraceError {
            number: 1,
            is_line: true,
            why: format!("there is no call in it; one is {TEXT_HEADER}"),
        });
    }
    Ok(checked.trace)
}

fn call_of_line(line: &str) -> Result<TracedCall, String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [at_us, operation, offset, bytes] = fields[..] else {
        return Err(format!("it has {} fields and not the 4 of {TEXT_HEADER}", fields.len()));
    };
    let number = |name: &str, text: &str| {
        text.parse::<u64>().map_err(|_| format!("{name} '{text}' is not a number from 0 to {}", u64::MAX))
    };
    let operation = match operation.to_ascii_lowercase().as_str() {
        "read" | "r" => TracedOperation::Read,
        "write" | "w" => TracedOperation::Write,
        "sync" | "flush" | "f" => TracedOperation::Sync,
        _ => return Err(format!("there is no operation '{operation}'; there are read, write and sync")),
    };
    let (at_us, offset, mut bytes) = (number("time_us", at_us)?, number("offset", offset)?, number("bytes", bytes)?);
    if operation == TracedOperation::Sync {
        bytes = 0;
    }
    Ok(TracedCall { at_us, file: 0, operation, offset, bytes })
}

/// Bytes of a record.
pub const RECORD_BYTES: usize = 40;
const MAGIC: &[u8; 8] = b"AFXTRACE";
const VERSION: u64 = 1;
const END: u8 = 255;

fn is_recorded(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

fn record(numbers: [u64; 4], operation: u8) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    for (to, number) in record.chunks_exact_mut(8).zip(numbers) {
        to.copy_from_slice(&number.to_le_bytes());
    }
    record[32] = operation;
    record
}

/// The record of a call; for `None`, the first record of a file.
pub fn encode(call: Option<&TracedCall>) -> [u8; RECORD_BYTES] {
    let Some(call) = call else {
        return record([u64::from_le_bytes(*MAGIC), VERSION, RECORD_BYTES as u64, 0], 0);
    };
    record([call.at_us, call.file, call.offset, call.bytes], call.operation.code())
}

/// The last record of a file.
pub fn end(calls: u64, lost: u64) -> [u8; RECORD_BYTES] {
    record([calls, lost, 0, 0], END)
}

fn read_records(bytes: &[u8]) -> Result<Trace, TraceError> {
    let mut checked = Checked::default();
    let mut records = bytes.chunks(RECORD_BYTES).enumerate();
    let wrong = |at: usize, why: String| TraceError { number: at as u64 + 1, is_line: false, why };
    let first = records.next().map_or(&[][..], |(_, first)| first);
    if first != encode(None) {
        let why = format!("this is no trace of version {VERSION} with records of {RECORD_BYTES} bytes");
        return Err(wrong(0, why));
    }
    for (at, record) in records {
        if record.len() < RECORD_BYTES {
            return Err(wrong(at, format!("the file is cut short: {} of {RECORD_BYTES} bytes", record.len())));
        }
        let number = |field: usize| {
            let bytes = record[field * 8..][..8].try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        if record[33..].iter().any(|byte| *byte != 0) {
            return Err(wrong(at, "bytes 33 to 39 are not 0".to_owned()));
        }
        if record[32] == END {
            return ends(checked.trace, at, bytes, number(0), number(1)).map_err(|why| wrong(at, why));
        }
        let unknown = || wrong(at, format!("there is no operation {}; there are 1, 2, 3 and 255", record[32]));
        let operation = TracedOperation::of_code(record[32].into()).ok_or_else(unknown)?;
        let call = TracedCall { at_us: number(0), file: number(1), operation, offset: number(2), bytes: number(3) };
        checked.push(call).map_err(|why| wrong(at, why))?;
    }
    let at = bytes.len() / RECORD_BYTES;
    Err(wrong(
        at,
        "the file is cut short: its last record, which says how many calls there are, is not there".to_owned(),
    ))
}

fn ends(trace: Trace, at: usize, bytes: &[u8], calls: u64, lost: u64) -> Result<Trace, String> {
    if calls != trace.calls.len() as u64 {
        return Err(format!("it says that there are {calls} calls, and there are {}", trace.calls.len()));
    }
    let more = bytes.len() - (at + 1) * RECORD_BYTES;
    if more > 0 {
        return Err(format!("{more} bytes follow the last record"));
    }
    if calls == 0 {
        return Err("there is no call in it".to_owned());
    }
    Ok(Trace { lost, ..trace })
}

#[cfg(test)]
mod tests;
