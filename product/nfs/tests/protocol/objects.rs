//! MOUNT, GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO, PATHCONF; handles.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use nfs3_types::mount::{dirpath, exports, mountlist, mountres3, mountstat3};
use nfs3_types::nfs3::*;
use nfs3_types::xdr_codec::{Opaque, Pack, Void};

use crate::peer::{MOUNT, NFS, Peer, packed, unpacked};
use crate::world::{CLIENT, World};

fn mount(peer: &mut Peer, path: &[u8]) -> Result<(Vec<u8>, Vec<u32>), mountstat3> {
    match unpacked(&peer.call(MOUNT, 1, &packed(&dirpath(Opaque::borrowed(path))))) {
        mountres3::Ok(ok) => Ok((ok.fhandle.0.to_vec(), ok.auth_flavors)),
        mountres3::Err(status) => Err(status),
    }
}

#[test]
fn mounts_the_export_and_directories_below_it() {
    let world = World::new();
    std::fs::create_dir_all(world.path.join("a/b")).unwrap();
    std::fs::write(world.path.join("file"), b"x").unwrap();
    let mut peer = Peer::new(&world, CLIENT);
    assert!(peer.call(MOUNT, 0, &[]).is_empty());
    let (root, flavours) = mount(&mut peer, b"/").unwrap();
    assert_eq!(flavours, [1, 0]);
    assert_eq!(mount(&mut peer, b"").unwrap().0, root);
    let (below, _) = mount(&mut peer, b"/a/b").unwrap();
    assert_ne!(below, root);
    assert!(matches!(mount(&mut peer, b"/none"), Err(mountstat3::MNT3ERR_NOENT)));
    assert!(matches!(mount(&mut peer, b"/file"), Err(mountstat3::MNT3ERR_NOTDIR)));
    assert!(matches!(mount(&mut peer, &[b'x'; 1025]), Err(mountstat3::MNT3ERR_NAMETOOLONG)));
    let over = mount(&mut peer, b"/../../etc");
    assert!(over.is_err() || !std::path::Path::new("/etc").exists());

    let list = |peer: &mut Peer| {
        let list: mountlist<'_, '_> = unpacked(&peer.call(MOUNT, 2, &[]));
        let line =
            |line: &nfs3_types::mount::mountbody<'_, '_>| (line.ml_hostname.0.to_vec(), line.ml_directory.0.to_vec());
        list.0.iter().map(line).collect::<Vec<_>>()
    };
    let who = CLIENT.to_string().into_bytes();
    let line = |path: &[u8]| (who.clone(), path.to_vec());
    assert_eq!(list(&mut peer), [line(b"/"), line(b""), line(b"/a/b")]);
    // A repeated mount adds no line; its line becomes the latest.
    mount(&mut peer, b"/").unwrap();
    assert_eq!(list(&mut peer), [line(b""), line(b"/a/b"), line(b"/")]);
    assert!(peer.call(MOUNT, 3, &packed(&dirpath(Opaque::borrowed(b"/")))).is_empty());
    assert_eq!(list(&mut peer), [line(b""), line(b"/a/b")]);
    assert!(peer.call(MOUNT, 4, &[]).is_empty());
    assert_eq!(list(&mut peer), []);
    let exported: exports<'_, '_> = unpacked(&peer.call(MOUNT, 5, &[]));
    assert_eq!(exported.0.len(), 1);
    assert_eq!(exported.0[0].ex_dir.0.as_ref(), b"/");
}

#[test]
fn tells_attributes_as_the_host_has_them() {
    let world = World::new();
    let path = world.path.join("file");
    std::fs::write(&path, vec![7; 5000]).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o4751)).unwrap();
    std::fs::hard_link(&path, world.path.join("other")).unwrap();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let handle = world.lookup(&mut peer, &root, b"file");
    let host = std::fs::metadata(&path).unwrap();
    for _ in 0..2 {
        let GETATTR3res::Ok(told) = peer.nfs(1, &GETATTR3args { object: handle.clone() }) else { panic!() };
        let told = told.obj_attributes;
        assert_eq!((told.type_, told.mode, told.nlink), (ftype3::NF3REG, 0o4751, 2));
        assert_eq!((told.uid, told.gid, told.size), (host.uid(), host.gid(), 5000));
        assert_eq!(told.fileid, host.ino());
        assert_eq!(i64::from(told.mtime.seconds), host.mtime());
        assert_eq!(i64::from(told.mtime.nseconds), host.mtime_nsec());
        assert_eq!(i64::from(told.ctime.seconds), host.ctime());
    }
    let GETATTR3res::Ok(told) = peer.nfs(1, &GETATTR3args { object: root }) else { panic!() };
    assert_eq!(told.obj_attributes.type_, ftype3::NF3DIR);
}

