//! Making, removing, renaming, linking and listing.

use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::time::Duration;

use afflux_volume::{SetTime, SpecialKind, Timestamp};

use super::*;

#[test]
fn created_files_have_the_mode_asked_for_whatever_the_mask() {
    let world = World::new();
    let root = world.root();
    for mode in [0o600, 0o644, 0o666, 0o777, 0o444, 0o4755, 0o000] {
        let change = AttributeChange { mode: Some(mode), ..AttributeChange::default() };
        let name = format!("file-{mode:o}");
        let made = world.run(world.volume.create(&root, name.as_bytes(), CreateHow::Guarded(change)));
        let (file, attributes) = made.result.unwrap();
        assert_eq!(attributes.mode, mode);
        assert_eq!(std::fs::metadata(world.host(&name)).unwrap().permissions().mode() & 0o7777, mode);
        // The creator may write to it whatever its mode.
        world.write(&file, 0, b"written").result.unwrap();
        world.sync(&file);
        let (before, after) = (made.consistency.before.unwrap(), made.consistency.after.unwrap());
        assert!(after.mtime > before.mtime && after.ctime > before.ctime);
        let name = format!("directory-{mode:o}");
        let made = world.run(world.volume.make_directory(&root, name.as_bytes(), change));
        assert_eq!(made.result.unwrap().1.mode, mode);
    }
}

#[test]
fn unchecked_creation_finds_and_cuts_guarded_refuses() {
    let world = World::new();
    let root = world.root();
    let file = world.create(&root, "file");
    world.write(&file, 0, b"some bytes").result.unwrap();
    let create = |how| world.run(world.volume.create(&root, b"file", how)).result;
    let (found, attributes) = create(CreateHow::Unchecked(AttributeChange::default())).unwrap();
    assert!(Arc::ptr_eq(&found, &file));
    assert_eq!(attributes.size, 10);
    let cut = AttributeChange { size: Some(4), ..AttributeChange::default() };
    assert_eq!(create(CreateHow::Unchecked(cut)).unwrap().1.size, 4);
    assert_eq!(world.read(&file, 0, 100), (b"some".to_vec(), true));
    assert_eq!(create(CreateHow::Guarded(AttributeChange::default())).err(), Some(VolumeError::Exists));
    world.make_directory(&root, "directory");
    let how = CreateHow::Unchecked(AttributeChange::default());
    assert_eq!(world.run(world.volume.create(&root, b"directory", how)).result.err(), Some(VolumeError::Exists));
    let sized = AttributeChange { size: Some(9), ..AttributeChange::default() };
    let made = world.run(world.volume.create(&root, b"sized", CreateHow::Guarded(sized))).result.unwrap();
    assert_eq!(made.1.size, 9);
    assert_eq!(world.read(&made.0, 0, 100).0, [0; 9]);
}

#[test]
fn exclusive_creation_knows_its_verifier_over_a_restart() {
    let world = World::new();
    let exclusive = |world: &World, verifier| {
        world
            .run(world.volume.create(
                &world.root(),
                b"file",
                CreateHow::Exclusive { verifier, attributes: Default::default() },
            ))
            .result
    };
    let verifier = [0xff, 1, 2, 3, 0x80, 5, 6, 7];
    let file = exclusive(&world, verifier).unwrap().0;
    assert!(Arc::ptr_eq(&exclusive(&world, verifier).unwrap().0, &file));
    assert_eq!(exclusive(&world, [9; 8]).err(), Some(VolumeError::Exists));
    drop(file);
    let world = world.restarted();
    let file = exclusive(&world, verifier).unwrap().0;
    assert_eq!(exclusive(&world, [9; 8]).err(), Some(VolumeError::Exists));
    // The client sets the times, and so overwrites the stored verifier.
    let times = AttributeChange { atime: SetTime::ServerNow, mtime: SetTime::ServerNow, ..AttributeChange::default() };
    world.set(&file, times).result.unwrap();
    assert_eq!(exclusive(&world, verifier).err(), Some(VolumeError::Exists));
    assert!(world.attributes(&file).mtime.seconds > 1_000_000_000);
}

