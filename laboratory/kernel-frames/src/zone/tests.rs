use std::collections::HashSet;

use super::*;
use crate::{BatchedDrain, EmptyFirstDrain, ListPerClass, ShortcutDrain, SingleList, ZoneTunables};

const MIB: u32 = 256;

fn zone<F: Form>(frames: u32) -> Zone<F> {
    Zone::with(frames, 2, None, None)
}

fn in_every_form(check: fn(&dyn Fn(u32) -> Box<dyn Tried>)) {
    check(&|frames| Box::new(zone::<SingleList>(frames)));
    check(&|frames| Box::new(zone::<ListPerClass>(frames)));
    check(&|frames| Box::new(zone::<BatchedDrain>(frames)));
    check(&|frames| Box::new(zone::<ZoneTunables>(frames)));
    check(&|frames| Box::new(zone::<ShortcutDrain>(frames)));
    check(&|frames| Box::new(zone::<EmptyFirstDrain>(frames)));
}

/// A zone of any form, as its tests use it.
trait Tried {
    fn take(&self, cpu: usize, order: u8, class: Mobility, effort: Effort) -> Option<u32>;
    fn give(&self, cpu: usize, first: u32, order: u8) -> Result<(), BadFree>;
    fn free_frames(&self) -> u32;
    fn in_buddy(&self) -> u32;
    fn drain(&self);
    fn counted(&self) -> Counters;
    fn largest(&self) -> u32;
}

impl<F: Form> Tried for Zone<F> {
    fn take(&self, cpu: usize, order: u8, class: Mobility, effort: Effort) -> Option<u32> {
        self.allocate_on(cpu, Order::new(order).unwrap(), class, effort, Temperature::Hot)
    }

    fn give(&self, cpu: usize, first: u32, order: u8) -> Result<(), BadFree> {
        self.free_on(cpu, first, Order::new(order).unwrap(), Temperature::Hot)
    }

    fn free_frames(&self) -> u32 {
        self.free_count()
    }

    fn in_buddy(&self) -> u32 {
        self.buddy_frames()
    }

    fn drain(&self) {
        self.drain_all();
    }

    fn counted(&self) -> Counters {
        self.counters()
    }

    fn largest(&self) -> u32 {
        self.blocks(Order::new(Order::MAX).unwrap()).iter().sum()
    }
}

#[test]
fn every_frame_is_handed_out_once_and_all_merge_again() {
    in_every_form(|zone| {
        let zone = zone(4 * 1024);
        let mut taken = HashSet::new();
        for cpu in [0, 1] {
            while let Some(frame) = zone.take(cpu, 0, Mobility::Movable, Effort::Reserve) {
                assert!(taken.insert(frame));
            }
        }
        assert_eq!((taken.len(), zone.free_frames()), (4096, 0));
        for frame in taken {
            zone.give(frame as usize % 2, frame, 0).unwrap();
        }
        assert_eq!(zone.free_frames(), 4096);
        zone.drain();
        assert_eq!((zone.in_buddy(), zone.largest()), (4096, 4));
    });
}

#[test]
fn efforts_stop_at_their_marks() {
    in_every_form(|zone| {
        let zone = zone(64 * MIB);
        let marks = linux_2009(u64::from(64 * MIB), u64::from(64 * MIB));
        for (effort, mark) in [(Effort::NoRetry, marks.low), (Effort::Normal, marks.min), (Effort::Reserve, 0)] {
            while zone.take(0, 0, Mobility::Movable, effort).is_some() {}
            assert_eq!(zone.in_buddy(), mark, "{effort:?}");
        }
        assert_eq!(zone.take(0, 1, Mobility::Movable, Effort::Reserve), None);
    });
}

#[test]
fn a_block_must_leave_the_mark() {
    let zone = zone::<ZoneTunables>(1024 * MIB / 16);
    let marks = zone.watermarks();
    let order = Order::new(10).unwrap();
    while zone.allocate_on(0, order, Mobility::Movable, Effort::Normal, Temperature::Hot).is_some() {}
    let left = zone.buddy_frames();
    assert!((marks.min..marks.min + order.frames()).contains(&left), "{left} of {marks:?}");
}

#[test]
fn the_zone_is_locked_once_a_batch() {
    in_every_form(|zone| {
        let zone = zone(512 * MIB);
        let frames: Vec<u32> = (0..62).map(|_| zone.take(0, 0, Mobility::Movable, Effort::Normal).unwrap()).collect();
        assert_eq!(zone.counted().zone.lock_acquisitions, 2, "62 frames are two batches of 31");
        assert_eq!(zone.counted().lists.refills, 2);
        for frame in &frames {
            zone.give(0, *frame, 0).unwrap();
        }
        assert_eq!(zone.counted().zone.lock_acquisitions, 2, "62 are below high, 186");
        assert_eq!(frames[..3], [0, 1, 2], "brought in order");
    });
}

#[test]
fn a_drain_comes_with_the_high_mark() {
    let examined: Vec<u64> = {
        let mut examined = Vec::new();
        in_every_form(|zone| {
            let zone = zone(512 * MIB);
            let frames: Vec<u32> =
                (0..186).map(|_| zone.take(0, 0, Mobility::Movable, Effort::Normal).unwrap()).collect();
            for (at, frame) in frames.iter().enumerate() {
                zone.give(0, *frame, 0).unwrap();
                assert_eq!(zone.counted().lists.drains, u64::from(at == 185));
            }
        });
        fn drain_of<F: Form>() -> u64 {
            let zone = zone::<F>(512 * MIB);
            let take = || zone.allocate_on(0, Order::SINGLE, Mobility::Movable, Effort::Normal, Temperature::Hot);
            let frames: Vec<u32> = (0..186).map(|_| take().unwrap()).collect();
            for frame in frames {
                zone.free_on(0, frame, Order::SINGLE, Temperature::Hot).unwrap();
            }
            zone.counters().lists.lists_examined
        }
        examined.extend([drain_of::<ListPerClass>(), drain_of::<BatchedDrain>(), drain_of::<ShortcutDrain>()]);
        examined.push(drain_of::<EmptyFirstDrain>());
        examined
    };
    assert_eq!(examined, [92, 32, 5, 1]);
}

