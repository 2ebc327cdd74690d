mod entry;

use super::*;

fn inode(content: Content) -> InodeRecord {
    let time = |seconds, nanos| Timestamp { seconds, nanos };
    InodeRecord {
        mode: 0o7755,
        links: 3,
        uid: 1_000,
        gid: u32::MAX - 1,
        accessed: time(-7, 999_999_999),
        modified: time(1, 2),
        modified_set: time(3, 4),
        changed: time(i64::MAX, 5),
        changes: 6,
        has_xattrs: true,
        acls: Acls::default(),
        content,
    }
}

fn contents() -> Vec<Content> {
    let target = Bytes::from(vec![b'x'; TARGET_BYTES_MAX]);
    vec![
        Content::Regular,
        Content::Directory { parent: ROOT, entries: u64::MAX },
        Content::Symlink(Bytes::from_static(b"t")),
        Content::Symlink(target),
        Content::BlockDevice { major: 1, minor: u32::MAX },
        Content::CharDevice { major: u32::MAX, minor: 0 },
        Content::Fifo,
        Content::Socket,
    ]
}

#[test]
fn inodes_are_read_as_written_and_no_shorter_or_longer_ones() {
    for content in contents() {
        let inode = inode(content);
        let value = inode.encode();
        assert_eq!(InodeRecord::decode(&value), Ok(inode.clone()));
        let mut longer = value.clone();
        longer.push(1);
        let cut = InodeRecord::decode(&value[..value.len() - 1]);
        match &inode.content {
            Content::Symlink(target) if target.len() > 1 => {
                assert!(InodeRecord::decode(&longer).is_err() && cut.is_ok())
            }
            Content::Symlink(_) => assert!(cut.is_err()),
            _ => assert!(InodeRecord::decode(&longer).is_err() && cut.is_err(), "{inode:?}"),
        }
    }
    assert_eq!(inode(Content::Regular).encode().len(), 71);
}

#[test]
fn values_out_of_range_are_refused_with_the_reason() {
    let value = inode(Content::Directory { parent: 5, entries: 0 }).encode();
    let with = |at: usize, byte: u8| {
        let mut value = value.clone();
        value[at] = byte;
        InodeRecord::decode(&value).unwrap_err().to_string()
    };
    assert_eq!(with(0, 8), "the kind of an object is 8 instead of 1 to 7");
    assert_eq!(with(1, 0x10), "the mode of an inode is 4333 instead of 0 to 4095");
    assert!(with(23, 0xff).starts_with("the nanoseconds of a time is"));
    assert_eq!(with(78, 0), "the parent of a directory is 0 instead of 1 to 18446744073709551615");
    assert_eq!(InodeRecord::decode(&[]).unwrap_err().to_string(), "an inode has 0 bytes instead of 71 to 5455");
}

#[test]
fn numbers_of_epochs_are_apart_and_bounded() {
    assert_eq!(ino(1, 0), Ok(1 << 40));
    assert_eq!(ino(EPOCH_MAX, (1 << 40) - 1), Ok(u64::MAX));
    assert!(ino(1, 1 << 40).is_err() && ino(0, 1).is_err() && ino(EPOCH_MAX + 1, 1).is_err());
    assert_eq!(InodeRecord::unnamed(&InodeRecord::unnamed_key(77)), Ok(77));
    assert!(InodeRecord::unnamed(b"o").is_err());
}

#[test]
fn lists_are_between_the_numbers_and_the_content() {
    use crate::format::acl::{AccessAcl, Acl};
    let content = Content::Directory { parent: ROOT, entries: 1 };
    let plain = inode(content).encode();
    let access = Some(AccessAcl { group: 1, named: Vec::new() }.into());
    let default = Some(Acl { owner: 1, group: 2, mask: None, others: 3, named: Vec::new() }.into());
    for acls in [Acls { access, ..Acls::default() }, Acls { default, ..Acls::default() }] {
        let inode = InodeRecord { acls, ..InodeRecord::decode(&plain).unwrap() };
        let value = inode.encode();
        assert_eq!(InodeRecord::decode(&value), Ok(inode));
        assert_eq!(value[value.len() - 16..], plain[plain.len() - 16..]);
        assert!(InodeRecord::decode(&value[..value.len() - 1]).is_err());
    }
}
