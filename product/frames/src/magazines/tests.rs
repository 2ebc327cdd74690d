use std::collections::HashSet;
use std::sync::Barrier;

use super::index_set::IndexSet;
use super::*;

mod property;

fn order(order: u8) -> Order {
    Order::new(order).expect("an order")
}

fn single(magazines: &Magazines) -> Option<u32> {
    magazines.allocate(Order::SINGLE, Mobility::Movable, Effort::Reserve)
}

/// Checks that each free frame is in one place only, and that the count is exact.
fn check(magazines: &Magazines, handed_out: u32) {
    assert_eq!(magazines.free_count() + handed_out, magazines.states.len());
}

#[test]
fn a_set_finds_its_lowest_member_from_anywhere() {
    for limit in [1, 64, 65, 4096, 300_000] {
        let mut set = IndexSet::new(limit);
        assert_eq!(set.first(), None);
        let members: Vec<u32> = [0, 1, 63, 64, 65, 4095, 4096, 299_999].into_iter().filter(|at| *at < limit).collect();
        for member in members.iter().rev() {
            set.insert(*member);
            assert_eq!(set.first(), Some(*member));
        }
        for from in [0, 1, 2, 64, 66, 4096, 5000, 299_999, 400_000] {
            assert_eq!(set.next(from), members.iter().copied().find(|member| *member >= from), "{from} of {limit}");
        }
        for (at, member) in members.iter().enumerate() {
            assert_eq!(set.next(*member), Some(*member));
            set.remove(*member);
            assert_ne!(set.next(*member), Some(*member));
            assert_eq!(set.first(), members.get(at + 1).copied());
        }
    }
}

#[test]
fn the_last_freed_frame_is_the_next_taken() {
    for frames in [4096, FRAMES_WITH_HANDS] {
        let magazines = <Magazines as Allocator>::new(frames);
        let taken: Vec<u32> = (0..300).map(|_| single(&magazines).unwrap()).collect();
        for frame in &taken {
            magazines.free(*frame, Order::SINGLE).unwrap();
        }
        let again: Vec<u32> = (0..16).map(|_| single(&magazines).unwrap()).collect();
        assert_eq!(again, taken[284..].iter().rev().copied().collect::<Vec<_>>());
        check(&magazines, 16);
    }
}

#[test]
fn every_size_hands_out_every_frame_once() {
    for frames in [64, 100, 1000, 1024, 20_000] {
        let magazines = <Magazines as Allocator>::new(frames);
        let mut taken = HashSet::new();
        while let Some(frame) = single(&magazines) {
            assert!(taken.insert(frame));
        }
        assert_eq!((taken.len() as u32, magazines.free_count()), (frames, 0));
        for frame in &taken {
            magazines.free(*frame, Order::SINGLE).unwrap();
        }
        check(&magazines, 0);
        let efforts = [Effort::NoRetry, Effort::Normal, Effort::Reserve];
        let marks = magazines.watermarks();
        for (effort, left) in efforts.into_iter().zip([marks.low, marks.min, 0]) {
            while magazines.allocate(Order::SINGLE, Mobility::Movable, effort).is_some() {}
            assert_eq!(magazines.free_count(), left, "{effort:?} of {frames}");
        }
    }
}

#[test]
fn frames_that_other_threads_keep_aside_are_found() {
    let magazines = <Magazines as Allocator>::new(FRAMES_WITH_HANDS);
    std::thread::scope(|scope| {
        // The thread ends with frames in its magazines, and then its hand has no owner.
        let thread = scope.spawn(|| {
            let taken: Vec<u32> = (0..1000).map(|_| single(&magazines).unwrap()).collect();
            let huge = magazines.allocate(order(9), Mobility::Movable, Effort::Normal).unwrap();
            taken.iter().for_each(|frame| magazines.free(*frame, Order::SINGLE).unwrap());
            magazines.free(huge, order(9)).unwrap();
        });
        // Joined here, since the scope does not wait for a thread's destructors.
        thread.join().unwrap();
    });
    let mut taken = 0;
    while single(&magazines).is_some() {
        taken += 1;
    }
    assert_eq!(taken, FRAMES_WITH_HANDS);
}

#[test]
fn an_idle_thread_withholds_its_hand_and_no_more() {
    let magazines = <Magazines as Allocator>::new(FRAMES_WITH_HANDS);
    let (filled, done) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let taken: Vec<u32> = (0..200).map(|_| single(&magazines).unwrap()).collect();
            taken.iter().for_each(|frame| magazines.free(*frame, Order::SINGLE).unwrap());
            filled.wait();
            done.wait();
            // The next call gives up all frames: the one freed now, and those kept aside.
            let frame = single(&magazines).expect("its own hand");
            magazines.free(frame, Order::SINGLE).unwrap();
            let free = magazines.free_count();
            assert_eq!(magazines.backing.free_frames(), free);
        });
        filled.wait();
        while single(&magazines).is_some() {}
        let withheld = magazines.free_count();
        assert!((1..=hand::HAND_FRAMES as u32).contains(&withheld), "{withheld}");
        done.wait();
    });
    assert!(single(&magazines).is_some());
}

