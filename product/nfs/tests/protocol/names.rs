//! LOOKUP, READLINK, CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME, LINK.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::task::{Context, Waker};

use afflux_frontend::ProtocolMachine;
use afflux_volume::VolumeKnob;
use nfs3_types::nfs3::*;

use crate::peer::{NFS, Peer, accepted, call_record, flat, marked, packed};
use crate::world::{CLIENT, World};

/// A directory and a name in it.
type Spot<'a> = (&'a nfs_fh3, &'a [u8]);

fn place(dir: &nfs_fh3, name: &[u8]) -> diropargs3<'static> {
    diropargs3 { dir: dir.clone(), name: name.to_vec().into() }
}

fn lookup(peer: &mut Peer, dir: &nfs_fh3, name: &[u8]) -> Result<nfs_fh3, nfsstat3> {
    match peer.nfs(3, &LOOKUP3args { what: place(dir, name) }) {
        LOOKUP3res::Ok(ok) => {
            assert!(ok.obj_attributes.is_some() && ok.dir_attributes.is_some());
            Ok(ok.object)
        }
        LOOKUP3res::Err((status, fail)) => {
            assert!(fail.dir_attributes.is_some() || status == nfsstat3::NFS3ERR_STALE);
            Err(status)
        }
    }
}

fn create(peer: &mut Peer, dir: &nfs_fh3, name: &[u8], how: createhow3) -> Result<(nfs_fh3, fattr3), nfsstat3> {
    match peer.nfs(8, &CREATE3args { where_: place(dir, name), how }) {
        CREATE3res::Ok(ok) => {
            assert!(ok.dir_wcc.before.is_some() && ok.dir_wcc.after.is_some());
            Ok((ok.obj.unwrap(), ok.obj_attributes.unwrap()))
        }
        CREATE3res::Err((status, fail)) => {
            assert!(fail.dir_wcc.after.is_some());
            Err(status)
        }
    }
}

fn mkdir(peer: &mut Peer, dir: &nfs_fh3, name: &[u8]) -> Result<nfs_fh3, nfsstat3> {
    let attributes = sattr3 { mode: Nfs3Option::Some(0o750), ..sattr3::default() };
    match peer.nfs(9, &MKDIR3args { where_: place(dir, name), attributes }) {
        MKDIR3res::Ok(ok) => {
            assert!(ok.dir_wcc.before.is_some() && ok.dir_wcc.after.is_some());
            assert_eq!(ok.obj_attributes.unwrap().type_, ftype3::NF3DIR);
            Ok(ok.obj.unwrap())
        }
        MKDIR3res::Err((status, fail)) => {
            assert!(fail.dir_wcc.after.is_some());
            Err(status)
        }
    }
}

fn symlink(peer: &mut Peer, dir: &nfs_fh3, name: &[u8], target: &[u8]) -> Result<nfs_fh3, nfsstat3> {
    let symlink = symlinkdata3 { symlink_attributes: sattr3::default(), symlink_data: target.to_vec().into() };
    match peer.nfs(10, &SYMLINK3args { where_: place(dir, name), symlink }) {
        SYMLINK3res::Ok(ok) => Ok(ok.obj.unwrap()),
        SYMLINK3res::Err((status, fail)) => {
            assert!(fail.dir_wcc.after.is_some());
            Err(status)
        }
    }
}

fn remove(peer: &mut Peer, dir: &nfs_fh3, name: &[u8]) -> nfsstat3 {
    match peer.nfs(12, &REMOVE3args { object: place(dir, name) }) {
        REMOVE3res::Ok(ok) => {
            assert!(ok.dir_wcc.before.is_some() && ok.dir_wcc.after.is_some());
            nfsstat3::NFS3_OK
        }
        REMOVE3res::Err((status, fail)) => {
            assert!(fail.dir_wcc.after.is_some());
            status
        }
    }
}

fn rmdir(peer: &mut Peer, dir: &nfs_fh3, name: &[u8]) -> nfsstat3 {
    match peer.nfs(13, &RMDIR3args { object: place(dir, name) }) {
        RMDIR3res::Ok(ok) => {
            assert!(ok.dir_wcc.before.is_some() && ok.dir_wcc.after.is_some());
            nfsstat3::NFS3_OK
        }
        RMDIR3res::Err((status, fail)) => {
            assert!(fail.dir_wcc.after.is_some());
            status
        }
    }
}

