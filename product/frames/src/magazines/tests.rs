use std::collections::HashSet;
use std::sync::mpsc::channel;

use super::*;
use crate::magazines::shared::FrameSet;

mod property;

fn take(magazines: &Magazines, effort: Effort) -> Option<u32> {
    magazines.allocate(cpu::slot(), effort)
}

fn single(magazines: &Magazines) -> Option<u32> {
    take(magazines, Effort::Reserve)
}

fn give(magazines: &Magazines, frame: u32) -> Result<(), BadFree> {
    magazines.free(cpu::slot(), frame)
}

/// Checks that each free frame is in one list only, and that the count is exact.
fn check(magazines: &Magazines, frames: u32, handed_out: u32) {
    assert_eq!(magazines.free_count() + handed_out, frames);
}

#[test]
fn a_set_gives_its_lowest_frames_first() {
    for frames in [1, 63, 64, 65, 4096, 4097, 300_000] {
        let mut set = FrameSet::new(frames);
        let mut out = vec![0; frames as usize + 1];
        assert_eq!(set.take(&mut out), frames as usize);
        assert!((0..frames).eq(out[..frames as usize].iter().copied()));
        assert_eq!(set.take(&mut out), 0, "{frames}");
        let mut some: Vec<u32> =
            [0, 1, 63, 64, 65, 4095, 4096, 299_999].into_iter().filter(|frame| *frame < frames).collect();
        some.reverse();
        set.give(&some);
        for frame in some.iter().rev() {
            assert_eq!((set.take(&mut out[..1]), out[0]), (1, *frame), "of {frames}");
        }
        assert_eq!(set.take(&mut out), 0, "{frames}");
    }
}

#[test]
fn the_shared_frames_leave_what_the_effort_must_leave() {
    let shared = Shared::new(2048, 16);
    let mut out = vec![0; 2048];
    for (effort, left) in [(Effort::NoRetry, 32), (Effort::Normal, 8), (Effort::Reserve, 0)] {
        shared.take(effort, [&mut out]);
        assert_eq!((shared.free_frames(), shared.take(effort, [&mut out])), (left, [0]), "{effort:?}");
        assert_eq!(shared.is_short(), left < 8);
    }
    shared.give(&out[..23]);
    assert!(shared.is_short());
    shared.give(&[2047]);
    assert!(!shared.is_short(), "16 above the mark");
}

#[test]
fn the_last_freed_frame_is_the_next_taken() {
    for frames in [4096, FRAMES_WITH_STASHES] {
        let magazines = Magazines::new(frames);
        let taken: Vec<u32> = (0..300).map(|_| single(&magazines).unwrap()).collect();
        for frame in &taken {
            give(&magazines, *frame).unwrap();
        }
        let again: Vec<u32> = (0..16).map(|_| single(&magazines).unwrap()).collect();
        assert_eq!(again, taken[284..].iter().rev().copied().collect::<Vec<_>>());
        check(&magazines, frames, 16);
    }
}

#[test]
fn every_size_hands_out_every_frame_once() {
    for frames in [64, 100, 1000, 1024, 20_000] {
        let magazines = Magazines::new(frames);
        let mut taken = HashSet::new();
        while let Some(frame) = single(&magazines) {
            assert!(taken.insert(frame));
        }
        assert_eq!((taken.len() as u32, magazines.free_count()), (frames, 0));
        for frame in &taken {
            give(&magazines, *frame).unwrap();
        }
        check(&magazines, frames, 0);
        let efforts = [Effort::NoRetry, Effort::Normal, Effort::Reserve];
        let marks = magazines.shared.marks;
        for (effort, left) in efforts.into_iter().zip([marks.low, marks.min, 0]) {
            while take(&magazines, effort).is_some() {}
            assert_eq!(magazines.free_count(), left, "{effort:?} of {frames}");
        }
    }
}

/// Lets a thread end with frames in its magazines. Returns the number of frames that the caller can take then.
fn found_after_a_threads_end() -> u32 {
    let magazines = Magazines::new(FRAMES_WITH_STASHES);
    // This thread has a slot of its own from now on. Otherwise it would take over that of the thread that ends.
    give(&magazines, single(&magazines).expect("a free frame")).expect("a taken frame");
    std::thread::scope(|scope| {
        // The thread ends with frames in its magazines, and then its stash has no owner.
        let thread = scope.spawn(|| {
            let taken: Vec<u32> = (0..1000).map(|_| single(&magazines).expect("a free frame")).collect();
            taken.iter().for_each(|frame| give(&magazines, *frame).expect("a taken frame"));
        });
        // Joined here, since the scope does not wait for a thread's destructors.
        thread.join().expect("no panic");
    });
    std::iter::from_fn(|| single(&magazines)).count() as u32
}

#[test]
fn frames_that_other_threads_keep_aside_are_found() {
    // A new thread of another test may take over the stash, and holds its frames then.
    assert!((0..100).any(|_| found_after_a_threads_end() == FRAMES_WITH_STASHES));
}

