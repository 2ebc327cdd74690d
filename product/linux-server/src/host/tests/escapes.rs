//! Nothing outside the export is reached.

//! rule: 9: no path, symbolic link or `..` leads out of the served directories, and no race does
//! kept in: `product/linux-server/src/host/containment.rs`, `product/linux-server/src/host/climb.rs`

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::*;

#[test]
fn symbolic_links_are_shown_and_never_followed_out() {
    let world = World::new();
    std::fs::write(world.outside("secret"), b"outside").unwrap();
    for (name, target) in
        [("up", "../secret"), ("absolute", "/etc/passwd"), ("directory", ".."), ("magic", "/proc/self/root")]
    {
        symlink(target, world.host(name)).unwrap();
    }
    let root = world.root();
    for name in ["up", "absolute", "directory", "magic"] {
        let found = world.lookup(&root, name);
        assert_eq!(kind_of(&found), Kind::Symlink, "{name}");
        let link = found.unwrap().0;
        assert_eq!(world.lookup(&link, "secret").err(), Some(VolumeError::NotDirectory));
        assert_eq!(world.run(world.volume.read(&link, 0, 10)).err(), Some(VolumeError::Symlink));
        let size = AttributeChange { size: Some(0), ..AttributeChange::default() };
        assert_eq!(world.set(&link, size).result, Err(VolumeError::Symlink));
        let how = CreateHow::Unchecked(AttributeChange::default());
        let made = world.run(world.volume.create(&root, name.as_bytes(), how));
        assert_eq!(made.result.err(), Some(VolumeError::Exists));
        // MOUNT follows links, in the export.
        for below in ["", "/x", "/secret"] {
            let mounted = world.run(world.volume.mount(format!("/{name}{below}").as_bytes()));
            match mounted {
                Ok(mounted) => assert!((name, below) == ("directory", "") && Arc::ptr_eq(&mounted, &root), "{name}"),
                Err(error) => assert_eq!(error, VolumeError::NotFound, "{name}{below}"),
            }
        }
    }
    assert_eq!(std::fs::read(world.outside("secret")).unwrap(), b"outside");
    assert_eq!(&*world.run(world.volume.read_link(&world.lookup(&root, "up").unwrap().0)).unwrap().0, b"../secret");
}

#[test]
fn dot_dot_stops_at_the_root() {
    let world = World::new();
    let root = world.root();
    let a = world.make_directory(&root, "a");
    let b = world.make_directory(&a, "b");
    assert!(Arc::ptr_eq(&world.lookup(&root, "..").unwrap().0, &root));
    assert!(Arc::ptr_eq(&world.lookup(&b, "..").unwrap().0, &a));
    assert!(Arc::ptr_eq(&world.lookup(&a, "..").unwrap().0, &root));
    assert!(Arc::ptr_eq(&world.lookup(&a, ".").unwrap().0, &a));
    for path in ["/../../../..", "..", "/a/../../..", "/a/b/../../../../.."] {
        let mounted = world.run(world.volume.mount(path.as_bytes())).unwrap();
        assert!(Arc::ptr_eq(&mounted, &root), "{path}");
    }
    assert!(Arc::ptr_eq(&world.run(world.volume.mount(b"a/../a/b")).unwrap(), &b));
}

#[test]
fn names_that_are_none_are_refused_everywhere() {
    let world = World::new();
    let root = world.root();
    let file = world.create(&root, "file");
    std::fs::write(world.outside("secret"), b"outside").unwrap();
    for name in [&b"../secret"[..], b"a/b", b"/etc/passwd", b"a\0b", b"", b"."] {
        let volume = &world.volume;
        if name != b"." {
            assert!(matches!(world.run(volume.lookup(&root, name)), Err(VolumeError::Invalid { .. })), "{name:?}");
        }
        let how = CreateHow::Unchecked(AttributeChange::default());
        let refused = [
            world.run(volume.create(&root, name, how)).result.err(),
            world.run(volume.make_directory(&root, name, AttributeChange::default())).result.err(),
            world.run(volume.symlink(&root, name, b"x", AttributeChange::default())).result.err(),
            world.run(volume.remove(&root, name)).result.err(),
            world.run(volume.remove_directory(&root, name)).result.err(),
            world.run(volume.rename(&root, b"file", &root, name)).0.result.err(),
            world.run(volume.rename(&root, name, &root, b"x")).0.result.err(),
            world.run(volume.link(&file, &root, name)).result.err(),
        ];
        for error in refused {
            assert!(matches!(error, Some(VolumeError::Invalid { .. })), "{name:?}: {error:?}");
        }
    }
    let removed = world.run(world.volume.remove_directory(&root, b".."));
    assert!(matches!(removed.result, Err(VolumeError::Invalid { .. })));
    let longest = "n".repeat(255);
    let found = world.create(&root, &longest);
    assert!(Arc::ptr_eq(&world.lookup(&root, &longest).unwrap().0, &found));
    let longer = [b'n'; 256];
    assert_eq!(world.run(world.volume.lookup(&root, &longer)).err(), Some(VolumeError::NameTooLong { bytes: 256 }));
}

