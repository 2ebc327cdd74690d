mod fence;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::task::{Wake, Waker};

use afflux_engine::counters::Counter;

use super::*;

const CHOICES: [IoChoice; 2] = [IoChoice::Auto, IoChoice::Syscalls];

/// A message to another task: the simplest wake across threads.
struct Letter<T> {
    state: Mutex<(Option<T>, Option<Waker>)>,
}

impl<T> Letter<T> {
    fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new((None, None)) })
    }

    fn post(&self, value: T) {
        let mut state = self.state.lock().unwrap();
        state.0 = Some(value);
        let waker = state.1.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    fn receive(&self) -> impl Future<Output = T> + '_ {
        std::future::poll_fn(|cx| {
            let mut state = self.state.lock().unwrap();
            match state.0.take() {
                Some(value) => Poll::Ready(value),
                None => {
                    state.1 = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
    }
}

#[test]
fn count_out_of_range_is_refused() {
    for count in [0, REACTORS_MAX + 1] {
        let Err(error) = Reactors::start(count, IoChoice::Auto) else { panic!("{count} started") };
        assert!(error.to_string().contains(&count.to_string()), "{error}");
        assert!(error.to_string().contains("1 to 256"), "{error}");
    }
}

#[test]
fn describes_itself() {
    let reactors = Reactors::start(2, IoChoice::Syscalls).unwrap();
    assert_eq!(reactors.platform().describe(), "poll and worker threads (as asked for), 2 reactors");
    if let Ok(reactors) = Reactors::start(1, IoChoice::Uring) {
        assert_eq!(reactors.platform().describe(), "io_uring, 1 reactor");
    }
}

#[test]
fn tasks_and_waiting_threads_wake_each_other() {
    for choice in CHOICES {
        let reactors = Reactors::start(2, choice).unwrap();
        let platform = reactors.platform();
        let (there, back) = (Letter::new(), Letter::new());
        platform.spawn("echo", {
            let (there, back) = (Arc::clone(&there), Arc::clone(&back));
            async move {
                loop {
                    let value: u32 = there.receive().await;
                    back.post(value + 1);
                }
            }
        });
        for value in 0..2_000 {
            there.post(value);
            assert_eq!(platform.block_on(back.receive()), value + 1);
        }
    }
}

#[test]
fn many_tasks_pass_a_letter_round() {
    const TASKS: usize = 50;
    for choice in CHOICES {
        let reactors = Reactors::start(3, choice).unwrap();
        let platform = reactors.platform();
        let letters: Vec<_> = (0..TASKS).map(|_| Letter::<usize>::new()).collect();
        let done = Letter::new();
        for number in 0..TASKS {
            let (from, to) = (Arc::clone(&letters[number]), Arc::clone(&letters[(number + 1) % TASKS]));
            let (platform, done) = (platform.clone(), Arc::clone(&done));
            reactors.platform().spawn("pass", async move {
                loop {
                    let value = from.receive().await;
                    platform.preemption_point().await;
                    if value == 20 * TASKS {
                        return done.post(number);
                    }
                    to.post(value + 1);
                }
            });
        }
        letters[0].post(0);
        assert_eq!(platform.block_on(done.receive()), 0);
    }
}

#[test]
fn what_goes_ahead_does_not_wait_for_a_task_that_computes() {
    for choice in CHOICES {
        let reactors = Reactors::start(1, choice).unwrap();
        let platform = reactors.platform();
        let (freed, told) = (Arc::new(AtomicBool::new(false)), Letter::new());
        platform.spawn("computes", {
            let (platform, freed, told) = (platform.clone(), Arc::clone(&freed), Arc::clone(&told));
            async move {
                let needed = Arc::clone(&freed);
                platform.spawn_ahead("frees", async move { needed.store(true, Ordering::SeqCst) });
                // Waits until the other task has run; a busy machine may take its time.
                let late = clock::monotonic().after(60 * Nanos::SECOND);
                while !freed.load(Ordering::SeqCst) && clock::monotonic() < late {
                    std::thread::yield_now();
                }
                told.post(freed.load(Ordering::SeqCst));
            }
        });
        assert!(platform.block_on(told.receive()), "{choice:?}");
    }
}

#[test]
fn only_a_thread_that_waits_for_one_call_may_wait_in_the_host() {
    let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let may_wait = || platform.may_wait_on_this_thread();
    assert!(platform.block_on(async { may_wait() }));
    assert!(!platform.keep_reactor().drive(async { may_wait() }).unwrap(), "its other work would wait, too");
    assert!(platform.block_on(async { may_wait() }), "the thread does one call again");
    assert!(!may_wait());
}

/// The outcome of an operation.
struct ResultSender(std::sync::mpsc::Sender<i32>);

impl crate::reactor::io::Owner for ResultSender {
    fn completed(self: Box<Self>, result: i32) {
        self.0.send(result).unwrap();
    }
}

// rule: what a part of a thread's reactor leaves in flight has been submitted
// kept in: `product/linux-device/src/platform/visit.rs`
#[test]
fn a_part_submits_what_it_leaves_in_flight() {
    let Ok(reactors) = Reactors::start(1, IoChoice::Uring) else {
        return afflux_scratch::skipped!("this host has no io_uring");
    };
    let platform = reactors.platform();
    let (told, outcome) = channel();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let thread = platform.keep_reactor();
    let begin = async {
        let reactor = platform.current_reactor().unwrap();
        let io = crate::reactor::io::RingOperation::WaitReadable { fd: std::os::fd::AsRawFd::as_raw_fd(&ours) };
        // SAFETY: the socket lives until the outcome is there.
        assert!(unsafe { reactor.start(io, Box::new(ResultSender(told))) }.is_ok());
        reactor
    };
    let reactor = thread.drive(begin).unwrap();
    let was_submitted = reactor.has_handed_over();
    // A blocking call does not wait for it.
    assert_eq!(platform.block_on(async { 5 }), 5);
    std::io::Write::write_all(&mut &theirs, b"1").unwrap();
    drop(thread);
    assert!(was_submitted);
    assert!(outcome.try_recv().unwrap() >= 0, "the drop waits for it");
}

// rule: the operations of a poll on a caller's thread end with the call
// kept in: `product/linux-device/src/platform.rs`
#[test]
fn a_poll_that_needs_no_more_waits_for_what_it_has_started() {
    let Ok(reactors) = Reactors::start(1, IoChoice::Uring) else {
        return afflux_scratch::skipped!("this host has no io_uring");
    };
    let platform = reactors.platform();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    std::io::Write::write_all(&mut &theirs, b"1").unwrap();
    for panics in [false, true] {
        let (told, outcome) = channel();
        let mut work = std::pin::pin!(async {
            let reactor = platform.driving_reactor().unwrap();
            let io = crate::reactor::io::RingOperation::WaitReadable { fd: std::os::fd::AsRawFd::as_raw_fd(&ours) };
            // SAFETY: the socket lives until the outcome is there.
            assert!(unsafe { reactor.start(io, Box::new(ResultSender(told))) }.is_ok());
            assert!(!panics, "as asked for");
        });
        let polled = catch_unwind(AssertUnwindSafe(|| platform.poll_here(work.as_mut())));
        assert_eq!(polled.is_err(), panics);
        assert!(outcome.try_recv().unwrap() >= 0);
    }
    assert!(platform.driving_reactor().is_none(), "the thread polls no more");
}

// rule: a device whose thread the host holds keeps only its own tasks waiting
// kept in: `product/linux-device/src/platform.rs`
#[test]
fn a_held_thread_of_a_device_keeps_nobody_else_waiting() {
    let Ok(reactors) = Reactors::start(1, IoChoice::Uring) else {
        return afflux_scratch::skipped!("this host has no io_uring");
    };
    let platform = reactors.platform();
    let (release, held) = channel::<()>();
    platform.spawn_for_device("held", async move {
        let _ = held.recv();
    });
    let (of_other, of_all) = (Letter::new(), Letter::new());
    let (post_other, post_all) = (Arc::clone(&of_other), Arc::clone(&of_all));
    platform.spawn_for_device("other", async move { post_other.post(2) });
    platform.spawn("all", async move { post_all.post(1) });
    assert_eq!(platform.block_on(of_all.receive()) + platform.block_on(of_other.receive()), 3);
    assert!(!reactors.try_stop_within(Duration::ZERO), "it is held");
    drop(release);
    // After the end there is no thread, and the task is dropped.
    let (ended, end) = channel::<()>();
    platform.spawn_for_device("late", async move { drop(ended) });
    assert!(end.recv().is_err());
}

#[test]
fn spawned_tasks_are_not_polled_inside_the_call() {
    let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let done = Letter::new();
    platform.spawn("outer", {
        let (platform, done) = (platform.clone(), Arc::clone(&done));
        async move {
            let polled = Arc::new(AtomicBool::new(false));
            platform.spawn("inner", {
                let polled = Arc::clone(&polled);
                async move { polled.store(true, Ordering::SeqCst) }
            });
            let inside = polled.load(Ordering::SeqCst);
            while !polled.load(Ordering::SeqCst) {
                platform.preemption_point().await;
            }
            done.post(inside);
        }
    });
    assert!(!platform.block_on(done.receive()));
}

#[test]
fn preemption_point_lets_the_others_run() {
    let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let (order, done) = (Arc::new(Mutex::new(Vec::new())), Letter::new());
    platform.spawn("start", {
        let (platform, order, done) = (platform.clone(), Arc::clone(&order), Arc::clone(&done));
        async move {
            for name in ["a", "b"] {
                let (platform_, order, done) = (platform.clone(), Arc::clone(&order), Arc::clone(&done));
                platform.spawn("step", async move {
                    for step in 0..3 {
                        order.lock().unwrap().push((step, name));
                        platform_.preemption_point().await;
                    }
                    if name == "b" {
                        done.post(());
                    }
                });
            }
        }
    });
    platform.block_on(done.receive());
    assert_eq!(*order.lock().unwrap(), [(0, "a"), (0, "b"), (1, "a"), (1, "b"), (2, "a"), (2, "b")]);
}

#[test]
fn the_longest_poll_of_a_task_is_told() {
    let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    let (platform, done) = (reactors.platform(), Letter::new());
    platform.spawn("long", {
        let (platform, done) = (platform.clone(), Arc::clone(&done));
        async move {
            let began = platform.now();
            let sum = (0..1_000_000_u64).fold(0, |sum, number| std::hint::black_box(sum ^ number));
            let worked_ns = platform.now().since(began);
            // The poll is noted after its end.
            platform.preemption_point().await;
            done.post((worked_ns, platform.longest_poll_ns(), sum));
        }
    });
    let (worked_ns, told_ns, _) = platform.block_on(done.receive());
    assert!(worked_ns > 0 && told_ns >= worked_ns, "{told_ns} of {worked_ns}");
}

#[test]
fn sleep_never_ends_early_and_in_order() {
    for choice in CHOICES {
        let reactors = Reactors::start(2, choice).unwrap();
        let platform = reactors.platform();
        let start = platform.now();
        let (left, done) = (Arc::new(AtomicU32::new(1_000)), Letter::new());
        for number in 0..1_000_u64 {
            let (left, done) = (Arc::clone(&left), Arc::clone(&done));
            let deadline = start.after((number * 7919 % 1_000) * 20_000);
            platform.spawn("sleeper", {
                let platform = platform.clone();
                async move {
                    platform.sleep_until(deadline).await;
                    assert!(platform.now() >= deadline);
                    if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                        done.post(());
                    }
                }
            });
        }
        platform.block_on(done.receive());
        assert!(platform.now().since(start) >= 999 * 20_000);
        let deadline = platform.now().after(3 * Nanos::MILLISECOND);
        platform.block_on(platform.sleep_until(deadline));
        assert!(platform.now() >= deadline);
    }
}

#[test]
fn sleep_works_under_a_foreign_executor() {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let deadline = platform.now().after(2 * Nanos::MILLISECOND);
    let mut sleep = Box::pin(platform.sleep_until(deadline));
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    while sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        std::thread::park();
    }
    assert!(platform.now() >= deadline);
}

#[test]
fn stopping_drops_tasks() {
    struct DropFlag(Arc<AtomicBool>);
    impl Drop for DropFlag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    for choice in CHOICES {
        let reactors = Reactors::start(2, choice).unwrap();
        let platform = reactors.platform();
        let dropped = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        for dropped in &dropped {
            let told = DropFlag(Arc::clone(dropped));
            platform.spawn("for ever", async move {
                std::future::pending::<()>().await;
                drop(told);
            });
        }
        drop(reactors);
        assert!(dropped.iter().all(|dropped| dropped.load(Ordering::SeqCst)));
        let late = Arc::new(AtomicBool::new(false));
        let told = DropFlag(Arc::clone(&late));
        platform.spawn("late", async move { drop(told) });
        assert!(late.load(Ordering::SeqCst), "a task for a stopped platform is dropped");
        assert_eq!(platform.block_on(async { 5 }), 5, "waiting still works");
    }
}

#[test]
fn counters_of_all_threads_are_summed() {
    let reactors = Reactors::start(2, IoChoice::Auto).unwrap();
    let other = Reactors::start(1, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (platform, other) = (platform.clone(), other.platform());
            std::thread::spawn(move || {
                for _ in 0..1_000 {
                    platform.local().count(Counter::SyncCalls, 1);
                    other.local().count(Counter::SyncCalls, 2);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(platform.counters().get(Counter::SyncCalls), 4_000);
    assert_eq!(other.platform().counters().get(Counter::SyncCalls), 8_000);
}

#[test]
fn random_differs_between_calls_and_threads() {
    let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let mut seen: Vec<u64> = (0..1_000).map(|_| platform.random_u64()).collect();
    let other = platform.clone();
    seen.extend(std::thread::spawn(move || (0..1_000).map(|_| other.random_u64()).collect::<Vec<_>>()).join().unwrap());
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 2_000);
}

#[test]
#[should_panic(expected = "block_on inside")]
fn block_on_inside_block_on_is_refused() {
    let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    platform.block_on(async { platform.block_on(async {}) });
}

#[test]
fn a_task_that_its_caller_waits_for_runs_where_the_caller_does() {
    let thread = || std::thread::current().id();
    for choice in CHOICES {
        let reactors = Reactors::start(2, choice).unwrap();
        let platform = reactors.platform();
        for _ in 0..4 {
            let (told, heard) = std::sync::mpsc::channel();
            let near = platform.clone();
            platform.spawn("caller", async move {
                let here = thread();
                near.spawn_near("near", async move { told.send(thread() == here).unwrap() });
            });
            assert!(heard.recv().unwrap());
        }
        // A task spawned from a thread that stops driving goes to a reactor thread.
        let (told, heard) = std::sync::mpsc::channel();
        platform.block_on(async { platform.spawn_near("near", async move { told.send(thread()).unwrap() }) });
        assert_ne!(heard.recv().unwrap(), thread());
    }
}