fn rename(peer: &mut Peer, from: (&nfs_fh3, &[u8]), to: (&nfs_fh3, &[u8])) -> nfsstat3 {
    match peer.nfs(14, &RENAME3args { from: place(from.0, from.1), to: place(to.0, to.1) }) {
        RENAME3res::Ok(ok) => {
            for wcc in [ok.fromdir_wcc, ok.todir_wcc] {
                assert!(wcc.before.is_some() && wcc.after.is_some());
            }
            nfsstat3::NFS3_OK
        }
        RENAME3res::Err((status, fail)) => {
            assert!(fail.fromdir_wcc.after.is_some() && fail.todir_wcc.after.is_some());
            status
        }
    }
}

fn link(peer: &mut Peer, file: &nfs_fh3, dir: &nfs_fh3, name: &[u8]) -> Result<fattr3, nfsstat3> {
    match peer.nfs(15, &LINK3args { file: file.clone(), link: place(dir, name) }) {
        LINK3res::Ok(ok) => {
            assert!(ok.linkdir_wcc.before.is_some() && ok.linkdir_wcc.after.is_some());
            Ok(ok.file_attributes.unwrap())
        }
        LINK3res::Err((status, fail)) => {
            assert!(fail.file_attributes.is_some() && fail.linkdir_wcc.after.is_some());
            Err(status)
        }
    }
}

#[test]
fn looks_names_up() {
    let world = World::new();
    std::fs::create_dir_all(world.path.join("a/b")).unwrap();
    std::fs::write(world.path.join("file"), b"x").unwrap();
    std::os::unix::fs::symlink("/etc", world.path.join("climb")).unwrap();
    let long = vec![b'n'; 255];
    std::fs::write(world.path.join(std::str::from_utf8(&long).unwrap()), b"x").unwrap();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let a = lookup(&mut peer, &root, b"a").unwrap();
    let b = lookup(&mut peer, &a, b"b").unwrap();
    assert_eq!(lookup(&mut peer, &b, b".."), Ok(a.clone()));
    assert_eq!(lookup(&mut peer, &b, b"."), Ok(b.clone()));
    assert_eq!(lookup(&mut peer, &a, b".."), Ok(root.clone()));
    assert_eq!(lookup(&mut peer, &root, b".."), Ok(root.clone()), "above the root is the root");
    assert!(lookup(&mut peer, &root, &long).is_ok());
    // A link is an object of its own, never followed.
    let climb = lookup(&mut peer, &root, b"climb").unwrap();
    assert_eq!(lookup(&mut peer, &climb, b"passwd"), Err(nfsstat3::NFS3ERR_NOTDIR));
    let file = lookup(&mut peer, &root, b"file").unwrap();
    let table: [(&nfs_fh3, &[u8], nfsstat3); 8] = [
        (&root, b"none", nfsstat3::NFS3ERR_NOENT),
        (&root, &[b'n'; 256], nfsstat3::NFS3ERR_NAMETOOLONG),
        (&root, &[b'n'; 70_000], nfsstat3::NFS3ERR_NAMETOOLONG),
        (&root, b"", nfsstat3::NFS3ERR_INVAL),
        (&root, b"a/b", nfsstat3::NFS3ERR_INVAL),
        (&root, b"/", nfsstat3::NFS3ERR_INVAL),
        (&root, b"a\0", nfsstat3::NFS3ERR_INVAL),
        (&file, b"x", nfsstat3::NFS3ERR_NOTDIR),
    ];
    for (dir, name, expected) in table {
        assert_eq!(lookup(&mut peer, dir, name), Err(expected), "{name:?}");
    }
}

