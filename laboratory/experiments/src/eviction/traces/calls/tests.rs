#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

fn call(file: u32, writes: bool, offset: u64, bytes: u64) -> Call {
    Call { file, writes, offset, bytes }
}

#[test]
fn calls_are_unpacked() {
    // File 3 at 200 for 130 bytes; on for 5 bytes; a write 135 back for 1; a sync; file 0 at its start for 2.
    let packed = [0, 3, 0x90, 3, 0x82, 1, 4 | 8, 5, 1 | 4, 0x8d, 2, 1, 2 | 4, 8, 0, 2];
    let expected = [
        call(3, false, 200, 130),
        call(3, false, 330, 5),
        call(3, true, 200, 1),
        call(3, false, 0, 0),
        call(0, false, 0, 2),
    ];
    assert_eq!(unpacked(&packed).unwrap(), expected);
}

#[test]
fn what_is_no_call_is_an_error_with_its_place() {
    for (packed, place) in
        [(&[4, 0, 1, 3][..], 3), (&[4 | 8, 0], 0), (&[4, 1, 1], 0), (&[4, 0x80], 0), (&[4, 0, 5, 4], 3)]
    {
        let error = unpacked(packed).unwrap_err();
        assert!(error.starts_with(&format!("byte {place} of")), "{packed:?}: {error}");
    }
}
