//! Directories far below their export.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::fs::{Mode, OFlags, mkdirat, open, openat};

use super::*;

/// More steps than one path can hold.
const DEPTH: usize = 2_500;

/// Makes directories in one another, all called "d".
fn dig(world: &World) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at: OwnedFd = open(world.host(""), flags, Mode::empty()).unwrap();
    for _ in 0..DEPTH {
        mkdirat(at.as_fd(), "d", Mode::RWXU).unwrap();
        at = openat(at.as_fd(), "d", flags, Mode::empty()).unwrap();
    }
}

/// Removes the directories with a program of the host that copes with any depth.
fn clear(world: &World) {
    assert!(std::process::Command::new("rm").arg("-rf").arg(world.host("d")).status().unwrap().success());
}

fn deepest(world: &World) -> Object {
    (0..DEPTH).fold(world.root(), |at, _| world.lookup(&at, "d").unwrap().0)
}

fn climbed(world: &World, work: impl FnOnce()) -> u64 {
    let before = world.tree.core.climbed.load(Ordering::Relaxed);
    work();
    world.tree.core.climbed.load(Ordering::Relaxed) - before
}

#[test]
fn a_directory_of_any_depth_is_used_by_few_calls() {
    for by_handle in [true, false] {
        let world = World::with(HostOptions { by_handle, ..HostOptions::default() });
        dig(&world);
        let bottom = deepest(&world);
        let file = world.create(&bottom, "file");
        world.write(&file, 0, b"deep").result.unwrap();
        world.make_directory(&bottom, "further");
        let listed = climbed(&world, || assert_eq!(world.names(&bottom, 10).len(), 4));
        assert!(listed <= 40, "READDIR took {listed} calls to climb");
        let up = climbed(&world, || {
            let parent = world.lookup(&bottom, "..").unwrap().0;
            assert_eq!(world.lookup(&parent, "d").unwrap().0.fileid(), bottom.fileid());
        });
        assert!(up <= 40, "'..' took {up} calls to climb");
        let (bottom, file) = (world.handle(&bottom), world.handle(&file));
        // A new server has to find out the depth of the file.
        let world = world.restarted();
        let found = climbed(&world, || assert_eq!(world.read(&world.resolve(&file).unwrap(), 0, 10).0, b"deep"));
        let again = climbed(&world, || {
            assert_eq!(world.lookup(&world.resolve(&bottom).unwrap(), "file").unwrap().1.size, 4);
        });
        if world.tree.core.by_handle {
            assert!(found + again <= 2 * DEPTH as u64 + 60, "found by {} calls", found + again);
        }
        std::fs::rename(world.host("d"), world.outside("d")).unwrap();
        let moved = world.resolve(&bottom).and_then(|bottom| world.lookup(&bottom, "file"));
        assert_eq!(moved.err(), Some(VolumeError::Stale), "it is outside now");
        std::fs::rename(world.outside("d"), world.host("d")).unwrap();
        clear(&world);
    }
}
