use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::Gate;
use crate::error::Error;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

#[test]
fn nobody_comes_in_once_it_is_closed_and_those_inside_are_waited_for() {
    let gate = Arc::new(Gate::new().unwrap());
    let inside = gate.enter(3).unwrap();
    gate.close();
    assert!(matches!(gate.enter(3).err(), Some(Error::Closed)));
    assert!(!gate.is_empty_by(Instant::now()));
    let waits = {
        let gate = Arc::clone(&gate);
        std::thread::spawn(move || gate.is_empty_by(soon()))
    };
    drop(inside);
    assert!(waits.join().unwrap());
}

#[test]
fn who_waits_inside_leaves_when_it_closes() {
    let gate = Gate::new().unwrap();
    let mut forever = pin!(std::future::pending());
    let mut waits = pin!(gate.pass::<()>(5, forever.as_mut()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(waits.as_mut().poll(&mut context).is_pending());
    assert!(gate.is_empty_by(Instant::now()), "who waits is not inside");
    gate.close();
    assert!(matches!(waits.as_mut().poll(&mut context), Poll::Ready(Err(Error::Closed))));
}

#[test]
fn who_waits_is_woken() {
    struct DropNotice(std::sync::mpsc::Sender<()>);
    impl std::task::Wake for DropNotice {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }
    let gate = Gate::new().unwrap();
    let (told, hears) = std::sync::mpsc::channel();
    let waker = Arc::new(DropNotice(told)).into();
    let mut forever = pin!(std::future::pending());
    let mut waits = Box::pin(gate.pass::<()>(5, forever.as_mut()));
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    gate.poison("flusher", "a test");
    hears.recv().unwrap();
    let left: usize = gate.stripes.iter().map(|stripe| stripe.waiting().wakers.len()).sum();
    assert_eq!(left, 0);
    let Err(error) = gate.check() else { panic!("it is poisoned") };
    assert!(error.to_string().contains("panic in task 'flusher': a test"), "{error}");
    gate.close();
    assert!(gate.is_poisoned(), "closing it changes nothing");
}

#[test]
fn who_goes_away_leaves_no_waker() {
    let gate = Gate::new().unwrap();
    {
        let mut forever = pin!(std::future::pending());
        let mut waits = pin!(gate.pass::<()>(5, forever.as_mut()));
        assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(gate.stripe(5).waiting().wakers.len(), 1);
    }
    assert_eq!(gate.stripe(5).waiting().wakers.len(), 0);
}

#[test]
fn a_panic_inside_closes_it_and_a_call_of_a_drop_does_not() {
    struct Calls<'a>(&'a Gate);
    impl Drop for Calls<'_> {
        fn drop(&mut self) {
            drop(self.0.enter(3).unwrap());
        }
    }
    let gate = Gate::new().unwrap();
    let outside = catch_unwind(AssertUnwindSafe(|| {
        let _calls = Calls(&gate);
        panic!("outside");
    }));
    assert!(outside.is_err() && gate.check().is_ok(), "the cache has no part in it");
    let mut unlucky = pin!(async { panic!("inside") });
    let mut call = pin!(gate.pass::<()>(5, unlucky.as_mut()));
    let inside = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(&mut Context::from_waker(Waker::noop()))));
    assert!(inside.is_err() && gate.is_poisoned());
    assert!(gate.is_empty_by(Instant::now()), "nobody is inside");
}