fn set(peer: &mut Peer, object: &nfs_fh3, change: sattr3, guard: Option<nfstime3>) -> SETATTR3res {
    let guard = guard.map_or(Nfs3Option::None, Nfs3Option::Some);
    peer.nfs(2, &SETATTR3args { object: object.clone(), new_attributes: change, guard })
}

fn attributes(peer: &mut Peer, object: &nfs_fh3) -> fattr3 {
    match peer.nfs(1, &GETATTR3args { object: object.clone() }) {
        GETATTR3res::Ok(ok) => ok.obj_attributes,
        GETATTR3res::Err((status, _)) => panic!("{status}"),
    }
}

#[test]
fn sets_attributes_and_shows_both_sides() {
    let world = World::new();
    let path = world.path.join("file");
    std::fs::write(&path, vec![7; 5000]).unwrap();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let handle = world.lookup(&mut peer, &root, b"file");
    let before = attributes(&mut peer, &handle);
    let change = sattr3 {
        mode: Nfs3Option::Some(0o600),
        size: Nfs3Option::Some(1234),
        mtime: set_mtime::SET_TO_CLIENT_TIME(nfstime3 { seconds: 1_000_000_000, nseconds: 5 }),
        ..sattr3::default()
    };
    let SETATTR3res::Ok(done) = set(&mut peer, &handle, change, None) else { panic!() };
    let wcc = done.obj_wcc;
    let (said, after) = (wcc.before.unwrap(), wcc.after.unwrap());
    assert_eq!((said.size, said.mtime, said.ctime), (5000, before.mtime, before.ctime));
    assert_eq!((after.mode, after.size), (0o600, 1234));
    assert_eq!(after.mtime, nfstime3 { seconds: 1_000_000_000, nseconds: 5 });
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1234);
    // A guard that matches, and one that does not.
    let now = attributes(&mut peer, &handle).ctime;
    let mode = |mode| sattr3 { mode: Nfs3Option::Some(mode), ..sattr3::default() };
    assert!(matches!(set(&mut peer, &handle, mode(0o640), Some(now)), SETATTR3res::Ok(_)));
    match set(&mut peer, &handle, mode(0o666), Some(now)) {
        SETATTR3res::Err((nfsstat3::NFS3ERR_NOT_SYNC, fail)) => assert!(fail.obj_wcc.after.is_some()),
        other => panic!("{other:?}"),
    }
    assert_eq!(attributes(&mut peer, &handle).mode, 0o640);
    // A file grows with zeros.
    let size = |size| sattr3 { size: Nfs3Option::Some(size), ..sattr3::default() };
    assert!(matches!(set(&mut peer, &handle, size(3000), None), SETATTR3res::Ok(_)));
    let READ3res::Ok(read) = peer.nfs(6, &READ3args { file: handle.clone(), offset: 1000, count: 4000 }) else {
        panic!()
    };
    assert_eq!(read.data.as_ref(), [vec![7; 234], vec![0; 1766]].concat());
    // Impossible sizes.
    for (object, value, expected) in [
        (&handle, 1 << 63, nfsstat3::NFS3ERR_FBIG),
        (&handle, u64::MAX, nfsstat3::NFS3ERR_FBIG),
        (&root, 0, nfsstat3::NFS3ERR_ISDIR),
    ] {
        match set(&mut peer, object, size(value), None) {
            SETATTR3res::Err((status, fail)) => {
                assert_eq!(status, expected);
                assert!(fail.obj_wcc.after.is_some());
            }
            SETATTR3res::Ok(_) => panic!("{value}"),
        }
    }
}

