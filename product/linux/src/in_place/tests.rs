//! The mark of a thread, and the work that it leaves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

use super::{InPlace, leave, may_block};

#[test]
fn a_thread_may_block_in_its_part_alone_even_if_the_part_panics() {
    assert!(!may_block());
    let place = InPlace::begin();
    assert!(!may_block(), "not before");
    assert!(place.run(may_block));
    assert!(!may_block(), "not after");
    assert!(catch_unwind(AssertUnwindSafe(|| place.run(|| panic!("on purpose")))).is_err());
    assert!(!may_block(), "not after a panic");
}

#[test]
fn left_work_is_done_at_the_end_on_the_same_thread() {
    let (told, heard) = mpsc::channel();
    let work = |told: &mpsc::Sender<_>| {
        let told = told.clone();
        Box::new(move || told.send(thread::current().id()).unwrap())
    };
    assert!(leave(work(&told)).is_some(), "this thread does no such work");
    let place = InPlace::begin();
    assert!(leave(Box::new(|| panic!("on purpose"))).is_none());
    place.run(|| assert!(leave(work(&told)).is_none()));
    assert!(heard.try_recv().is_err(), "not before the end");
    drop(place);
    assert_eq!(heard.try_recv(), Ok(thread::current().id()), "and a panic of other work changes nothing");
    assert!(leave(work(&told)).is_some());
}