#[test]
fn a_directory_that_was_moved_out_leads_nowhere() {
    let world = World::new();
    let root = world.root();
    let moved = world.make_directory(&root, "moved");
    world.create(&moved, "inside");
    std::fs::create_dir(world.outside("elsewhere")).unwrap();
    std::fs::rename(world.host("moved"), world.outside("elsewhere/moved")).unwrap();
    std::fs::write(world.outside("elsewhere/moved/new"), b"not ours").unwrap();
    assert_eq!(world.lookup(&moved, "..").err(), Some(VolumeError::Stale));
    assert_eq!(world.lookup(&moved, "new").err(), Some(VolumeError::Stale));
    assert!(world.run(world.volume.list(&moved, 0, 10, true)).is_err());
    let how = CreateHow::Unchecked(AttributeChange::default());
    assert_eq!(world.run(world.volume.create(&moved, b"made", how)).result.err(), Some(VolumeError::Stale));
    assert_eq!(world.run(world.volume.rename(&moved, b"new", &root, b"x")).0.result.err(), Some(VolumeError::Stale));
    assert_eq!(world.run(world.volume.remove(&moved, b"new")).result.err(), Some(VolumeError::Stale));
    assert!(!world.outside("elsewhere/moved/made").exists());
    let other = world.create(&root, "other");
    assert_eq!(world.run(world.volume.link(&other, &moved, b"made")).result.err(), Some(VolumeError::Stale));
    assert_eq!(world.run(world.volume.rename(&root, b"other", &moved, b"x")).0.result.err(), Some(VolumeError::Stale));
    // Nor can a client ask about it or change it.
    world.volume.engine().set_knob(afflux_volume::VolumeKnob::AttributesIdleCentisecs, 0).unwrap();
    let mode = std::fs::metadata(world.outside("elsewhere/moved")).unwrap().permissions();
    let change = AttributeChange { mode: Some(0o711), ..AttributeChange::default() };
    assert_eq!(world.set(&moved, change).result, Err(VolumeError::Stale));
    assert_eq!(std::fs::metadata(world.outside("elsewhere/moved")).unwrap().permissions(), mode);
    assert_eq!(world.run(world.volume.attributes(&moved)).err(), Some(VolumeError::Stale));
    assert_eq!(world.run(world.volume.access(&moved)).err(), Some(VolumeError::Stale));
    assert_eq!(world.run(world.volume.space(&moved)).err(), Some(VolumeError::Stale));
    assert_eq!(world.run(world.volume.path_limits(&moved)).err(), Some(VolumeError::Stale));
    assert_eq!(world.run(world.volume.sync(&moved, 0, 0)).result.err(), Some(VolumeError::Stale));
    // Moved in again, it is as before.
    std::fs::rename(world.outside("elsewhere/moved"), world.host("again")).unwrap();
    assert!(world.run(world.volume.attributes(&moved)).is_ok());
    assert!(world.lookup(&moved, "new").is_ok());
    std::fs::rename(world.host("again"), world.outside("elsewhere/moved")).unwrap();
    // Nor does its handle come back.
    let handle = world.handle(&moved);
    drop(moved);
    let world = world.restarted();
    assert_eq!(world.resolve(&handle).err(), Some(VolumeError::Stale));
}

#[test]
fn renames_by_others_open_no_way_out() {
    let world = World::new();
    std::fs::create_dir_all(world.host("a/b/c")).unwrap();
    std::fs::create_dir(world.outside("elsewhere")).unwrap();
    std::fs::write(world.outside("elsewhere/secret"), b"outside").unwrap();
    std::fs::write(world.outside("secret"), b"outside").unwrap();
    let root = world.root();
    let b = world.run(world.volume.mount(b"/a/b")).unwrap();
    let moves = Arc::new(Moves::default());
    let mover = {
        let (moves, inside, out) = (Arc::clone(&moves), world.host("a/b"), world.outside("elsewhere/b"));
        std::thread::spawn(move || {
            moves.until_stopped(|| {
                std::fs::rename(&inside, &out).unwrap();
                std::fs::rename(&out, &inside).unwrap();
            });
        })
    };
    moves.have_begun();
    let (mut up, mut lost) = (0, 0);
    for _ in 0..3_000 {
        match world.lookup(&b, "..") {
            Ok((parent, _)) => {
                up += 1;
                // The parent is in the export in any case, and no such name is there.
                assert!(world.lookup(&parent, "secret").is_err(), "reached the outside");
                let above = world.lookup(&parent, "..");
                assert!(
                    above.is_err_and(|error| error == VolumeError::Stale) || world.lookup(&root, "secret").is_err()
                );
            }
            Err(VolumeError::Stale) => lost += 1,
            Err(error) => panic!("{error}"),
        }
    }
    moves.stop();
    mover.join().unwrap();
    println!("{up} times up, {lost} times refused, {} moves", moves.rounds());
}

