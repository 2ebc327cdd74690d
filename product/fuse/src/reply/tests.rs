use super::*;

#[test]
fn numbers_of_devices_come_back_as_they_were_sent() {
    for (major, minor) in [(0, 0), (8, 1), (0xfff, 0xf_ffff), (259, 0x1_0042)] {
        assert_eq!(device_parts(device_number(major, minor)), (major, minor));
    }
    assert_eq!(device_number(8, 1), 0x801);
}

#[test]
fn a_reply_tells_its_own_length() {
    let reply = ReplyDraft::bytes(&b"12345"[..]).finish(77);
    assert_eq!(reply.head().len(), HEADER_BYTES);
    assert_eq!(reply.head()[..4], 21_u32.to_ne_bytes());
    assert_eq!(reply.head()[8..], 77_u64.to_ne_bytes());
    let reply = failed(Errno::STALE, 5);
    assert_eq!((&reply.head()[..4], &reply.head()[4..8]), (&16_u32.to_ne_bytes()[..], &(-116_i32).to_ne_bytes()[..]));
    assert!(reply.data().is_none());
}

#[test]
fn entries_and_attributes_have_the_sizes_of_the_kernel() {
    let some = Attributes {
        kind: Kind::Directory,
        mode: 0o750,
        links: 2,
        uid: 3,
        gid: 4,
        size: 5,
        used: 4096,
        device_major: 0,
        device_minor: 0,
        fsid: 1,
        fileid: 9,
        atime: Default::default(),
        mtime: Default::default(),
        ctime: Default::default(),
    };
    let valid = Validity { names_ns: 1_500_000_000, attributes_ns: 0 };
    let mut bytes = Vec::new();
    entry_out(&mut bytes, 7, &some, valid);
    assert_eq!(bytes.len(), ENTRY_OUT_BYTES);
    assert_eq!((&bytes[16..24], &bytes[32..36]), (&1_u64.to_ne_bytes()[..], &500_000_000_u32.to_ne_bytes()[..]));
    // st_blocks counts blocks of 512 bytes; the mode has the kind.
    assert_eq!(bytes[56..64], 8_u64.to_ne_bytes());
    assert_eq!(bytes[100..104], 0o040_750_u32.to_ne_bytes());
    bytes.clear();
    attributes_out(&mut bytes, &some, valid);
    assert_eq!(bytes.len(), 104);
    bytes.clear();
    directory_entry(&mut bytes, 1, 2, Some(Kind::Regular), b"name5");
    assert_eq!((bytes.len(), entry_bytes(5, false), entry_bytes(5, true)), (32, 32, 160));
    assert_eq!(bytes[20..24], 8_u32.to_ne_bytes(), "DT_REG");
}

#[test]
fn unused_nodes_are_named_behind_their_count() {
    let notice = notice(NodeNotice::Unused(vec![5, 6]));
    let Some(Segment::Bytes(nodes)) = notice.data() else { panic!() };
    let words: Vec<u32> = notice.head().chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect();
    assert_eq!(words, [16 + 16 + 16, 9, 0, 0, 2, 0, 0, 0]);
    assert_eq!(nodes[..], [5_u64.to_ne_bytes(), 6_u64.to_ne_bytes()].concat());
}
