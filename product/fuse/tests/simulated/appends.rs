//! Appends beside other writers, and copies inside the server.

use std::sync::Arc;

use bytes::Bytes;

use crate::kernel::{Kernel, ROOT, longs, u32_at, words};

const APPEND: u32 = 0o2000;
/// A WRITE of mapped pages.
const OF_PAGES: u32 = 1;

/// A WRITE with O_APPEND, at the offset that the kernel takes for the end.
fn append(kernel: &Kernel, fh: u64, offset: u64, data: &[u8], kind: u32) -> Result<u32, i32> {
    let head = [longs(&[fh, offset]), words(&[data.len() as u32, kind, 0, 0, APPEND, 0])].concat();
    kernel.call(16, 0, &[&head, data].concat()).map(|answer| u32_at(&answer, 0))
}

/// Another front end of the same server writes.
fn written_by_another(kernel: &Kernel, name: &'static [u8], offset: u64, data: &'static [u8]) {
    let volume = Arc::clone(&kernel.volume);
    kernel
        .world
        .run(async move {
            let root = volume.mount(b"").await.unwrap();
            let (file, _) = volume.lookup(&root, name).await.unwrap();
            volume.write(&file, offset, Bytes::from_static(data)).await.result.unwrap();
        })
        .unwrap();
}

// rule: an append of a mount goes to the file's end, also if others moved that since the kernel looked
#[test]
fn an_append_goes_to_the_end_that_others_moved() {
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "log");
    append(&kernel, fh, 0, b"one ", 0).unwrap();
    written_by_another(&kernel, b"log", 4, b"two ");
    append(&kernel, fh, 4, b"three ", 0).unwrap();
    let long = vec![b'x'; 10_000];
    written_by_another(&kernel, b"log", 14, b"four ");
    append(&kernel, fh, 14, &long, 0).unwrap();
    let whole = kernel.read(fh, 0, 1 << 20).unwrap();
    assert_eq!(&whole[..19], b"one two three four ");
    assert!(whole[19..] == long && kernel.attributes(file).unwrap().0 == 10_019);
}

#[test]
fn an_append_overwrites_nothing_where_the_kernel_takes_the_end_to_be() {
    let kernel = Kernel::new();
    let (_, fh) = kernel.create(ROOT, "log");
    // Whole sectors that are dirty: an overwrite of them would not wait.
    kernel.write(fh, 0, &[1; 8192]).unwrap();
    append(&kernel, fh, 4096, &[2; 512], 0).unwrap();
    let whole = kernel.read(fh, 0, 1 << 20).unwrap();
    assert!(whole[..8192] == [1; 8192] && whole[8192..] == [2; 512]);
}

#[test]
fn mapped_pages_of_a_file_for_appending_stay_where_they_are() {
    let kernel = Kernel::new();
    let (_, fh) = kernel.create(ROOT, "file");
    kernel.write(fh, 0, &[1; 5000]).unwrap();
    append(&kernel, fh, 0, &[2; 4096], OF_PAGES).unwrap();
    assert_eq!(kernel.read(fh, 0, 1 << 20).unwrap(), [&[2; 4096][..], &[1; 904]].concat());
}

/// Makes a file with these bytes and an empty file. Returns the node and the open file of each.
fn files() -> (Kernel, [(u64, u64); 2], Vec<u8>) {
    let kernel = Kernel::new();
    let source @ (_, from) = kernel.create(ROOT, "source");
    let target = kernel.create(ROOT, "target");
    let data: Vec<u8> = (0..1_300_000_u32).map(|at| (at / 11) as u8).collect();
    kernel.write(from, 0, &data[..1_000_000]).unwrap();
    kernel.write(from, 1_000_000, &data[1_000_000..]).unwrap();
    (kernel, [source, target], data)
}

#[test]
fn a_range_is_copied_in_the_server_up_to_its_end_and_one_message_at_a_time() {
    let (kernel, [(source, from), (target, to)], data) = files();
    let copy = |at: u64, into: u64, len: u64| {
        let body = longs(&[from, at, target, to, into, len, 0]);
        kernel.call(47, source, &body).map(|answer| u32_at(&answer, 0))
    };
    assert_eq!(copy(5, 0, u64::MAX), Ok(1 << 20), "the kernel asks again");
    assert_eq!(copy(5 + (1 << 20), 1 << 20, u64::MAX), Ok(1_300_000 - 5 - (1 << 20)));
    assert_eq!(copy(1_300_000, 0, 10), Ok(0));
    let first = kernel.read(to, 0, 1 << 20).unwrap();
    let rest = kernel.read(to, 1 << 20, 1 << 20).unwrap();
    assert!([first, rest].concat() == data[5..]);
    assert_eq!(copy(0, u64::MAX - 3, 10), Err(27));
    assert_eq!(kernel.call(47, source, &longs(&[from, 0, target, 77, 0, 1, 0])), Err(9), "no such open file");
    assert_eq!(kernel.notices(), []);
}

#[test]
fn whole_blocks_are_shared_by_one_message_and_each_file_has_its_own_later_bytes() {
    let (kernel, [(source, from), (target, to)], data) = files();
    let body = longs(&[from, 0, target, to, 0, 1_300_000, 0]);
    assert_eq!(kernel.call(47, source, &body).map(|answer| u32_at(&answer, 0)), Ok(1_300_000));
    kernel.write(from, 0, &[0xff; 5000]).unwrap();
    let first = kernel.read(to, 0, 1 << 20).unwrap();
    let rest = kernel.read(to, 1 << 20, 1 << 20).unwrap();
    assert!([first, rest].concat() == data);
}