#[test]
fn a_task_that_may_not_try_again_has_the_lists_drained_too() {
    let zone = zone::<ShortcutDrain>(64 * MIB);
    let take = || zone.allocate_on(0, Order::SINGLE, Mobility::Movable, Effort::NoRetry, Temperature::Hot);
    let held: Vec<u32> = (0..10).map(|_| take().unwrap()).collect();
    while take().is_some() {}
    for frame in held {
        zone.free_on(1, frame, Order::SINGLE, Temperature::Cold).unwrap();
    }
    let drains = zone.counters().lists.drains;
    assert!(zone.allocate(Order::SINGLE, Mobility::Movable, Effort::NoRetry).is_some(), "another CPU's list has some");
    assert!(zone.counters().lists.drains > drains);
}

#[test]
fn the_kernels_way_takes_whole_batches_and_goes_by_the_count_that_it_sees() {
    let zone = zone::<ShortcutDrain>(512 * MIB).with_drift(100);
    let free = zone.seen_free();
    let take = |mark| zone.take_above(0, mark, Mobility::Movable, Temperature::Cold);
    assert!(take(free).is_none(), "not above the mark");
    let taken: Vec<u32> = (0..93).map(|_| take(free - 1).unwrap()).collect();
    assert_eq!((zone.seen_free(), zone.buddy_frames()), (free, free - 93), "three batches, not told yet");
    assert!(take(free - 1).is_some());
    assert_eq!(zone.seen_free(), free - 124, "the fourth passes the threshold");
    assert!(take(free - 1).is_none(), "there are 30 in the list, and the mark forbids them");
    for frame in taken {
        zone.free_on(1, frame, Order::SINGLE, Temperature::Cold).unwrap();
    }
    zone.drain_all();
    assert_eq!(zone.buddy_frames(), free - 1);
}

#[test]
fn cold_frames_are_the_last_to_be_taken() {
    let zone = zone::<ListPerClass>(64 * MIB);
    let take = || zone.allocate_on(0, Order::SINGLE, Mobility::Movable, Effort::Normal, Temperature::Hot).unwrap();
    let [first, second, third] = [take(), take(), take()];
    zone.free_on(0, first, Order::SINGLE, Temperature::Hot).unwrap();
    zone.free_on(0, second, Order::SINGLE, Temperature::Cold).unwrap();
    zone.free_on(0, third, Order::SINGLE, Temperature::Hot).unwrap();
    assert_eq!([take(), take()], [third, first]);
    let cold = zone.allocate_on(0, Order::SINGLE, Mobility::Movable, Effort::Normal, Temperature::Cold);
    assert_eq!(cold, Some(second));
}

#[test]
fn bad_frees_are_named() {
    in_every_form(|zone| {
        let zone = zone(1024);
        let block = zone.take(0, 3, Mobility::Movable, Effort::Reserve).unwrap();
        let said = |result: Result<(), BadFree>| result.unwrap_err().to_string();
        assert!(said(zone.give(0, block, 0)).contains("was allocated as one of order 3"));
        assert!(said(zone.give(0, block + 1, 0)).contains("free already, or inside"));
        assert!(said(zone.give(0, 1024, 0)).contains("it has 1024 frames"));
        assert!(said(zone.give(0, u32::MAX, 0)).contains("no such block"));
        zone.give(0, block, 3).unwrap();
        assert!(said(zone.give(0, block, 3)).contains("free already"));
        let single = zone.take(0, 0, Mobility::Movable, Effort::Reserve).unwrap();
        zone.give(0, single, 0).unwrap();
        assert!(said(zone.give(0, single, 0)).contains("freed"));
    });
}

#[test]
fn threads_conserve_frames() {
    fn soak<F: Form>() {
        let zone = zone::<F>(8192);
        std::thread::scope(|scope| {
            for cpu in 0..2 {
                let zone = &zone;
                scope.spawn(move || {
                    let mut random = 0x9E37_79B9_7F4A_7C15_u64 + cpu as u64;
                    let mut held = Vec::new();
                    for _ in 0..20_000 {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        let order = Order::new([0, 0, 0, 1, 4, 9][random as usize % 6]).unwrap();
                        let class = Mobility::ALL[(random >> 8) as usize % 3];
                        if random >> 16 & 1 == 0 && held.len() < 200 {
                            let first = zone.allocate_on(cpu, order, class, Effort::Normal, Temperature::Hot);
                            held.extend(first.map(|first| (first, order)));
                        } else if !held.is_empty() {
                            let at = (random >> 32) as usize % held.len();
                            let (first, order) = held.swap_remove(at);
                            zone.free_on(cpu, first, order, Temperature::Hot).unwrap();
                        }
                    }
                    for (first, order) in held {
                        zone.free_on(cpu, first, order, Temperature::Cold).unwrap();
                    }
                });
            }
        });
        assert_eq!(zone.free_count(), 8192);
        zone.drain_all();
        assert_eq!(zone.largest(), 8, "all merged");
    }
    soak::<SingleList>();
    soak::<ListPerClass>();
    soak::<ZoneTunables>();
    soak::<EmptyFirstDrain>();
}
