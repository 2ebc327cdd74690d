use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Wake, Waker};

use super::*;

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A queue whose policy admits everything.
fn unlimited() -> AdmissionQueue {
    let queue = AdmissionQueue::new(Arc::default());
    queue.set_bounds(&ChargeBounds::UNLIMITED);
    queue
}

#[test]
fn a_guard_follows_what_is_charged_while_nobody_waits() {
    let queue = unlimited();
    queue.set_guard(PageCount(100));
    queue.set_unseen(PageCount(10));
    assert!(queue.try_take(PageCount(90)), "the guard that was set holds until something is given back");
    queue.give_back(PageCount(60));
    assert!(!queue.try_take(PageCount(11)), "30 are charged, and room is for 10");
    assert_eq!(
        queue.pages_and_guard(),
        (PageCount(30), PageCount(100)),
        "a policy is told of the guard, not of what is unseen"
    );
    assert!(queue.try_take(PageCount(10)));
    assert!(queue.try_take_within(PageCount(70), PageCount(30)), "a new guard says what there is");
    assert!(!queue.try_take_within(PageCount(70), PageCount(1)));
    let mut waiting = pin!(queue.take(PageCount(30), 0));
    assert!(poll(waiting.as_mut()).is_pending());
    queue.set_guard(PageCount(100));
    assert_eq!(poll(waiting.as_mut()), Poll::Ready(()));
    queue.give_back(PageCount(50));
    assert_eq!(queue.pages(), PageCount(50));
    assert!(queue.try_take(PageCount(10)) && !queue.try_take(PageCount(1)), "and room above that again");
}

/// Counts how often a waiter was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_writer_whose_file_changes_keeps_its_place_and_others_are_not_woken() {
    let queue = AdmissionQueue::new(Arc::default());
    queue.set_guard(PageCount(4));
    queue.set_bounds(&ChargeBounds::UNLIMITED);
    assert!(queue.try_take(PageCount(4)));
    let woken: [Arc<Woken>; 4] = std::array::from_fn(|_| Arc::default());
    let mut writers: Vec<_> = [1, 2, 1, 3].map(|file| Box::pin(queue.take(PageCount(2), file))).into();
    let ask = |writer: &mut Pin<Box<Take<'_>>>, at: usize| {
        writer.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(&woken[at]))))
    };
    (0..4).for_each(|at| assert!(ask(&mut writers[at], at).is_pending()));
    let counts = || woken.each_ref().map(|woken| woken.0.load(Ordering::Relaxed));
    queue.file_changed(1);
    assert_eq!(counts(), [1, 0, 1, 0], "the change of a file concerns its writers alone");
    queue.give_back(PageCount(2));
    assert_eq!(counts(), [1, 1, 1, 0], "a writer that looks at its file holds up nobody");
    assert!(!queue.try_take(PageCount(1)), "a newcomer passes nobody");
    // Both stay, the last one first.
    for at in [2, 0] {
        assert!(ask(&mut writers[at], at).is_pending());
        writers[at].wait_on();
    }
    for (next, expected) in [(1, [1, 1, 1, 0]), (0, [2, 1, 1, 0]), (2, [2, 1, 2, 0]), (3, [2, 1, 2, 1])] {
        assert_eq!(counts(), expected, "in order of asking");
        assert!(ask(&mut writers[next], next).is_ready());
        queue.give_back(PageCount(2));
    }
    let line = queue.line();
    assert_eq!((queue.waiting(), line.by_file.len(), line.writers.count()), (0, 0, 0));
}

#[test]
fn a_writer_that_looks_at_its_file_gets_the_room_at_once_if_it_fits_by_then() {
    let queue = unlimited();
    queue.set_guard(PageCount(1));
    assert!(queue.try_take(PageCount(1)));
    let woken: Arc<Woken> = Arc::default();
    let waker = Waker::from(Arc::clone(&woken));
    let mut waiting = pin!(queue.take(PageCount(1), 7));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    queue.file_changed(7);
    queue.give_back(PageCount(1));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending(), "not before it has looked");
    waiting.wait_on();
    assert_eq!(woken.0.load(Ordering::Relaxed), 2);
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
}

#[test]
fn runs_and_pages_cost_what_the_policy_says_and_new_prices_hold_for_all() {
    let queue = AdmissionQueue::new(Arc::default());
    let bounds = |cost_max, page, run| {
        let prices = Prices { page: Cost(page), run: Cost(run) };
        queue.set_bounds(&ChargeBounds { cost_max: Cost(cost_max), prices, ..ChargeBounds::UNLIMITED });
    };
    bounds(100, 10, 50);
    assert!(queue.try_take(PageCount(5)), "five pages in a run");
    queue.runs.store(1, Ordering::Relaxed);
    assert!(!queue.try_take(PageCount(1)), "with another run that is 160");
    assert_eq!(queue.cause(PageCount(1)), PauseCause::MemoryGuard);
    bounds(160, 10, 50);
    assert!(queue.try_take(PageCount(1)));
    bounds(160, 20, 0);
    assert!(queue.try_take(PageCount(2)) && !queue.try_take(PageCount(1)), "eight pages at 20 are all there is");
}

/// Writers to two devices count runs at every page.
#[test]
fn two_devices_count_on_cache_lines_of_their_own() {
    let line = |queue: &AdmissionQueue| std::ptr::from_ref(&*queue.runs).addr() / 128;
    let queues: Vec<AdmissionQueue> = (0..64).map(|_| AdmissionQueue::new(Arc::default())).collect();
    let lines: std::collections::BTreeSet<usize> = queues.iter().map(line).collect();
    assert_eq!(lines.len(), queues.len());
}