#[test]
fn hard_links_are_one_object() {
    let world = World::new();
    let root = world.root();
    let file = world.create(&root, "one");
    world.write(&file, 0, b"shared").result.unwrap();
    let linked = world.run(world.volume.link(&file, &root, b"two"));
    assert_eq!(linked.result.unwrap().links, 2);
    assert!(linked.consistency.after.is_some());
    assert!(Arc::ptr_eq(&world.lookup(&root, "two").unwrap().0, &file));
    world.run(world.volume.remove(&root, b"one")).result.unwrap();
    assert_eq!(world.attributes(&file).links, 1);
    assert_eq!(world.read(&file, 0, 10).0, b"shared");
    assert!(world.resolve(&world.handle(&file)).is_ok());
    assert_eq!(world.run(world.volume.link(&file, &root, b"two")).result.err(), Some(VolumeError::Exists));
    let directory = world.make_directory(&root, "directory");
    assert_eq!(world.run(world.volume.link(&directory, &root, b"x")).result.err(), Some(VolumeError::IsDirectory));
    let link =
        world.run(world.volume.symlink(&root, b"soft", b"nowhere", AttributeChange::default())).result.unwrap().0;
    assert_eq!(world.run(world.volume.link(&link, &root, b"soft2")).result.unwrap().links, 2);
    assert_eq!(kind_of(&world.lookup(&root, "soft2")), Kind::Symlink);
    world.sync(&file);
    assert_eq!(std::fs::read(world.host("two")).unwrap(), b"shared");
}

#[test]
fn rename_replaces_and_keeps_who_holds_the_old() {
    let world = World::new();
    let root = world.root();
    let (old, new) = (world.create(&root, "target"), world.create(&root, "source"));
    world.write(&old, 0, b"old").result.unwrap();
    world.write(&new, 0, b"new").result.unwrap();
    let directory = world.make_directory(&root, "directory");
    let (outcome, to) = world.run(world.volume.rename(&root, b"source", &root, b"target"));
    outcome.result.unwrap();
    assert_eq!(outcome.consistency.after, to.after);
    assert!(Arc::ptr_eq(&world.lookup(&root, "target").unwrap().0, &new));
    assert_eq!(world.lookup(&root, "source").err(), Some(VolumeError::NotFound));
    assert_eq!(world.read(&old, 0, 10).0, b"old");
    assert_eq!(world.resolve(&world.handle(&old)).err(), Some(VolumeError::Stale));
    let (outcome, to) = world.run(world.volume.rename(&root, b"target", &directory, b"inside"));
    outcome.result.unwrap();
    assert!(to.before.unwrap().mtime < to.after.unwrap().mtime);
    assert!(outcome.consistency.before.unwrap().mtime < outcome.consistency.after.unwrap().mtime);
    assert_eq!(world.read(&new, 0, 10).0, b"new");
    let into_itself = world.run(world.volume.rename(&root, b"directory", &directory, b"x")).0.result;
    assert!(matches!(into_itself, Err(VolumeError::Invalid { .. })));
    world.make_directory(&root, "other");
    let over_full = world.run(world.volume.rename(&root, b"other", &root, b"directory")).0.result;
    assert_eq!(over_full, Err(VolumeError::NotEmpty));
    assert_eq!(world.run(world.volume.rename(&root, b"gone", &root, b"x")).0.result, Err(VolumeError::NotFound));
    // Both names are of one file: nothing happens, and both stay.
    world.run(world.volume.link(&new, &directory, b"twin")).result.unwrap();
    world.run(world.volume.rename(&directory, b"inside", &directory, b"twin")).0.result.unwrap();
    assert!(world.lookup(&directory, "inside").is_ok() && world.lookup(&directory, "twin").is_ok());
    assert!(world.resolve(&world.handle(&new)).is_ok());
}

#[test]
fn removing_is_for_the_right_kind_only() {
    let world = World::new();
    let root = world.root();
    let directory = world.make_directory(&root, "directory");
    world.create(&directory, "file");
    let remove = |name: &[u8]| world.run(world.volume.remove(&root, name)).result;
    let remove_directory = |name: &[u8]| world.run(world.volume.remove_directory(&root, name)).result;
    assert_eq!(remove(b"directory"), Err(VolumeError::IsDirectory));
    assert_eq!(remove_directory(b"directory"), Err(VolumeError::NotEmpty));
    assert_eq!(remove(b"gone"), Err(VolumeError::NotFound));
    world.create(&root, "file");
    assert_eq!(remove_directory(b"file"), Err(VolumeError::NotDirectory));
    world.run(world.volume.remove(&directory, b"file")).result.unwrap();
    remove_directory(b"directory").unwrap();
    assert_eq!(world.lookup(&directory, "file").err(), Some(VolumeError::Stale));
    assert_eq!(world.run(world.volume.list(&directory, 2, 9, false)).err(), Some(VolumeError::Stale));
    let how = CreateHow::Unchecked(AttributeChange::default());
    assert_eq!(world.run(world.volume.create(&directory, b"x", how)).result.err(), Some(VolumeError::Stale));
    let file = world.create(&root, "plain");
    assert_eq!(world.lookup(&file, "x").err(), Some(VolumeError::NotDirectory));
}

