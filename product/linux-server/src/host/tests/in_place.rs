//! Host calls on the caller's own thread.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use afflux_volume::Caller;

use super::*;
use afflux_linux_device::in_place::{self, Leave};

struct Free;

struct Bound;

impl Leave for Bound {
    fn try_permit(&self) -> bool {
        false
    }

    fn end(&self) {}
}

impl Leave for Free {
    fn try_permit(&self) -> bool {
        true
    }

    fn end(&self) {}
}

/// The result of one poll on a thread that may block.
fn at_once<T>(work: impl Future<Output = T>) -> Option<T> {
    polled(Arc::new(Free), work)
}

/// The result of one poll that makes no call of the host.
fn from_memory<T>(work: impl Future<Output = T>) -> Option<T> {
    polled(Arc::new(Bound), work)
}

fn polled<T>(leave: Arc<dyn Leave>, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let polled =
        in_place::scope(leave, |place| place.run(|| work.as_mut().poll(&mut Context::from_waker(Waker::noop()))));
    match polled {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

// rule: a thread that may block makes the host calls of a change of names itself, without another thread
#[test]
fn names_are_changed_without_another_thread() {
    let world = World::new();
    world.volume.set_names_durable(false);
    let (root, volume, caller) = (world.root(), &world.volume, Caller::SERVER);
    assert!(at_once(volume.lookup(&root, b"a")).expect("a lookup").is_err());
    let how = || CreateHow::Guarded(AttributeChange::default());
    let made = at_once(volume.create_by(&caller, &root, b"a", how())).expect("a creation");
    let file = made.result.unwrap().0;
    assert!(world.host("a").exists());
    let change = AttributeChange { mode: Some(0o600), ..AttributeChange::default() };
    at_once(volume.set_attributes_by(&caller, &file, change, None)).expect("a new mode").result.unwrap();
    at_once(volume.rename_by(&caller, &root, b"a", &root, b"b")).expect("a rename").0.result.unwrap();
    at_once(volume.lookup(&root, b"b")).expect("a lookup").unwrap();
    drop(file);
    at_once(volume.remove_by(&caller, &root, b"b")).expect("a removal").result.unwrap();
    assert!(!world.host("b").exists());
    // Elsewhere the same call goes to the pool.
    let occupied = world.occupied();
    let mut unmarked = pin!(volume.create_by(&caller, &root, b"c", how()));
    assert!(unmarked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(occupied);
    world.run(unmarked).result.unwrap();
}

#[test]
fn a_change_that_must_be_durable_leaves_its_sync_to_the_pool() {
    let world = World::new();
    let how = CreateHow::Guarded(AttributeChange::default());
    let (root, occupied) = (world.root(), world.occupied());
    let mut made = pin!(world.volume.create_by(&Caller::SERVER, &root, b"a", how));
    in_place::scope(Arc::new(Free), |place| {
        assert!(place.run(|| made.as_mut().poll(&mut Context::from_waker(Waker::noop()))).is_pending());
        assert!(world.host("a").exists(), "the change itself is made");
    });
    drop(occupied);
    world.run(made).result.unwrap();
}

// rule: the first write of a new file asks the host nothing, wherever the write ends
#[test]
fn a_new_file_is_written_without_a_question_to_the_host() {
    let world = World::new();
    let file = world.create(&world.root(), "file");
    let write = |offset, bytes: &'static [u8]| {
        from_memory(world.volume.write(&file, offset, Bytes::from_static(bytes))).map(|outcome| outcome.result.unwrap())
    };
    let occupied = world.occupied();
    assert_eq!(write(10, b"not from the page's beginning"), None);
    assert_eq!(write(0, &[1; 6000]), Some(()));
    drop(occupied);
    world.sync(&file);
    let _occupied = world.occupied();
    assert_eq!(write(4096, &[1; 10]), None, "the page has other bytes");
    assert_eq!(write(4096, &[1; 1904]), Some(()), "up to the end");
}
