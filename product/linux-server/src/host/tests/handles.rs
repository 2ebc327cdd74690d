//! Handles name one object for as long as it lives.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

fn by_name() -> HostOptions {
    HostOptions { by_handle: false, ..HostOptions::default() }
}

/// Every method by which these tests find handles again.
fn ways() -> Vec<HostOptions> {
    vec![HostOptions::default(), by_name()]
}

#[test]
fn handles_survive_renames_and_restarts() {
    for options in ways() {
        let world = World::with(options.clone());
        let root = world.root();
        let deep = world.make_directory(&world.make_directory(&root, "one"), "two");
        let file = world.create(&deep, "file");
        world.write(&file, 0, b"bytes").result.unwrap();
        let handles = [world.handle(&root), world.handle(&deep), world.handle(&file)];
        assert!(handles.iter().all(|handle| handle.len() <= 64));
        let renamed = world.run(world.volume.rename(&deep, b"file", &root, b"moved"));
        renamed.0.result.unwrap();
        assert!(Arc::ptr_eq(&world.resolve(&handles[2]).unwrap(), &file));
        drop((root, deep, file));
        // Another program renames it while no server runs.
        let world = world.restarted();
        std::fs::rename(world.host("one"), world.host("uno")).unwrap();
        assert!(world.volume.try_resolve(&handles[2]).is_none());
        let found = world.resolve(&handles[2]).unwrap();
        assert_eq!(world.read(&found, 0, 100), (b"bytes".to_vec(), true), "{options:?}");
        assert_eq!(world.handle(&found), handles[2]);
        let deep = world.resolve(&handles[1]).unwrap();
        assert_eq!(deep.kind(), Kind::Directory);
        let above = world.lookup(&deep, "..").unwrap().0;
        assert!(Arc::ptr_eq(&above, &world.lookup(&world.root(), "uno").unwrap().0));
        assert!(Arc::ptr_eq(&world.resolve(&handles[0]).unwrap(), &world.root()));
    }
}

#[test]
fn forged_and_cut_handles_are_bad() {
    let world = World::new();
    let root = world.root();
    let handle = world.handle(&world.create(&root, "file"));
    for at in 0..handle.len() {
        let mut forged = handle.clone();
        forged[at] ^= 1;
        assert_eq!(world.resolve(&forged).err(), Some(VolumeError::BadHandle), "byte {at}");
        assert!(world.volume.try_resolve(&forged).is_none());
        assert_eq!(world.resolve(&handle[..at]).err(), Some(VolumeError::BadHandle));
    }
    assert_eq!(world.resolve(&[0; 64]).err(), Some(VolumeError::BadHandle));
    assert_eq!(world.resolve(&[0xff; 200]).err(), Some(VolumeError::BadHandle));
    assert!(world.resolve(&handle).is_ok());
}

#[test]
fn what_is_gone_is_stale_and_its_number_used_again_is_another() {
    for options in ways() {
        let world = World::with(options);
        let root = world.root();
        let mut stale = Vec::new();
        for round in 0..200 {
            let file = world.create(&root, "again");
            stale.push((world.handle(&file), file.fileid()));
            drop(file);
            if round % 2 == 0 {
                world.run(world.volume.remove(&root, b"again")).result.unwrap();
            } else {
                std::fs::remove_file(world.host("again")).unwrap();
            }
        }
        let last = world.create(&root, "again");
        let reused = stale.iter().filter(|(_, fileid)| *fileid == last.fileid()).count();
        println!("{reused} of 200 had the same number");
        drop(last);
        let world = world.restarted();
        for (handle, _) in &stale {
            assert_eq!(world.resolve(handle).err(), Some(VolumeError::Stale));
        }
    }
}

#[test]
fn a_removed_file_serves_those_who_hold_it_and_is_stale_for_others() {
    let world = World::new();
    let root = world.root();
    let file = world.create(&root, "file");
    world.write(&file, 0, b"still here").result.unwrap();
    let handle = world.handle(&file);
    world.run(world.volume.remove(&root, b"file")).result.unwrap();
    assert_eq!(world.read(&file, 0, 100).0, b"still here");
    assert_eq!(world.resolve(&handle).err(), Some(VolumeError::Stale));
    assert_eq!(world.write(&file, 0, b"x").result, Err(VolumeError::Stale));
    let dirty = || world.volume.engine().status().dirty_bytes;
    assert!(dirty() > 0);
    drop(file);
    assert_eq!(dirty(), 0, "discarded with the last holder");
    assert_eq!(world.resolve(&handle).err(), Some(VolumeError::Stale));
}

#[test]
fn a_handle_is_no_good_where_its_export_is_not_served() {
    let world = World::new();
    let root = world.root();
    let handle = world.handle(&world.create(&root, "file"));
    let (scratch, options) = (Arc::clone(&world.scratch), world.options.clone());
    drop(root);
    drop(world);
    // Another directory of the same file system is served under the same key.
    std::fs::rename(scratch.path().join("export"), scratch.path().join("private")).unwrap();
    let world = World::on(scratch, options);
    assert_eq!(world.resolve(&handle).err(), Some(VolumeError::Stale));
}

