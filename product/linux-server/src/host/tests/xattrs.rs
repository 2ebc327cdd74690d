//! Extended attributes and access control lists of the host.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};

use afflux_volume::{Caller, Use, XATTR_BYTES_MAX, XattrChange};

use super::*;

const USER: u32 = 4321;
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
const DEFAULT_LIST: &[u8] = b"system.posix_acl_default";

fn set(world: &World, caller: &Caller, inode: &Object, name: &[u8], value: &[u8]) -> Result<(), VolumeError> {
    let change = XattrChange::Set(Bytes::copy_from_slice(value));
    world.run(world.volume.change_xattr_by(caller, inode, name, change)).result
}

fn get(world: &World, caller: &Caller, inode: &Object, name: &[u8]) -> Result<Bytes, VolumeError> {
    world.run(world.volume.xattr_by(caller, inode, name))
}

/// The kernel's form of a list: the three classes, one more user, and the mask.
fn list(owner: u16, user: (u32, u16), group: u16, mask: u16, others: u16) -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    let entries =
        [(1, owner, NOBODY), (2, user.1, user.0), (4, group, NOBODY), (0x10, mask, NOBODY), (0x20, others, NOBODY)];
    let entry = |(tag, rights, id): (u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [2_u32.to_le_bytes().to_vec()].into_iter().chain(entries.map(entry)).flatten().collect()
}

#[test]
fn attributes_are_the_hosts_for_each_kind_of_object() {
    let world = World::new();
    let root = world.root();
    let (file, directory) = (world.create(&root, "file"), world.make_directory(&root, "directory"));
    let own = &Caller::SERVER;
    for (inode, name) in [(&file, "file"), (&directory, "directory")] {
        let before = world.attributes(inode).ctime;
        match set(&world, own, inode, b"user.a", b"value") {
            Err(VolumeError::NotSupported) => {
                return afflux_scratch::skipped!("this file system has no extended attributes");
            }
            set => set.unwrap(),
        }
        assert!(world.attributes(inode).ctime > before, "{name}");
        assert_eq!(get(&world, own, inode, b"user.a").unwrap(), "value");
        let mut value = [0; 10];
        let len = rustix::fs::getxattr(world.host(name), "user.a", &mut value[..]).unwrap();
        assert_eq!(&value[..len], b"value");
        assert!(world.run(world.volume.xattrs_by(own, inode)).unwrap().contains(&Bytes::from_static(b"user.a")));
        let change = |change| world.run(world.volume.change_xattr_by(own, inode, b"user.a", change)).result;
        assert_eq!(change(XattrChange::Create(Bytes::new())), Err(VolumeError::Exists));
        change(XattrChange::Replace(Bytes::new())).unwrap();
        change(XattrChange::Remove).unwrap();
        assert_eq!(change(XattrChange::Remove), Err(VolumeError::NoAttribute));
        assert_eq!(change(XattrChange::Replace(Bytes::new())), Err(VolumeError::NoAttribute));
        assert_eq!(get(&world, own, inode, b"user.a"), Err(VolumeError::NoAttribute));
    }
    // A symbolic link has its own attributes, not its target's.
    let link = world.run(world.volume.symlink(&root, b"link", b"file", AttributeChange::default())).result.unwrap().0;
    assert_eq!(set(&world, own, &link, b"user.a", b"x"), Err(VolumeError::NotPermitted));
    assert_eq!(get(&world, own, &file, b"user.a"), Err(VolumeError::NoAttribute));
    assert_eq!(set(&world, own, &file, b"none.a", b"x"), Err(VolumeError::NotSupported));
    let large = set(&world, own, &file, b"user.a", &[1; XATTR_BYTES_MAX]);
    assert!(matches!(large, Ok(()) | Err(VolumeError::NoSpace | VolumeError::ValueTooLong { .. })), "{large:?}");
    // Of a file that is held without a name, and while its bytes are dirty.
    let held = world.volume.hold(&file).unwrap();
    world.write(&held, 0, b"dirty").result.unwrap();
    world.run(world.volume.remove(&root, b"file")).result.unwrap();
    set(&world, own, &held, b"user.b", b"late").unwrap();
    assert_eq!(get(&world, own, &held, b"user.b").unwrap(), "late");
    assert_eq!(world.read(&held, 0, 9).0, b"dirty");
}

/// Version 2, effective: CAP_NET_BIND_SERVICE.
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn the_host_decides_as_the_caller() {
    if !is_root() {
        afflux_scratch::skipped!("only root can act as others");
        return;
    }
    let world = World::new();
    let root = world.root();
    let (own, theirs) = (world.create(&root, "own"), world.create(&root, "theirs"));
    chown(world.host("own"), Some(USER), Some(USER)).unwrap();
    let user = world.volume.caller(USER, USER, &[]);
    if set(&world, &user, &own, b"user.a", b"1") == Err(VolumeError::NotSupported) {
        return afflux_scratch::skipped!("this file system has no extended attributes");
    }
    set(&world, &Caller::SERVER, &theirs, b"user.a", b"1").unwrap();
    assert_eq!(set(&world, &user, &theirs, b"user.a", b"2"), Err(VolumeError::Denied));
    assert_eq!(get(&world, &user, &theirs, b"user.a").unwrap(), "1", "the mode lets others read");
    let list = list(6, (USER, 6), 4, 6, 4);
    assert_eq!(set(&world, &user, &theirs, ACCESS_LIST, &list), Err(VolumeError::NotPermitted));
    for (name, value) in [(&b"trusted.a"[..], &b"1"[..]), (b"security.a", b"1"), (b"security.capability", &CAPABILITY)]
    {
        assert_eq!(set(&world, &user, &own, name, value), Err(VolumeError::NotPermitted));
        let removed = world.run(world.volume.change_xattr_by(&user, &own, name, XattrChange::Remove)).result;
        assert_eq!(removed, Err(VolumeError::NotPermitted));
    }
    let trusted = rustix::fs::setxattr(world.host("own"), "trusted.a", b"1", rustix::fs::XattrFlags::empty());
    if trusted.is_ok() {
        assert_eq!(get(&world, &user, &own, b"trusted.a"), Err(VolumeError::NoAttribute));
        let seen = world.run(world.volume.xattrs_by(&user, &own)).unwrap();
        assert!(!seen.contains(&Bytes::from_static(b"trusted.a")), "{seen:?}");
        assert_eq!(get(&world, &world.volume.caller(0, 0, &[]), &own, b"trusted.a").unwrap(), "1");
    }
}

