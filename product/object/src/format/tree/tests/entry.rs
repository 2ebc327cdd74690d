use super::super::*;

#[test]
fn entries_are_read_as_written_whatever_bytes_the_name_has() {
    let every: Vec<u8> = (1..=255).filter(|byte| *byte != b'/').collect();
    for name in [&b"a"[..], b"\xff\xfe", &every, &[b'n'; NAME_BYTES_MAX]] {
        let key = Entry::key(9, name);
        let entry = Entry { name: name.to_vec(), ino: u64::MAX, kind: Kind::Socket };
        let value = Entry::value(entry.ino, entry.kind);
        assert_eq!(Entry::decode(&key, &value), Ok(entry));
        assert!(Entry::decode(&key, &value[1..]).is_err());
        assert!(
            Entry::position_key(9, Window::position(name)) < key
                && key < Entry::position_key(9, Window::position(name) + 1)
        );
        let mut moved = key.clone();
        moved[12] ^= 1;
        assert!(Entry::decode(&moved, &value).is_err(), "another place");
    }
    let long = Entry::key(9, &[b'n'; NAME_BYTES_MAX + 1]);
    assert!(Entry::decode(&long, &Entry::value(1, Kind::Regular)).is_err());
    assert!(Entry::decode(&Entry::position_key(9, 3), &Entry::value(1, Kind::Regular)).is_err(), "no name");
}
