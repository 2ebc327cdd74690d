//! Holes, as the host has them and as dirty pages fill them.

use std::fs::File;
use std::os::unix::fs::FileExt;

use afflux_volume::{Caller, Seek};

use super::*;

const MIB: u64 = 1 << 20;

fn seek(world: &World, file: &Object, offset: u64, wanted: Seek) -> Result<u64, VolumeError> {
    world.run(world.volume.seek_by(&Caller::SERVER, file, offset, wanted))
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
