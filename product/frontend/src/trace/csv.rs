//! A block trace as text: `time_us,op,offset,bytes`, one call per line.
//!
//! Owns: the fields. Does not own: the limits of a call (`replay`).
//! Invariants: offsets and lengths stay unchanged, aligned or not. All calls are of one file.

use super::calls::{Checked, Trace, TraceError, TracedCall, TracedOperation};

const HEADER: &str = "time_us,op,offset,bytes";

pub(super) fn read(bytes: &[u8]) -> Result<Trace, TraceError> {
    let mut checked = Checked::default();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let wrong = |why: String| TraceError { number: at as u64 + 1, is_line: true, why };
        let line = std::str::from_utf8(line).map_err(|_| wrong("it is not UTF-8 text".to_owned()))?.trim();
        let is_header = at == 0 && line.eq_ignore_ascii_case(HEADER);
        if line.is_empty() || line.starts_with('#') || is_header {
            continue;
        }
        call(line).and_then(|call| checked.push(call)).map_err(wrong)?;
    }
    if checked.trace.calls.is_empty() {
        return Err(TraceError { number: 1, is_line: true, why: format!("there is no call in it; one is {HEADER}") });
    }
    Ok(checked.trace)
}

fn call(line: &str) -> Result<TracedCall, String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [at_us, operation, offset, bytes] = fields[..] else {
        return Err(format!("it has {} fields and not the 4 of {HEADER}", fields.len()));
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
