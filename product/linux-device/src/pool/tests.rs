mod underway;

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Wake};
use std::thread::Thread;

use super::*;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn result_comes_back() {
    let pool = WorkerPool::new("test", 2, 4);
    assert_eq!(wait(pool.run(|| 6 * 7)), 42);
    assert_eq!(wait(pool.run(|| std::thread::current().name().map(str::to_owned))).as_deref(), Some("test"));
}

#[test]
fn the_thread_goes_on_with_what_work_gives_it_after_its_result_was_told() {
    let pool = WorkerPool::new("test", 1, 4);
    let (told, heard) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let more = PoolTask::posted(move || {
        gate.recv().unwrap();
        told.send(std::thread::current().id()).unwrap();
    });
    let call = Arc::new(PoolCall::new(&pool, Lane::default(), move || (std::thread::current().id(), Some(more))));
    let thread = wait(std::future::poll_fn(|cx| call.poll_result(cx, || Arc::clone(&call) as _)));
    go.send(()).unwrap();
    assert_eq!(heard.recv().unwrap(), thread);
}

#[test]
fn panic_comes_back_and_pool_goes_on() {
    let pool = WorkerPool::new("test", 1, 4);
    let run = pool.run(|| panic!("on purpose"));
    let caught = catch_unwind(AssertUnwindSafe(|| wait::<Pin<Box<dyn Future<Output = ()>>>>(Box::pin(run))));
    assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "on purpose");
    assert_eq!(wait(pool.run(|| 1)), 1);
}

#[test]
fn full_queue_makes_futures_wait_in_order() {
    let pool = WorkerPool::new("test", 1, 1);
    let (go, gate) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut running = Box::pin(pool.run(move || {
        begun.send(()).unwrap();
        gate.recv().unwrap();
    }));
    assert!(poll_once(running.as_mut()).is_pending());
    has_begun.recv().unwrap();
    let mut futures: Vec<_> = (0..4)
        .map(|number| {
            let order = Arc::clone(&order);
            Box::pin(pool.run(move || order.lock().unwrap().push(number)))
        })
        .collect();
    for future in &mut futures {
        assert!(poll_once(future.as_mut()).is_pending());
    }
    assert_eq!(pool.queued(), 1, "only one has room");
    // A waiter that gives up loses its own slot and no other's.
    drop(futures.remove(2));
    go.send(()).unwrap();
    wait(running);
    let waiters: Vec<_> = futures.into_iter().map(|future| std::thread::spawn(|| wait(future))).collect();
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    assert_eq!(*order.lock().unwrap(), [0, 1, 3]);
}

#[test]
fn place_given_to_a_dropped_future_goes_to_the_next() {
    let pool = WorkerPool::new("test", 1, 1);
    let (go, gate) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let mut running = Box::pin(pool.run(move || {
        begun.send(()).unwrap();
        gate.recv().unwrap();
    }));
    assert!(poll_once(running.as_mut()).is_pending());
    has_begun.recv().unwrap();
    let mut queued = Box::pin(pool.run(|| ()));
    let mut granted = Box::pin(pool.run(|| ()));
    let mut last = Box::pin(pool.run(|| 9));
    assert!(poll_once(queued.as_mut()).is_pending());
    assert!(poll_once(granted.as_mut()).is_pending());
    assert!(poll_once(last.as_mut()).is_pending());
    go.send(()).unwrap();
    wait(queued);
    drop(granted);
    assert_eq!(wait(last), 9);
}

#[test]
fn dropped_future_discards_the_result() {
    let pool = WorkerPool::new("test", 1, 4);
    let ran = Arc::new(AtomicUsize::new(0));
    let mut queued = Box::pin(pool.run({
        let ran = Arc::clone(&ran);
        move || ran.fetch_add(1, Ordering::SeqCst)
    }));
    let _ = poll_once(queued.as_mut());
    drop(queued);
    drop(pool.run({
        let ran = Arc::clone(&ran);
        move || ran.fetch_add(10, Ordering::SeqCst)
    }));
    wait(pool.run(|| ()));
    assert_eq!(ran.load(Ordering::SeqCst), 1, "queued work runs, work never polled does not");
}

#[test]
fn threads_are_bounded() {
    let pool = WorkerPool::new("test", 3, 100);
    let now = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let mut runs: Vec<_> = (0..60)
        .map(|_| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            Box::pin(pool.run(move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
            }))
        })
        .collect();
    runs.retain_mut(|run| poll_once(run.as_mut()).is_pending());
    for run in runs {
        wait(run);
    }
    assert!(most.load(Ordering::SeqCst) <= 3);
}

