//! Files that share blocks on file systems that can, and on others.

use std::sync::Arc;

use afflux_volume::{Caller, CloneSide};
use rustix::fs::statvfs;

use super::*;

const MIB: u64 = 1 << 20;

fn share(world: &World, from: &Object, to: &Object, offset: u64, len: u64) -> Result<(), VolumeError> {
    let side = |inode, offset| CloneSide { caller: &Caller::SERVER, inode, offset };
    world.run(world.volume.clone_by(side(from, 0), side(to, offset), len)).result
}

#[test]
fn a_clone_takes_no_space_for_whole_blocks_where_the_file_system_shares_them() {
    for kind in ["xfs", "btrfs"] {
        let Some(scratch) = Scratch::mounted(kind, 400 * MIB, "") else { continue };
        let scratch = Arc::new(scratch);
        let world = World::on(Arc::clone(&scratch), HostOptions::default());
        let root = world.root();
        let (source, target) = (world.create(&root, "source"), world.create(&root, "target"));
        let bytes: Vec<u8> = (0..100 * MIB + 777).map(|at| (at / 3) as u8).collect();
        for (at, piece) in (0..).step_by(MIB as usize).zip(bytes.chunks(MIB as usize)) {
            world.write(&source, at, piece).result.unwrap();
        }
        world.sync(&source);
        let free_bytes = || {
            rustix::fs::sync();
            let space = statvfs(scratch.path()).unwrap();
            space.f_bfree * space.f_frsize
        };
        let free_before = free_bytes();
        world.write(&source, 5, b"dirty").result.unwrap();
        share(&world, &source, &target, 0, 0).unwrap();
        world.write(&source, 9000, b"later").result.unwrap();
        world.sync(&source);
        world.sync(&target);
        let taken = free_before.saturating_sub(free_bytes());
        assert!(taken < 20 * MIB, "{kind}: {taken} bytes");
        let mut expected = bytes.clone();
        expected[5..10].copy_from_slice(b"dirty");
        assert!(std::fs::read(world.host("target")).unwrap() == expected, "{kind}");
        expected[9000..9005].copy_from_slice(b"later");
        assert!(std::fs::read(world.host("source")).unwrap() == expected, "{kind}");
    }
}

#[test]
fn a_file_system_that_shares_no_blocks_says_so_also_of_a_file_without_a_whole_one() {
    let Some(scratch) = Scratch::mounted("ext4", 64 * MIB, "") else { return };
    let world = World::on(Arc::new(scratch), HostOptions::default());
    let root = world.root();
    let (source, target) = (world.create(&root, "source"), world.create(&root, "target"));
    for len in [10, 10_000] {
        world.write(&source, 0, &vec![1; len]).result.unwrap();
        assert_eq!(share(&world, &source, &target, 0, 0), Err(VolumeError::NotSupported), "{len} bytes");
    }
    assert_eq!(world.attributes(&target).size, 0);
}