#[test]
fn bytes_from_before_do_not_take_a_capability_that_was_set_since() {
    if !is_root() {
        afflux_scratch::skipped!("only root can give a file capabilities");
        return;
    }
    let world = World::new();
    let file = world.create(&world.root(), "file");
    world.write(&file, 0, &[1; 9000]).result.unwrap();
    match set(&world, &Caller::SERVER, &file, b"security.capability", &CAPABILITY) {
        Err(VolumeError::NotSupported | VolumeError::NotPermitted) => {
            return afflux_scratch::skipped!("this file system, or this process, sets no capabilities");
        }
        set => set.unwrap(),
    }
    world.sync(&file);
    assert_eq!(get(&world, &Caller::SERVER, &file, b"security.capability").unwrap()[..], CAPABILITY);
    world.write(&file, 0, b"others").result.unwrap();
    world.sync(&file);
    let taken = get(&world, &Caller::SERVER, &file, b"security.capability");
    assert_eq!(taken, Err(VolumeError::NoAttribute), "later bytes take it");
}

#[test]
fn a_changed_list_counts_at_once() {
    if !is_root() {
        afflux_scratch::skipped!("only root can act as others");
        return;
    }
    let world = World::new();
    let root = world.root();
    let (file, owner) = (world.create(&root, "file"), Caller::SERVER);
    world.write(&file, 0, b"bytes").result.unwrap();
    let mode = AttributeChange { mode: Some(0o640), ..AttributeChange::default() };
    world.set(&file, mode).result.unwrap();
    let user = world.volume.caller(USER, USER, &[]);
    let reads = || world.run(world.volume.permit(&file, &user, Use::Read));
    let writes = || world.run(world.volume.permit(&file, &user, Use::Write));
    assert_eq!((reads(), writes()), (Err(VolumeError::Denied), Err(VolumeError::Denied)));
    match set(&world, &owner, &file, ACCESS_LIST, &list(6, (USER, 6), 4, 6, 0)) {
        Err(VolumeError::NotSupported) => return afflux_scratch::skipped!("this file system has no lists"),
        set => set.unwrap(),
    }
    assert_eq!((reads(), writes()), (Ok(()), Ok(())));
    assert_eq!(world.attributes(&file).mode, 0o660, "the mask shows as the group's rights");
    set(&world, &owner, &file, ACCESS_LIST, &list(6, (USER, 4), 4, 6, 0)).unwrap();
    assert_eq!((reads(), writes()), (Ok(()), Err(VolumeError::Denied)));
    let removed = world.run(world.volume.change_xattr_by(&owner, &file, ACCESS_LIST, XattrChange::Remove));
    removed.result.unwrap();
    assert_eq!(reads(), Err(VolumeError::Denied));
    let bad = set(&world, &owner, &file, ACCESS_LIST, b"no list");
    assert!(matches!(bad, Err(VolumeError::Invalid { .. } | VolumeError::NotSupported)), "{bad:?}");
    // New objects take the directory's default list over.
    let directory = world.make_directory(&root, "directory");
    set(&world, &owner, &directory, DEFAULT_LIST, &list(7, (USER, 7), 5, 7, 0)).unwrap();
    let new = world.create(&directory, "new");
    assert_eq!(world.run(world.volume.permit(&new, &user, Use::Read)), Ok(()), "by the list, bounded by the mode");
    assert!(get(&world, &user, &new, ACCESS_LIST).is_ok());
    assert_eq!(fs::metadata(world.host("directory/new")).unwrap().mode() & 0o7777, world.attributes(&new).mode);
}

#[test]
fn a_default_list_stands_in_for_the_umask_with_a_name_or_without() {
    let world = World::new();
    let root = world.root();
    let (plain, listed) = (world.make_directory(&root, "plain"), world.make_directory(&root, "listed"));
    match set(&world, &Caller::SERVER, &listed, DEFAULT_LIST, &list(7, (USER, 7), 7, 7, 0)) {
        Err(VolumeError::NotSupported) => return afflux_scratch::skipped!("this file system has no lists"),
        set => set.unwrap(),
    }
    let wanted = AttributeChange { mode: Some(0o664), umask: 0o027, ..AttributeChange::default() };
    for (directory, mode) in [(&plain, 0o640), (&listed, 0o660)] {
        let how = CreateHow::Guarded(wanted);
        let (named, _) = world.run(world.volume.create(directory, b"named", how)).result.unwrap();
        let unnamed = world.run(world.volume.create_unnamed_by(&Caller::SERVER, directory, wanted));
        assert_eq!(world.attributes(&named).mode, mode);
        match unnamed {
            Err(VolumeError::NotSupported) => {}
            unnamed => assert_eq!(unnamed.unwrap().1.mode, mode),
        }
    }
}
