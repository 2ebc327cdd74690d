//! The mark of a thread, and the work that it leaves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use super::{Leave, leave, may_block, scope};

/// Permits as often as the number says, and counts the ends.
#[derive(Default)]
struct Permits {
    asked: AtomicUsize,
    left: AtomicUsize,
    ended: AtomicUsize,
}

impl Permits {
    fn new(left: usize) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(left), ..Self::default() })
    }

    fn counts(&self) -> (usize, usize) {
        (self.asked.load(Ordering::Relaxed), self.ended.load(Ordering::Relaxed))
    }
}

impl Leave for Permits {
    fn try_permit(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    fn end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_thread_may_block_in_its_part_alone_even_if_the_part_panics() {
    assert!(!may_block());
    scope(Permits::new(1), |place| {
        assert!(!may_block(), "not before");
        assert!(place.run(may_block));
        assert!(!may_block(), "not after");
        assert!(catch_unwind(AssertUnwindSafe(|| place.run(|| panic!("on purpose")))).is_err());
        assert!(!may_block(), "not after a panic");
    });
}

#[test]
fn left_work_is_done_at_the_end_on_the_same_thread() {
    let (told, heard) = mpsc::channel();
    let work = |told: &mpsc::Sender<_>| {
        let told = told.clone();
        Box::new(move || told.send(thread::current().id()).unwrap())
    };
    assert!(leave(work(&told)).is_some(), "this thread does no such work");
    let permits = Permits::new(1);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        scope(Arc::clone(&permits) as _, |place| {
            assert!(leave(Box::new(|| panic!("on purpose"))).is_none());
            place.run(|| assert!(leave(work(&told)).is_none()));
            assert!(heard.try_recv().is_err(), "not before the end");
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err(), "the caller hears of its own panic");
    assert_eq!(heard.try_recv(), Ok(thread::current().id()), "and no panic changes that");
    assert_eq!(permits.counts(), (1, 1));
    assert!(leave(work(&told)).is_some());
}

#[test]
fn a_thread_asks_once_and_only_before_it_blocks() {
    let permits = Permits::new(1);
    scope(Arc::clone(&permits) as _, |place| {
        place.run(|| ());
        assert_eq!(permits.counts(), (0, 0), "no call of the host, no question");
        place.run(|| assert!(may_block() && may_block()));
        assert_eq!(permits.counts(), (1, 0));
        let seen = Arc::clone(&permits);
        assert!(leave(Box::new(move || assert_eq!(seen.counts(), (1, 0)))).is_none());
    });
    assert_eq!(permits.counts(), (1, 1), "after the work that it left");
}

#[test]
fn a_thread_without_permission_neither_blocks_nor_keeps_work() {
    let permits = Permits::new(0);
    scope(Arc::clone(&permits) as _, |place| {
        assert!(!place.run(may_block));
        assert!(leave(Box::new(|| ())).is_some());
    });
    assert_eq!(permits.counts(), (1, 0), "one question, and nothing to end");
}

#[test]
fn a_permission_ends_with_the_calls_unless_work_is_left() {
    let permits = Permits::new(2);
    scope(Arc::clone(&permits) as _, |place| {
        assert!(place.run(may_block));
        place.end_calls();
        assert_eq!(permits.counts(), (1, 1));
        assert!(!place.run(may_block), "it is over");
    });
    assert_eq!(permits.counts(), (1, 1));
    scope(Arc::clone(&permits) as _, |place| {
        assert!(leave(Box::new(|| ())).is_none());
        place.end_calls();
        assert_eq!(permits.counts(), (2, 1), "the work that is left may block");
    });
    assert_eq!(permits.counts(), (2, 2));
}
