#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::HandleTable;
use crate::code::Code;

struct Handle;

fn code<T>(answer: crate::border::Answer<T>) -> c_int {
    answer.err().map_or(0, |failure| failure.code)
}

const BAD: c_int = Code::BadHandle as c_int;

#[test]
fn a_handle_is_taken_until_it_is_closed_and_never_again() {
    static TABLE: HandleTable<u64> = HandleTable::new(1, "number");
    let one: *mut Handle = TABLE.open(7).unwrap();
    assert_eq!(*TABLE.enter(one).unwrap(), 7);
    assert_eq!(code(TABLE.close(one)), 0);
    assert_eq!(code(TABLE.enter(one)), BAD);
    assert_eq!(code(TABLE.close(one)), BAD, "closed twice");
    let other: *mut Handle = TABLE.open(8).unwrap();
    assert_ne!(one, other, "the same slot, another number");
    assert_eq!(code(TABLE.enter(one)), BAD);
    assert_eq!(*TABLE.enter(other).unwrap(), 8);
}

#[test]
fn what_is_no_handle_is_refused_whatever_it_is() {
    static TABLE: HandleTable<u64> = HandleTable::new(2, "number");
    static OTHERS: HandleTable<u64> = HandleTable::new(3, "other");
    let local = 5_u64;
    assert_eq!(code(TABLE.enter(std::ptr::null::<Handle>())), BAD);
    assert_eq!(code(TABLE.enter((&raw const local).cast::<Handle>())), BAD, "an address");
    let other: *mut Handle = OTHERS.open(1).unwrap();
    assert_eq!(code(TABLE.enter(other)), BAD, "of another kind");
    let known: *mut Handle = TABLE.open(1).unwrap();
    for bit in 0..64 {
        let wrong = std::ptr::without_provenance::<Handle>(known.addr() ^ 1 << bit);
        assert_eq!(code(TABLE.enter(wrong)), BAD, "bit {bit}");
    }
}

#[test]
fn what_a_handle_stands_for_lives_until_the_last_call_has_returned() {
    static TABLE: HandleTable<Arc<()>> = HandleTable::new(4, "thing");
    let thing = Arc::new(());
    let handle: *mut Handle = TABLE.open(Arc::clone(&thing)).unwrap();
    let inside = TABLE.enter(handle).unwrap();
    drop(TABLE.close(handle).unwrap());
    assert_eq!(Arc::strong_count(&thing), 2, "somebody is inside");
    assert_eq!(code(TABLE.enter(handle)), BAD, "but nobody comes in");
    drop(inside);
    assert_eq!(Arc::strong_count(&thing), 1);
}

#[test]
fn there_may_be_many() {
    static TABLE: HandleTable<usize> = HandleTable::new(5, "number");
    let handles: Vec<*mut Handle> = (0..10_000).map(|number| TABLE.open(number).unwrap()).collect();
    for (number, handle) in handles.iter().enumerate() {
        assert_eq!(*TABLE.enter(*handle).unwrap(), number);
    }
    handles.iter().for_each(|handle| drop(TABLE.close(*handle).unwrap()));
    let again: Vec<*mut Handle> = (0..10_000).map(|number| TABLE.open(number).unwrap()).collect();
    assert!(TABLE.used.load(Ordering::Relaxed) == 10_000, "slots are used again");
    assert!(handles.iter().all(|handle| code(TABLE.enter(*handle)) == BAD));
    again.iter().for_each(|handle| drop(TABLE.close(*handle).unwrap()));
}

/// Asserts that it is not used after its drop.
struct Living(AtomicBool, &'static AtomicUsize);

impl Drop for Living {
    fn drop(&mut self) {
        assert!(self.0.swap(false, Ordering::SeqCst), "dropped twice");
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn threads_that_open_use_and_close_meet_only_what_lives() {
    static TABLE: HandleTable<Living> = HandleTable::new(6, "living");
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    const ROUNDS: usize = 3_000;
    let shared: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
    let handle_of = |position: &AtomicUsize| std::ptr::without_provenance::<Handle>(position.load(Ordering::SeqCst));
    let closed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (shared, closed) = (&shared, &closed);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let new: *mut Handle = TABLE.open(Living(AtomicBool::new(true), &DROPPED)).unwrap();
                    let position = &shared[(thread + round) % shared.len()];
                    if let Ok(living) = TABLE.enter(handle_of(position)) {
                        assert!(living.0.load(Ordering::SeqCst));
                        let both = [TABLE.close(handle_of(position)), TABLE.close(handle_of(position))];
                        closed.fetch_add(both.iter().flatten().count(), Ordering::SeqCst);
                        assert!(living.0.load(Ordering::SeqCst), "closed, but used");
                    }
                    let old = position.swap(new.addr(), Ordering::SeqCst);
                    if TABLE.close(std::ptr::without_provenance::<Handle>(old)).is_ok() {
                        closed.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    let left = shared.iter().filter(|position| TABLE.close(handle_of(position)).is_ok()).count();
    assert_eq!(closed.load(Ordering::SeqCst) + left, 4 * ROUNDS, "each was closed once");
    assert_eq!(DROPPED.load(Ordering::SeqCst), 4 * ROUNDS, "and dropped once");
}
