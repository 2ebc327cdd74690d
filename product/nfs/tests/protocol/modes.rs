//! The modes of new objects: a client's umask, and the default access control list of a directory (RFC 8275).

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use afflux_nfs_client::Fields;
use afflux_nfs_client::sessions::{Compound, Session};
use rustix::fs::{CWD, Mode, OFlags, XattrFlags, mkdirat, openat, setxattr};

use crate::compounds::{BOTH, begun, open, ops, root, status};
use crate::world::World;

/// mode and mode_umask.
const MODE: [u32; 3] = [0, 1 << (33 - 32), 0];
const MODE_UMASK: [u32; 3] = [0, 0, 1 << (81 - 64)];
const OPEN: u32 = 18;
const CREATE: u32 = 6;
const SETATTR: u32 = 34;
const VERIFY: u32 = 37;
const NVERIFY: u32 = 17;
const ATTRNOTSUPP: u32 = 10_032;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn opaque(bytes: &[u8]) -> Vec<u8> {
    Fields::default().opaque(bytes).0
}

/// A set of attributes and their values.
fn values(which: &[u32], of: &[u32]) -> Vec<u8> {
    [words(&[which.len() as u32]), words(which), opaque(&words(of))].concat()
}

/// The ways to make an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Unchecked,
    Guarded,
    Exclusive,
    Directory,
    Fifo,
}
const WAYS: [Way; 5] = [Way::Unchecked, Way::Guarded, Way::Exclusive, Way::Directory, Way::Fifo];

fn make(way: Way, name: &str, attributes: &[u8]) -> Compound {
    let name = opaque(name.as_bytes());
    let opening = |how: &[u32], verifier: &[u8]| {
        let head = [words(&[0, BOTH, 0, 0, 0]), opaque(b"owner"), words(&[1]), words(how), verifier.to_vec()].concat();
        ops().raw(OPEN, &[&head, attributes, &words(&[0]), &name].concat())
    };
    match way {
        Way::Unchecked => opening(&[0], b""),
        Way::Guarded => opening(&[1], b""),
        Way::Exclusive => opening(&[3], b"verifier"),
        Way::Directory => ops().raw(CREATE, &[&words(&[2]), &name, attributes].concat()),
        Way::Fifo => ops().raw(CREATE, &[&words(&[7]), &name, attributes].concat()),
    }
}

fn mode_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// A list that lets one more user read and write, and others nothing.
fn default_acl() -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    let entries = [(1_u16, 7_u16, NOBODY), (2, 7, 2000), (4, 7, NOBODY), (0x10, 7, NOBODY), (0x20, 0, NOBODY)];
    let entry = |(tag, rights, id): (u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [2_u32.to_le_bytes().to_vec()].into_iter().chain(entries.map(entry)).flatten().collect()
}

/// The modes and umasks of programs. The list of these tests takes each bit of others.
const MASKED: [(u32, u32); 7] =
    [(0o666, 0o022), (0o777, 0o077), (0o644, 0o027), (0o600, 0o777), (0o775, 0), (0o1777, 0o002), (0o4755, 0o022)];

#[test]
fn without_a_default_list_the_umask_takes_its_bits() {
    let (world, mut session) = begun(2);
    for way in WAYS {
        for (mode, umask) in MASKED {
            let name = format!("{way:?} {mode:o} {umask:o}");
            session.must(root().followed_by(&make(way, &name, &values(&MODE_UMASK, &[mode, umask])))).unwrap();
            assert_eq!(mode_of(&world.path.join(&name)), mode & !umask, "{name}");
        }
    }
    assert!(fs::symlink_metadata(world.path.join("Fifo 666 22")).unwrap().file_type().is_fifo());
}

/// Two directories with the same default list. The second one is for programs of the host.
fn listed() -> Option<(World, Session)> {
    let (world, mut session) = begun(2);
    for name in ["served", "plain"] {
        session.must(root().make_directory(name.as_bytes())).unwrap();
        let path = world.path.join(name);
        if setxattr(path, "system.posix_acl_default", &default_acl(), XattrFlags::empty()).is_err() {
            afflux_scratch::skipped!("the file system of the temporary directory has no access control lists");
            return None;
        }
    }
    Some((world, session))
}

