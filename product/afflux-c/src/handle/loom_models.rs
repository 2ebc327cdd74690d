//! Models of the table of handles for loom. Here the table's first chunk has one slot, so that a second chunk is soon
//! made.
//!
//! Owns: the models.
//! Does not own: the table; the models make its own calls.
//! Invariants: each value stands for a cell, which its opener and its drop write and a call reads. So loom sees a use
//! that nothing orders before the drop or after the opening. An assertion excludes a use or a drop after the drop.

use std::sync::atomic::{AtomicUsize as Counter, Ordering::SeqCst};

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicUsize;
use loom::thread;

use super::*;

struct Handle;

/// The value of a handle: one of the world's cells.
struct Value {
    world: &'static World,
    number: usize,
}

struct World {
    table: HandleTable<Value>,
    alive: [UnsafeCell<bool>; 5],
    drops: Counter,
}

// SAFETY: loom tracks every access to the cells, from any thread, and reports races.
unsafe impl Sync for World {}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: the pointer leads into the world, which is never freed; loom reports a race.
        self.world.alive[self.number]
            .with_mut(|alive| unsafe { assert!(std::mem::take(&mut *alive), "dropped twice") });
        self.world.drops.fetch_add(1, SeqCst);
    }
}

impl World {
    /// Leaked, since handles live for ever.
    fn new() -> &'static Self {
        let alive = std::array::from_fn(|_| UnsafeCell::new(false));
        Box::leak(Box::new(Self { table: HandleTable::modelled(), alive, drops: Counter::new(0) }))
    }

    fn open(&'static self, number: usize) -> usize {
        // SAFETY: as in the drop.
        self.alive[number].with_mut(|alive| unsafe { *alive = true });
        let handle: *mut Handle = self.table.open(Value { world: self, number }).expect("there is room");
        handle.addr()
    }

    /// A call with a handle. Returns the number of the value that it met.
    fn call(&'static self, handle: usize) -> Option<usize> {
        let value = self.table.enter(std::ptr::without_provenance::<Handle>(handle)).ok()?;
        // SAFETY: as in the drop.
        self.alive[value.number].with(|alive| unsafe { assert!(*alive, "used after its drop") });
        Some(value.number)
    }

    fn close(&'static self, handle: usize) -> bool {
        self.table.close(std::ptr::without_provenance::<Handle>(handle)).is_ok()
    }

    fn drops(&self) -> usize {
        self.drops.load(SeqCst)
    }
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(body);
}

#[test]
fn loom_what_a_call_uses_lives_until_it_returns_and_is_dropped_once() {
    model(|| {
        let world = World::new();
        let handle = world.open(0);
        let calls = thread::spawn(move || world.call(handle));
        assert!(world.close(handle));
        assert_eq!(world.call(handle), None, "it was closed");
        assert!(calls.join().unwrap().is_none_or(|number| number == 0));
        assert_eq!(world.drops(), 1);
    });
}

#[test]
fn loom_of_two_who_close_a_handle_one_does() {
    model(|| {
        let world = World::new();
        let handle = world.open(0);
        let others = [(); 2].map(|()| thread::spawn(move || world.close(handle)));
        let met = world.call(handle);
        assert!(met.is_none_or(|number| number == 0));
        let closed = others.map(|other| other.join().unwrap());
        assert!(closed[0] != closed[1], "{closed:?}");
        assert_eq!(world.drops(), 1);
    });
}

#[test]
fn loom_a_closed_handle_meets_nothing_that_is_opened_in_its_place() {
    model(|| {
        let world = World::new();
        let old = world.open(0);
        let other = thread::spawn(move || {
            assert!(world.close(old));
            world.open(1)
        });
        assert!(world.call(old).is_none_or(|number| number == 0));
        let new = other.join().unwrap();
        assert_ne!(old, new);
        assert_eq!((world.call(old), world.call(new)), (None, Some(1)));
        assert!(!world.close(old) && world.close(new));
        assert_eq!(world.drops(), 2);
    });
}

#[test]
fn loom_a_slot_that_another_thread_gave_back_gets_a_new_number() {
    model(|| {
        let world = World::new();
        let old = world.open(0);
        let closes = thread::spawn(move || assert!(world.close(old)));
        let new = world.open(1);
        assert_ne!(old, new);
        assert_eq!(world.call(new), Some(1));
        closes.join().unwrap();
        assert_eq!((world.call(old), world.call(new)), (None, Some(1)));
        assert_eq!(world.drops(), 1);
    });
}

#[test]
fn loom_a_handle_that_was_passed_on_without_order_meets_all_of_its_value_or_nothing() {
    model(|| {
        let world = World::new();
        // The slot exists already, so that making it does not order the write of its value.
        let first = world.open(0);
        assert!(world.close(first));
        let place: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
        let opens = thread::spawn(move || place.store(world.open(3), Ordering::Relaxed));
        let handle = place.load(Ordering::Relaxed);
        assert!(handle == 0 || world.call(handle).is_none_or(|number| number == 3));
        opens.join().unwrap();
        assert_eq!(world.call(place.load(Ordering::Relaxed)), Some(3));
    });
}

#[test]
fn loom_a_slot_is_given_once_while_others_come_and_go() {
    model(|| {
        let world = World::new();
        let first = [world.open(0), world.open(1)];
        // Then 0's slot is the first free one, and 1's the next.
        assert!(world.close(first[1]) && world.close(first[0]));
        let other = thread::spawn(move || {
            let (in_0, in_1) = (world.open(2), world.open(3));
            assert!(world.close(in_0));
            in_1
        });
        let mine = world.open(4);
        let in_1 = other.join().unwrap();
        let last = world.open(0);
        assert_eq!([mine, in_1, last].map(|handle| world.call(handle)), [Some(4), Some(3), Some(0)]);
    });
}

#[test]
fn loom_two_who_need_a_further_chunk_make_one() {
    model(|| {
        let world = World::new();
        let first = world.open(0);
        let other = thread::spawn(move || world.open(1));
        let mine = world.open(2);
        let theirs = other.join().unwrap();
        assert_eq!([first, theirs, mine].map(|handle| world.call(handle)), [Some(0), Some(1), Some(2)]);
    });
}
