//! rule: 5: a caller that goes away strands nobody

use std::pin::Pin;
use std::sync::atomic::AtomicU32;
use std::task::Wake;

use super::*;

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll<F: Future>(future: Pin<&mut F>, count: &Arc<Count>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(count));
    future.poll(&mut Context::from_waker(&waker))
}

fn woken(count: &Count) -> u32 {
    count.0.load(Ordering::Relaxed)
}

#[test]
fn permits_are_granted_in_order_of_asking() {
    let permits = Permits::new(10);
    assert!(permits.try_take(8));
    let (large, small) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let mut first = Box::pin(permits.take(5));
    let mut second = Box::pin(permits.take(1));
    assert!(poll(first.as_mut(), &large).is_pending());
    assert!(poll(second.as_mut(), &small).is_pending(), "no overtaking, though one would fit");
    assert!(!permits.try_take(1));
    permits.give_back(2);
    assert_eq!((woken(&large), woken(&small)), (0, 0), "6 used, 5 do not fit");
    permits.give_back(1);
    assert_eq!((woken(&large), woken(&small)), (1, 0), "5 used and 5 granted");
    assert_eq!(poll(first.as_mut(), &large), Poll::Ready(()));
    assert!(poll(second.as_mut(), &small).is_pending());
    permits.give_back(5);
    assert_eq!(poll(second.as_mut(), &small), Poll::Ready(()));
    assert_eq!(permits.used(), 6);
}

#[test]
fn a_share_leaves_twice_as_much_as_its_taker_has_then_where_others_have_some() {
    let permits = Permits::new(1_300);
    assert_eq!(permits.try_take_part(1, 1_301, 0), 0, "there is not so much");
    assert_eq!(permits.try_take_part(1, 1_000, 0), 1_000);
    assert_eq!(permits.try_take_part(1, 200, 1_000), 200);
    permits.give_back(1_199);
    assert_eq!(permits.try_take_part(1, 2_000, 0), 433);
    assert_eq!(permits.try_take_part(1, 2_000, 433), 0);
    assert_eq!(permits.try_take_part(1, 2_000, 0), 288);
    assert_eq!(permits.try_take_part(1, 10, 0), 10);
    assert_eq!(permits.try_take_part(500, 2_000, 0), 0, "less than it is good for");
    assert_eq!(permits.used(), 732);
    let mut waits = Box::pin(permits.take(1_000));
    assert!(poll(waits.as_mut(), &Arc::new(Count::default())).is_pending());
    assert_eq!(permits.try_take_part(1, 10, 0), 0, "somebody waits");
    drop(waits);
    assert_eq!(permits.try_take_part(1, 10, 0), 10);
}

#[test]
fn who_had_all_before_others_came_has_as_much_as_they_in_the_end() {
    let permits = Permits::new(1_300);
    // The pages that each misses.
    assert!(permits.try_take(10 * 16));
    let mut shares = [0; 10];
    shares[0] = 1_140;
    assert!(permits.try_take(shares[0]));
    for _ in 0..20 {
        for share in &mut shares {
            permits.give_back(*share);
            *share = permits.try_take_part(16, 2_000, 16);
        }
    }
    assert!(shares.iter().all(|share| (90..=95).contains(share)), "{shares:?}");
}

#[test]
fn a_dropped_waiter_gives_its_grant_to_the_next() {
    let permits = Permits::new(1);
    assert!(permits.try_take(1));
    let count = Arc::new(Count::default());
    let mut first = Box::pin(permits.take(1));
    let mut second = Box::pin(permits.take(1));
    assert!(poll(first.as_mut(), &count).is_pending());
    assert!(poll(second.as_mut(), &count).is_pending());
    permits.give_back(1);
    assert_eq!(woken(&count), 1);
    drop(first);
    assert_eq!(woken(&count), 2);
    assert_eq!(poll(second.as_mut(), &count), Poll::Ready(()));
    assert_eq!((permits.used(), permits.waiting()), (1, 0));
}

#[test]
fn a_newcomer_is_served_though_an_answered_waiter_has_not_looked_yet() {
    let permits = Permits::new(4);
    assert!(permits.try_take(4));
    let count = Arc::new(Count::default());
    let mut slow = Box::pin(permits.take(1));
    assert!(poll(slow.as_mut(), &count).is_pending());
    permits.give_back(4);
    let mut newcomer = Box::pin(permits.take(1));
    assert_eq!(poll(newcomer.as_mut(), &count), Poll::Ready(()));
}

#[test]
fn more_than_the_limit_is_let_through_alone() {
    let permits = Permits::new(4);
    assert!(permits.try_take(9));
    assert!(!permits.try_take(1));
    permits.give_back(9);
    assert!(permits.try_take(1));
}

#[test]
fn an_answer_is_given_once_and_read_by_all() {
    let answer = Answer::new();
    let count = Arc::new(Count::default());
    let mut early = Box::pin(answer.wait());
    assert!(poll(early.as_mut(), &count).is_pending());
    answer.give(1);
    answer.give(2);
    assert_eq!(poll(early.as_mut(), &count), Poll::Ready(1));
    let mut late = Box::pin(answer.wait());
    assert_eq!(poll(late.as_mut(), &count), Poll::Ready(1));
}

