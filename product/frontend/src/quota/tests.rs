mod connection;
mod parties;

use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

use super::*;

const USER: u32 = 1;
const BYTES: usize = 1000;

/// Messages of a user until there is no quota, and the future that the last one waits for.
fn full(waiting: &Arc<MessageQuota>) -> (Vec<HeldMessage>, QuotaFreed) {
    let mut held = Vec::new();
    loop {
        match waiting.hold(USER, true, BYTES) {
            Ok(holding) => held.push(holding),
            Err(turn) => return (held, turn),
        }
    }
}

/// Checks whether the lock is free when it is called.
struct Looks(Arc<MessageQuota>);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        assert!(self.0.0.try_lock().is_ok(), "a call is woken under the lock");
    }
}

#[test]
fn a_call_is_woken_outside_the_lock() {
    let waiting = MessageQuota::new(10 * BYTES);
    let (mut held, turn) = full(&waiting);
    let (waker, mut turn) = (Waker::from(Arc::new(Looks(Arc::clone(&waiting)))), pin!(turn));
    let mut context = Context::from_waker(&waker);
    assert!(turn.as_mut().poll(&mut context).is_pending());
    held.pop();
    assert!(turn.as_mut().poll(&mut context).is_ready());
}

#[test]
fn calls_that_were_given_up_are_not_kept() {
    let waiting = MessageQuota::new(10 * BYTES);
    let (held, turn) = full(&waiting);
    for _ in 0..1000 {
        assert!(waiting.hold(USER, true, BYTES).is_err());
    }
    assert!(waiting.lock().put_off.len() < 10);
    drop(held);
    assert_eq!(pin!(turn).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())));
}