#[test]
fn creates_in_three_ways() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let with = |mode: u32, size| sattr3 { mode: Nfs3Option::Some(mode), size, ..sattr3::default() };
    let (file, attributes) =
        create(&mut peer, &root, b"f", createhow3::GUARDED(with(0o640, Nfs3Option::None))).unwrap();
    assert_eq!((attributes.type_, attributes.mode, attributes.size), (ftype3::NF3REG, 0o640, 0));
    assert_eq!(std::fs::metadata(world.path.join("f")).unwrap().mode() & 0o7777, 0o640);
    let again = create(&mut peer, &root, b"f", createhow3::GUARDED(with(0o600, Nfs3Option::None)));
    assert_eq!(again.err(), Some(nfsstat3::NFS3ERR_EXIST));
    // Unchecked takes an existing file, and cuts it on request.
    std::fs::write(world.path.join("g"), b"old bytes").unwrap();
    let (same, _) = create(&mut peer, &root, b"f", createhow3::UNCHECKED(with(0o640, Nfs3Option::None))).unwrap();
    assert_eq!(same, file);
    let (_, attributes) =
        create(&mut peer, &root, b"g", createhow3::UNCHECKED(with(0o644, Nfs3Option::Some(0)))).unwrap();
    assert_eq!(attributes.size, 0);
    assert_eq!(std::fs::metadata(world.path.join("g")).unwrap().len(), 0);
    // Exclusive recognizes its own repetition, and refuses another client's file.
    let exclusive = |verifier: &[u8; 8]| createhow3::EXCLUSIVE(createverf3(*verifier));
    let (first, _) = create(&mut peer, &root, b"e", exclusive(b"verifier")).unwrap();
    let (again, _) = create(&mut peer, &root, b"e", exclusive(b"verifier")).unwrap();
    assert_eq!(first, again);
    assert_eq!(create(&mut peer, &root, b"e", exclusive(b"another.")).err(), Some(nfsstat3::NFS3ERR_EXIST));
    assert_eq!(create(&mut peer, &root, b"f", exclusive(b"verifier")).err(), Some(nfsstat3::NFS3ERR_EXIST));
    let table: [(&nfs_fh3, &[u8], nfsstat3); 7] = [
        (&root, b".", nfsstat3::NFS3ERR_EXIST),
        (&root, b"..", nfsstat3::NFS3ERR_EXIST),
        (&root, b"", nfsstat3::NFS3ERR_INVAL),
        (&root, b"x/y", nfsstat3::NFS3ERR_INVAL),
        (&root, b"x\0y", nfsstat3::NFS3ERR_INVAL),
        (&root, &[b'n'; 256], nfsstat3::NFS3ERR_NAMETOOLONG),
        (&file, b"x", nfsstat3::NFS3ERR_NOTDIR),
    ];
    for (dir, name, expected) in table {
        let made = create(&mut peer, dir, name, createhow3::GUARDED(sattr3::default()));
        assert_eq!(made.err(), Some(expected), "{name:?}");
    }
    assert!(create(&mut peer, &root, &[b'n'; 255], createhow3::GUARDED(sattr3::default())).is_ok());
}

#[test]
fn makes_and_removes_directories() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let d = mkdir(&mut peer, &root, b"d").unwrap();
    assert_eq!(std::fs::metadata(world.path.join("d")).unwrap().mode() & 0o7777, 0o750);
    assert_eq!(mkdir(&mut peer, &root, b"d"), Err(nfsstat3::NFS3ERR_EXIST));
    assert_eq!(mkdir(&mut peer, &root, b".."), Err(nfsstat3::NFS3ERR_EXIST));
    world.create(&mut peer, &d, b"f");
    assert_eq!(rmdir(&mut peer, &root, b"d"), nfsstat3::NFS3ERR_NOTEMPTY);
    assert_eq!(rmdir(&mut peer, &d, b"f"), nfsstat3::NFS3ERR_NOTDIR);
    assert_eq!(rmdir(&mut peer, &d, b"."), nfsstat3::NFS3ERR_INVAL);
    assert_eq!(rmdir(&mut peer, &d, b".."), nfsstat3::NFS3ERR_EXIST);
    assert_eq!(rmdir(&mut peer, &d, b"none"), nfsstat3::NFS3ERR_NOENT);
    assert_eq!(remove(&mut peer, &root, b"d"), nfsstat3::NFS3ERR_ISDIR);
    assert_eq!(remove(&mut peer, &d, b"f"), nfsstat3::NFS3_OK);
    assert_eq!(remove(&mut peer, &d, b"f"), nfsstat3::NFS3ERR_NOENT);
    assert_eq!(remove(&mut peer, &d, b"."), nfsstat3::NFS3ERR_INVAL);
    assert_eq!(rmdir(&mut peer, &root, b"d"), nfsstat3::NFS3_OK);
    assert!(!world.path.join("d").exists());
    assert_eq!(lookup(&mut peer, &d, b"x"), Err(nfsstat3::NFS3ERR_STALE));
}

