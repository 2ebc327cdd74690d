//! The changes that a shared sync makes durable. The tests search for them in a copy of the disk, made while the file
//! system is mounted, as a power failure would leave it.

//! rule: a change of names is durable when its caller gets the reply; a sync is shared where the file system promises
//! that
//! kept in: `product/linux-server/src/host/stable.rs`

use afflux_volume::{Directory, New, Node, Stable};
use futures_util::future::join_all;

use super::frozen::{Loop, run};
use super::*;
use crate::host::stable::SyncScope;

const DIRECTORIES: usize = 16;

/// The command that makes a file system, and how changes share syncs on it.
type Kind = (&'static str, u64, &'static [&'static str], Option<SyncScope>);

const EXT4: Kind = ("ext4", 64 << 20, &["mkfs.ext4", "-q", "-F"], Some(SyncScope::Everything));
const WITHOUT_JOURNAL: Kind = ("bare", 64 << 20, &["mkfs.ext4", "-q", "-F", "-O", "^has_journal"], None);
const XFS: Kind = ("xfs", 320 << 20, &["mkfs.xfs", "-q"], Some(SyncScope::Earlier));

/// A server on a file system of its own; none, after a printed reason, if that cannot be made.
fn served(scratch: &Arc<Scratch>, (name, bytes, mkfs, covers): Kind) -> Option<(World, Loop)> {
    if !is_root() {
        afflux_scratch::skipped!("mounting a file system takes root");
        return None;
    }
    let mount = scratch.path().join(name);
    let made = Loop::made(&mount, bytes, mkfs).map_err(|error| afflux_scratch::skipped!("{error}")).ok()?;
    std::os::unix::fs::symlink(&mount, scratch.path().join("export")).unwrap();
    let world = World::on(Arc::clone(scratch), HostOptions::default());
    let device = world.tree.exports()[0].root.stat.device;
    let found = world.tree.core.file_systems.shared_sync(device).map(|shared| shared.covers);
    assert_eq!(found, covers, "{name}");
    Some((world, made))
}

/// Makes every kind of change in separate directories at the same time, and checks them after a power failure.
fn changes_are_in_a_copy(kind: Kind) {
    let scratch = Arc::new(Scratch::new());
    let Some((world, file_system)) = served(&scratch, kind) else { return };
    let root = world.root();
    let directories: Vec<_> =
        (0..DIRECTORIES).map(|number| world.make_directory(&root, &format!("d{number}"))).collect();
    for directory in &directories {
        world.create(directory, "removed");
        world.create(directory, "renamed");
        world.create(directory, "changed");
    }
    let volume = &world.volume;
    world.run(join_all(directories.iter().map(|directory| async move {
        let how = CreateHow::Guarded(AttributeChange::default());
        volume.create(directory, b"made", how).await.result.unwrap();
        volume.remove(directory, b"removed").await.result.unwrap();
        volume.rename(directory, b"renamed", directory, b"new").await.0.result.unwrap();
        let changed = volume.lookup(directory, b"changed").await.unwrap().0;
        let change = AttributeChange { mode: Some(0o640), ..AttributeChange::default() };
        volume.set_attributes(&changed, change, None).await.result.unwrap();
        volume.link(&changed, directory, b"linked").await.result.unwrap();
    })));
    let copy = scratch.path().join("copy.image");
    run("cp", &["--sparse=always".as_ref(), &file_system.image, &copy]).unwrap();
    let copied = scratch.path().join("copy");
    // XFS needs an option to mount a second file system with the same identity.
    let options = if kind.0 == "xfs" { "nouuid" } else { "rw" };
    let _mounted = Loop::mounted(copy, copied.clone(), options).unwrap();
    for number in 0..DIRECTORIES {
        use std::os::unix::fs::MetadataExt;
        let directory = copied.join(format!("d{number}"));
        let mut names: Vec<_> = std::fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["changed", "linked", "made", "new"]);
        assert_eq!(std::fs::metadata(directory.join("changed")).unwrap().mode() & 0o777, 0o640);
    }
}

#[test]
fn on_ext4_all_changes_that_share_a_sync_are_durable() {
    changes_are_in_a_copy(EXT4);
}

#[test]
fn on_xfs_all_changes_that_share_a_sync_are_durable() {
    changes_are_in_a_copy(XFS);
}

/// Names that were answered before they were durable are durable after [`Volume::sync_names`].
fn names_are_in_a_copy_after_they_were_synced_together(kind: Kind) {
    let scratch = Arc::new(Scratch::new());
    let Some((world, file_system)) = served(&scratch, kind) else { return };
    world.volume.set_names_durable(false);
    let root = world.root();
    let directory = world.make_directory(&root, "directory");
    world.create(&directory, "made");
    let copies = ["before", "after"].map(|name| scratch.path().join(name).with_extension("image"));
    run("cp", &["--sparse=always".as_ref(), &file_system.image, &copies[0]]).unwrap();
    world.run(world.volume.sync_names()).unwrap();
    run("cp", &["--sparse=always".as_ref(), &file_system.image, &copies[1]]).unwrap();
    let there = copies.map(|copy| {
        let mount = copy.with_extension("");
        let options = if kind.0 == "xfs" { "nouuid" } else { "rw" };
        let _mounted = Loop::mounted(copy, mount.clone(), options).unwrap();
        mount.join("directory/made").exists()
    });
    assert_eq!(there, [false, true]);
}

#[test]
fn on_ext4_names_can_be_synced_together() {
    names_are_in_a_copy_after_they_were_synced_together(EXT4);
}

#[test]
fn on_xfs_names_can_be_synced_together() {
    names_are_in_a_copy_after_they_were_synced_together(XFS);
}

#[test]
fn without_a_journal_a_change_of_one_directory_brings_its_sync_and_one_of_two_does_not() {
    let scratch = Arc::new(Scratch::new());
    let Some((world, _file_system)) = served(&scratch, WITHOUT_JOURNAL) else { return };
    let root = &world.tree.exports()[0].root.node;
    let make = |directory: &Node, name: &'static str, durable| {
        let name = Bytes::from_static(name.as_bytes());
        world.run(world.tree.create(directory, name, New::Directory, AttributeChange::default(), durable)).unwrap()
    };
    let (one, two) = (make(root, "one", true), make(root, "two", true));
    let begun = |stable: &Stable| format!("{stable:?}") == "Stable(begun)";
    assert!(begun(&one.stable) && begun(&two.stable));
    assert!(!begun(&make(&one.found.node, "below", false).stable));
    let rename = |to: &Node, from: &'static str, name: &'static str| {
        let names = (Bytes::from_static(from.as_bytes()), Bytes::from_static(name.as_bytes()));
        world
            .run(world.tree.rename((&one.found.node, names.0), (to, names.1), afflux_volume::RenameHow::Replace, true))
            .unwrap()
    };
    assert!(begun(&rename(&one.found.node, "below", "there").stable));
    // The volume decides which of the two syncs goes first.
    assert!(!begun(&rename(&two.found.node, "there", "there").stable));
}
