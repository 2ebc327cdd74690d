use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use afflux_engine::Nanos;

use super::*;

fn reactor() -> Rc<Reactor> {
    Reactor::new(0, Remote::new(), None, Drives::Visitor(Weak::new())).unwrap()
}

/// Polls a future once inside `reactor`.
fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(std::task::Waker::noop()))
}

#[test]
fn dropped_sleeps_leave_no_timer() {
    let reactor = reactor();
    let entered = reactor.enter();
    let later = clock::monotonic().after(1_000 * Nanos::SECOND);
    let mut sleeps: Vec<_> =
        (0..1_000).map(|number| Box::pin(Sleep::new(later.after(number), Remote::new()))).collect();
    for sleep in &mut sleeps {
        // Polled twice, it still has one timer.
        assert!(poll_once(sleep.as_mut()).is_pending());
        assert!(poll_once(sleep.as_mut()).is_pending());
    }
    assert_eq!(reactor.timers.borrow().len(), 1_000);
    assert_eq!(reactor.timers.borrow().earliest(), Some(later));
    sleeps.truncate(10);
    assert_eq!(reactor.timers.borrow().len(), 10);
    drop(sleeps);
    assert_eq!(reactor.timers.borrow().earliest(), None);
    drop(entered);
}

#[test]
fn a_sleep_dropped_elsewhere_is_forgotten_too() {
    let reactor = reactor();
    let entered = reactor.enter();
    let later = clock::monotonic().after(1_000 * Nanos::SECOND);
    let mut sleep = Box::pin(Sleep::new(later, Remote::new()));
    assert!(poll_once(sleep.as_mut()).is_pending());
    std::thread::spawn(move || drop(sleep)).join().unwrap();
    reactor.read_mail();
    assert_eq!(reactor.timers.borrow().len(), 0);
    drop(entered);
}

#[test]
fn what_a_task_wakes_is_polled_in_the_same_turn_and_one_that_wakes_itself_in_the_next() {
    let reactor = reactor();
    let entered = reactor.enter();
    let (waits, polls) = (Rc::new(RefCell::new(None)), Rc::new(Cell::new((0, 0))));
    reactor.add_task("waits", {
        let (waits, polls) = (Rc::clone(&waits), Rc::clone(&polls));
        Box::pin(std::future::poll_fn(move |cx| {
            polls.update(|(waiting, waking)| (waiting + 1, waking));
            *waits.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        }))
    });
    reactor.poll_tasks();
    assert_eq!(polls.get(), (1, 0));
    reactor.add_task("wakes it, and itself", {
        let polls = Rc::clone(&polls);
        Box::pin(std::future::poll_fn(move |cx| {
            polls.update(|(waiting, waking)| (waiting, waking + 1));
            waits.borrow().iter().for_each(std::task::Waker::wake_by_ref);
            cx.waker().wake_by_ref();
            Poll::Pending
        }))
    });
    reactor.poll_tasks();
    assert_eq!(polls.get(), (2, 1));
    reactor.poll_tasks();
    assert_eq!(polls.get(), (3, 2));
    drop(entered);
}

#[test]
fn a_future_that_wakes_itself_leaves_turns_to_tasks() {
    let reactor = reactor();
    let entered = reactor.enter();
    let (ended, mut polls) = (Rc::new(Cell::new(false)), 0);
    let own = Rc::clone(&ended);
    reactor.add_task("ends", Box::pin(async move { own.set(true) }));
    reactor.block_on(std::future::poll_fn(|cx| {
        polls += 1;
        assert!(polls < 10, "no turn has polled the task");
        cx.waker().wake_by_ref();
        if ended.get() { Poll::Ready(()) } else { Poll::Pending }
    }));
    drop(entered);
}

