//! rule: a user's waker is called with no lock held, and a panic in it ends there
//! kept in: `product/linux-device/src/foreign_wakers.rs`

use std::panic::catch_unwind;
use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{RawWaker, RawWakerVTable};

use super::*;
use crate::{IoChoice, LinuxPlatform, Reactors};

fn reactors() -> Reactors {
    Reactors::start(1, IoChoice::Syscalls).unwrap()
}

/// A future that waits for its flag, and the waker of its last poll.
#[derive(Default)]
struct Waits {
    waker: Mutex<Option<Waker>>,
    is_over: AtomicBool,
}

impl Waits {
    async fn until_over(&self) {
        poll_fn(|cx| {
            *self.waker.lock().unwrap() = Some(cx.waker().clone());
            if self.is_over.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.waker.lock().unwrap().take().unwrap().wake();
    }
}

/// A foreign waker that runs its closure when it is woken.
struct Does<F: Fn() + Send + Sync>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Does<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

fn does(call: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Does(call)))
}

fn polled<T>(future: std::pin::Pin<&mut impl Future<Output = T>>, waker: &Waker) -> bool {
    future.poll(&mut Context::from_waker(waker)).is_ready()
}

/// A waker that reports its drop, and then panics.
struct DropsBadly(Sender<()>);

impl Wake for DropsBadly {
    fn wake(self: Arc<Self>) {}
}

impl Drop for DropsBadly {
    fn drop(&mut self) {
        let _ = self.0.send(());
        panic!("a waker that panics when it is dropped");
    }
}

async fn awaited<T>(platform: &LinuxPlatform, work: impl Future<Output = T>) -> T {
    platform.for_foreign_task(pin!(work)).await
}

#[test]
fn work_that_ends_at_once_never_clones_the_waker() {
    let (reactors, waker) = (reactors(), clones_badly());
    let platform = reactors.platform();
    let mut work = pin!(awaited(&platform, async { 5 }));
    assert_eq!(work.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(5));
}

#[test]
fn a_foreign_waker_is_woken_without_the_lock_that_its_waking_is_noted_under() {
    let (reactors, waits, locked) = (reactors(), Waits::default(), Arc::new(Mutex::new(())));
    let platform = reactors.platform();
    let mut work = pin!(awaited(&platform, waits.until_over()));
    let (told, woken) = channel();
    let own = Arc::clone(&locked);
    // Under the lock this would never end.
    let waker = does(move || {
        drop(own.lock().unwrap());
        told.send(std::thread::current().id()).unwrap();
    });
    assert!(!polled(work.as_mut(), &waker));
    let held = locked.lock().unwrap();
    waits.end();
    assert!(woken.try_recv().is_err());
    drop(held);
    // This thread never declared a point where it holds no lock.
    assert_ne!(woken.recv().unwrap(), std::thread::current().id());
    assert!(polled(work.as_mut(), &waker));
}

#[test]
fn held_wakes_are_made_on_their_own_thread_when_the_outermost_part_of_the_call_ends() {
    let (reactors, waits) = (reactors(), Waits::default());
    let platform = reactors.platform();
    let mut work = pin!(awaited(&platform, waits.until_over()));
    let (told, woken): (_, Receiver<_>) = channel();
    let waker = does(move || told.send(std::thread::current().id()).unwrap());
    assert!(!polled(work.as_mut(), &waker));
    let outer = DeferredWakes::new();
    drop(DeferredWakes::new());
    waits.end();
    drop(DeferredWakes::new());
    assert!(woken.try_recv().is_err(), "the outermost part has not ended");
    drop(outer);
    assert_eq!(woken.try_recv(), Ok(std::thread::current().id()));
}

