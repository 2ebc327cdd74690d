//! Files that are held beyond their last name, and files made without one, with the host's own calls.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use afflux_volume::{Caller, VolumeKnob};

use super::*;

#[test]
fn a_held_file_is_used_after_its_last_name_and_frees_its_space_with_its_holder() {
    for subtree_check in [false, true] {
        let world = World::with(HostOptions { subtree_check, ..HostOptions::default() });
        world.volume.engine().set_knob(VolumeKnob::AttributesIdleCentisecs, 0).unwrap();
        let root = world.root();
        let file = world.create(&root, "file");
        let held = world.volume.hold(&file).unwrap();
        drop(file);
        world.write(&held, 0, &[1; 100_000]).result.unwrap();
        world.run(world.volume.remove(&root, b"file")).result.unwrap();
        assert!(!world.host("file").exists());
        world.sync(&held);
        world.write(&held, 50_000, &[2; 10]).result.unwrap();
        world.set(&held, AttributeChange { size: Some(60_000), ..AttributeChange::default() }).result.unwrap();
        let attributes = world.attributes(&held);
        assert_eq!((attributes.size, attributes.links), (60_000, 0));
        let bytes = world.read(&held, 49_999, 12).0;
        assert_eq!(bytes, [&[1][..], &[2; 10], &[1]].concat());
        assert!(Arc::ptr_eq(&world.resolve(&world.handle(&held)).unwrap(), held.inode()));
        let linked = world.run(world.volume.link(&held, &root, b"again")).result;
        assert_eq!(linked.err(), Some(VolumeError::Stale), "the host gives a lost name to nobody");
        let handle = world.handle(&held);
        drop(held);
        assert_eq!(world.resolve(&handle).err(), Some(VolumeError::Stale));
    }
}

#[test]
fn a_held_directory_has_attributes_after_its_removal_and_takes_no_entries() {
    let world = World::new();
    world.volume.engine().set_knob(VolumeKnob::AttributesIdleCentisecs, 0).unwrap();
    let root = world.root();
    let held = world.volume.hold(&world.make_directory(&root, "directory")).unwrap();
    world.run(world.volume.remove_directory(&root, b"directory")).result.unwrap();
    let attributes = world.attributes(&held);
    assert_eq!((attributes.kind, attributes.links), (Kind::Directory, 0));
    let how = CreateHow::Guarded(AttributeChange::default());
    assert_eq!(world.run(world.volume.create(&held, b"file", how)).result.err(), Some(VolumeError::Stale));
    assert_eq!(world.lookup(&held, "file").err(), Some(VolumeError::Stale));
}

#[test]
fn a_local_program_may_remove_what_is_held() {
    let world = World::new();
    world.volume.engine().set_knob(VolumeKnob::AttributesIdleCentisecs, 0).unwrap();
    let root = world.root();
    let file = world.create(&root, "file");
    let held = world.volume.hold(&file).unwrap();
    world.write(&held, 0, b"dirty").result.unwrap();
    fs::remove_file(world.host("file")).unwrap();
    assert_eq!(world.attributes(&held).links, 0);
    world.sync(&held);
    world.run(world.volume.upkeep());
    assert_eq!(world.read(&held, 0, 10).0, b"dirty");
    drop(file);
    let handle = world.handle(&held);
    drop(held);
    assert_eq!(world.resolve(&handle).err(), Some(VolumeError::Stale));
}

#[test]
fn a_file_made_without_a_name_is_named_later() {
    let world = World::new();
    let root = world.root();
    let mode = AttributeChange { mode: Some(0o640), ..AttributeChange::default() };
    let (file, attributes) = world.run(world.volume.create_unnamed_by(&Caller::SERVER, &root, mode)).unwrap();
    assert_eq!((attributes.mode, attributes.links), (0o640, 0));
    world.write(&file, 0, &[7; 1 << 20]).result.unwrap();
    assert_eq!(fs::read_dir(world.host("")).unwrap().count(), 0);
    assert_eq!(world.run(world.volume.link(&file, &root, b"named")).result.unwrap().links, 1);
    drop(file);
    let found = world.lookup(&root, "named").unwrap().0;
    world.sync(&found);
    assert_eq!(fs::read(world.host("named")).unwrap(), [7; 1 << 20]);
    assert_eq!(fs::metadata(world.host("named")).unwrap().permissions().mode() & 0o7777, 0o640);
    // Without a name it goes with its holder, and takes no space.
    let (file, _) = world.run(world.volume.create_unnamed_by(&Caller::SERVER, &root, mode)).unwrap();
    world.write(&file, 0, &[7; 1 << 20]).result.unwrap();
    world.sync(&file);
    let handle = world.handle(&file);
    drop(file);
    assert_eq!(world.resolve(&handle).err(), Some(VolumeError::Stale));
    drop(found);
    world.run(world.volume.remove(&root, b"named")).result.unwrap();
    let world = world.restarted();
    assert_eq!(world.names(&world.root(), 10), [".", ".."]);
}

#[test]
fn a_file_without_a_name_is_made_and_named_as_its_user() {
    if !is_root() {
        afflux_scratch::skipped!("only root can act as others");
        return;
    }
    const USER: u32 = 4321;
    let world = World::new();
    let root = world.root();
    let user = world.volume.caller(USER, USER, &[]);
    let make =
        |directory: &Object| world.run(world.volume.create_unnamed_by(&user, directory, AttributeChange::default()));
    assert_eq!(make(&root).err(), Some(VolumeError::Denied), "the directory is root's");
    let own = world.make_directory(&root, "own");
    chown(world.host("own"), Some(USER), Some(USER)).unwrap();
    let (file, attributes) = make(&own).unwrap();
    assert_eq!((attributes.uid, attributes.gid), (USER, USER));
    let link = |directory: &Object, name: &[u8]| world.run(world.volume.link_by(&user, &file, directory, name)).result;
    assert_eq!(link(&root, b"named").err(), Some(VolumeError::Denied));
    link(&own, b"named").unwrap();
    assert_eq!(fs::metadata(world.host("own/named")).unwrap().uid(), USER);
}
