//! Changes by a local program to a file whose bytes are in the cache.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use afflux_volume::{Caller, Use, VolumeKnob};

use super::*;

/// The files' owner; writes through the server.
const OWNER: u32 = 4321;

/// Writes that reach the host in one form each: whole blocks, a part of one, a longer file, a new size.
const CHANGES: [(&str, u64, &[u8]); 4] = [
    ("whole blocks", 0, &[7; 8192]),
    ("a part of a block", 5, &[7; 10]),
    ("whole blocks at the end", 8192, &[7; 65536]),
    ("a part at the end", 8192, &[7; 5000]),
];

/// Runs on a thread with a server's privileges.
fn with_servers_privileges(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(|| {
        crate::give_up_privileges().unwrap();
        work();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn mode_of(world: &World, name: &str) -> u32 {
    fs::metadata(world.host(name)).unwrap().mode() & 0o7777
}

/// Gives a user's file to root, as a program that runs as root would. A process of its own does it: this process may
/// not set the mode bits of a file for good.
fn root_takes(world: &World, name: &str, mode: &str) {
    let path = world.host(name);
    chown(&path, Some(0), Some(0)).unwrap();
    let set = std::process::Command::new("chmod").arg(mode).arg(&path).status().unwrap();
    assert!(set.success());
}

#[test]
fn bytes_that_are_written_late_take_the_bits_that_give_rights() {
    if !is_root() {
        afflux_scratch::skipped!("only root can give a file away");
        return;
    }
    for (io, caching) in [
        (IoChoice::Auto, Caching::Auto),
        (IoChoice::Auto, Caching::Buffered),
        (IoChoice::Syscalls, Caching::Auto),
        (IoChoice::Syscalls, Caching::Buffered),
    ] {
        with_servers_privileges(move || {
            let world = World::doing(Arc::new(Scratch::new()), HostOptions::default(), io, caching);
            let root = world.root();
            for (what, offset, bytes) in CHANGES {
                for (mode, left) in [("4755", 0o755), ("6755", 0o755), ("2755", 0o755)] {
                    let file = world.create(&root, "file");
                    world.write(&file, 0, &[1; 8192]).result.unwrap();
                    world.sync(&file);
                    chown(world.host("file"), Some(OWNER), Some(OWNER)).unwrap();
                    world.write(&file, offset, bytes).result.unwrap();
                    root_takes(&world, "file", mode);
                    world.sync(&file);
                    assert_eq!(mode_of(&world, "file"), left, "{what}, {mode}, {io:?}, {caching:?}");
                    fs::remove_file(world.host("file")).unwrap();
                    world.run(world.volume.upkeep());
                }
            }
        });
    }
}

#[test]
fn a_new_size_takes_the_bits_that_give_rights() {
    if !is_root() {
        afflux_scratch::skipped!("only root can give a file away");
        return;
    }
    for io in [IoChoice::Auto, IoChoice::Syscalls] {
        with_servers_privileges(move || {
            let world = World::doing(Arc::new(Scratch::new()), HostOptions::default(), io, Caching::Auto);
            let file = world.create(&world.root(), "file");
            world.write(&file, 0, &[1; 8192]).result.unwrap();
            world.sync(&file);
            root_takes(&world, "file", "4755");
            let size = AttributeChange { size: Some(100), ..AttributeChange::default() };
            world.set(&file, size).result.unwrap();
            assert_eq!(mode_of(&world, "file"), 0o755);
        });
    }
}

#[test]
fn root_sets_the_groups_bit_on_what_other_groups_have() {
    if !is_root() {
        afflux_scratch::skipped!("only root can give a file away");
        return;
    }
    with_servers_privileges(|| {
        let world = World::new();
        let root = world.root();
        let mode = AttributeChange { mode: Some(0o2755), ..AttributeChange::default() };
        let callers = [Caller::SERVER, world.volume.caller(0, 0, &[])];
        for (at, caller) in callers.iter().enumerate() {
            let (file, directory) = (format!("file {at}"), format!("directory {at}"));
            for (inode, name) in
                [(world.create(&root, &file), &file), (world.make_directory(&root, &directory), &directory)]
            {
                chown(world.host(name), Some(OWNER), Some(OWNER)).unwrap();
                let set = world.run(world.volume.set_attributes_by(caller, &inode, mode, None));
                set.result.unwrap();
                assert_eq!(mode_of(&world, name), 0o2755, "{name}");
            }
            // Nobody may execute it as its group, so root's change of its owner leaves the bit.
            let file = world.lookup(&root, &file).unwrap().0;
            for change in [
                AttributeChange { mode: Some(0o2745), ..AttributeChange::default() },
                AttributeChange { uid: Some(OWNER + 2), ..AttributeChange::default() },
                AttributeChange { gid: Some(OWNER + 3), ..AttributeChange::default() },
            ] {
                world.run(world.volume.set_attributes_by(caller, &file, change, None)).result.unwrap();
                assert_eq!(mode_of(&world, &format!("file {at}")), 0o2745, "{change:?}");
            }
        }
        // Other users get the bit in their own group alone.
        let owner = world.volume.caller(OWNER, OWNER + 1, &[]);
        let file = world.create(&root, "theirs");
        chown(world.host("theirs"), Some(OWNER), Some(OWNER)).unwrap();
        world.run(world.volume.set_attributes_by(&owner, &file, mode, None)).result.unwrap();
        assert_eq!(mode_of(&world, "theirs"), 0o755);
    });
}

#[test]
fn a_changed_owner_counts_while_the_file_stays_dirty() {
    if !is_root() {
        afflux_scratch::skipped!("only root can give a file away");
        return;
    }
    let world = World::new();
    world.volume.engine().set_knob(VolumeKnob::AttributesIdleCentisecs, 0).unwrap();
    let owner = world.volume.caller(OWNER, OWNER, &[]);
    let file = world.create(&world.root(), "file");
    chown(world.host("file"), Some(OWNER), Some(OWNER)).unwrap();
    assert_eq!(world.attributes(&file).uid, OWNER);
    let write = |offset| {
        let bytes = Bytes::from_static(b"mine");
        world.run(world.volume.write_by(&owner, None, &file, offset, &bytes)).result
    };
    write(0).unwrap();
    chown(world.host("file"), Some(0), Some(0)).unwrap();
    fs::set_permissions(world.host("file"), Permissions::from_mode(0o4755)).unwrap();
    // Constant writes, as from a client that wants to hide the change.
    world.write(&file, 4, b"more").result.unwrap();
    let told = world.attributes(&file);
    assert_eq!((told.uid, told.gid, told.mode), (0, 0, 0o4755));
    world.run(world.volume.upkeep());
    assert_eq!(world.volume.allows(&file, &owner, Use::Write), None, "the host has to be asked");
    assert_eq!(write(8), Err(VolumeError::Denied));
    assert_eq!(world.read(&file, 0, 100).0, b"minemore");
}

#[test]
fn a_local_change_of_a_clean_file_survives_a_write_to_its_block() {
    let world = World::new();
    let root = world.root();
    let file = world.create(&root, "file");
    world.write(&file, 0, &[b'a'; 8192]).result.unwrap();
    world.sync(&file);
    assert_eq!(world.read(&file, 0, 8192).0, [b'a'; 8192]);
    // No client asks between the local change and the write: attributes are as fresh as they can be.
    fs::write(world.host("file"), [b'b'; 8192]).unwrap();
    assert!(world.volume.try_write(&Caller::SERVER, &file, 10, b"client").is_none(), "the host is asked first");
    world.write(&file, 10, b"client").result.unwrap();
    world.sync(&file);
    let mut expected = vec![b'b'; 8192];
    expected[10..16].copy_from_slice(b"client");
    assert!(fs::read(world.host("file")).unwrap() == expected, "the local change is there");
    assert!(world.read(&file, 0, 8192).0 == expected, "and is seen");
    // Bytes that were cut off do not come back.
    File::options().write(true).open(world.host("file")).unwrap().set_len(100).unwrap();
    world.write(&file, 4100, b"client").result.unwrap();
    world.sync(&file);
    expected[100..].fill(0);
    expected.truncate(4100);
    expected.extend_from_slice(b"client");
    assert!(fs::read(world.host("file")).unwrap() == expected, "what was cut off stays away");
    // A new size in the middle of a block does not bring them back either.
    fs::write(world.host("file"), [b'c'; 50]).unwrap();
    let size = AttributeChange { size: Some(4200), ..AttributeChange::default() };
    world.set(&file, size).result.unwrap();
    expected = vec![0; 4200];
    expected[..50].fill(b'c');
    assert!(world.read(&file, 0, 8192).0 == expected, "of a file with a new size");
    world.write(&file, 60, b"client").result.unwrap();
    world.sync(&file);
    expected[60..66].copy_from_slice(b"client");
    assert!(fs::read(world.host("file")).unwrap() == expected, "after the new size");
}

#[test]
fn a_write_of_whole_blocks_asks_where_nobody_did_for_long() {
    let world = World::new();
    let file = world.create(&world.root(), "file");
    world.write(&file, 0, &[b'a'; 8192]).result.unwrap();
    world.sync(&file);
    world.volume.engine().set_knob(VolumeKnob::AttributesIdleCentisecs, 0).unwrap();
    fs::write(world.host("file"), [b'c'; 8192]).unwrap();
    world.write(&file, 4096, &[b'd'; 4096]).result.unwrap();
    assert!(world.read(&file, 0, 4096).0 == [b'c'; 4096], "the other block is the local program's");
}

#[test]
fn a_local_change_past_the_end_survives_a_write_up_to_there() {
    let world = World::new();
    let file = world.create(&world.root(), "file");
    // A local program makes the file longer, in the same block. Nobody asks before the write.
    fs::write(world.host("file"), [b'b'; 3000]).unwrap();
    world.write(&file, 0, &[b'c'; 2000]).result.unwrap();
    world.sync(&file);
    let expected = [[b'c'; 2000].as_slice(), &[b'b'; 1000]].concat();
    assert!(fs::read(world.host("file")).unwrap() == expected, "the local bytes are there");
    world.volume.engine().set_knob(VolumeKnob::AttributesIdleCentisecs, 0).unwrap();
    assert_eq!(world.attributes(&file).size, 3000, "the size is noticed");
    assert!(world.read(&file, 0, 8192).0 == expected, "and the bytes are seen");
}