#[test]
fn listings_of_a_directory_that_comes_and_goes_tell_what_is_inside_alone() {
    const CALLS: u32 = 1_000;
    let world = World::new();
    std::fs::create_dir(world.host("moving")).unwrap();
    std::fs::write(world.host("moving/stays"), b"inside").unwrap();
    std::fs::create_dir(world.outside("elsewhere")).unwrap();
    std::fs::write(world.outside("elsewhere/secret"), b"outside").unwrap();
    let moving = world.lookup(&world.root(), "moving").unwrap().0;
    let moves = Moves::default();
    let told: BTreeMap<Vec<u8>, u32> = std::thread::scope(|scope| {
        scope.spawn(|| move_out_and_in(&world, &moves));
        moves.have_begun();
        let mut told = BTreeMap::new();
        for _ in 0..CALLS {
            match world.run(world.volume.list(&moving, 2, 10, false)) {
                Ok(listed) => {
                    listed.entries.iter().for_each(|entry| *told.entry(entry.name.to_vec()).or_default() += 1);
                }
                Err(error) => assert_eq!(error, VolumeError::Stale),
            }
        }
        moves.stop();
        told
    });
    assert!(told.keys().all(|name| name == b"stays"), "{told:?}");
    let quiet = world.run(world.volume.list(&moving, 2, 10, false)).unwrap();
    assert_eq!(quiet.entries.iter().map(|entry| &*entry.name).collect::<Vec<_>>(), [b"stays"]);
}

/// A thread that moves things while a test searches.
#[derive(Default)]
struct Moves {
    stop: AtomicBool,
    rounds: AtomicU32,
}

impl Moves {
    fn until_stopped(&self, round: impl Fn()) {
        while !self.stop.load(Ordering::Relaxed) {
            round();
            self.rounds.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for the first round: the thread may get a processor late.
    fn have_begun(&self) {
        afflux_scratch::eventually("the moves have begun", || self.rounds() > 0);
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn rounds(&self) -> u32 {
        self.rounds.load(Ordering::Relaxed)
    }
}

/// Moves a directory out and in again until it is stopped. Only while it is outside does it contain "secret".
fn move_out_and_in(world: &World, moves: &Moves) {
    let (inside, outside) = (world.host("moving"), world.outside("elsewhere/moving"));
    let (secret, seen) = (world.outside("elsewhere/secret"), world.outside("elsewhere/moving/secret"));
    moves.until_stopped(|| {
        std::fs::rename(&inside, &outside).unwrap();
        std::fs::rename(&secret, &seen).unwrap();
        std::fs::rename(&seen, &secret).unwrap();
        std::fs::rename(&outside, &inside).unwrap();
    });
}

#[test]
fn what_was_never_inside_is_not_seen_in_a_directory_that_comes_and_goes() {
    const CALLS: u32 = 1_000;
    let world = World::new();
    std::fs::create_dir(world.host("moving")).unwrap();
    std::fs::create_dir(world.outside("elsewhere")).unwrap();
    std::fs::write(world.outside("elsewhere/secret"), b"outside").unwrap();
    let root = world.root();
    let moving = world.lookup(&root, "moving").unwrap().0;
    let (moves, seen) = (Moves::default(), AtomicBool::new(false));
    let call = |number: u32| match number % 4 {
        0 => {
            let listed = world.run(world.volume.list(&moving, 0, 10, number.is_multiple_of(8)));
            listed.is_ok_and(|listed| listed.entries.iter().any(|entry| &*entry.name == b"secret"))
        }
        _ => match world.lookup(&moving, "secret") {
            Ok((file, _)) => {
                let read = world.run(world.volume.read(&file, 0, 100)).map(|read| bytes_of(&read.bytes));
                println!("reached the outside: {read:?}");
                true
            }
            Err(error) => {
                assert!(matches!(error, VolumeError::NotFound | VolumeError::Stale), "{error}");
                false
            }
        },
    };
    std::thread::scope(|scope| {
        scope.spawn(|| move_out_and_in(&world, &moves));
        moves.have_begun();
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let reached = (0..CALLS).find(|number| seen.load(Ordering::Relaxed) || call(*number));
                    seen.fetch_or(reached.is_some(), Ordering::Relaxed);
                })
            })
            .collect();
        let ended: Vec<_> = clients.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        moves.stop();
        ended.into_iter().for_each(|client| client.unwrap());
    });
    assert!(!seen.load(Ordering::Relaxed), "what was never inside was told of, or read");
}