#[test]
fn a_panic_in_a_wake_reaches_nobody() {
    let (reactors, waits) = (reactors(), Waits::default());
    let platform = reactors.platform();
    let mut work = pin!(awaited(&platform, waits.until_over()));
    let (told, woken) = channel();
    let waker = does(move || {
        told.send(()).unwrap();
        panic!("a waker that panics when it is woken");
    });
    assert!(!polled(work.as_mut(), &waker));
    // A reactor makes this wake, and an escaped panic would end the process.
    waits.end();
    woken.recv().unwrap();
    assert_eq!(platform.block_on(async { 7 }), 7);
    assert!(polled(work.as_mut(), Waker::noop()));
}

#[test]
fn a_panic_in_a_drop_reaches_nobody_and_queues_drop_no_foreign_waker() {
    let (reactors, waits) = (reactors(), Waits::default());
    let platform = reactors.platform();
    let (told, dropped) = channel();
    let bad = || Waker::from(Arc::new(DropsBadly(told.clone())));
    let mut work = Box::pin(awaited(&platform, waits.until_over()));
    let one = bad();
    assert!(!polled(work.as_mut(), &one));
    // Nothing is dropped yet: `one` is not the last waker, and replacing a waker by itself drops nothing.
    assert!(!polled(work.as_mut(), &one) && dropped.try_recv().is_err());
    std::mem::forget(one);
    let two = bad();
    assert!(!polled(work.as_mut(), &two));
    // The future holds the last reference from here on.
    contain(|| drop(two));
    assert!(dropped.try_recv().is_err());
    drop(work);
    assert_eq!(dropped.try_recv(), Ok(()), "it goes with the future, on this thread");
    // Only a stand-in without a waker remains in the queue.
    waits.end();
    assert!(dropped.try_recv().is_err());
}

#[test]
fn a_panic_in_a_clone_is_the_pollers() {
    let (reactors, waits) = (reactors(), Waits::default());
    let platform = reactors.platform();
    let mut work = Box::pin(awaited(&platform, waits.until_over()));
    let waker = clones_badly();
    let poll = AssertUnwindSafe(|| polled(work.as_mut(), &waker));
    assert!(catch_unwind(poll).is_err());
    drop(work);
    // Neither the queue nor the platform is affected.
    waits.end();
    assert_eq!(platform.block_on(async { 7 }), 7);
}

#[test]
fn a_wake_is_made_once_for_each_poll() {
    let (reactors, waits) = (reactors(), Waits::default());
    let platform = reactors.platform();
    let mut work = pin!(awaited(&platform, waits.until_over()));
    let count = Arc::new(AtomicUsize::new(0));
    let own = Arc::clone(&count);
    let waker = does(move || {
        own.fetch_add(1, Ordering::SeqCst);
    });
    for round in 1..=3 {
        assert!(!polled(work.as_mut(), &waker));
        let stand_in = waits.waker.lock().unwrap().clone().unwrap();
        let held = DeferredWakes::new();
        stand_in.wake_by_ref();
        stand_in.wake_by_ref();
        drop(held);
        drop(DeferredWakes::new());
        assert_eq!(count.load(Ordering::SeqCst), round);
    }
}

#[test]
fn a_platform_that_has_ended_wakes_all_the_same() {
    let (reactors, waits) = (reactors(), Waits::default());
    let platform = reactors.platform();
    let mut work = pin!(awaited(&platform, waits.until_over()));
    let (told, woken) = channel();
    let waker = does(move || told.send(()).unwrap());
    assert!(!polled(work.as_mut(), &waker));
    drop(reactors);
    waits.end();
    assert_eq!(woken.try_recv(), Ok(()));
}

/// A waker that panics when it is cloned.
fn clones_badly() -> Waker {
    fn clone(_: *const ()) -> RawWaker {
        panic!("a waker that panics when it is cloned")
    }
    fn nothing(_: *const ()) {}
    static TABLE: RawWakerVTable = RawWakerVTable::new(clone, nothing, nothing, nothing);
    // SAFETY: no function of the table uses the pointer.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &TABLE)) }
}
