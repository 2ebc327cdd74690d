use std::collections::HashSet;

use super::*;

const MIB: u32 = 256;

/// Runs `$body` with a zone of each form, with two CPUs.
macro_rules! in_every_form {
    ($frames:expr, |$zone:ident| $body:block) => {
        in_every_form!($frames, $zone, $body, SingleList, ListPerClass, BatchedDrain, ZoneTunables);
        in_every_form!($frames, $zone, $body, ShortcutDrain, EmptyFirstDrain);
    };
    ($frames:expr, $zone:ident, $body:block, $($form:ident),*) => {
        $(
            let $zone = Zone::<$form>::new($frames, 2);
            $body
        )*
    };
}

impl<F: Form> Zone<F> {
    fn one(&self, cpu: usize, mark: u32) -> Option<u32> {
        self.take(cpu, 0, Mobility::Movable, mark, Temperature::Hot)
    }

    fn give(&self, cpu: usize, frame: u32) {
        self.free(cpu, frame, 0, Temperature::Hot);
    }

    fn largest(&self) -> u32 {
        self.free.lock().blocks(MAX_ORDER).iter().sum()
    }
}

#[test]
fn every_frame_is_handed_out_once_and_all_merge_again() {
    in_every_form!(4 * 1024, |zone| {
        let mut taken = HashSet::new();
        for cpu in [0, 1] {
            while let Some(frame) = zone.one(cpu, 0) {
                assert!(taken.insert(frame));
            }
        }
        // What lies in the lists of one CPU is not free for the other: the count says 0.
        let listed = zone.free_count();
        assert_eq!((taken.len() as u32 + listed, zone.seen_free()), (4096, 0));
        taken.into_iter().for_each(|frame| zone.give(frame as usize % 2, frame));
        assert_eq!(zone.free_count(), 4096);
        zone.drain_all();
        assert_eq!((zone.buddy_frames(), zone.largest()), (4096, 4));
    });
}

#[test]
fn nothing_is_taken_unless_more_than_the_mark_is_free() {
    in_every_form!(64 * MIB, |zone| {
        let marks = zone.watermarks();
        for mark in [marks.high, marks.low, marks.min] {
            while zone.one(0, mark).is_some() {}
            // The last batch of 3 is taken whole.
            assert!(zone.seen_free() <= mark && zone.seen_free() + 3 > mark, "{mark}");
        }
        let order = 6;
        let mark = zone.seen_free() - 64;
        assert_eq!(zone.take(0, order, Mobility::Movable, mark + 1, Temperature::Hot), None);
        assert!(zone.take(0, order, Mobility::Movable, mark, Temperature::Hot).is_some());
    });
}

#[test]
fn the_zone_is_asked_once_a_batch() {
    in_every_form!(512 * MIB, |zone| {
        let frames: Vec<u32> = (0..62).map(|_| zone.one(0, 0).unwrap()).collect();
        assert_eq!(zone.counted(|it| it.refills), 2, "62 frames are two batches of 31");
        frames.iter().for_each(|frame| zone.give(0, *frame));
        assert_eq!(zone.counted(|it| it.drains), 0, "62 are below high, 186");
        assert_eq!(frames[..3], [0, 1, 2], "brought in order");
    });
}

#[test]
fn a_drain_comes_with_the_high_mark() {
    let mut examined = Vec::new();
    in_every_form!(512 * MIB, |zone| {
        let frames: Vec<u32> = (0..186).map(|_| zone.one(0, 0).unwrap()).collect();
        for (at, frame) in frames.iter().enumerate() {
            zone.give(0, *frame);
            assert_eq!(zone.counted(|it| it.drains), u64::from(at == 185));
        }
        examined.push(zone.counted(|it| it.lists_examined));
    });
    assert_eq!(examined, [31, 92, 32, 32, 5, 1]);
}

#[test]
fn a_task_takes_whole_batches_and_goes_by_the_count_that_it_sees() {
    let zone = Zone::<ShortcutDrain>::with(512 * MIB, 2, linux_2009(1, 1), 100);
    let free = zone.seen_free();
    let taken: Vec<u32> = (0..93).map(|_| zone.one(0, free - 1).unwrap()).collect();
    assert!(zone.one(0, free).is_none(), "not above the mark");
    assert_eq!((zone.seen_free(), zone.buddy_frames()), (free, free - 93), "three batches, not told yet");
    assert!(zone.one(0, free - 1).is_some());
    assert_eq!(zone.seen_free(), free - 124, "the fourth passes the threshold");
    assert!(zone.one(0, free - 1).is_none(), "there are 30 in the list, and the mark forbids them");
    taken.into_iter().for_each(|frame| zone.give(1, frame));
    zone.drain_all();
    assert_eq!(zone.buddy_frames(), free - 1);
}

#[test]
fn cold_frames_are_the_last_to_be_taken() {
    let zone = Zone::<ListPerClass>::new(64 * MIB, 2);
    let take = || zone.one(0, 0).unwrap();
    let [first, second, third] = [take(), take(), take()];
    zone.give(0, first);
    zone.free(0, second, 0, Temperature::Cold);
    zone.give(0, third);
    assert_eq!([take(), take()], [third, first]);
    assert_eq!(zone.take(0, 0, Mobility::Movable, 0, Temperature::Cold), Some(second));
}

#[test]
fn a_bad_free_ends_the_run() {
    let zone = Zone::<ListPerClass>::new(1024, 1);
    let block = zone.take(0, 3, Mobility::Movable, 0, Temperature::Hot).unwrap();
    let refused = |frame, order| {
        let free = || zone.free(0, frame, order, Temperature::Hot);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(free)).is_err()
    };
    assert!(refused(block, 0) && refused(block + 1, 0) && refused(1024, 0), "another order, inside, outside");
    assert!(!refused(block, 3) && refused(block, 3), "twice");
}

#[test]
fn threads_conserve_frames() {
    fn soak<F: Form>() {
        let zone = Zone::<F>::new(8192, 2);
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
                        let order = [0, 0, 0, 1, 4, 9][random as usize % 6];
                        let class = Mobility::ALL[(random >> 8) as usize % 3];
                        if random >> 16 & 1 == 0 && held.len() < 200 {
                            let first = zone.take(cpu, order, class, 256, Temperature::Hot);
                            held.extend(first.map(|first| (first, order)));
                        } else if !held.is_empty() {
                            let at = (random >> 32) as usize % held.len();
                            let (first, order) = held.swap_remove(at);
                            zone.free(cpu, first, order, Temperature::Hot);
                        }
                    }
                    for (first, order) in held {
                        zone.free(cpu, first, order, Temperature::Cold);
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
