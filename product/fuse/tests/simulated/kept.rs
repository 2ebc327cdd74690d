//! The kernel's copies of bytes and names, and their time.

use std::sync::Arc;

use afflux_fuse::MountOptions;
use bytes::Bytes;

use crate::kernel::{Kernel, ROOT, name, u32_at, u64_at, words};

const DIRECT: u32 = 1 << 0;
const KEEP: u32 = 1 << 1;
const READ_ONLY: u32 = 0;
const READ_WRITE: u32 = 2;
const NOT_THERE: i32 = 2;
const HOUR: u64 = 3600;

fn keeping() -> Kernel {
    Kernel::with(MountOptions { kernel_cache: true, ..MountOptions::default() })
}

fn sole() -> Kernel {
    Kernel::with(MountOptions { sole: true, ..MountOptions::default() })
}

/// The flags of an open file.
fn opened(kernel: &Kernel, node: u64, flags: u32) -> u32 {
    u32_at(&kernel.call(14, node, &words(&[flags, 0])).unwrap(), 8)
}

/// Seconds for which a name holds, and for which it is absent.
fn validities(kernel: &Kernel) -> (u64, Result<(u64, u64), i32>) {
    let seconds = |answer: &[u8]| (u64_at(answer, 0), u64_at(answer, 16));
    kernel.make_directory(ROOT, "there");
    let there = kernel.call(1, ROOT, &name("there")).unwrap();
    assert_eq!(u64_at(&there, 16), u64_at(&there, 24), "names and attributes alike");
    let absent = kernel.call(1, ROOT, &name("absent"));
    assert!(absent.as_ref().is_ok_and(|answer| answer.len() == 128) || absent == Err(NOT_THERE));
    (seconds(&there).1, absent.map(|answer| seconds(&answer)))
}

#[test]
fn without_a_choice_no_byte_is_kept_and_names_hold_for_a_second() {
    let kernel = Kernel::new();
    let (file, _) = kernel.create(ROOT, "file");
    for flags in [READ_ONLY, READ_WRITE, READ_ONLY] {
        assert_eq!(opened(&kernel, file, flags) & (DIRECT | KEEP), DIRECT);
    }
    assert_eq!(validities(&kernel), (1, Err(NOT_THERE)));
}

// rule: the kernel caches bytes of a file over its opens only while nobody has changed the file
#[test]
fn the_kernel_keeps_what_readers_read_until_somebody_writes() {
    let kernel = keeping();
    let (file, fh) = kernel.create(ROOT, "file");
    kernel.write(fh, 0, &[1; 8192]).unwrap();
    assert_eq!(opened(&kernel, file, READ_ONLY) & (DIRECT | KEEP), 0, "what it kept before is dropped");
    assert_eq!(opened(&kernel, file, READ_ONLY) & (DIRECT | KEEP), KEEP);
    assert_eq!(opened(&kernel, file, READ_WRITE) & (DIRECT | KEEP), DIRECT, "writes pass it by");
    kernel.write(fh, 0, &[2; 100]).unwrap();
    assert_eq!(opened(&kernel, file, READ_ONLY) & (DIRECT | KEEP), 0);
    assert_eq!(opened(&kernel, file, READ_ONLY) & (DIRECT | KEEP), KEEP);
    let volume = Arc::clone(&kernel.volume);
    kernel
        .world
        .run(async move {
            let root = volume.mount(b"").await.unwrap();
            let (file, _) = volume.lookup(&root, b"file").await.unwrap();
            volume.write(&file, 0, Bytes::from_static(b"other")).await.result.unwrap();
        })
        .unwrap();
    assert_eq!(kernel.notices().len(), 1, "and the kernel is told");
    assert_eq!(opened(&kernel, file, READ_ONLY) & (DIRECT | KEEP), 0);
    assert_eq!(validities(&kernel), (1, Ok((0, 1))));
}

#[test]
fn only_a_kernel_that_keeps_bytes_is_asked_to_drop_them_by_itself() {
    for (kernel, wanted) in [(Kernel::new(), 0), (keeping(), 1)] {
        let offered = words(&[7, 45, 131_072, u32::MAX, u32::MAX]);
        let answer = kernel.call(26, 0, &[offered, vec![0; 44]].concat()).unwrap();
        assert_eq!(u32_at(&answer, 12) >> 12 & 1, wanted);
    }
}

#[test]
fn if_nobody_else_changes_the_directory_names_hold_for_an_hour_also_absent_ones() {
    let kernel = sole();
    assert_eq!(validities(&kernel), (HOUR, Ok((0, HOUR))));
    let (file, _) = kernel.create(ROOT, "file");
    assert_eq!(opened(&kernel, file, READ_ONLY) & (DIRECT | KEEP), DIRECT);
}

/// The mode of a file made with a mode and a umask.
fn made(kernel: &Kernel, of: &str, mode: u32, umask: u32) -> u32 {
    let body = [words(&[0o102, 0o100_000 | mode, umask, 0]), name(of)].concat();
    kernel.entry(35, ROOT, &body).unwrap().mode & 0o7777
}

#[test]
fn the_umask_bounds_a_new_mode_where_no_list_does() {
    let kernel = Kernel::new();
    assert_eq!(made(&kernel, "a", 0o666, 0o027), 0o640);
    let directory = [words(&[0o1777, 0o022]), name("sub")].concat();
    assert_eq!(kernel.entry(9, ROOT, &directory).unwrap().mode & 0o7777, 0o1755);
}
