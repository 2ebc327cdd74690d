use super::*;
use crate::abi::Put;

fn message(opcode: u32, body: &[u8], extensions: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.u32((HEADER_BYTES + body.len() + extensions.len()) as u32);
    bytes.u32(opcode);
    bytes.u64(11);
    bytes.u64(1);
    [1000, 100, 4242].iter().for_each(|value| bytes.u32(*value));
    bytes.u16((extensions.len() / 8) as u16);
    bytes.u16(0);
    bytes.raw(body);
    bytes.raw(extensions);
    bytes
}

#[test]
fn a_message_cut_anywhere_is_refused_or_decoded_but_never_read_past_its_end() {
    let body = [b'a'; 96];
    for opcode in 0..64 {
        let whole = message(opcode, &body, &[]);
        for len in 0..=whole.len() {
            let cut = &whole[..len];
            let Ok(header) = RequestHeader::decode(cut) else {
                assert!(len < HEADER_BYTES);
                continue;
            };
            let _ = decode(&header, cut);
            let _ = groups(&header, cut);
        }
    }
}

#[test]
fn a_write_has_all_the_bytes_that_it_names() {
    let mut body = Vec::new();
    body.u64(3);
    body.u64(4096);
    body.u32(5);
    (0..5).for_each(|_| body.u32(0));
    body.raw(b"12345+");
    let whole = message(op::WRITE, &body, &[]);
    let header = RequestHeader::decode(&whole).unwrap();
    let Ok(FuseOperation::Write { extent, data, append, .. }) = decode(&header, &whole) else { panic!() };
    assert_eq!((extent.fh, extent.offset, data, append), (3, 4096, &b"12345"[..], false));
    let cut = &whole[..whole.len() - 2];
    assert_eq!(decode(&RequestHeader::decode(cut).unwrap(), cut), Err(WireError::Truncated));
}

#[test]
fn the_callers_group_comes_as_an_extension_behind_the_name() {
    let mut extension = Vec::new();
    [16, abi::EXTENSION_GROUPS, 1, 77].iter().for_each(|value| extension.u32(*value));
    let whole = message(op::MKDIR, b"\xff\x01\0\0\x12\0\0\0sub\0", &extension);
    let header = RequestHeader::decode(&whole).unwrap();
    assert_eq!(
        decode(&header, &whole),
        Ok(FuseOperation::MakeDirectory { mode: Mode { mode: 0o777, umask: 0o22 }, name: b"sub" })
    );
    assert_eq!(groups(&header, &whole), [77]);
    assert_eq!(groups(&RequestHeader { extension_bytes: 0, ..header }, &whole), [0_u32; 0]);
    let endless = message(op::MKDIR, b"\0\0\0\0\0\0\0\0x\0", &[0; 16]);
    assert_eq!(groups(&RequestHeader::decode(&endless).unwrap(), &endless), [0_u32; 0]);
}

#[test]
fn a_batch_forgets_no_more_than_it_has() {
    let mut pairs = Vec::new();
    [(5_u64, 1_u64), (6, 2)].iter().for_each(|(node, lookups)| {
        pairs.u64(*node);
        pairs.u64(*lookups);
    });
    assert_eq!(forgotten(u32::MAX, &pairs).collect::<Vec<_>>(), [(5, 1), (6, 2)]);
    assert_eq!(forgotten(1, &pairs[..20]).collect::<Vec<_>>(), [(5, 1)]);
}

#[test]
fn an_open_for_writing_may_change_and_a_write_by_an_open_file_is_no_new_change() {
    for (flags, may) in [(0, false), (1, true), (2, true), (0o1000, true), (0o2000, false)] {
        assert_eq!(FuseOperation::Open { flags }.may_change(), may, "{flags:o}");
    }
    assert!(FuseOperation::Unlink { name: b"file" }.may_change());
    assert!(!FuseOperation::Lookup { name: b"file" }.may_change());
}
