use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use super::*;

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A queue whose policy admits everything.
fn unlimited() -> AdmissionQueue {
    let queue = AdmissionQueue::new(Arc::default());
    queue.set_room(&Room::UNLIMITED);
    queue
}

#[test]
fn a_guard_follows_what_is_charged_while_nobody_waits() {
    let queue = unlimited();
    queue.set_guard(Pages(100));
    queue.set_unseen(Pages(10));
    assert!(queue.try_take(Pages(90)), "the guard that was set holds until something is given back");
    queue.give_back(Pages(60));
    assert!(!queue.try_take(Pages(11)), "30 are charged, and room is for 10");
    assert_eq!(
        queue.pages_and_guard(),
        (Pages(30), Pages(100)),
        "a policy is told of the guard, not of what is unseen"
    );
    assert!(queue.try_take(Pages(10)));
    assert!(queue.try_take_within(Pages(70), Pages(30)), "a new guard says what there is");
    assert!(!queue.try_take_within(Pages(70), Pages(1)));
    let mut waiting = pin!(queue.take(Pages(30)));
    assert!(poll(waiting.as_mut()).is_pending());
    queue.set_guard(Pages(100));
    assert_eq!(poll(waiting.as_mut()), Poll::Ready(Ok(())));
    queue.give_back(Pages(50));
    assert_eq!(queue.pages(), Pages(50));
    assert!(queue.try_take(Pages(10)) && !queue.try_take(Pages(1)), "and room above that again");
}

#[test]
fn failing_ends_the_wait_of_those_who_wait_and_of_no_others() {
    let queue = AdmissionQueue::new(Arc::default());
    assert!(queue.try_take(Pages(1)), "alone");
    let mut waiting = pin!(queue.take(Pages(1)));
    assert!(poll(waiting.as_mut()).is_pending());
    queue.fail(DeviceError::NoSpace);
    assert_eq!(poll(waiting.as_mut()), Poll::Ready(Err(DeviceError::NoSpace)));
    let mut later = pin!(queue.take(Pages(1)));
    assert!(poll(later.as_mut()).is_pending());
    queue.give_back(Pages(1));
    assert_eq!(poll(later.as_mut()), Poll::Ready(Ok(())));
}

#[test]
fn runs_and_pages_cost_what_the_policy_says_and_new_prices_hold_for_all() {
    let queue = AdmissionQueue::new(Arc::default());
    let room = |cost_max, page, run| {
        let prices = Prices { page: Cost(page), run: Cost(run) };
        queue.set_room(&Room { cost_max: Cost(cost_max), prices, ..Room::UNLIMITED });
    };
    room(100, 10, 50);
    assert!(queue.try_take(Pages(5)), "five pages in a run");
    queue.runs.store(1, Ordering::Relaxed);
    assert!(!queue.try_take(Pages(1)), "with another run that is 160");
    assert_eq!(queue.cause(Pages(1)), PauseCause::MemoryGuard);
    room(160, 10, 50);
    assert!(queue.try_take(Pages(1)));
    room(160, 20, 0);
    assert!(queue.try_take(Pages(2)) && !queue.try_take(Pages(1)), "eight pages at 20 are all there is");
}

/// Writers to two devices count runs at every page.
#[test]
fn two_devices_count_on_cache_lines_of_their_own() {
    let line = |queue: &AdmissionQueue| std::ptr::from_ref(&*queue.runs).addr() / 128;
    let queues: Vec<AdmissionQueue> = (0..64).map(|_| AdmissionQueue::new(Arc::default())).collect();
    let lines: std::collections::BTreeSet<usize> = queues.iter().map(line).collect();
    assert_eq!(lines.len(), queues.len());
}
