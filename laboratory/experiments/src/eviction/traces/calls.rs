//! The packed form of a trace: a few bytes a call.
//!
//! A call is a byte and up to three numbers. The byte has the operation (0 read, 1 write, 2 sync), 4 if the file is
//! that of the call before, and 8 if the call begins where the last one of its file ended. The numbers are the file,
//! the distance from that end (zigzag) and the length, each only if needed, seven bits a byte, the lowest first.
//!
//! Owns: this form. Does not own: the traces.
//! Invariants: a call lies within 2^40 bytes of its file and within 2^24 files; anything else is an error with its
//! position.

use std::collections::HashMap;

const SAME_FILE: u8 = 4;
const IN_ORDER: u8 = 8;
const OFFSET_MAX: i64 = 1 << 40;
const FILES_MAX: u64 = 1 << 24;

/// A call; a sync has no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Call {
    pub(super) file: u32,
    pub(super) writes: bool,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// The calls of a packed trace.
pub(super) fn unpacked(packed: &[u8]) -> Result<Vec<Call>, String> {
    let (mut rest, mut calls, mut ends) = (packed, Vec::new(), HashMap::new());
    let mut file = 0;
    while !rest.is_empty() {
        let at = packed.len() - rest.len();
        let call = next(&mut rest, &mut file, &mut ends);
        calls.push(call.ok_or_else(|| format!("byte {at} of a packed trace begins no call"))?);
    }
    Ok(calls)
}

fn next(rest: &mut &[u8], file: &mut u64, ends: &mut HashMap<u64, i64>) -> Option<Call> {
    let head = byte(rest)?;
    if head & SAME_FILE == 0 {
        *file = number(rest).filter(|file| *file < FILES_MAX)?;
    }
    let end = ends.entry(*file).or_insert(0);
    let (writes, offset, bytes) = match head & 3 {
        2 => return Some(Call { file: *file as u32, writes: false, offset: 0, bytes: 0 }),
        operation @ (0 | 1) => {
            let distance = if head & IN_ORDER == 0 { unzigzag(number(rest)?) } else { 0 };
            (operation == 1, end.checked_add(distance)?, number(rest)? as i64)
        }
        _ => return None,
    };
    *end = offset.checked_add(bytes).filter(|end| offset >= 0 && bytes > 0 && *end <= OFFSET_MAX)?;
    Some(Call { file: *file as u32, writes, offset: offset as u64, bytes: bytes as u64 })
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, others) = rest.split_first()?;
    *rest = others;
    Some(*first)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let part = byte(rest)?;
        number |= u64::from(part & 0x7f) << shift;
        if part < 0x80 {
            return Some(number);
        }
    }
    None
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests;