#[test]
fn grants_no_more_than_asked_for() {
    let world = World::new();
    std::fs::write(world.path.join("file"), b"x").unwrap();
    std::fs::set_permissions(world.path.join("file"), PermissionsExt::from_mode(0o700)).unwrap();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let handle = world.lookup(&mut peer, &root, b"file");
    let mut granted = |object: &nfs_fh3, access| match peer.nfs(4, &ACCESS3args { object: object.clone(), access }) {
        ACCESS3res::Ok(ok) => {
            assert!(ok.obj_attributes.is_some());
            ok.access
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(granted(&root, 0x3f), 0x1f);
    assert_eq!(granted(&root, ACCESS3_LOOKUP), ACCESS3_LOOKUP);
    assert_eq!(granted(&handle, 0x3f), ACCESS3_READ | ACCESS3_MODIFY | ACCESS3_EXTEND | ACCESS3_EXECUTE);
    assert_eq!(granted(&handle, ACCESS3_DELETE), 0);
}

#[test]
fn describes_the_file_system() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let FSINFO3res::Ok(info) = peer.nfs(19, &FSINFO3args { fsroot: root.clone() }) else { panic!() };
    assert_eq!((info.rtmax, info.wtmax), (1 << 20, 1 << 20));
    assert!(info.rtpref <= info.rtmax && info.wtpref <= info.wtmax && info.dtpref == 65_536);
    let inode = world.volume.try_resolve(&root.data).unwrap();
    assert_eq!(info.maxfilesize, world.platform.block_on(world.volume.file_bytes_max(&inode)));
    assert!(info.maxfilesize > 1 << 40 && info.maxfilesize.is_multiple_of(4096), "{}", info.maxfilesize);
    assert_eq!(info.time_delta, nfstime3 { seconds: 0, nseconds: 1 });
    assert_eq!(info.properties, FSF3_LINK | FSF3_SYMLINK | FSF3_HOMOGENEOUS | FSF3_CANSETTIME);
    assert!(info.obj_attributes.is_some());
    let FSSTAT3res::Ok(stat) = peer.nfs(18, &FSSTAT3args { fsroot: root.clone() }) else { panic!() };
    assert!(stat.abytes <= stat.fbytes && stat.fbytes <= stat.tbytes && stat.tbytes > 0);
    assert!(stat.obj_attributes.is_some());
    let PATHCONF3res::Ok(limits) = peer.nfs(20, &PATHCONF3args { object: root }) else { panic!() };
    assert_eq!((limits.name_max, limits.no_trunc, limits.chown_restricted), (255, true, true));
    assert_eq!((limits.case_insensitive, limits.case_preserving), (false, true));
    assert!(limits.linkmax >= 1000);
}

#[test]
fn times_that_are_none_are_refused() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    let before = std::fs::metadata(world.path.join("file")).unwrap();
    // The host's own call takes the last two values for 'now' and 'no change'.
    for nseconds in [1_000_000_000, u32::MAX, (1 << 30) - 1, (1 << 30) - 2] {
        let time = || nfstime3 { seconds: 5, nseconds };
        for new_attributes in [
            sattr3 { atime: set_atime::SET_TO_CLIENT_TIME(time()), ..sattr3::default() },
            sattr3 { mtime: set_mtime::SET_TO_CLIENT_TIME(time()), ..sattr3::default() },
        ] {
            let guard = Nfs3Option::None;
            match peer.nfs(2, &SETATTR3args { object: file.clone(), new_attributes, guard }) {
                SETATTR3res::Err((nfsstat3::NFS3ERR_INVAL, _)) => {}
                other => panic!("{nseconds}: {other:?}"),
            }
        }
        let guard = Nfs3Option::Some(time());
        match peer.nfs(2, &SETATTR3args { object: file.clone(), new_attributes: sattr3::default(), guard }) {
            SETATTR3res::Err((nfsstat3::NFS3ERR_NOT_SYNC, _)) => {}
            other => panic!("{nseconds}: {other:?}"),
        }
    }
    let after = std::fs::metadata(world.path.join("file")).unwrap();
    assert_eq!((after.atime(), after.mtime()), (before.atime(), before.mtime()));
}

#[test]
fn mount_paths_may_lead_through_links_and_never_out() {
    let world = World::over(|path| {
        std::fs::create_dir_all(path.join("a/b/etc")).unwrap();
        std::fs::write(path.join("file"), b"x").unwrap();
        for (target, name) in [
            ("a", "relative"),
            ("../../a/b", "a/b/up"),
            ("/a/b", "absolute"),
            ("relative/b/./up/", "twice"),
            ("/../..//../a", "above"),
            ("../../../../../../../../../../../../etc", "a/out"),
            ("file", "to-file"),
            ("nowhere", "dangling"),
            ("loop", "loop"),
        ] {
            std::os::unix::fs::symlink(target, path.join(name)).unwrap();
        }
    });
    let mut peer = Peer::new(&world, CLIENT);
    let (a, _) = mount(&mut peer, b"/a").unwrap();
    let (b, _) = mount(&mut peer, b"/a/b").unwrap();
    let table: [(&[u8], &[u8]); 7] = [
        (b"/relative", &a),
        (b"/relative/b", &b),
        (b"/a/b/up/", &b),
        (b"/absolute", &b),
        (b"/twice", &b),
        (b"/above", &a),
        (b"/above/b/up/../b", &b),
    ];
    for (path, wanted) in table {
        let (got, _) = mount(&mut peer, path).unwrap_or_else(|status| panic!("{}: {status:?}", path.escape_ascii()));
        assert!(got == wanted, "{}", path.escape_ascii());
    }
    // The host has an /etc; the export has none.
    assert!(matches!(mount(&mut peer, b"/a/out"), Err(mountstat3::MNT3ERR_NOENT)));
    assert!(matches!(mount(&mut peer, b"/dangling"), Err(mountstat3::MNT3ERR_NOENT)));
    assert!(matches!(mount(&mut peer, b"/to-file"), Err(mountstat3::MNT3ERR_NOTDIR)));
    assert!(matches!(mount(&mut peer, b"/to-file/x"), Err(mountstat3::MNT3ERR_NOTDIR)));
    assert!(matches!(mount(&mut peer, b"/loop"), Err(mountstat3::MNT3ERR_INVAL)));
}

