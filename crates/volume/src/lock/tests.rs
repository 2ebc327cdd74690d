use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

#[test]
fn a_change_lock_knows_whether_somebody_waits() {
    let lock = ChangeLock::default();
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(held) = pin!(lock.lock()).poll(&mut cx) else { panic!("it was free") };
    assert!(!lock.has_line() && lock.try_lock().is_none());
    {
        let (mut first, mut second) = (pin!(lock.lock()), Box::pin(lock.lock()));
        assert!(first.as_mut().poll(&mut cx).is_pending() && second.as_mut().poll(&mut cx).is_pending());
        drop(second);
        assert!(lock.has_line(), "one of two gave up");
        drop(held);
        assert!(first.as_mut().poll(&mut cx).is_ready());
        assert!(!lock.has_line(), "it has it");
    }
    assert!(lock.try_lock().is_some());
}