#[test]
fn links_say_what_they_were_told() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    for target in [&b"a"[..], b"../../..", b"/etc/passwd", &[b't'; 1024], b"with space \xff"] {
        let made = symlink(&mut peer, &root, b"l", target).unwrap();
        match peer.nfs(5, &READLINK3args { symlink: made.clone() }) {
            READLINK3res::Ok(ok) => {
                assert_eq!(ok.data.as_ref(), target);
                assert!(ok.symlink_attributes.is_some());
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(symlink(&mut peer, &root, b"l", b"x"), Err(nfsstat3::NFS3ERR_EXIST));
        assert_eq!(remove(&mut peer, &root, b"l"), nfsstat3::NFS3_OK);
    }
    assert_eq!(symlink(&mut peer, &root, b"l", b""), Err(nfsstat3::NFS3ERR_INVAL));
    assert_eq!(symlink(&mut peer, &root, b"l", &[b't'; 4096]), Err(nfsstat3::NFS3ERR_NAMETOOLONG));
    match peer.nfs(5, &READLINK3args { symlink: root.clone() }) {
        READLINK3res::Err((nfsstat3::NFS3ERR_INVAL, fail)) => assert!(fail.symlink_attributes.is_some()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn makes_special_objects() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let mut make = |name: &[u8], what| match peer.nfs(11, &MKNOD3args { where_: place(&root, name), what }) {
        MKNOD3res::Ok(ok) => Ok(ok.obj_attributes.unwrap().type_),
        MKNOD3res::Err((status, fail)) => {
            assert!(fail.dir_wcc.after.is_some());
            Err(status)
        }
    };
    assert_eq!(make(b"fifo", mknoddata3::NF3FIFO(sattr3::default())), Ok(ftype3::NF3FIFO));
    assert_eq!(make(b"socket", mknoddata3::NF3SOCK(sattr3::default())), Ok(ftype3::NF3SOCK));
    assert_eq!(make(b"fifo", mknoddata3::NF3SOCK(sattr3::default())), Err(nfsstat3::NFS3ERR_EXIST));
    let kind = |name: &str| std::fs::symlink_metadata(world.path.join(name)).unwrap().file_type();
    assert!(kind("fifo").is_fifo() && kind("socket").is_socket());
    // Clients must not reach devices of the host through a file, not even on a server that root runs.
    let null = || devicedata3 { dev_attributes: sattr3::default(), spec: specdata3 { specdata1: 1, specdata2: 3 } };
    for device in [mknoddata3::NF3CHR(null()), mknoddata3::NF3BLK(null())] {
        assert_eq!(make(b"device", device), Err(nfsstat3::NFS3ERR_PERM));
        assert!(std::fs::symlink_metadata(world.path.join("device")).is_err(), "a device node was made");
    }
    // Kinds that have procedures of their own.
    for kind in [ftype3::NF3REG, ftype3::NF3DIR, ftype3::NF3LNK] {
        let arguments = [crate::peer::packed(&place(&root, b"x")), crate::peer::packed(&kind)].concat();
        let results = peer.call(crate::peer::NFS, 11, &arguments);
        assert_eq!(results[..4], 10_007_u32.to_be_bytes(), "{kind}");
    }
}

#[test]
fn renames() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let d = mkdir(&mut peer, &root, b"d").unwrap();
    let file = world.create(&mut peer, &root, b"f");
    let other = world.create(&mut peer, &d, b"g");
    assert_ne!(file, other);
    // Onto an existing name in another directory: the handle stays, the other object goes.
    assert_eq!(rename(&mut peer, (&root, b"f"), (&d, b"g")), nfsstat3::NFS3_OK);
    assert_eq!(lookup(&mut peer, &d, b"g"), Ok(file.clone()));
    assert_eq!(lookup(&mut peer, &root, b"f"), Err(nfsstat3::NFS3ERR_NOENT));
    assert!(world.path.join("d/g").exists() && !world.path.join("f").exists());
    assert_eq!(rename(&mut peer, (&d, b"g"), (&d, b"g")), nfsstat3::NFS3_OK);
    assert_eq!(rename(&mut peer, (&root, b"d"), (&root, b"e")), nfsstat3::NFS3_OK);
    assert_eq!(lookup(&mut peer, &d, b"g"), Ok(file.clone()), "a directory's handle stays good");
    mkdir(&mut peer, &root, b"h").unwrap();
    world.create(&mut peer, &root, b"i");
    let table: [(Spot<'_>, Spot<'_>, nfsstat3); 8] = [
        ((&root, b"none"), (&root, b"x"), nfsstat3::NFS3ERR_NOENT),
        ((&root, b"i"), (&root, b"h"), nfsstat3::NFS3ERR_ISDIR),
        ((&root, b"h"), (&root, b"i"), nfsstat3::NFS3ERR_NOTDIR),
        ((&root, b"h"), (&root, b"e"), nfsstat3::NFS3ERR_NOTEMPTY),
        ((&root, b"e"), (&d, b"below"), nfsstat3::NFS3ERR_INVAL),
        ((&root, b"."), (&root, b"x"), nfsstat3::NFS3ERR_INVAL),
        ((&root, b"i"), (&root, &[b'n'; 256]), nfsstat3::NFS3ERR_NAMETOOLONG),
        ((&root, b"i"), (&file, b"x"), nfsstat3::NFS3ERR_NOTDIR),
    ];
    for (from, to, expected) in table {
        assert_eq!(rename(&mut peer, from, to), expected, "{:?} {:?}", from.1, to.1);
    }
}

#[test]
fn gives_files_more_names() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let d = mkdir(&mut peer, &root, b"d").unwrap();
    let file = world.create(&mut peer, &root, b"f");
    assert_eq!(link(&mut peer, &file, &d, b"second").unwrap().nlink, 2);
    assert_eq!(lookup(&mut peer, &d, b"second"), Ok(file.clone()));
    assert_eq!(std::fs::metadata(world.path.join("f")).unwrap().nlink(), 2);
    assert_eq!(link(&mut peer, &file, &d, b"second").err(), Some(nfsstat3::NFS3ERR_EXIST));
    assert_eq!(link(&mut peer, &file, &d, b"..").err(), Some(nfsstat3::NFS3ERR_EXIST));
    assert_eq!(link(&mut peer, &file, &file, b"x").err(), Some(nfsstat3::NFS3ERR_NOTDIR));
    assert_eq!(link(&mut peer, &d, &root, b"x").err(), Some(nfsstat3::NFS3ERR_ISDIR));
    assert_eq!(remove(&mut peer, &root, b"f"), nfsstat3::NFS3_OK);
    assert_eq!(lookup(&mut peer, &d, b"second"), Ok(file));
}

#[test]
fn directories_tell_an_unbroken_chain_of_changes() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let mut last: Option<fattr3> = None;
    for number in 0..10 {
        let name = format!("f{number}").into_bytes();
        let how = createhow3::GUARDED(sattr3::default());
        let CREATE3res::Ok(made) = peer.nfs(8, &CREATE3args { where_: place(&root, &name), how }) else { panic!() };
        let (before, after) = (made.dir_wcc.before.unwrap(), made.dir_wcc.after.unwrap());
        if let Some(last) = last {
            assert_eq!((before.size, before.mtime, before.ctime), (last.size, last.mtime, last.ctime));
        }
        let time = |time: nfstime3| (time.seconds, time.nseconds);
        assert!(time(after.mtime) > time(before.mtime) && time(after.ctime) > time(before.ctime));
        last = Some(after);
    }
}

