use super::*;

#[test]
fn names_of_1_to_255_bytes_pass_and_256_do_not() {
    assert_eq!(check_entry(&[b'a'; 255]), Ok(()));
    assert_eq!(check_entry(&[b'a'; 256]), Err(VolumeError::NameTooLong { bytes: 256 }));
    assert_eq!(check_entry(b"\xff\xfe"), Ok(()));
    assert!(check_entry(b"").is_err());
}

#[test]
fn separators_and_dots_are_no_entries() {
    for name in [&b"a/b"[..], b"/", b"a\0", b"\0", b".", b".."] {
        assert!(matches!(check_entry(name), Err(VolumeError::Invalid { .. })), "{name:?}");
    }
    assert_eq!(check_entry(b"..."), Ok(()));
    assert_eq!(check(b".."), Ok(()));
}

#[test]
fn mount_paths_fall_into_names() {
    assert_eq!(components(b"").unwrap(), Vec::<&[u8]>::new());
    assert_eq!(components(b"///").unwrap(), Vec::<&[u8]>::new());
    assert_eq!(components(b"/a//b/./c/").unwrap(), [b"a", b"b", b"c"]);
    assert_eq!(components(b"../x").unwrap(), [&b".."[..], b"x"]);
    assert!(components(b"/a\0b").is_err());
    assert!(components(&[b'/'; 1025]).is_err());
    assert!(components(&[b'a'; 256]).is_err());
}

#[test]
fn link_targets_may_have_slashes() {
    assert_eq!(check_target(b"../../etc/passwd"), Ok(()));
    assert!(check_target(b"").is_err());
    assert!(check_target(b"a\0").is_err());
    assert!(check_target(&[b'a'; 4096]).is_err());
    assert_eq!(check_target(&[b'a'; 4095]), Ok(()));
}