#[test]
fn tasks_that_wake_each_other_leave_the_turn_an_end() {
    let reactor = reactor();
    let entered = reactor.enter();
    let (wakers, polls) = (Rc::new(RefCell::new([None, None])), Rc::new(Cell::new(0)));
    for at in [0, 1] {
        let (wakers, polls) = (Rc::clone(&wakers), Rc::clone(&polls));
        reactor.add_task(
            "wakes the other",
            Box::pin(std::future::poll_fn(move |cx| {
                polls.update(|polls| polls + 1);
                wakers.borrow_mut()[at] = Some(cx.waker().clone());
                let other = wakers.borrow()[1 - at].clone();
                other.into_iter().for_each(std::task::Waker::wake);
                Poll::Pending
            })),
        );
    }
    reactor.poll_tasks();
    assert_eq!(polls.get(), POLLS_A_ROUND);
    assert!(!reactor.ready.borrow().is_empty(), "the other goes on in the next turn");
    drop(entered);
}

#[test]
fn a_wake_on_the_own_thread_leaves_no_mail() {
    let reactor = reactor();
    let entered = reactor.enter();
    let polls = Rc::new(Cell::new(0));
    let waker = Rc::new(RefCell::new(None));
    reactor.add_task("test", {
        let (polls, waker) = (Rc::clone(&polls), Rc::clone(&waker));
        Box::pin(std::future::poll_fn(move |cx| {
            polls.set(polls.get() + 1);
            *waker.borrow_mut() = Some(cx.waker().clone());
            if polls.get() < 3 { Poll::Pending } else { Poll::Ready(()) }
        }))
    });
    reactor.poll_tasks();
    let own = waker.borrow().clone().unwrap();
    own.wake_by_ref();
    own.wake_by_ref();
    assert_eq!(reactor.ready.borrow().len(), 1, "woken twice, polled once");
    assert!(reactor.remote.0.try_prepare_to_wait(), "nothing came by mail");
    reactor.remote.0.awake();
    reactor.poll_tasks();
    assert_eq!(polls.get(), 2);
    // From another thread it comes by mail, and only mail stops a wait.
    std::thread::spawn(move || own.wake()).join().unwrap();
    assert!(!reactor.remote.0.try_prepare_to_wait());
    reactor.read_mail();
    reactor.poll_tasks();
    assert_eq!(polls.get(), 3);
    // A wake after the task's end finds no task, even if its slot was given away.
    let others = Rc::new(Cell::new(0));
    let late = waker.borrow().clone().unwrap();
    reactor.add_task("other", {
        let others = Rc::clone(&others);
        Box::pin(std::future::poll_fn(move |_| {
            others.set(others.get() + 1);
            Poll::Pending
        }))
    });
    reactor.poll_tasks();
    late.wake();
    reactor.poll_tasks();
    assert_eq!(others.get(), 1);
    drop(entered);
}

/// Counts its drop and its outcome.
struct DropCounter(Arc<AtomicUsize>, Box<u8>, OwnedFd);