/// Makes a call. Returns its results, and whether it waited.
fn called(peer: &mut Peer, procedure: u32, arguments: &[u8]) -> (Vec<u8>, bool) {
    peer.xid += 1;
    peer.send(&marked(&call_record(peer.xid, NFS, procedure, arguments))).unwrap();
    let mut segments = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    let waited = peer.connection.poll_output(&mut cx, &mut segments).is_pending();
    peer.took(&flat(&segments));
    (accepted(&peer.replies(1).remove(0)).1, waited)
}

#[test]
fn answers_lookup_and_access_at_once_with_the_same_bytes_until_the_directory_changes() {
    let world = World::over(|path| std::fs::write(path.join("file"), b"bytes").unwrap());
    // This holds however slow the test is.
    world.volume.engine().set_knob(VolumeKnob::AttributesIdleCentisecs, 360_000).unwrap();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let look = packed(&LOOKUP3args { what: place(&root, b"file") });
    let known = world.volume.try_resolve(&root.data).unwrap();
    assert!(world.volume.try_lookup(&known, b"file").is_none());
    let (first, _) = called(&mut peer, 3, &look);
    assert_eq!(called(&mut peer, 3, &look), (first, false));
    for wanted in [0x3f, 1] {
        let access = packed(&ACCESS3args { object: root.clone(), access: wanted });
        let (first, _) = called(&mut peer, 4, &access);
        assert_eq!(called(&mut peer, 4, &access), (first, false));
    }
    assert_eq!(remove(&mut peer, &root, b"file"), nfsstat3::NFS3_OK);
    assert!(
        world.volume.try_access(&known, &afflux_volume::Caller::SERVER).is_some(),
        "a name went, no right of anybody"
    );
    assert_eq!(lookup(&mut peer, &root, b"file"), Err(nfsstat3::NFS3ERR_NOENT));
}