#[test]
fn special_objects_are_made_where_the_host_allows() {
    let world = World::new();
    let root = world.root();
    let make =
        |name: &[u8], kind| world.run(world.volume.make_special(&root, name, kind, AttributeChange::default())).result;
    assert_eq!(make(b"pipe", SpecialKind::Fifo).unwrap().0.kind(), Kind::Fifo);
    assert_eq!(make(b"socket", SpecialKind::Socket).unwrap().0.kind(), Kind::Socket);
    assert!(std::fs::metadata(world.host("pipe")).unwrap().file_type().is_fifo());
    match make(b"null", SpecialKind::CharDevice { major: 1, minor: 3 }) {
        Ok((device, attributes)) => {
            assert_eq!(device.kind(), Kind::CharDevice);
            assert_eq!((attributes.device_major, attributes.device_minor), (1, 3));
        }
        Err(error) => assert!(matches!(error, VolumeError::NotPermitted | VolumeError::NotSupported), "{error}"),
    }
    let pipe = world.lookup(&root, "pipe").unwrap().0;
    assert!(matches!(world.run(world.volume.read(&pipe, 0, 1)), Err(VolumeError::Invalid { .. })));
    world.run(world.volume.remove(&root, b"pipe")).result.unwrap();
}

#[test]
fn symbolic_links_keep_their_text() {
    let world = World::new();
    let root = world.root();
    let long = vec![b'x'; 4095];
    for target in [&b"../../etc/passwd"[..], b"/", b" \xff\xfe ", &long] {
        let made = world.run(world.volume.symlink(&root, b"link", target, AttributeChange::default()));
        let link = made.result.unwrap().0;
        assert_eq!(&*world.run(world.volume.read_link(&link)).unwrap().0, target);
        world.run(world.volume.remove(&root, b"link")).result.unwrap();
    }
    let file = world.create(&root, "file");
    assert!(world.run(world.volume.read_link(&file)).is_err());
}

#[test]
fn listings_tell_of_objects_what_lookups_do() {
    // Right after a change entries are opened; once the directory has rested for a while they are not.
    for rest_ms in [0, 30] {
        let world = World::new();
        std::fs::create_dir(world.host("directory")).unwrap();
        std::fs::write(world.host("file"), b"bytes").unwrap();
        std::fs::hard_link(world.host("file"), world.host("another name")).unwrap();
        std::os::unix::fs::symlink("/nowhere", world.host("link")).unwrap();
        let pipe = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(rustix::fs::CWD, world.host("pipe"), pipe.0, pipe.1, 0).unwrap();
        let changed = std::fs::metadata(world.host("")).unwrap().modified().unwrap();
        let rested = || changed.elapsed().is_ok_and(|rest| rest >= Duration::from_millis(rest_ms));
        afflux_scratch::eventually("the directory has rested", rested);
        let root = world.root();
        let listing = world.run(world.volume.list(&root, 0, 100, true)).unwrap();
        assert_eq!(listing.entries.len(), 7);
        for entry in &listing.entries[2..] {
            let (handle, attributes) = entry.object.as_ref().unwrap();
            let name = std::str::from_utf8(&entry.name).unwrap();
            let (inode, looked_up) = world.lookup(&root, name).unwrap();
            assert_eq!(handle.as_bytes(), world.handle(&inode), "{name}");
            assert_eq!(*attributes, looked_up, "{name}");
        }
    }
}

