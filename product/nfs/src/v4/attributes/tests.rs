use std::ops::Range;

use afflux_volume::{Kind, PathLimits};

use super::*;

fn shown(handle: &[u8]) -> Shown<'_> {
    let time = |seconds| Timestamp { seconds, nanos: 5 };
    Shown {
        handle,
        attributes: Attributes {
            kind: Kind::Regular,
            mode: 0o640,
            links: 2,
            uid: 1000,
            gid: 0,
            size: 4097,
            used: 8192,
            device_major: 0,
            device_minor: 0,
            fsid: 77,
            fileid: 12,
            atime: time(1),
            mtime: time(2),
            ctime: time(3),
        },
        mounted_on: 12,
        time_unit_ns: 1,
        of_host: Some(OfHost {
            space: Space {
                total_bytes: 100,
                free_bytes: 50,
                available_bytes: 40,
                total_files: 10,
                free_files: 5,
                available_files: 4,
            },
            limits: PathLimits {
                links_max: 9,
                name_max: 255,
                no_trunc: true,
                case_insensitive: false,
                case_preserving: true,
            },
            file_bytes_max: 1 << 50,
        }),
    }
}

fn written(asked: Bitmap, minor: u32) -> Vec<u8> {
    let mut writer = Writer::default();
    write(&mut writer, &asked, &shown(b"handle"), &known(minor, false));
    writer.into_bytes()
}

fn values(which: Bitmap, bytes: &[u8]) -> (AttributeValues, Vec<u8>) {
    let all: Range<usize> = 0..bytes.len();
    (AttributeValues { which, values: all.into() }, bytes.to_vec())
}

#[test]
fn a_reply_has_the_known_attributes_in_their_order() {
    let bytes = written(Bitmap::of(&[n::SIZE, 1, n::FILEID, n::OWNER]), 1);
    let mut reader = Reader::new(&bytes);
    assert_eq!(super::super::codec::bitmap(&mut reader).unwrap(), Bitmap::of(&[1, n::SIZE, n::FILEID, n::OWNER]));
    let mut reader = Reader::new(reader.opaque(1000).unwrap());
    assert_eq!((reader.u32(), reader.u64(), reader.u64()), (Ok(1), Ok(4097), Ok(12)));
    assert_eq!(reader.opaque(10), Ok(&b"1000"[..]));
}

#[test]
fn all_attributes_are_written_to_their_ends_and_access_lists_are_not_among_them() {
    const ACCESS_LIST: u32 = 12;
    for minor in [1, 2] {
        let all = Bitmap { words: [u32::MAX; BITMAP_WORDS], has_more: true };
        let bytes = written(all, minor);
        let mut reader = Reader::new(&bytes);
        let given = super::super::codec::bitmap(&mut reader).unwrap();
        assert!(!given.has(ACCESS_LIST) && !given.has_any(ONLY_SET));
        assert_eq!(given.has(n::CHANGE_TYPE), minor == 2);
        reader.opaque(4096).unwrap();
        assert_eq!(reader.position(), bytes.len());
        // They are the same as themselves.
        let known = Bitmap { words: std::array::from_fn(|at| given.words[at]), has_more: false };
        let compared =
            Bitmap { words: [known.words[0] & !(1 << n::RDATTR_ERROR), known.words[1], known.words[2]], ..known };
        let bytes = written(compared, minor);
        let mut reader = Reader::new(&bytes);
        super::super::codec::bitmap(&mut reader).unwrap();
        let (values, record) = values(compared, reader.opaque(4096).unwrap());
        assert_eq!(are_same(&values, &record, &shown(b"handle"), &super::known(minor, false)), Ok(true));
        assert_eq!(are_same(&values, &record, &shown(b"another"), &super::known(minor, false)), Ok(false));
    }
}

#[test]
fn a_change_takes_what_may_be_set_and_refuses_the_rest() {
    let bytes = [&4096_u64.to_be_bytes()[..], &0o600_u32.to_be_bytes(), &[0, 0, 0, 2], b"12\0\0"].concat();
    let (known, record) = values(Bitmap::of(&[n::SIZE, n::MODE, n::OWNER]), &bytes);
    let change_of = |known: &AttributeValues, record: &[u8]| change(known, record, false);
    let wanted = AttributeChange { size: Some(4096), mode: Some(0o600), uid: Some(12), ..AttributeChange::default() };
    assert_eq!(change_of(&known, &record), Ok(wanted));
    let refused: [(&[u32], &[u8], Status); 7] = [
        (&[n::FILEID], &[0; 8], Status::Invalid),
        (&[12], &[0; 4], Status::AttributeNotSupported),
        (&[n::SIZE], &[0; 4], Status::BadXdr),
        (&[n::SIZE], &[0; 12], Status::BadXdr),
        (&[n::SIZE], &[0xff; 8], Status::TooLarge),
        (&[n::OWNER], b"\0\0\0\x04anna", Status::BadOwner),
        (&[n::SET_MODIFY_TIME], &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff], Status::Invalid),
    ];
    for (numbers, bytes, status) in refused {
        let (known, record) = values(Bitmap::of(numbers), bytes);
        assert_eq!(change_of(&known, &record), Err(status), "{numbers:?}");
    }
    let (known, record) = values(Bitmap { has_more: true, ..Bitmap::default() }, &[]);
    assert_eq!(change_of(&known, &record), Err(Status::AttributeNotSupported));
}
