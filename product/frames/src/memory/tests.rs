use std::os::fd::AsFd;
use std::sync::atomic::AtomicU8;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::*;
use crate::{FrameId, Frames};

fn layout() -> Layout {
    Layout::new(1 << 20, 100).unwrap()
}

#[test]
fn tables_have_an_entry_for_each_file_and_each_frame() {
    let memory = Memory::anonymous(layout()).unwrap();
    let files: FrameTable<[AtomicU64; 16]> = memory.table(Part::Files);
    let records: FrameTable<[AtomicU64; 4]> = memory.table(Part::Records);
    assert_eq!((files.len(), records.len()), (100, 256));
    assert!(records.iter().flatten().all(|word| word.load(Ordering::Relaxed) == 0));
}

#[test]
#[should_panic(expected = "entries of Files")]
fn entries_of_another_size_are_refused() {
    let memory = Memory::anonymous(layout()).unwrap();
    let _: FrameTable<AtomicU8> = memory.table(Part::Files);
}

/// The allocator is made anew over memory whose tables and frames live on.
#[test]
fn what_stands_in_given_memory_stays() {
    let memory = Memory::anonymous(layout()).unwrap();
    let frames = Frames::over(Arc::clone(&memory), &[]);
    let records: FrameTable<[AtomicU64; 4]> = memory.table(Part::Records);
    records[255][3].store(7, Ordering::Relaxed);
    // SAFETY: the frame is the arena's, and no other code uses it here.
    unsafe { frames.address(FrameId::new(255)).as_ptr().add(4095).write(9) };
    drop(frames);
    let taken = [FrameId::new(0), FrameId::new(255)];
    let frames = Frames::over(Arc::clone(&memory), &taken);
    assert_eq!(frames.free_count(), 254, "the frames in use are handed out");
    let records: FrameTable<[AtomicU64; 4]> = memory.table(Part::Records);
    assert_eq!(records[255][3].load(Ordering::Relaxed), 7);
    // SAFETY: as above.
    assert_eq!(unsafe { frames.address(FrameId::new(255)).as_ptr().add(4095).read() }, 9);
    frames.free(taken[1]);
    assert_eq!(frames.free_count(), 255);
}

#[test]
fn a_copy_has_the_same_bytes_and_is_apart() {
    let memory = Memory::anonymous(layout()).unwrap();
    memory.header().begin([3; 16], 44);
    let frames = Frames::over(Arc::clone(&memory), &[]);
    let byte = |frames: &Frames| frames.address(FrameId::new(17)).as_ptr();
    // SAFETY: the frame is the arena's, and no other code uses it here.
    unsafe { byte(&frames).write(5) };
    let copy = memory.copy().unwrap();
    // SAFETY: as above.
    unsafe { byte(&frames).write(6) };
    let copied = Frames::over(Arc::clone(&copy), &[]);
    // SAFETY: as above.
    assert_eq!(unsafe { byte(&copied).read() }, 5);
    assert_eq!((copy.header().check([3; 16]), copy.header().verifier()), (Ok(()), 44));
}

/// A later mapping finds the bytes of an earlier one, at another address.
#[test]
fn what_stands_in_a_file_outlives_its_mapping() {
    let file = memfd_create("arena", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, layout().bytes() as u64).unwrap();
    // SAFETY: nobody else has the file, and it has the bytes of the layout.
    let map = || unsafe { Memory::in_file(file.as_fd(), layout()) }.unwrap();
    let first = map();
    first.header().begin([3; 16], 44);
    let frames = Frames::over(Arc::clone(&first), &[]);
    let last_byte = |frames: &Frames| frames.address(FrameId::new(255)).as_ptr().wrapping_add(4095);
    // SAFETY: the frame is the arena's, and no other code uses it here.
    unsafe { last_byte(&frames).write(9) };
    drop((frames, first));
    let second = map();
    assert_eq!((second.header().check([3; 16]), second.header().verifier()), (Ok(()), 44));
    let frames = Frames::over(second, &[]);
    // SAFETY: as above.
    assert_eq!(unsafe { last_byte(&frames).read() }, 9);
}