#[test]
fn listings_name_everything_once() {
    let world = World::new();
    let root = world.root();
    let names: BTreeSet<_> = (0..2_500).map(|at| format!("entry {at}")).collect();
    names.iter().for_each(|name| std::fs::write(world.host(name), b"").unwrap());
    for piece in [1, 7, 100, 10_000] {
        let listed = if piece == 1 { world.names(&root, 3) } else { world.names(&root, piece) };
        assert_eq!(listed[..2], [".", ".."]);
        assert_eq!(listed.len(), 2_502);
        assert_eq!(listed[2..].iter().cloned().collect::<BTreeSet<_>>(), names);
    }
    let listing = world.run(world.volume.list(&root, 0, 5, true)).unwrap();
    for entry in &listing.entries {
        let (handle, attributes) = entry.object.as_ref().unwrap();
        let inode = world.run(world.volume.resolve(handle.as_bytes())).unwrap();
        assert_eq!((inode.fileid(), attributes.fileid), (entry.fileid, entry.fileid));
    }
    assert_eq!(world.run(world.volume.list(&root, u64::MAX, 5, false)).err(), Some(VolumeError::BadCookie));
    let file = world.create(&root, "file");
    assert_eq!(world.run(world.volume.list(&file, 0, 5, false)).err(), Some(VolumeError::NotDirectory));
}

#[test]
fn everything_can_be_deleted_while_it_is_listed() {
    for restart in [false, true] {
        let mut world = World::new();
        (0..500).for_each(|at| std::fs::write(world.host(&format!("entry {at}")), b"").unwrap());
        let (mut cookie, mut removed) = (0, 0);
        for round in 0.. {
            let root = world.root();
            let listing = world.run(world.volume.list(&root, cookie, 40, false)).unwrap();
            for entry in &listing.entries {
                if *entry.name != *b"." && *entry.name != *b".." {
                    world.run(world.volume.remove(&root, &entry.name)).result.unwrap();
                    removed += 1;
                }
            }
            cookie = listing.entries.last().map_or(cookie, |entry| entry.cookie);
            if listing.end {
                break;
            }
            assert!(round < 100, "no end");
            if restart && round == 5 {
                drop((root, listing));
                world = world.restarted();
            }
        }
        assert_eq!(removed, 500, "restart {restart}");
        assert_eq!(std::fs::read_dir(world.host("")).unwrap().count(), 0);
    }
}

#[test]
fn others_mount_points_are_devices_of_their_own() {
    let world = World::new();
    let root = world.root();
    world.make_directory(&root, "below");
    let target = world.host("below");
    let mounted = is_root()
        && std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"])
            .arg(&target)
            .status()
            .is_ok_and(|status| status.success());
    if !mounted {
        afflux_scratch::skipped!("nothing can be mounted here");
        return;
    }
    let check = || {
        let below = world.lookup(&root, "below").unwrap();
        assert_ne!(below.1.fsid, world.attributes(&root).fsid);
        let file = world.create(&below.0, "file");
        world.write(&file, 0, b"in memory").result.unwrap();
        world.sync(&file);
        assert_eq!(std::fs::read(target.join("file")).unwrap(), b"in memory");
        assert_eq!(world.volume.engine().status().devices.len(), 2);
        world.create(&root, "here");
        let across = world.run(world.volume.rename(&root, b"here", &below.0, b"there")).0.result;
        assert_eq!(across, Err(VolumeError::CrossDevice));
        assert!(world.run(world.volume.remove_directory(&root, b"below")).result.is_err());
        assert!(Arc::ptr_eq(&world.lookup(&below.0, "..").unwrap().0, &root));
        world.handle(&file)
    };
    let handle = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
    drop(root);
    let world = world.restarted();
    let found = handle.as_ref().ok().map(|handle| world.resolve(handle).map(|file| world.read(&file, 0, 100).0));
    let scratch = Arc::clone(&world.scratch);
    drop(world);
    let unmounted = std::process::Command::new("umount").arg("-l").arg(&target).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    drop(scratch);
    assert_eq!(found.unwrap().unwrap(), b"in memory");
}

#[test]
fn times_given_at_creation_are_kept() {
    let world = World::new();
    let root = world.root();
    let time = Timestamp { seconds: 1_234_567_890, nanos: 123_456_700 };
    let change = AttributeChange { mtime: SetTime::To(time), atime: SetTime::To(time), ..AttributeChange::default() };
    let (file, attributes) =
        world.run(world.volume.create(&root, b"file", CreateHow::Unchecked(change))).result.unwrap();
    assert_eq!((attributes.mtime, attributes.atime), (time, time));
    assert_eq!(world.attributes(&file).mtime, time);
    assert_eq!(std::fs::metadata(world.host("file")).unwrap().mtime(), 1_234_567_890);
}