/// The status with which each procedure answers a handle.
fn status_of(peer: &mut Peer, procedure: u32, handle: &nfs_fh3) -> u32 {
    let place = || diropargs3 { dir: handle.clone(), name: (&b"name"[..]).into() };
    let bytes = match procedure {
        1 | 5 | 18 | 19 | 20 => packed(handle),
        2 => {
            let new_attributes = sattr3 { mode: Nfs3Option::Some(0o600), ..sattr3::default() };
            packed(&SETATTR3args { object: handle.clone(), new_attributes, guard: Nfs3Option::None })
        }
        3 | 12 | 13 => packed(&place()),
        4 => packed(&ACCESS3args { object: handle.clone(), access: 1 }),
        6 => packed(&READ3args { file: handle.clone(), offset: 0, count: 1 }),
        7 => packed(&WRITE3args {
            file: handle.clone(),
            offset: 0,
            count: 1,
            stable: stable_how::UNSTABLE,
            data: Opaque::borrowed(b"x"),
        }),
        8 => packed(&CREATE3args { where_: place(), how: createhow3::GUARDED(sattr3::default()) }),
        9 => packed(&MKDIR3args { where_: place(), attributes: sattr3::default() }),
        10 => packed(&SYMLINK3args {
            where_: place(),
            symlink: symlinkdata3 { symlink_attributes: sattr3::default(), symlink_data: nfspath3::from(&b"x"[..]) },
        }),
        11 => packed(&MKNOD3args { where_: place(), what: mknoddata3::NF3FIFO(sattr3::default()) }),
        14 => packed(&RENAME3args { from: place(), to: place() }),
        15 => packed(&LINK3args { file: handle.clone(), link: place() }),
        16 => packed(&READDIR3args { dir: handle.clone(), cookie: 0, cookieverf: cookieverf3([0; 8]), count: 4096 }),
        17 => packed(&READDIRPLUS3args {
            dir: handle.clone(),
            cookie: 0,
            cookieverf: cookieverf3([0; 8]),
            dircount: 4096,
            maxcount: 4096,
        }),
        21 => packed(&COMMIT3args { file: handle.clone(), offset: 0, count: 0 }),
        other => panic!("{other}"),
    };
    let results = peer.call(NFS, procedure, &bytes);
    u32::from_be_bytes(results[..4].try_into().unwrap())
}

#[test]
fn refuses_handles_that_are_none_and_knows_those_that_are_gone() {
    let world = World::new();
    std::fs::create_dir(world.path.join("directory")).unwrap();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let gone = world.lookup(&mut peer, &root, b"directory");
    let removed = diropargs3 { dir: root.clone(), name: (&b"directory"[..]).into() };
    assert!(matches!(peer.nfs::<RMDIR3res>(13, &RMDIR3args { object: removed }), RMDIR3res::Ok(_)));
    let mut forged = root.data.to_vec();
    *forged.last_mut().unwrap() ^= 1;
    let bad = [vec![], vec![0; 1], vec![1; 32], vec![0xff; 64], root.data[..root.data.len() - 1].to_vec(), forged];
    for procedure in 1..=21 {
        for handle in &bad {
            let handle = nfs_fh3 { data: Opaque::owned(handle.clone()) };
            let status = status_of(&mut peer, procedure, &handle);
            assert_eq!(status, nfsstat3::NFS3ERR_BADHANDLE as u32, "{procedure} {:?}", handle.data);
        }
        let status = status_of(&mut peer, procedure, &gone);
        assert_eq!(status, nfsstat3::NFS3ERR_STALE as u32, "{procedure}");
    }
}

#[test]
fn null_answers_nothing() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    assert!(peer.call(NFS, 0, &packed(&Void)).is_empty());
    assert_eq!(Void.packed_size(), 0);
}
