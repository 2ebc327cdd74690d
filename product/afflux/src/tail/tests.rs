use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::Tail;

#[test]
fn one_at_a_time_and_who_goes_away_strands_nobody() {
    let tail = Tail::default();
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(first) = pin!(tail.turn()).poll(&mut context) else { panic!("it is free") };
    let mut second = Box::pin(tail.turn());
    let mut third = Box::pin(tail.turn());
    assert!(second.as_mut().poll(&mut context).is_pending());
    assert!(third.as_mut().poll(&mut context).is_pending());
    drop(second);
    drop(first);
    let Poll::Ready(turn) = third.as_mut().poll(&mut context) else { panic!("it was stranded") };
    drop(turn);
    assert!(pin!(tail.turn()).poll(&mut context).is_ready());
}
