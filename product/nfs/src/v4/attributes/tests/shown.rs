use std::sync::LazyLock;

use afflux_volume::Kind;

use super::super::super::attributes::known;
use super::super::*;

const FOUND: Attributes = Attributes {
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
    atime: Timestamp { seconds: 1, nanos: 5 },
    mtime: Timestamp { seconds: 2, nanos: 5 },
    ctime: Timestamp { seconds: 3, nanos: 5 },
};

const OF_ITS_HOST: OfHost = OfHost {
    space: Space {
        total_bytes: 100,
        free_bytes: 50,
        available_bytes: 40,
        total_files: 10,
        free_files: 5,
        available_files: 4,
    },
    limits: PathLimits { links_max: 9, name_max: 255, no_trunc: true, case_insensitive: false, case_preserving: true },
    file_bytes_max: 1 << 50,
};

/// An empty list of each kind.
static LISTS: LazyLock<ShownAcls> =
    LazyLock::new(|| ShownAcls { are_supported: true, default: vec![0; 4], access: vec![0; 4] });

fn shown(handle: &[u8]) -> Shown<'_> {
    Shown {
        handle,
        attributes: &FOUND,
        mounted_on: 12,
        time_unit_ns: 1,
        of_host: Some(&OF_ITS_HOST),
        acls: Some(&LISTS),
    }
}

fn written(asked: Bitmap, minor: u32) -> Vec<u8> {
    let mut writer = Writer::default();
    write(&mut writer, &asked, &shown(b"handle"), &known(minor, true, true));
    writer.into_bytes()
}

fn values(which: Bitmap, bytes: &[u8]) -> (Fattr, Vec<u8>) {
    (Fattr { which, values: (0..bytes.len()).into() }, bytes.to_vec())
}

#[test]
fn a_reply_has_the_known_attributes_in_their_order() {
    let bytes = written(Bitmap::of(&[n::SIZE, 1, n::FILEID, n::OWNER]), 1);
    let mut reader = Reader::new(&bytes);
    assert_eq!(bitmap(&mut reader).unwrap(), Bitmap::of(&[1, n::SIZE, n::FILEID, n::OWNER]));
    let mut reader = Reader::new(reader.opaque(1000).unwrap());
    assert_eq!((reader.u32(), reader.u64(), reader.u64()), (Ok(1), Ok(4097), Ok(12)));
    assert_eq!(reader.opaque(10), Ok(&b"1000"[..]));
}

#[test]
fn all_attributes_are_written_to_their_ends_and_lists_of_nfs_are_not_among_them() {
    const ACCESS_LIST: u32 = 12;
    for minor in [1, 2] {
        let all = Bitmap { words: [u32::MAX; BITMAP_WORDS], has_more: true };
        let bytes = written(all, minor);
        let mut reader = Reader::new(&bytes);
        let given = bitmap(&mut reader).unwrap();
        assert!(!given.has(ACCESS_LIST) && !given.has(n::TIME_ACCESS_SET) && !given.has(n::TIME_MODIFY_SET));
        assert_eq!(given.has(n::CHANGE_ATTR_TYPE), minor == 2);
        reader.opaque(4096).unwrap();
        assert_eq!(reader.position(), bytes.len());
        // They are the same as themselves.
        let alike = Bitmap { words: std::array::from_fn(|at| given.words[at]), has_more: false };
        let compared =
            Bitmap { words: [alike.words[0] & !(1 << n::RDATTR_ERROR), alike.words[1], alike.words[2]], ..alike };
        let compared = compared.without(OF_ACLS);
        let bytes = written(compared, minor);
        let mut reader = Reader::new(&bytes);
        bitmap(&mut reader).unwrap();
        let (values, record) = values(compared, reader.opaque(4096).unwrap());
        assert_eq!(are_same(&values, &record, &shown(b"handle"), &known(minor, true, true)), Ok(true));
        assert_eq!(are_same(&values, &record, &shown(b"another"), &known(minor, true, true)), Ok(false));
    }
}

/// The values behind a set of attributes.
fn values_of(asked: Bitmap) -> Vec<u8> {
    let bytes = written(asked, 2);
    let mut reader = Reader::new(&bytes);
    assert_eq!(bitmap(&mut reader).unwrap().words, asked.words);
    reader.opaque(BYTES_MAX).unwrap().to_vec()
}

#[test]
fn values_stand_in_the_order_of_their_numbers() {
    let all = known(2, true, true);
    let shown =
        (0..32 * BITMAP_WORDS as u32).filter(|number| all.has(*number) && !Bitmap::of(&[*number]).has_any(ONLY_SET));
    let numbers: Vec<u32> = shown.collect();
    let each: Vec<Vec<u8>> = numbers.iter().map(|number| values_of(Bitmap::of(&[*number]))).collect();
    assert!(each.iter().all(|value| !value.is_empty()), "each has a value");
    assert_eq!(values_of(Bitmap::of(&numbers)), each.concat());
}

#[test]
fn the_usual_set_is_written_as_each_of_its_attributes_by_itself() {
    let longest = Attributes { uid: u32::MAX, gid: u32::MAX, ..FOUND };
    let values_of = |asked: Bitmap| {
        let mut writer = Writer::default();
        let shown = Shown { attributes: &longest, ..shown(b"handle") };
        write(&mut writer, &asked, &shown, &known(2, false, false));
        let bytes = writer.into_bytes();
        assert_eq!(bitmap(&mut Reader::new(&bytes)).unwrap(), asked);
        bytes[bytes.len() - sent_bytes(&bytes)..].to_vec()
    };
    let usual = Bitmap { words: USUAL, has_more: false };
    let numbers = (0..32 * BITMAP_WORDS as u32).filter(|number| usual.has(*number));
    let each: Vec<Vec<u8>> = numbers.map(|number| values_of(Bitmap::of(&[number]))).collect();
    assert_eq!(values_of(usual), each.concat());
}

#[test]
fn users_are_written_as_digits_with_padding() {
    for (number, digits) in
        [(0, "0"), (9, "9"), (10, "10"), (1000, "1000"), (12_345, "12345"), (u32::MAX, "4294967295")]
    {
        let (mut bytes, mut writer) = ([0; BYTES_MAX], Writer::default());
        let mut values = Values(&mut bytes);
        values.user(number);
        let len = BYTES_MAX - values.0.len();
        writer.opaque(digits.as_bytes());
        assert_eq!(bytes[..len], writer.into_bytes());
    }
}