#[test]
fn a_file_that_was_moved_out_is_served_by_its_handle_unless_that_is_to_be_checked() {
    for subtree_check in [false, true] {
        let world = World::with(HostOptions { subtree_check, ..HostOptions::default() });
        let root = world.root();
        let directory = world.make_directory(&root, "directory");
        let file = world.create(&directory, "file");
        world.write(&file, 0, b"bytes").result.unwrap();
        world.sync(&file);
        assert_eq!(world.run(world.volume.settle_all()), 0);
        let handle = world.handle(&file);
        drop(file);
        world.volume.engine().set_knob(afflux_volume::VolumeKnob::AttributesIdleCentisecs, 0).unwrap();
        let read = || world.resolve(&handle).map(|file| world.read(&file, 0, 100).0);
        let (inside, outside) = (world.host("directory/file"), world.outside("file"));
        assert_eq!(read(), Ok(b"bytes".to_vec()));
        std::fs::rename(&inside, &outside).unwrap();
        let moved_out = if subtree_check { Err(VolumeError::Stale) } else { Ok(b"bytes".to_vec()) };
        assert_eq!(read(), moved_out, "checked: {subtree_check}");
        assert_eq!(world.lookup(&directory, "file").err(), Some(VolumeError::NotFound));
        // Moved in again, under another name, it is served.
        std::fs::rename(&outside, world.host("again")).unwrap();
        world.lookup(&root, "again").unwrap();
        assert_eq!(read(), Ok(b"bytes".to_vec()), "checked: {subtree_check}");
        // After a lookup, the file is also served under a second name.
        std::fs::hard_link(world.host("again"), world.host("linked")).unwrap();
        std::fs::remove_file(world.host("again")).unwrap();
        let _ = read();
        world.lookup(&root, "linked").unwrap();
        assert_eq!(read(), Ok(b"bytes".to_vec()), "checked: {subtree_check}");
    }
}

#[test]
fn many_more_objects_than_descriptors() {
    for by_handle in [true, false] {
        let world = World::with(HostOptions { by_handle, descriptors_max: 160, ..HostOptions::default() });
        let root = world.root();
        let directory = world.make_directory(&root, "directory");
        let mut handles = Vec::new();
        for number in 0..400 {
            let file = world.create(&directory, &format!("file-{number}"));
            world.write(&file, 0, format!("I am {number}").as_bytes()).result.unwrap();
            handles.push(world.handle(&file));
        }
        let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
        println!("{open} descriptors open");
        for (number, handle) in handles.iter().enumerate() {
            let file = world.resolve(handle).unwrap();
            assert_eq!(world.read(&file, 0, 100).0, format!("I am {number}").into_bytes());
        }
        let listing = world.run(world.volume.list(&directory, 0, 1_000, true)).unwrap();
        assert_eq!(listing.entries.iter().filter(|entry| entry.object.is_some()).count(), 402);
    }
}

#[test]
fn what_is_gone_is_stale_also_while_its_number_is_given_to_another() {
    let scratch = Scratch::new();
    let pool = WorkerPool::new("test-pool", 1, 8);
    let tree = HostTree::open(&[scratch.path().to_owned()], &pool, &HostOptions::default()).unwrap();
    let root = super::super::node::host_node(&afflux_volume::Directory::exports(&*tree)[0].root.node);
    let path = |name: String| scratch.path().join(name);
    std::fs::create_dir(path("gone".to_owned())).unwrap();
    let gone = tree.core.lookup(&root, b"gone").unwrap().identity;
    if !tree.core.may_open(&gone) {
        afflux_scratch::skipped!("nothing can be opened by its handle here");
        return;
    }
    std::fs::remove_dir(path("gone".to_owned())).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The new directories get the inode numbers that were freed.
        let make = |maker: u32| {
            while !ended.load(Ordering::Relaxed) {
                (0..8).for_each(|at| std::fs::create_dir(path(format!("{maker} {at}"))).unwrap());
                (0..8).for_each(|at| std::fs::remove_dir(path(format!("{maker} {at}"))).unwrap());
            }
        };
        let makers = [0, 1].map(|maker| scope.spawn(move || make(maker)));
        let (_, mount) = tree.core.file_systems.mounts(gone.fsid()).remove(0);
        let others = (0..100_000).find_map(|_| match tree.core.open_on(mount.as_fd(), &gone) {
            Ok(None) => None,
            other => Some(other.map(drop)),
        });
        ended.store(true, Ordering::Relaxed);
        makers.into_iter().for_each(|maker| maker.join().unwrap());
        assert_eq!(others, None);
    });
}
