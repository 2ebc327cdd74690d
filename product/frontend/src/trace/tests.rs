#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use super::*;

fn call(at_us: u64, operation: TracedOperation, offset: u64, bytes: u64) -> TracedCall {
    TracedCall { at_us, file: 0, operation, offset, bytes }
}

fn recorded(calls: &[TracedCall]) -> Vec<u8> {
    let mut bytes = encode(None).to_vec();
    calls.iter().for_each(|call| bytes.extend(encode(Some(call))));
    bytes.extend(end(calls.len() as u64, 7));
    bytes
}

const CALLS: [TracedCall; 3] = [
    TracedCall { at_us: 0, file: 9, operation: TracedOperation::Read, offset: 513, bytes: 7 },
    TracedCall { at_us: 5, file: u64::MAX, operation: TracedOperation::Write, offset: 0, bytes: 4096 },
    TracedCall { at_us: 5, file: 9, operation: TracedOperation::Sync, offset: 0, bytes: 0 },
];

#[test]
fn a_recorded_trace_is_read_as_it_was_written() {
    let bytes = recorded(&CALLS);
    assert_eq!(bytes.len(), 5 * RECORD_BYTES);
    let trace = Trace::read(&bytes).unwrap();
    assert_eq!((trace.calls.as_slice(), trace.lost), (&CALLS[..], 7));
    assert_eq!((trace.moved_bytes(), trace.files()), (4103, BTreeMap::from([(9, 520), (u64::MAX, 4096)])));
}

#[test]
fn a_block_trace_is_taken_as_it_comes() {
    let text = "time_us,op,offset,bytes\n# a comment\n0,read,512,1000\r\n3, W ,7,1\n\n3,flush,0,99";
    let expected = [
        call(0, TracedOperation::Read, 512, 1000),
        call(3, TracedOperation::Write, 7, 1),
        call(3, TracedOperation::Sync, 0, 0),
    ];
    assert_eq!(Trace::read(text.as_bytes()).unwrap().calls, expected);
}

#[test]
fn what_is_wrong_with_text_is_told_with_its_line_and_the_reason() {
    for (text, says) in [
        ("0,read,0,1\n5,read,0,1\n4,read,0,1", "line 3: its time, 4 us, is before that of the call above it, 5 us"),
        ("0,read,9223372036854775807,1", "line 1: 1 bytes at offset 9223372036854775807 end past 2^63 - 1"),
        ("0,write,18446744073709551615,2", "end past 2^63 - 1"),
        ("0,read,18446744073709551616,1", "line 1: offset '18446744073709551616' is not a number from 0 to"),
        ("0,read,0,1\n1,discard,0,1", "line 2: there is no operation 'discard'; there are read, write and sync"),
        ("0,read,0,1\n1,read,0", "line 2: it has 3 fields and not the 4 of time_us,op,offset,bytes"),
        ("0,read,0,0", "line 1: a call of 0 bytes"),
        ("0,read,0,1073741825", "1073741825 bytes in one call; at most 1073741824 can be"),
        ("-1,read,0,1", "line 1: time_us '-1' is not a number"),
        ("time_us,op,offset,bytes\n", "line 1: there is no call in it"),
        ("", "there is no call in it"),
    ] {
        let error = Trace::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(says), "{text:?}: {error}");
    }
    assert!(Trace::read(b"0,read,0,\xff").unwrap_err().to_string().contains("line 1: it is not UTF-8 text"));
}

#[test]
fn a_recorded_trace_that_is_cut_anywhere_is_refused() {
    let bytes = recorded(&CALLS);
    for len in 8..bytes.len() {
        let error = Trace::read(&bytes[..len]).unwrap_err().to_string();
        let says = if len < RECORD_BYTES { "record 1: this is no trace" } else { "the file is cut short" };
        assert!(error.contains(says), "{len} bytes: {error}");
    }
    assert!(
        Trace::read(&bytes[..100]).unwrap_err().to_string().starts_with("record 3: the file is cut short: 20 of 40")
    );
}

#[test]
fn what_is_wrong_with_a_record_is_told_with_its_number_and_the_reason() {
    let backwards = recorded(&[call(5, TracedOperation::Read, 0, 1), call(4, TracedOperation::Read, 0, 1)]);
    let far = recorded(&[call(0, TracedOperation::Write, 1 << 63, 1)]);
    let mut unknown = recorded(&CALLS);
    unknown[RECORD_BYTES + 32] = 9;
    let mut reserved = recorded(&CALLS);
    reserved[RECORD_BYTES + 39] = 1;
    let mut more = recorded(&CALLS);
    more.push(0);
    let mut fewer = recorded(&CALLS);
    let last = fewer.len() - RECORD_BYTES;
    fewer[last] = 4;
    let mut version = recorded(&CALLS);
    version[8] = 2;
    for (bytes, says) in [
        (backwards, "record 3: its time, 4 us, is before"),
        (far, "record 2: 1 bytes at offset 9223372036854775808 end past 2^63 - 1"),
        (unknown, "record 2: there is no operation 9; there are 1, 2, 3 and 255"),
        (reserved, "record 2: bytes 33 to 39 are not 0"),
        (more, "record 5: 1 bytes follow the last record"),
        (fewer, "record 5: it says that there are 4 calls, and there are 3"),
        (version, "record 1: this is no trace of version 1"),
        (recorded(&[]), "record 2: there is no call in it"),
    ] {
        let error = Trace::read(&bytes).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
}