#[test]
fn a_raised_signal_is_taken_once() {
    let signal = Signal::new();
    signal.raise();
    signal.raise();
    let count = Arc::new(Count::default());
    assert!(poll(Box::pin(signal.wait_or(std::future::pending())).as_mut(), &count).is_ready());
    let mut again = Box::pin(signal.wait_or(std::future::pending()));
    assert!(poll(again.as_mut(), &count).is_pending());
    signal.raise();
    assert_eq!(woken(&count), 1);
    assert!(poll(again.as_mut(), &count).is_ready());
}

#[test]
fn who_stops_waiting_leaves_nothing_behind() {
    let (queue, answer, signal) = (WaitQueue::new(), Answer::<()>::new(), Signal::new());
    for _ in 0..100 {
        // A separate task each, with a different waker.
        let count = Arc::new(Count::default());
        assert!(poll(Box::pin(queue.until(|| None::<()>)).as_mut(), &count).is_pending());
        assert!(poll(Box::pin(answer.wait()).as_mut(), &count).is_pending());
        assert!(poll(Box::pin(signal.wait_or(std::future::pending())).as_mut(), &count).is_pending());
        assert_eq!(Arc::strong_count(&count), 1, "nobody keeps the waker of a task that went away");
    }
    assert_eq!(sync::lock(&queue.wakers).len(), 0);
    assert_eq!(queue.waiting.load(Ordering::Relaxed), 0);
    assert_eq!(sync::lock(&answer.state).wakers.len(), 0);
}

#[test]
fn those_who_stay_are_woken_in_order_of_asking_whoever_leaves() {
    // Every combination of five waiters leaves.
    for leaving in 0..32_u32 {
        let queue = WaitQueue::new();
        let counts: Vec<_> = (0..5).map(|_| Arc::new(Count::default())).collect();
        let mut waiting: Vec<_> = counts.iter().map(|_| Some(Box::pin(queue.until(|| None::<()>)))).collect();
        for (waiter, count) in waiting.iter_mut().zip(&counts) {
            assert!(poll(waiter.as_mut().unwrap().as_mut(), count).is_pending());
        }
        for (at, waiter) in waiting.iter_mut().enumerate() {
            if leaving & 1 << at != 0 {
                *waiter = None;
            }
        }
        // A waiter that is polled again retains its slot.
        for (waiter, count) in waiting.iter_mut().zip(&counts) {
            assert!(waiter.as_mut().is_none_or(|waiter| poll(waiter.as_mut(), count).is_pending()));
        }
        let tickets = sync::lock(&queue.wakers).0.tickets();
        let expected: Vec<u64> = (0..5).filter(|at| leaving & 1 << at == 0).map(|at| at + 1).collect();
        assert_eq!(tickets, expected);
        queue.wake_all();
        let left = |at: usize| u32::from(leaving & 1 << at == 0);
        assert!(counts.iter().enumerate().all(|(at, count)| woken(count) == left(at)), "{leaving:b}");
        // A woken waiter that leaves takes no other waiter's slot.
        let late = Arc::new(Count::default());
        let mut later = Box::pin(queue.until(|| None::<()>));
        assert!(poll(later.as_mut(), &late).is_pending());
        drop(waiting);
        queue.wake_all();
        assert_eq!(woken(&late), 1);
    }
}

/// Each queue with so many waiters that a step in time proportional to their number would take minutes.
#[test]
fn many_waiters_take_and_leave_their_places_in_any_order() {
    const WAITERS: usize = 1 << 17;
    let (waiting, permits) = (WaitQueue::new(), Permits::new(1));
    assert!(permits.try_take(1));
    let count = Arc::new(Count::default());
    let mut queued: Vec<_> = (0..WAITERS).map(|_| Some(Box::pin(waiting.until(|| None::<()>)))).collect();
    let mut taking: Vec<_> = (0..WAITERS).map(|_| Some(Box::pin(permits.take(1)))).collect();
    queued.iter_mut().flatten().for_each(|waiter| assert!(poll(waiter.as_mut(), &count).is_pending()));
    taking.iter_mut().flatten().for_each(|waiter| assert!(poll(waiter.as_mut(), &count).is_pending()));
    // Each asks again, and those in the odd slots leave, from the end and from the middle on.
    for at in (0..WAITERS).rev().chain(WAITERS / 2..WAITERS) {
        if at % 2 == 1 {
            (queued[at], taking[at]) = (None, None);
        }
        assert!(queued[at].as_mut().is_none_or(|waiter| poll(waiter.as_mut(), &count).is_pending()));
        assert!(taking[at].as_mut().is_none_or(|waiter| poll(waiter.as_mut(), &count).is_pending()));
    }
    assert_eq!((sync::lock(&waiting.wakers).len(), permits.waiting()), (WAITERS / 2, WAITERS / 2));
    // The first leaves each time, and the next one gets what it had.
    permits.give_back(1);
    taking.iter_mut().for_each(|waiter| *waiter = None);
    queued.iter_mut().for_each(|waiter| *waiter = None);
    assert_eq!((sync::lock(&waiting.wakers).len(), permits.waiting(), permits.used()), (0, 0, 0));
}
