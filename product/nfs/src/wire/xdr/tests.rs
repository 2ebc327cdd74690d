use super::*;

#[test]
fn reads_back_what_it_wrote() {
    let mut writer = Writer::default();
    writer.u32(7);
    writer.u64(u64::MAX - 1);
    writer.bool(true);
    for len in 0..9 {
        writer.opaque(&[0xab; 9][..len]);
    }
    let bytes = writer.into_bytes();
    assert_eq!(bytes.len() % 4, 0);
    let mut reader = Reader::new(&bytes);
    assert_eq!(reader.u32(), Ok(7));
    assert_eq!(reader.u64(), Ok(u64::MAX - 1));
    assert_eq!(reader.bool("flag"), Ok(true));
    for len in 0..9 {
        assert_eq!(reader.opaque(8), Ok(&[0xab; 9][..len]));
    }
    assert_eq!(reader.position(), bytes.len());
    assert_eq!(reader.u32(), Err(XdrError::Truncated { at: bytes.len(), wanted: 4, left: 0 }));
}

#[test]
fn lies_in_bytes_as_the_standard_says() {
    let mut writer = Writer::default();
    writer.u64(0x0102_0304_0506_0708);
    writer.opaque(b"hello");
    writer.bool(false);
    let expected = b"\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\x05hello\0\0\0\0\0\0\0";
    assert_eq!(writer.into_bytes(), expected);
}

#[test]
fn refuses_lengths_that_lie() {
    let claims = |len: u32| [&len.to_be_bytes()[..], b"abcd"].concat();
    assert_eq!(Reader::new(&claims(4)).opaque(4), Ok(&b"abcd"[..]));
    assert_eq!(Reader::new(&claims(4)).opaque(3), Err(XdrError::TooLong { len: 4, max: 3 }));
    assert!(matches!(Reader::new(&claims(5)).opaque(99), Err(XdrError::Truncated { wanted: 8, .. })));
    let most = claims(u32::MAX);
    assert!(matches!(Reader::new(&most).opaque(usize::MAX), Err(XdrError::Truncated { .. })));
    // The bytes are complete, but the padding is not.
    assert!(Reader::new(b"\0\0\0\x03abc").opaque(99).is_err());
}

#[test]
fn refuses_booleans_that_are_none() {
    assert_eq!(Reader::new(&[0, 0, 0, 2]).bool("flag"), Err(XdrError::Value { field: "flag", value: 2 }));
}

#[test]
fn pads_to_fours() {
    let wanted = [0, 3, 2, 1, 0, 3];
    assert!((0..6).map(padding).eq(wanted));
    assert!((0..6).map(opaque_bytes).eq([4, 8, 8, 8, 8, 12]));
}
