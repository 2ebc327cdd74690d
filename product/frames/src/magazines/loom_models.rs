//! Models of frames that several threads take and give at once.
//!
//! Owns: the models. Does not own: the code under test, which is the allocator's own.
//! Invariants: the fewest frames, slots and steps that show everything.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p afflux-frames --lib loom_models`

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::Watermarks;
use crate::cpu::try_claim;
use crate::sync::loom_lock::model;

/// The fewest frames and slots that show everything: magazines of two, moved one at a time.
fn tiny(frames: u32, stashes: bool) -> Magazines {
    // No thread of this program may count as the owner of a slot that a model uses.
    let _ = (try_claim(0), try_claim(1));
    let mut magazines = Magazines::with_slots(frames, 2, if stashes { 2 } else { 0 }, 2);
    magazines.shared.marks = Watermarks { min: 0, low: 0, high: 0 };
    magazines
}

fn take(magazines: &Magazines, place: ListSlot) -> Option<u32> {
    magazines.allocate(place, Effort::Normal)
}

fn give(magazines: &Magazines, place: ListSlot, frame: u32) -> Result<(), BadFree> {
    magazines.free(place, frame)
}

#[test]
fn of_two_who_free_one_frame_one_is_told() {
    model(|| {
        let magazines = Arc::new(tiny(2, true));
        let frame = take(&magazines, ListSlot(0)).unwrap();
        let other = {
            let magazines = Arc::clone(&magazines);
            thread::spawn(move || give(&magazines, ListSlot(1), frame).is_ok())
        };
        let here = give(&magazines, ListSlot(0), frame).is_ok();
        assert!(here ^ other.join().unwrap(), "one of the two, and only one, is right");
        assert_eq!(magazines.free_count(), 2);
    });
}

#[test]
fn a_frame_has_one_holder_while_threads_take_and_give() {
    model(|| {
        let magazines = Arc::new(tiny(2, false));
        let step = |magazines: &Magazines, slot: usize| {
            let place = ListSlot::shared(slot);
            let first = take(magazines, place);
            if let Some(frame) = first {
                give(magazines, place, frame).unwrap();
            }
            take(magazines, place)
        };
        let other = {
            let magazines = Arc::clone(&magazines);
            thread::spawn(move || step(&magazines, 1))
        };
        let held = [step(&magazines, 0), other.join().unwrap()];
        assert!(held[0] != held[1] || held[0].is_none(), "{held:?}");
        let count = held.iter().flatten().count() as u32;
        assert_eq!(magazines.free_count(), 2 - count);
        // A second search finds every frame that remained after a failed search.
        for _ in count..2 {
            assert!(take(&magazines, ListSlot::shared(0)).is_some());
        }
    });
}

#[test]
fn two_in_one_slot_share_it() {
    model(|| {
        let magazines = Arc::new(tiny(3, false));
        let other = {
            let magazines = Arc::clone(&magazines);
            thread::spawn(move || take(&magazines, ListSlot::shared(0)).unwrap())
        };
        let here = take(&magazines, ListSlot::shared(0)).unwrap();
        let there = other.join().unwrap();
        assert_ne!(here, there);
        give(&magazines, ListSlot::shared(0), there).unwrap();
        assert_eq!(magazines.free_count(), 2);
    });
}

#[test]
fn a_frame_freed_while_another_thread_searches_is_not_lost() {
    model(|| {
        let magazines = Arc::new(tiny(1, true));
        let frame = take(&magazines, ListSlot(0)).unwrap();
        let other = {
            let magazines = Arc::clone(&magazines);
            thread::spawn(move || take(&magazines, ListSlot(1)))
        };
        give(&magazines, ListSlot(0), frame).unwrap();
        match other.join().unwrap() {
            Some(found) => assert_eq!((found, magazines.free_count()), (frame, 0)),
            None => {
                // The frame may be in the first thread's stash, until that thread's next call gives
                // it up.
                assert_eq!(take(&magazines, ListSlot(0)), Some(frame));
                give(&magazines, ListSlot(0), frame).unwrap();
                assert_eq!(take(&magazines, ListSlot(1)), Some(frame));
            }
        }
    });
}
