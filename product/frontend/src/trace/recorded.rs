//! The format of `afflux trace record`: records of 40 bytes, all numbers little-endian.
//!
//! | bytes | first record | a call | last record |
//! |-|-|-|-|
//! | 0 to 7 | `AFXTRACE` | time in microseconds since the start | calls in the file |
//! | 8 to 15 | version, 1 | file: a number, the same for the same file | calls lost by the recorder |
//! | 16 to 23 | 40, a record's size | offset | 0 |
//! | 24 to 31 | 0 | bytes; of a sync 0 | 0 |
//! | 32 | 0 | 1 read, 2 write, 3 sync | 255 |
//! | 33 to 39 | 0 | 0 | 0 |
//!
//! Owns: the format. Does not own: the limits of a call (`replay`).
//! Invariants: a file without its last record was cut short, and is refused. Reserved fields are 0.

use super::calls::{Checked, Trace, TraceError, TracedCall, TracedOperation};

/// Bytes of a record.
pub const RECORD_BYTES: usize = 40;
const MAGIC: &[u8; 8] = b"AFXTRACE";
const VERSION: u64 = 1;
const END: u8 = 255;

pub(super) fn is_recorded(bytes: &[u8]) -> bool {
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
    record([call.at_us, call.file, call.offset, call.bytes], call.operation.number())
}

/// The last record of a file.
pub fn end(calls: u64, lost: u64) -> [u8; RECORD_BYTES] {
    record([calls, lost, 0, 0], END)
}

pub(super) fn read(bytes: &[u8]) -> Result<Trace, TraceError> {
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
            return ends(checked.trace, at, bytes, (number(0), number(1))).map_err(|why| wrong(at, why));
        }
        let unknown = || wrong(at, format!("there is no operation {}; there are 1, 2, 3 and 255", record[32]));
        let operation = TracedOperation::of_number(record[32].into()).ok_or_else(unknown)?;
        let call = TracedCall { at_us: number(0), file: number(1), operation, offset: number(2), bytes: number(3) };
        checked.push(call).map_err(|why| wrong(at, why))?;
    }
    let at = bytes.len() / RECORD_BYTES;
    Err(wrong(
        at,
        "the file is cut short: its last record, which says how many calls there are, is not there".to_owned(),
    ))
}

fn ends(trace: Trace, at: usize, bytes: &[u8], (calls, lost): (u64, u64)) -> Result<Trace, String> {
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
