//! Files with blocks, holes and shared blocks, on an XFS.

mod reserving;

use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use super::*;
use afflux_scratch::TestDirectory as Scratch;

const BLOCK: u64 = 4096;

#[test]
fn holes_and_shared_blocks_lack_blocks_and_no_others_do() {
    let Some(scratch) = Scratch::mounted("xfs", 400 << 20, "") else { return };
    let file = std::fs::File::create_new(scratch.path().join("file")).unwrap();
    // XFS prepares blocks beyond a file's end by itself.
    file.set_len(200 * BLOCK).unwrap();
    // Every second block, so that more extents are there than one answer has.
    for number in 0..40 {
        file.write_all_at(&[7; BLOCK as usize], 2 * number * BLOCK).unwrap();
    }
    assert_eq!(first_lacking(file.as_fd(), 0..BLOCK), None);
    assert_eq!(first_lacking(file.as_fd(), 0..80 * BLOCK), Some(BLOCK..2 * BLOCK));
    assert_eq!(first_lacking(file.as_fd(), 78 * BLOCK..100 * BLOCK), Some(79 * BLOCK..100 * BLOCK));
    for number in 0..39 {
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), (2 * number + 1) * BLOCK, BLOCK).unwrap();
    }
    assert_eq!(first_lacking(file.as_fd(), 100..79 * BLOCK - 1), None, "reserved blocks are blocks");
    assert_eq!(first_lacking(file.as_fd(), 0..80 * BLOCK), Some(79 * BLOCK..80 * BLOCK));
    let copied = scratch.path().join("copy");
    let mut copying = std::process::Command::new("cp");
    copying.arg("--reflink=always").args([scratch.path().join("file"), copied]);
    if !copying.status().unwrap().success() {
        return afflux_scratch::skipped!("this XFS shares no blocks");
    }
    file.sync_all().unwrap();
    assert_eq!(first_lacking(file.as_fd(), 0..BLOCK), Some(0..BLOCK));
}
