use bytes::Bytes;
use nfs3_types::nfs3::*;
use nfs3_types::xdr_codec::{Opaque, Pack};

use super::*;

fn packed(arguments: &impl Pack) -> Bytes {
    let mut bytes = Vec::new();
    arguments.pack(&mut bytes).unwrap();
    bytes.into()
}

fn handle(byte: u8) -> nfs_fh3 {
    nfs_fh3 { data: Opaque::owned(vec![byte; 33]) }
}

fn diropargs(byte: u8, name: &'static [u8]) -> diropargs3<'static> {
    diropargs3 { dir: handle(byte), name: name.into() }
}

fn full_change() -> sattr3 {
    sattr3 {
        mode: Nfs3Option::Some(0o100_644),
        uid: Nfs3Option::Some(1),
        gid: Nfs3Option::Some(2),
        size: Nfs3Option::Some(3),
        atime: set_atime::SET_TO_SERVER_TIME,
        mtime: set_mtime::SET_TO_CLIENT_TIME(nfstime3 { seconds: u32::MAX, nseconds: 999_999_999 }),
    }
}

fn is_full(change: &AttributeChange) -> bool {
    let mtime = SetTime::To(Timestamp { seconds: u32::MAX.into(), nanos: 999_999_999 });
    *change
        == AttributeChange {
            mode: Some(0o644),
            umask: 0,
            uid: Some(1),
            gid: Some(2),
            size: Some(3),
            atime: SetTime::ServerNow,
            mtime,
        }
}

fn is_place(record: &[u8], diropargs: &DirOpArgs, byte: u8, name: &[u8]) -> bool {
    record[diropargs.directory.range()] == [byte; 33] && record[diropargs.name.range()] == *name
}

type Sample = (u32, Bytes, fn(&Arguments, &[u8]) -> bool);

/// Every procedure's arguments, written by another implementation, and a check of our decoder's result.
fn samples() -> Vec<Sample> {
    use Arguments as A;
    let device = || devicedata3 { dev_attributes: full_change(), spec: specdata3 { specdata1: 8, specdata2: 1 } };
    let guard = Nfs3Option::Some(nfstime3 { seconds: 5, nseconds: 6 });
    vec![
        (0, Bytes::new(), |a, _| matches!(a, A::Null)),
        (1, packed(&GETATTR3args { object: handle(1) }), |a, _| matches!(a, A::GetAttributes)),
        (
            2,
            packed(&SETATTR3args { object: handle(1), new_attributes: full_change(), guard }),
            |a, _| matches!(a, A::SetAttributes { change, guard: Some(Timestamp { seconds: 5, nanos: 6 }) } if is_full(change)),
        ),
        (
            2,
            packed(&SETATTR3args { object: handle(1), new_attributes: sattr3::default(), guard: Nfs3Option::None }),
            |a, _| {
                let unchanged = AttributeChange {
                    mode: None,
                    umask: 0,
                    uid: None,
                    gid: None,
                    size: None,
                    atime: SetTime::Keep,
                    mtime: SetTime::Keep,
                };
                matches!(a, A::SetAttributes { change, guard: None } if *change == unchanged)
            },
        ),
        (
            3,
            packed(&LOOKUP3args { what: diropargs(2, b"name") }),
            |a, r| matches!(a, A::Lookup { name } if r[name.range()] == *b"name"),
        ),
        (4, packed(&ACCESS3args { object: handle(1), access: 0x3f }), |a, _| matches!(a, A::Access { wanted: 0x3f })),
        (5, packed(&READLINK3args { symlink: handle(1) }), |a, _| matches!(a, A::ReadLink)),
        (6, packed(&READ3args { file: handle(1), offset: u64::MAX, count: 7 }), |a, _| {
            matches!(a, A::Read(Extent { offset: u64::MAX, count: 7 }))
        }),
        (
            7,
            packed(&WRITE3args {
                file: handle(1),
                offset: 1 << 40,
                count: 5,
                stable: stable_how::DATA_SYNC,
                data: Opaque::borrowed(b"bytes"),
            }),
            |a, r| {
                matches!(a, A::Write { extent: Extent { offset, count: 5 }, stability: Stability::DataSync, data }
                    if *offset == 1 << 40 && r[data.range()] == *b"bytes")
            },
        ),
        (8, packed(&CREATE3args { where_: diropargs(3, b"c"), how: createhow3::UNCHECKED(full_change()) }), |a, r| {
            matches!(a, A::Create { name, creation: Creation::Unchecked(change) }
                if r[name.range()] == *b"c" && is_full(change))
        }),
        (
            8,
            packed(&CREATE3args { where_: diropargs(3, b"c"), how: createhow3::GUARDED(full_change()) }),
            |a, _| matches!(a, A::Create { creation: Creation::Guarded(change), .. } if is_full(change)),
        ),
        (
            8,
            packed(&CREATE3args { where_: diropargs(3, b"c"), how: createhow3::EXCLUSIVE(createverf3(*b"verifier")) }),
            |a, _| matches!(a, A::Create { creation: Creation::Exclusive(verifier), .. } if verifier == b"verifier"),
        ),
        (
            9,
            packed(&MKDIR3args { where_: diropargs(4, b"d"), attributes: full_change() }),
            |a, r| matches!(a, A::MakeDirectory { name, change } if r[name.range()] == *b"d" && is_full(change)),
        ),
        (
            10,
            packed(&SYMLINK3args {
                where_: diropargs(5, b"l"),
                symlink: symlinkdata3 {
                    symlink_attributes: full_change(),
                    symlink_data: nfspath3::from(&b"../target"[..]),
                },
            }),
            |a, r| {
                matches!(a, A::Symlink { name, change, target }
                    if r[name.range()] == *b"l" && is_full(change) && r[target.range()] == *b"../target")
            },
        ),
        (11, packed(&MKNOD3args { where_: diropargs(6, b"n"), what: mknoddata3::NF3CHR(device()) }), |a, r| {
            matches!(a, A::MakeNode { name, node: MadeNode::Special(SpecialKind::CharDevice { major: 8, minor: 1 }, change) }
                if r[name.range()] == *b"n" && is_full(change))
        }),
        (11, packed(&MKNOD3args { where_: diropargs(6, b"n"), what: mknoddata3::NF3BLK(device()) }), |a, _| {
            matches!(a, A::MakeNode { node: MadeNode::Special(SpecialKind::BlockDevice { major: 8, minor: 1 }, _), .. })
        }),
        (
            11,
            packed(&MKNOD3args { where_: diropargs(6, b"n"), what: mknoddata3::NF3SOCK(full_change()) }),
            |a, _| matches!(a, A::MakeNode { node: MadeNode::Special(SpecialKind::Socket, change), .. } if is_full(change)),
        ),
        (
            11,
            packed(&MKNOD3args { where_: diropargs(6, b"n"), what: mknoddata3::NF3FIFO(full_change()) }),
            |a, _| matches!(a, A::MakeNode { node: MadeNode::Special(SpecialKind::Fifo, change), .. } if is_full(change)),
        ),
        (
            12,
            packed(&REMOVE3args { object: diropargs(7, b"r") }),
            |a, r| matches!(a, A::Remove { name } if r[name.range()] == *b"r"),
        ),
        (
            13,
            packed(&RMDIR3args { object: diropargs(7, b"r") }),
            |a, r| matches!(a, A::RemoveDirectory { name } if r[name.range()] == *b"r"),
        ),
        (
            14,
            packed(&RENAME3args { from: diropargs(8, b"from"), to: diropargs(9, b"to") }),
            |a, r| matches!(a, A::Rename { name, to } if r[name.range()] == *b"from" && is_place(r, to, 9, b"to")),
        ),
        (
            15,
            packed(&LINK3args { file: handle(1), link: diropargs(9, b"two") }),
            |a, r| matches!(a, A::Link(diropargs) if is_place(r, diropargs, 9, b"two")),
        ),
        (
            16,
            packed(&READDIR3args { dir: handle(1), cookie: 3, cookieverf: cookieverf3([9; 8]), count: 512 }),
            |a, _| {
                matches!(a, A::List(request) if request.cookie == 3 && !request.with_attributes
                    && request.result_bytes_max == 512 && request.directory_bytes_max == u32::MAX)
            },
        ),
        (
            17,
            packed(&READDIRPLUS3args {
                dir: handle(1),
                cookie: 4,
                cookieverf: cookieverf3([9; 8]),
                dircount: 512,
                maxcount: u32::MAX,
            }),
            |a, _| {
                matches!(a, A::List(request) if request.cookie == 4 && request.with_attributes
                    && request.result_bytes_max == LISTING_BYTES_MAX && request.directory_bytes_max == 512)
            },
        ),
        (18, packed(&FSSTAT3args { fsroot: handle(1) }), |a, _| matches!(a, A::FileSystemSpace)),
        (19, packed(&FSINFO3args { fsroot: handle(1) }), |a, _| matches!(a, A::FileSystemInformation)),
        (20, packed(&PATHCONF3args { object: handle(1) }), |a, _| matches!(a, A::PathLimits)),
        (21, packed(&COMMIT3args { file: handle(1), offset: 4096, count: 0 }), |a, _| {
            matches!(a, A::Commit(Extent { offset: 4096, count: 0 }))
        }),
    ]
}

#[test]
fn reads_what_another_implementation_writes() {
    for (at, (procedure, bytes, is_same)) in samples().into_iter().enumerate() {
        // The arguments may start anywhere in the record.
        for before in [0, 4, 40] {
            let record = Bytes::from([&vec![0xee; before], &bytes[..]].concat());
            let NfsCall { handle, arguments } = Arguments::decode(procedure, &record, before).unwrap();
            // Its length is before a handle.
            assert_eq!(handle.map(|handle| &record[handle.range()]), bytes.get(4..4 + 33), "sample {at}");
            assert!(is_same(&arguments, &record), "sample {at}, procedure {procedure}");
        }
    }
}

#[test]
fn refuses_arguments_that_end_early_and_ignores_what_follows_them() {
    for (procedure, bytes, is_same) in samples() {
        for len in 0..bytes.len() {
            assert!(Arguments::decode(procedure, &bytes.slice(..len), 0).is_err(), "{procedure} cut to {len}");
        }
        let longer = Bytes::from([&bytes[..], b"more"].concat());
        assert!(Arguments::decode(procedure, &longer, 0).is_ok_and(|call| is_same(&call.arguments, &longer)));
    }
}

#[test]
fn survives_every_changed_byte() {
    for (procedure, bytes, _) in samples() {
        for at in 0..bytes.len() {
            for value in [0, 1, 2, 3, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.to_vec();
                changed[at] = value;
                let _ = Arguments::decode(procedure, &changed, 0);
            }
        }
    }
}

#[test]
fn refuses_values_that_the_protocol_does_not_have() {
    let decode = |procedure, bytes: &[u8]| Arguments::decode(procedure, bytes, 0);
    // A handle of 65 bytes.
    let long = packed(&GETATTR3args { object: nfs_fh3 { data: Opaque::owned(vec![0; 65]) } });
    assert_eq!(decode(1, &long).err(), Some(XdrError::TooLong { len: 65, max: 64 }));
    let last_word = |procedure, sample: &Bytes, at: usize, value: u32| {
        let mut bytes = sample.to_vec();
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        decode(procedure, &bytes).err()
    };
    let place_bytes = packed(&diropargs(3, b"c")).len();
    let create = packed(&CREATE3args { where_: diropargs(3, b"c"), how: createhow3::UNCHECKED(sattr3::default()) });
    assert!(matches!(last_word(8, &create, place_bytes, 3), Some(XdrError::Value { field: "createmode", .. })));
    assert!(matches!(last_word(8, &create, place_bytes + 4, 2), Some(XdrError::Value { field: "set_mode", .. })));
    assert!(matches!(last_word(8, &create, place_bytes + 20, 3), Some(XdrError::Value { field: "time_how", .. })));
    let node = packed(&MKNOD3args { where_: diropargs(3, b"c"), what: mknoddata3::NF3FIFO(sattr3::default()) });
    for kind in [0, 8] {
        assert!(matches!(last_word(11, &node, place_bytes, kind), Some(XdrError::Value { field: "ftype", .. })));
    }
    // Kinds that have procedures of their own are well-formed, and refused by status.
    for kind in [1, 2, 5] {
        assert!(last_word(11, &node, place_bytes, kind).is_none());
    }
}

#[test]
fn knows_which_calls_must_not_run_twice() {
    let once: Vec<u32> = samples()
        .into_iter()
        .filter(|(procedure, bytes, _)| Arguments::decode(*procedure, bytes, 0).unwrap().arguments.needs_cached_reply())
        .map(|(procedure, ..)| procedure)
        .collect();
    // Of the three modes of CREATE, the exclusive one recognizes a repetition by itself.
    assert_eq!(once, [2, 2, 8, 8, 9, 10, 11, 11, 11, 11, 12, 13, 14, 15]);
}

#[test]
fn takes_as_much_of_a_write_as_was_received() {
    let write = |data: &[u8]| {
        let data = Opaque::owned(data.to_vec());
        packed(&WRITE3args { file: handle(1), offset: 0, count: 2 << 20, stable: stable_how::UNSTABLE, data })
    };
    let received = write(&vec![7; 2 << 20]).slice(..RECORD_BYTES_MAX);
    let Arguments::Write { data, .. } = Arguments::decode(7, &received, 0).unwrap().arguments else { panic!() };
    let data = &received[data.range()];
    assert!(data.len() > RECORD_BYTES_MAX - 100 && data.iter().all(|&byte| byte == 7));
    // A shorter record was received whole, so that its length field is wrong.
    let cut = received.slice(..RECORD_BYTES_MAX - 1);
    assert!(matches!(Arguments::decode(7, &cut, 0).err(), Some(XdrError::Truncated { .. })));
}
