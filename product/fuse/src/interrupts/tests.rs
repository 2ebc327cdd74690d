//! Interrupted calls, and the side that answers them.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use futures_util::future::{pending, poll_fn};

use super::{CallEnd, Interrupts, Requester};

const PROGRAM: Requester = Requester { thread: 0, expects_interrupts: false };

fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_call_that_waits_answers_its_interrupt_itself() {
    let interrupts = Interrupts::default();
    let mut never = pin!(pending::<()>());
    let mut call = pin!(interrupts.run(1, PROGRAM, never.as_mut()));
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(call.as_mut().poll(&mut cx), Poll::Pending);
    assert!(!interrupts.try_take_answer(1), "the call answers");
    assert_eq!(call.as_mut().poll(&mut cx), Poll::Ready(CallEnd::Interrupted));
}

// rule: a call whose thread is stuck in the host is answered by its interrupter, once
#[test]
fn a_call_whose_thread_is_inside_it_is_answered_by_the_interrupter_once() {
    let interrupts = Interrupts::default();
    // The interrupt comes while the call's own thread is in the host.
    let stuck = poll_fn(|_| {
        assert!(interrupts.try_take_answer(1), "nobody else can answer");
        assert!(!interrupts.try_take_answer(1), "it is answered once");
        Poll::Ready("made")
    });
    assert_eq!(poll(interrupts.run(1, PROGRAM, pin!(stuck))), Poll::Ready(CallEnd::Late(Some("made"))));
    let stuck = poll_fn(|_| {
        assert!(interrupts.try_take_answer(2));
        Poll::<()>::Pending
    });
    assert_eq!(poll(interrupts.run(2, PROGRAM, pin!(stuck))), Poll::Ready(CallEnd::Late(None)), "it is given up");
}

#[test]
fn a_call_that_has_ended_is_not_interrupted() {
    let interrupts = Interrupts::default();
    assert_eq!(poll(interrupts.run(1, PROGRAM, pin!(async { 7 }))), Poll::Ready(CallEnd::Itself(7)));
    assert!(!interrupts.try_take_answer(1));
    assert_eq!(interrupts.len(), 0);
}
