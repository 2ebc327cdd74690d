//! Holes, as the host has them and as dirty pages fill them.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use afflux_volume::{Caller, Reserve, Seek};

use super::*;

const MIB: u64 = 1 << 20;

fn seek(world: &World, file: &Object, offset: u64, wanted: Seek) -> Result<u64, VolumeError> {
    world.run(world.volume.seek_by(&Caller::SERVER, file, offset, wanted))
}

#[test]
fn reserved_space_is_the_hosts_and_changes_no_byte() {
    let world = World::new();
    let root = world.root();
    let file = world.create(&root, "file");
    let bytes: Vec<u8> = (0..MIB).map(|at| at as u8).collect();
    world.write(&file, 0, &bytes).result.unwrap();
    let reserve = |range, zeros, grows| {
        world.run(world.volume.reserve_by(&Caller::SERVER, &file, range, Reserve { zeros, grows })).result
    };
    match reserve(0..8 * MIB, false, false) {
        Err(VolumeError::NotSupported) => return afflux_scratch::skipped!("this file system reserves nothing"),
        other => other.unwrap(),
    }
    let host = || std::fs::metadata(world.host("file")).unwrap();
    assert!(host().blocks() * 512 >= 8 * MIB, "{} blocks", host().blocks());
    assert_eq!(world.attributes(&file).size, MIB);
    reserve(MIB - 5000..2 * MIB, true, true).unwrap();
    world.sync(&file);
    assert_eq!(host().len(), 2 * MIB);
    let expected = [&bytes[..MIB as usize - 5000], &vec![0; MIB as usize + 5000]].concat();
    assert!(std::fs::read(world.host("file")).unwrap() == expected);
    assert!(host().blocks() * 512 >= 8 * MIB, "zeros have space, too");
    assert_eq!(reserve(0..1 << 62, false, false), Err(VolumeError::TooLarge));
}

#[test]
fn dirty_pages_are_data_before_and_after_they_are_written() {
    let world = World::new();
    let root = world.root();
    let file = world.create(&root, "file");
    world.set(&file, AttributeChange { size: Some(8 * MIB), ..AttributeChange::default() }).result.unwrap();
    if seek(&world, &file, 0, Seek::Hole) != Ok(0) {
        return afflux_scratch::skipped!("this file system has no holes");
    }
    assert_eq!(seek(&world, &file, 5, Seek::Data), Err(VolumeError::PastData { offset: 5 }));
    world.write(&file, 2 * MIB, &[1; MIB as usize]).result.unwrap();
    world.write(&file, 9 * MIB, b"the end").result.unwrap();
    for written in [false, true] {
        assert_eq!(seek(&world, &file, 0, Seek::Data), Ok(2 * MIB), "written: {written}");
        assert_eq!(seek(&world, &file, 2 * MIB, Seek::Hole), Ok(3 * MIB));
        assert_eq!(seek(&world, &file, 3 * MIB, Seek::Hole), Ok(3 * MIB));
        assert_eq!(seek(&world, &file, 3 * MIB, Seek::Data), Ok(9 * MIB));
        assert_eq!(seek(&world, &file, 9 * MIB, Seek::Hole), Ok(9 * MIB + 7));
        assert_eq!(seek(&world, &file, 9 * MIB + 7, Seek::Data), Err(VolumeError::PastData { offset: 9 * MIB + 7 }));
        world.sync(&file);
    }
    // Half on the host, half dirty: one run of data.
    world.write(&file, 3 * MIB, &[2; MIB as usize]).result.unwrap();
    assert_eq!(seek(&world, &file, 2 * MIB, Seek::Hole), Ok(4 * MIB));
    let held = world.volume.hold(&file).unwrap();
    world.run(world.volume.remove(&root, b"file")).result.unwrap();
    assert_eq!(seek(&world, &held, 0, Seek::Data), Ok(2 * MIB), "without a name, too");
}

#[test]
fn a_local_programs_hole_is_seen_and_users_need_the_right_to_read() {
    let world = World::new();
    let root = world.root();
    let local = File::create(world.host("file")).unwrap();
    local.set_len(4 * MIB).unwrap();
    local.write_all_at(&[1; 65_536], MIB).unwrap();
    let (file, _) = world.lookup(&root, "file").unwrap();
    assert_eq!(seek(&world, &file, 0, Seek::Data), Ok(MIB));
    let directory = world.make_directory(&root, "directory");
    assert_eq!(seek(&world, &directory, 0, Seek::Data), Err(VolumeError::IsDirectory));
    if is_root() {
        let secret = AttributeChange { mode: Some(0o600), ..AttributeChange::default() };
        world.set(&file, secret).result.unwrap();
        let user = world.volume.caller(4321, 4321, &[]);
        let refused = world.run(world.volume.seek_by(&user, &file, 0, Seek::Data));
        assert_eq!(refused, Err(VolumeError::Denied));
    }
}