impl Owner for DropCounter {
    fn completed(self: Box<Self>, _result: i32) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn an_operation_keeps_its_memory_until_it_was_reported() {
    for ability in [None, RingAbility::probe().ok()] {
        let reactor = Reactor::new(0, Remote::new(), ability, Drives::Shared(Arc::default())).unwrap();
        let (receiver, sender) = std::os::unix::net::UnixStream::pair().unwrap();
        let told = Arc::new(AtomicUsize::new(0));
        let mut owner = Box::new(DropCounter(Arc::clone(&told), Box::new(0), receiver.into()));
        let fd = std::os::fd::AsRawFd::as_raw_fd(&owner.2);
        let io = RingOperation::Receive { fd, start: &raw mut *owner.1, len: 1 };
        // SAFETY: the byte and the descriptor are the owner's.
        let token = unsafe { reactor.start(io, owner) }.ok().unwrap();
        reactor.drive(Some(Duration::ZERO));
        assert_eq!((told.load(Ordering::SeqCst), Arc::strong_count(&told)), (0, 2));
        assert!(!reactor.is_idle());
        reactor.cancel(token);
        reactor.drain();
        assert_eq!((told.load(Ordering::SeqCst), Arc::strong_count(&told)), (1, 1));
        drop(sender);
    }
}

#[test]
fn more_operations_than_the_ring_has_entries() {
    // Each has a descriptor of its own, and a login may have 1,024.
    const OPERATIONS: usize = 400;
    for ability in [None, RingAbility::probe().ok()] {
        let reactor = Reactor::new(0, Remote::new(), ability, Drives::Shared(Arc::default())).unwrap();
        let told = Arc::new(AtomicUsize::new(0));
        let (receiver, sender) = std::os::unix::net::UnixStream::pair().unwrap();
        for _ in 0..OPERATIONS {
            let fd = receiver.try_clone().unwrap().into();
            let mut owner = Box::new(DropCounter(Arc::clone(&told), Box::new(0), fd));
            let fd = std::os::fd::AsRawFd::as_raw_fd(&owner.2);
            let io = RingOperation::Receive { fd, start: &raw mut *owner.1, len: 1 };
            // SAFETY: the byte and the descriptor are the owner's.
            assert!(unsafe { reactor.start(io, owner) }.is_ok());
        }
        std::io::Write::write_all(&mut &sender, &[1; OPERATIONS]).unwrap();
        reactor.drain();
        assert_eq!(told.load(Ordering::SeqCst), OPERATIONS);
    }
}

/// Receives a byte on a reactor of this thread; the reactor then waits for a message of another thread.
fn wait_with(spare: &Arc<SpareRings>, ability: RingAbility) {
    let remote = Remote::new();
    let reactor = Reactor::new(0, Arc::clone(&remote), Some(ability), Drives::Visitor(Arc::downgrade(spare))).unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let (receiver, sender) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut owner = Box::new(DropCounter(Arc::clone(&told), Box::new(0), receiver.into()));
    let fd = std::os::fd::AsRawFd::as_raw_fd(&owner.2);
    let io = RingOperation::Receive { fd, start: &raw mut *owner.1, len: 1 };
    // SAFETY: the byte and the descriptor are the owner's.
    assert!(unsafe { reactor.start(io, owner) }.is_ok());
    std::io::Write::write_all(&mut &sender, &[1]).unwrap();
    reactor.drain();
    assert_eq!(told.load(Ordering::SeqCst), 1);
    let woken = Cell::new(false);
    let waker = reactor.root_waker.clone();
    let other = std::thread::spawn(move || {
        // The doorbell rings only for a thread that sleeps.
        while !remote.0.is_asleep() {
            std::thread::yield_now();
        }
        waker.wake();
    });
    reactor.block_on(std::future::poll_fn(|_| if woken.replace(true) { Poll::Ready(()) } else { Poll::Pending }));
    other.join().unwrap();
}

#[test]
fn the_ring_of_a_thread_that_ends_is_the_next_ones() {
    let Ok(ability) = RingAbility::probe() else { return };
    let spare = Arc::new(SpareRings::new(RINGS_POOLED));
    for _ in 0..10 {
        std::thread::scope(|scope| scope.spawn(|| wait_with(&spare, ability)).join()).unwrap();
        assert_eq!(spare.count(), 1);
    }
    let taken = spare.take().unwrap();
    std::thread::scope(|scope| scope.spawn(|| wait_with(&spare, ability)).join()).unwrap();
    spare.try_keep(taken);
    assert_eq!(spare.count(), 2);
    let taken = spare.take().unwrap();
    spare.end();
    spare.try_keep(taken);
    assert_eq!(spare.count(), 0);
    std::thread::scope(|scope| scope.spawn(|| wait_with(&spare, ability)).join()).unwrap();
    assert_eq!(spare.count(), 0);
}

/// Starts a flush of a file.
fn start_sync(reactor: &Reactor, told: &Arc<AtomicUsize>) {
    let file = rustix::fs::memfd_create("synced", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let owner = Box::new(DropCounter(Arc::clone(told), Box::new(0), file));
    let io = RingOperation::Sync { fd: std::os::fd::AsRawFd::as_raw_fd(&owner.2), data_only: true };
    // SAFETY: the descriptor is the owner's.
    assert!(unsafe { reactor.start(io, owner) }.is_ok());
}

#[test]
fn a_thread_that_waits_for_one_file_operation_makes_the_call_itself() {
    let ability = RingAbility::probe().ok();
    let told = Arc::new(AtomicUsize::new(0));
    let waiting = || Reactor::new(0, Remote::new(), ability, Drives::Visitor(Weak::new())).unwrap();
    let uses_driver = |reactor: &Reactor| reactor.driver().is_some();

    let reactor = waiting();
    start_sync(&reactor, &told);
    reactor.drive(Some(Duration::ZERO));
    assert_eq!(told.load(Ordering::SeqCst), 0, "this may not wait");
    reactor.drain();
    assert_eq!((told.load(Ordering::SeqCst), uses_driver(&reactor)), (1, false));
    if ability.is_none() {
        return;
    }
    // Two at once, one for which the caller does not wait yet, and one beside a timer.
    start_sync(&reactor, &told);
    start_sync(&reactor, &told);
    reactor.drain();
    assert_eq!((told.load(Ordering::SeqCst), uses_driver(&reactor)), (3, true));
    let reactor = waiting();
    start_sync(&reactor, &told);
    reactor.submit();
    reactor.drain();
    assert_eq!((told.load(Ordering::SeqCst), uses_driver(&reactor)), (4, true));
    let reactor = waiting();
    let entered = reactor.enter();
    let mut sleep = Box::pin(Sleep::new(clock::monotonic().after(1_000 * Nanos::SECOND), Remote::new()));
    assert!(poll_once(sleep.as_mut()).is_pending());
    start_sync(&reactor, &told);
    reactor.drain();
    assert_eq!((told.load(Ordering::SeqCst), uses_driver(&reactor)), (5, true));
    drop((sleep, entered));
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let (reads, writes) = std::io::pipe().unwrap();
    (reads.into(), writes.into())
}

/// Waits until a pipe can be read; counts the end.
fn start_wait(reactor: &Reactor, told: &Arc<AtomicUsize>, pipe: &OwnedFd) -> Token {
    let file = pipe.try_clone().unwrap();
    let owner = Box::new(DropCounter(Arc::clone(told), Box::new(0), file));
    let io = RingOperation::WaitReadable { fd: std::os::fd::AsRawFd::as_raw_fd(&owner.2) };
    // SAFETY: the descriptor is the owner's.
    unsafe { reactor.start(io, owner) }.unwrap_or_else(|_| panic!("each driver takes it"))
}

/// The ring of a thread is gone, as after `close_range`.
fn lose_ring(reactor: &Reactor) {
    let Some(Driver::Ring(ring)) = &*reactor.driver() else { panic!("it has no ring") };
    let null = std::fs::File::open("/dev/null").unwrap();
    // SAFETY: the ring owns the descriptor, and closes what is there instead.
    let mut lost = unsafe { OwnedFd::from_raw_fd(ring.fd()) };
    rustix::io::dup2(&null, &mut lost).unwrap();
    std::mem::forget(lost);
}

#[test]
fn a_refused_ring_reports_what_it_took_and_the_thread_can_still_be_woken() {
    let Ok(ability) = RingAbility::probe() else { return afflux_scratch::skipped!("no io_uring here") };
    let refused = |errno: i32| crate::tests::refused_calls::try_refuse(libc::SYS_io_uring_enter, errno);
    let work = || {
        let reactor = Reactor::new(0, Remote::new(), Some(ability), Drives::Shared(Arc::default())).unwrap();
        let entered = reactor.enter();
        let told = Arc::new(AtomicUsize::new(0));
        let pipes: Vec<_> = (0..4).map(|_| pipe()).collect();
        let fill = |at: usize| assert_eq!(rustix::io::write(&pipes[at].1, &[1]), Ok(1));
        start_wait(&reactor, &told, &pipes[0].0);
        let cancelled = start_wait(&reactor, &told, &pipes[1].0);
        reactor.drive(Some(Duration::ZERO));
        if !refused(libc::EPERM) {
            return false;
        }
        // One is in the kernel, one is not.
        start_wait(&reactor, &told, &pipes[2].0);
        start_sync(&reactor, &told);
        reactor.drive(Some(Duration::ZERO));
        assert!(matches!(&*reactor.driver(), Some(Driver::Poller(_))));
        fill(0);
        fill(2);
        while told.load(Ordering::SeqCst) < 3 {
            reactor.drive(None);
        }
        // A message of another thread ends a wait.
        for _ in 0..3 {
            let (remote, seen) = (Arc::clone(&reactor.remote), Rc::new(Cell::new(false)));
            let (tell, heard) = std::sync::mpsc::channel();
            let sender = std::thread::spawn(move || {
                while !remote.0.is_asleep() {
                    std::thread::yield_now();
                }
                remote.run(move |_| tell.send(()).unwrap());
            });
            while !seen.get() {
                reactor.round();
                seen.set(heard.try_recv().is_ok());
            }
            sender.join().unwrap();
        }
        // The kernel ends this one by another call, or its pipe does.
        reactor.cancel(cancelled);
        fill(1);
        reactor.drain();
        assert_eq!(told.load(Ordering::SeqCst), 4);
        start_wait(&reactor, &told, &pipes[3].0);
        fill(3);
        reactor.drain();
        drop(entered);
        true
    };
    if !std::thread::scope(|scope| scope.spawn(work).join()).unwrap() {
        afflux_scratch::skipped!("this kernel takes no filter of calls");
    }
}

#[test]
fn a_thread_goes_on_without_its_ring_its_doorbell_and_poll() {
    let Ok(ability) = RingAbility::probe() else { return afflux_scratch::skipped!("no io_uring here") };
    let work = |ability: Option<RingAbility>| {
        let reactor = Reactor::new(0, Remote::new(), ability, Drives::Shared(Arc::default())).unwrap();
        let entered = reactor.enter();
        let told = Arc::new(AtomicUsize::new(0));
        let (reads, writes) = pipe();
        if ability.is_some() {
            start_sync(&reactor, &told);
            lose_ring(&reactor);
        } else if !crate::tests::refused_calls::try_refuse(libc::SYS_poll, libc::EPERM)
            || !crate::tests::refused_calls::try_refuse(libc::SYS_ppoll, libc::EPERM)
        {
            return false;
        } else {
            told.fetch_add(1, Ordering::SeqCst);
        }
        start_wait(&reactor, &told, &reads);
        rustix::io::write(&writes, &[1]).unwrap();
        reactor.drain();
        assert_eq!(told.load(Ordering::SeqCst), 2);
        // Nobody hears the doorbell any more.
        let doorbell = reactor.remote.0.doorbell.get().unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: the mailbox owns the descriptor, and closes what is there instead.
        let mut lost = unsafe { OwnedFd::from_raw_fd(std::os::fd::AsRawFd::as_raw_fd(doorbell)) };
        rustix::io::dup2(&null, &mut lost).unwrap();
        std::mem::forget(lost);
        let (remote, (tell, heard)) = (Arc::clone(&reactor.remote), std::sync::mpsc::channel());
        let sender = std::thread::spawn(move || remote.run(move |_| tell.send(()).unwrap()));
        while heard.try_recv().is_err() {
            reactor.round();
        }
        sender.join().unwrap();
        drop(entered);
        true
    };
    for ability in [Some(ability), None] {
        if !std::thread::scope(|scope| scope.spawn(|| work(ability)).join()).unwrap() {
            afflux_scratch::skipped!("this kernel takes no filter of calls");
        }
    }
}