#[test]
fn a_large_block_is_brought_together_from_magazines() {
    let magazines = <Magazines as Allocator>::new(FRAMES_WITH_HANDS);
    let mut blocks = Vec::new();
    while let Some(first) = magazines.allocate(order(10), Mobility::Movable, Effort::Reserve) {
        blocks.push(first);
    }
    assert_eq!(blocks.len(), 16);
    let last = blocks.pop().unwrap();
    magazines.free(last, order(10)).unwrap();
    let singles: Vec<u32> = (0..1024).map(|_| single(&magazines).unwrap()).collect();
    assert_eq!(magazines.allocate(order(10), Mobility::Movable, Effort::Reserve), None);
    singles.iter().for_each(|frame| magazines.free(*frame, Order::SINGLE).unwrap());
    assert_eq!(magazines.allocate(order(10), Mobility::Movable, Effort::Reserve), Some(last));
}

#[test]
fn bulk_frames_ascend_and_the_callback_may_allocate() {
    let magazines = <Magazines as Allocator>::new(FRAMES_WITH_HANDS);
    let mut taken = Vec::new();
    let mut others = Vec::new();
    let count = magazines.allocate_bulk(200, Mobility::Movable, Effort::Normal, |frame| {
        taken.push(frame);
        others.extend(single(&magazines));
    });
    assert_eq!((count, taken.len(), others.len()), (200, 200, 200));
    let runs = taken.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    assert!(runs < 20, "{runs} breaks");
    let all: HashSet<u32> = taken.iter().chain(&others).copied().collect();
    assert_eq!(all.len(), 400);
    check(&magazines, 400);
}

#[test]
fn mobility_classes_have_chunks_of_their_own() {
    let magazines = <Magazines as Allocator>::new(FRAMES_WITH_HANDS);
    let mut chunks = [(); 3].map(|()| HashSet::new());
    for round in 0..2000 {
        let class = Mobility::ALL[round % 3];
        let frame = magazines.allocate(Order::SINGLE, class, Effort::Normal).unwrap();
        chunks[class.index()].insert(frame / 512);
        if round % 7 == 0 {
            magazines.free(frame, Order::SINGLE).unwrap();
        }
    }
    assert!(chunks.iter().all(|own| own.len() <= 3));
    let all: HashSet<u32> = chunks.iter().flatten().copied().collect();
    assert_eq!(all.len(), chunks.iter().map(HashSet::len).sum::<usize>(), "none is shared");
}

#[test]
fn bad_frees_say_what_happened_before() {
    let magazines = <Magazines as Allocator>::new(1 << 14);
    let said = |frame, at| magazines.free(frame, at).unwrap_err().to_string();
    assert!(said(5, Order::SINGLE).ends_with("(nothing happened to it before)"));
    assert!(said(1 << 14, Order::SINGLE).contains("no such block: it has 16384 frames"));
    assert!(said(u32::MAX, order(10)).contains("no such block"));
    assert!(said((1 << 14) - 1, order(1)).contains("no such block"));
    let frame = single(&magazines).unwrap();
    magazines.free(frame, Order::SINGLE).unwrap();
    let twice = said(frame, Order::SINGLE);
    assert!(twice.contains("is free already") && twice.contains("allocated as order 0 in slot"), "{twice}");
    assert!(twice.contains(", then freed in slot"), "{twice}");
    let block = magazines.allocate(order(4), Mobility::Movable, Effort::Normal).unwrap();
    assert!(said(block, Order::SINGLE).contains("was allocated as one of order 4"));
    assert!(said(block + 1, Order::SINGLE).contains("or inside a block"));
    magazines.free(block, order(4)).unwrap();
    check(&magazines, 0);
}

#[test]
fn given_cpus_make_the_calls_alone_decide() {
    let trace = || {
        let magazines = <Magazines as Allocator>::new(FRAMES_WITH_HANDS);
        let mut taken = Vec::new();
        for step in 0..3000_u32 {
            crate::run_as_cpu(Some(step / 10 % 3));
            taken.push(single(&magazines).unwrap());
            if step % 3 == 1 {
                let frame = taken[(step as usize * 7) % taken.len()];
                if magazines.free(frame, Order::SINGLE).is_err() {
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
fn metadata_is_at_most_eight_bytes_a_frame() {
    // The figure is a total: the states and bits are 2.2 bytes a frame, and the memory of the slots is bounded.
    for (mib, bytes_max) in [(16, 8), (64, 8), (256, 5), (2048, 3)] {
        let frames = mib << 8;
        let magazines = <Magazines as Allocator>::new(frames as u32);
        let states = size_of::<std::sync::atomic::AtomicU16>() * frames;
        let bits = frames / 8 + frames / 512 * (size_of::<u16>() + 1);
        let lists: usize = magazines.slots.iter().map(|slot| slot.lock().list_bytes()).sum();
        let slots = size_of_val(&*magazines.slots) + size_of_val(&*magazines.hands) + lists;
        let all = states + bits + slots;
        assert!(all <= bytes_max * frames, "{mib} MiB: {all} bytes, {slots} of them for slots");
    }
}

#[test]
fn threads_conserve_frames() {
    for frames in [2048, 1 << 15] {
        let magazines = <Magazines as Allocator>::new(frames);
        let passed = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let (magazines, passed) = (&magazines, &passed);
            let start =
                |seed| scope.spawn(move || property::soak(magazines, seed, crate::tests::soak_steps(30_000), passed));
            let threads = [1, 2, 3, 4].map(start);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        for (first, order) in passed.into_inner().unwrap() {
            magazines.free(first, order).unwrap();
        }
        check(&magazines, 0);
        // With all threads gone all frames can be allocated again, in the largest blocks.
        let largest = (0..frames / 1024).map(|_| magazines.allocate(order(10), Mobility::Movable, Effort::Reserve));
        assert_eq!(largest.flatten().count() as u32, frames / 1024);
    }
}