#[test]
fn an_idle_thread_withholds_its_hand_and_no_more() {
    let magazines = Magazines::new(FRAMES_WITH_STASHES);
    let (filled, is_filled) = channel();
    let (done, is_done) = channel();
    let magazines = &magazines;
    // A thread that fails drops its ends, so the other does not wait for ever.
    std::thread::scope(move |scope| {
        scope.spawn(move || {
            let taken: Vec<u32> = (0..200).map(|_| single(magazines).unwrap()).collect();
            taken.iter().for_each(|frame| give(magazines, *frame).unwrap());
            filled.send(()).unwrap();
            is_done.recv().expect("the other thread has looked");
            // The next call gives up all frames: the one freed now, and those in stash and magazine.
            let frame = single(magazines).expect("its own hand");
            give(magazines, frame).unwrap();
            let free = magazines.free_count();
            assert_eq!(magazines.shared.free_frames(), free);
        });
        is_filled.recv().expect("the thread has filled its hand");
        while single(magazines).is_some() {}
        let withheld = magazines.free_count();
        assert!((1..=15).contains(&withheld), "{withheld}");
        done.send(()).unwrap();
    });
    assert!(single(magazines).is_some());
}

#[test]
fn bulk_frames_ascend_and_the_callback_may_allocate() {
    let magazines = Magazines::new(FRAMES_WITH_STASHES);
    let mut taken = Vec::new();
    let mut others = Vec::new();
    let count = magazines.allocate_bulk(cpu::slot(), 200, Effort::Normal, |frame| {
        taken.push(frame);
        others.extend(single(&magazines));
    });
    assert_eq!((count, taken.len(), others.len()), (200, 200, 200));
    let runs = taken.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    assert!(runs < 20, "{runs} breaks");
    let all: HashSet<u32> = taken.iter().chain(&others).copied().collect();
    assert_eq!(all.len(), 400);
    check(&magazines, FRAMES_WITH_STASHES, 400);
}

#[test]
fn bad_frees_say_what_happened_before() {
    let magazines = Magazines::new(1 << 14);
    let said = |frame| give(&magazines, frame).unwrap_err().to_string();
    assert!(said(5).ends_with("(nothing happened to it before)"));
    assert!(said(1 << 14).contains("no such frame: it has 16384 frames"));
    assert!(said(u32::MAX).contains("no such frame"));
    let allocated = magazines.allocate(ListSlot::shared(21), Effort::Normal).unwrap();
    magazines.free(ListSlot::shared(30), allocated).unwrap();
    let free = BadFree::Free { frame: allocated, allocated_in: 21, freed_in: 30 };
    assert_eq!(magazines.free(ListSlot::shared(4), allocated), Err(free));
    assert!(free.to_string().ends_with("already (its last events: allocated in slot 21, then freed in slot 30)"));
    check(&magazines, 1 << 14, 0);
}

#[test]
fn given_cpus_make_the_calls_alone_decide() {
    let trace = || {
        let magazines = Magazines::new(FRAMES_WITH_STASHES);
        let mut taken = Vec::new();
        for step in 0..3000_u32 {
            crate::run_as_cpu(Some(step / 10 % 3));
            taken.push(single(&magazines).unwrap());
            if step % 3 == 1 {
                let frame = taken[(step as usize * 7) % taken.len()];
                if give(&magazines, frame).is_err() {
                    taken.push(u32::MAX);
                }
            }
        }
        crate::run_as_cpu(None);
        taken
    };
    let here = trace();
    assert_eq!(std::thread::spawn(trace).join().unwrap(), here);
}

#[test]
fn metadata_is_at_most_seven_bytes_a_frame() {
    // The figure is a total: the states and bits are 2.2 bytes a frame, and the memory of the slots is bounded.
    for (mib, bytes_max) in [(16, 7), (64, 5), (256, 3), (2048, 3)] {
        let frames = mib << 8;
        let magazines = Magazines::new(frames as u32);
        let bits: usize = magazines.shared.frames.lock().levels.iter().map(|level| size_of_val(&**level)).sum();
        let tables = size_of_val(&*magazines.states.0) + bits;
        assert!(tables * 8 <= frames * 18, "two bytes, a bit, and less than another for the levels: {tables}");
        let lists: usize = magazines.slots.iter().map(|slot| slot.lock().capacity() * size_of::<u32>()).sum();
        let slots = size_of_val(&*magazines.slots) + size_of_val(&*magazines.stashes) + lists;
        let all = tables + slots;
        assert!(all <= bytes_max * frames, "{mib} MiB: {all} bytes, {slots} of them for slots");
    }
}

#[test]
fn magazines_never_grow() {
    for frames in [64, 300, 4096, 1 << 15] {
        let magazines = Magazines::new(frames);
        let taken: Vec<u32> = std::iter::from_fn(|| single(&magazines)).collect();
        taken.iter().for_each(|frame| magazines.free(ListSlot::shared(3), *frame).unwrap());
        magazines.allocate_bulk(ListSlot::shared(3), 1, Effort::Normal, |_| {});
        let capacities = magazines.slots.iter().map(|slot| slot.lock().capacity());
        assert_eq!(capacities.max(), Some(magazines.magazine_frames));
    }
}

#[test]
fn threads_conserve_frames() {
    for frames in [2048, 1 << 15] {
        let magazines = Magazines::new(frames);
        let passed = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let (magazines, passed) = (&magazines, &passed);
            let start =
                |seed| scope.spawn(move || property::soak(magazines, seed, crate::tests::soak_steps(30_000), passed));
            let threads = [1, 2, 3, 4].map(start);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        for frame in passed.into_inner().unwrap() {
            give(&magazines, frame).unwrap();
        }
        check(&magazines, frames, 0);
        // With all threads gone all frames can be allocated again.
        let all: HashSet<u32> = std::iter::from_fn(|| single(&magazines)).collect();
        assert_eq!(all.len() as u32, frames);
    }
}