// The host's own rule is the reference: a list is in place of the umask there.
#[test]
fn a_default_list_stands_in_for_the_umask_as_on_the_host() {
    let Some((world, mut session)) = listed() else { return };
    for way in WAYS {
        for (mode, umask) in MASKED {
            let name = format!("{way:?} {mode:o} {umask:o}");
            let made = make(way, &name, &values(&MODE_UMASK, &[mode, umask]));
            session.must(root().lookup(b"served").followed_by(&made)).unwrap();
            let (plain, bits) = (world.path.join("plain").join(&name), Mode::from_raw_mode(mode & 0o777));
            match way {
                Way::Directory => mkdirat(CWD, &plain, bits).unwrap(),
                _ => drop(openat(CWD, &plain, OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY, bits).unwrap()),
            }
            let served = mode_of(&world.path.join("served").join(&name));
            assert_eq!(served, mode_of(&plain) | mode & 0o7000, "{name}");
        }
    }
}

// A client that repeats an exclusive creation finds its file, with the mode of the first call.
#[test]
fn an_exclusive_creation_with_a_umask_may_come_twice() {
    let (world, mut session) = begun(2);
    let first = make(Way::Exclusive, "file", &values(&MODE_UMASK, &[0o666, 0o022]));
    session.must(root().followed_by(&first)).unwrap();
    let again = make(Way::Exclusive, "file", &values(&MODE_UMASK, &[0o666, 0o077]));
    session.must(root().followed_by(&again)).unwrap();
    assert_eq!(mode_of(&world.path.join("file")), 0o644);
}

#[test]
fn a_mode_with_a_umask_is_for_new_objects_alone_and_stands_alone() {
    let (_world, mut session) = begun(2);
    let (_, file) = open(&mut session, (BOTH, 0), b"owner", b"there");
    let mut status_of = |it: Compound| session.call(it).unwrap().status;
    let both = values(&[0, MODE[1], MODE_UMASK[2]], &[0o644, 0o644, 0o022]);
    let given = values(&MODE_UMASK, &[0o666, 0o022]);
    for way in WAYS {
        let mut made = |attributes: &[u8]| status_of(root().followed_by(&make(way, "new", attributes)));
        assert_eq!(made(&both), status::INVAL, "{way:?}: a mode, and one with a umask");
        assert_eq!(made(&values(&MODE_UMASK, &[0o666, 0o1022])), status::INVAL, "{way:?}: no umask");
        assert_eq!(made(&values(&MODE_UMASK, &[0o10666, 0])), status::INVAL, "{way:?}: no mode");
        assert_eq!(made(&values(&MODE_UMASK, &[0o666])), status::BADXDR, "{way:?}: half of it");
    }
    for (number, head) in [(SETATTR, vec![0; 16]), (VERIFY, vec![]), (NVERIFY, vec![])] {
        let asked = ops().put(&file).raw(number, &[head, given.clone()].concat());
        assert_eq!(status_of(asked), status::INVAL, "operation {number}");
    }
    assert_eq!(status_of(ops().put(&file).attributes(&MODE_UMASK)), status::INVAL, "nothing can be read");
}

#[test]
fn a_umask_is_offered_by_4_2_alone() {
    /// supported_attrs and suppattr_exclcreat.
    const SUPPORTED: [u32; 1] = [1];
    const EXCLUSIVELY: [u32; 3] = [0, 0, 1 << (75 - 64)];
    for minor in [1, 2] {
        let (_world, mut session) = begun(minor);
        for asked in [&SUPPORTED[..], &EXCLUSIVELY] {
            let answer = session.must(root().attributes(asked)).unwrap();
            let mut reader = answer.reader();
            reader.next_result().unwrap();
            reader.next_result().unwrap();
            let (_, values) = reader.attributes().unwrap();
            let words: Vec<u32> = values.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
            let third = words.get(3).copied().unwrap_or(0);
            assert_eq!(third & MODE_UMASK[2] != 0, minor == 2, "{asked:?} by 4.{minor}");
        }
        let made = make(Way::Guarded, "new", &values(&MODE_UMASK, &[0o666, 0o022]));
        let wanted = if minor == 2 { 0 } else { ATTRNOTSUPP };
        assert_eq!(session.call(root().followed_by(&made)).unwrap().status, wanted, "4.{minor}");
    }
}