#[test]
fn queued_work_runs_after_the_pool_is_dropped() {
    let pool = WorkerPool::new("test", 1, 8);
    let (done, is_done) = mpsc::channel();
    for number in 0..5 {
        let done = done.clone();
        pool.post(Box::new(move || done.send(number).unwrap()));
    }
    drop(pool);
    drop(done);
    assert_eq!(is_done.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

/// A pool with at most one thread coming to the queue, as with a single processor.
fn with_one_coming(threads_max: usize) -> WorkerPool {
    let mut pool = WorkerPool::new("test", threads_max, 100);
    let owner = Arc::get_mut(&mut pool.owner).unwrap();
    Arc::get_mut(&mut owner.0).unwrap().coming_max = 1;
    pool
}

#[test]
fn work_that_blocks_holds_up_none_that_came_with_it() {
    let pool = with_one_coming(4);
    let (go, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    for round in 0..3 {
        let (begun, has_begun) = mpsc::channel();
        for number in 0..3 {
            let (gate, begun) = (Arc::clone(&gate), begun.clone());
            pool.post(Box::new(move || {
                begun.send(number).unwrap();
                gate.lock().unwrap().recv().unwrap();
            }));
        }
        // One of them holds the lock, and none ends: each has a thread.
        for _ in 0..3 {
            has_begun.recv_timeout(Duration::from_secs(30)).unwrap_or_else(|_| panic!("round {round}"));
        }
        (0..3).for_each(|_| go.send(()).unwrap());
    }
}

#[test]
fn the_thread_without_work_for_the_shortest_time_comes_first() {
    let pool = WorkerPool::new("test", 4, 100);
    let (go, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let (begun, has_begun) = mpsc::channel();
    for _ in 0..4 {
        let (gate, begun) = (Arc::clone(&gate), begun.clone());
        pool.post(Box::new(move || {
            begun.send(()).unwrap();
            gate.lock().unwrap().recv().unwrap();
        }));
    }
    (0..4).for_each(|_| has_begun.recv().unwrap());
    (0..4).for_each(|_| go.send(()).unwrap());
    let idle = |count: usize| {
        while pool.owner.0.lock().idle.len() < count {
            std::thread::yield_now();
        }
    };
    idle(4);
    let first = wait(pool.run(|| std::thread::current().id()));
    for _ in 0..20 {
        idle(4);
        assert_eq!(wait(pool.run(|| std::thread::current().id())), first);
    }
}

#[test]
fn what_is_posted_near_is_done_by_the_thread_that_posts_it_after_its_result_was_told() {
    let pool = WorkerPool::new("test", 2, 4);
    let (told, heard) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let near = pool.clone();
    let left = told.clone();
    let thread = wait(pool.run(move || {
        near.post_near(Box::new(move || {
            gate.recv().unwrap();
            left.send(std::thread::current().id()).unwrap();
        }));
        std::thread::current().id()
    }));
    go.send(()).unwrap();
    assert_eq!(heard.recv().unwrap(), thread);
    // A thread of another pool leaves it to the pool, as does any other thread.
    let (other, near) = (WorkerPool::new("other", 1, 4), pool.clone());
    wait(other.run(move || {
        near.post_near(Box::new(move || told.send(std::thread::current().id()).unwrap()));
    }));
    let done_by = heard.recv().unwrap();
    assert_ne!(done_by, wait(other.run(|| std::thread::current().id())));
}

/// Waits for a condition without an event.
fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

#[test]
fn a_call_that_hangs_is_seen_with_its_beginning_until_it_ends() {
    let pool = WorkerPool::new("test", 2, 4);
    let (go, gate) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let before = clock::monotonic();
    pool.post(move || {
        begun.send(clock::monotonic()).unwrap();
        gate.recv().unwrap();
    });
    let inside = has_begun.recv().unwrap();
    let oldest = pool.underway().oldest().unwrap();
    assert!(before <= oldest && oldest <= inside);
    // Later calls end, and change nothing.
    wait(pool.run(|| ()));
    assert_eq!(pool.underway().oldest(), Some(oldest));
    go.send(()).unwrap();
    until(|| pool.underway().oldest().is_none());
    pool.post(|| panic!("on purpose"));
    wait(pool.run(|| ()));
    until(|| pool.underway().oldest().is_none());
}

#[test]
fn a_call_in_place_is_seen_too() {
    struct Always;
    impl in_place::Leave for Always {
        fn try_permit(&self) -> bool {
            true
        }
        fn end(&self) {}
    }
    let pool = WorkerPool::new("test", 1, 1);
    let underway = Arc::clone(pool.underway());
    let seen = pool.run(move || (std::thread::current().id(), underway.oldest()));
    let (by, seen) = in_place::scope(Arc::new(Always), |place| place.run(|| wait(seen)));
    assert!(by == std::thread::current().id() && seen.is_some());
    assert_eq!(pool.underway().oldest(), None);
}

#[test]
fn work_of_several_calls_is_as_old_as_the_last() {
    let pool = WorkerPool::new("test", 1, 1);
    let underway = Arc::clone(pool.underway());
    let is_younger = pool.run(move || {
        let first = underway.oldest();
        until(|| Some(clock::monotonic()) > first);
        begin_next_call();
        underway.oldest() > first
    });
    assert!(wait(is_younger));
}
