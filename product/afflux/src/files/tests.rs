use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::Tail;

#[test]
fn one_at_a_time_and_who_goes_away_strands_nobody() {
    let tail = Tail::default();
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(first) = pin!(tail.enter()).poll(&mut context) else { panic!("it is free") };
    let mut second = Box::pin(tail.enter());
    let mut third = Box::pin(tail.enter());
    assert!(second.as_mut().poll(&mut context).is_pending());
    assert!(third.as_mut().poll(&mut context).is_pending());
    drop(second);
    drop(first);
    let Poll::Ready(enter) = third.as_mut().poll(&mut context) else { panic!("it was stranded") };
    drop(enter);
    assert!(pin!(tail.enter()).poll(&mut context).is_ready());
}
