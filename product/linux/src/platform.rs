//! The platform of real machines, and its reactor threads.
//!
//! Owns: the choice of how I/O is done, the reactor threads, the thread of tasks that go ahead of others, the counters,
//! this thread's reactor while it waits in `block_on`.
//! Does not own: what runs on the reactors.
//! Invariants: the number of reactors is fixed at start; a panic in a task ends the process, since
//! nobody else could go on with what it was doing, unless whoever started the reactors wants to be told instead.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use afflux_engine::counters::{Counters, Local};
use afflux_engine::{Nanos, Platform, WallNanos};
use rustix::process::setpriority_process;
use rustix::thread::gettid;

use crate::foreign::{self, Elsewhere, HeldWakes};
use crate::reactor::{Mail, Reactor, Remote, RingAbility, Sleep, SpareRings};
use crate::{clock, local, watch};

/// Most reactor threads: more than any machine has use for.
pub const REACTORS_MAX: usize = 256;

/// How nice the thread of tasks that go ahead of others is.
const AHEAD_NICE: i32 = -10;

/// How files and sockets are driven.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IoChoice {
    /// io_uring where the host has it, otherwise system calls.
    #[default]
    Auto,
    /// io_uring; starting fails where the host has none.
    Uring,
    /// poll(2) for sockets, worker threads for files.
    Syscalls,
}

/// Why a platform could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The number of reactors is out of range.
    #[error("{count} reactors cannot be started: 1 to {REACTORS_MAX} can")]
    Count {
        /// What was asked for.
        count: usize,
    },
    /// io_uring was asked for and cannot be had.
    #[error("io_uring cannot be used here: {reason}")]
    NoUring {
        /// What the host said.
        reason: String,
    },
    /// The host gave no thread or no descriptor.
    #[error("reactor {number} could not be started: {source}")]
    Thread {
        /// Which, from 0.
        number: usize,
        /// The host's answer.
        source: std::io::Error,
    },
}

/// Told of a panic in a task: which task, and what it said. The reactor goes on with its other tasks.
pub type OnPanic = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// A wait inside a task or inside another wait would stop the thread that both need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a wait inside a task, or inside another wait, would stop its thread")]
pub struct WaitInside;

/// The reactor threads of a platform. Dropping it (not on one of them) stops them: their tasks are
/// dropped, what is in flight is waited for, the threads are joined.
pub struct Reactors {
    platform: LinuxPlatform,
    threads: Vec<JoinHandle<()>>,
    /// Nothing is sent: it ends when the last thread has let go of its sender.
    ended: Mutex<Receiver<()>>,
}

/// The world of a Linux host. Cloning shares it.
#[derive(Clone)]
pub struct LinuxPlatform {
    shared: Arc<Shared>,
}

thread_local! {
    /// The reactors that this thread uses while it waits, one for each platform.
    static WAITING: RefCell<Vec<(Weak<Shared>, Rc<Reactor>)>> = const { RefCell::new(Vec::new()) };
}

struct Shared {
    /// Tells platforms of one process apart.
    number: u64,
    ability: Option<RingAbility>,
    /// Why io_uring is not used.
    without_ring: String,
    counters: Counters,
    reactors: Vec<Arc<Remote>>,
    /// The reactor of tasks that go ahead of others. It drives no files.
    ahead: Arc<Remote>,
    next_reactor: AtomicUsize,
    /// For threads that wait in `block_on`.
    spare_rings: Arc<SpareRings>,
    on_panic: Option<OnPanic>,
}

impl Reactors {
    /// Starts `count` reactor threads (1 to [`REACTORS_MAX`]) that do their I/O as `choice` says.
    pub fn start(count: usize, choice: IoChoice) -> Result<Self, StartError> {
        Self::start_as(count, choice, None)
    }

    /// The same, for whoever wants to outlive a panic in a task: `on_panic` is told, the task is gone.
    pub fn start_told(count: usize, choice: IoChoice, on_panic: OnPanic) -> Result<Self, StartError> {
        Self::start_as(count, choice, Some(on_panic))
    }

    fn start_as(count: usize, choice: IoChoice, on_panic: Option<OnPanic>) -> Result<Self, StartError> {
        if !(1..=REACTORS_MAX).contains(&count) {
            return Err(StartError::Count { count });
        }
        let reason = match (choice, RingAbility::probe()) {
            (IoChoice::Syscalls, _) => "as asked for".to_owned(),
            (IoChoice::Uring, Ok(ability)) => return Self::start_all(count, Some(ability), String::new(), on_panic),
            (IoChoice::Uring, Err(reason)) => return Err(StartError::NoUring { reason }),
            (IoChoice::Auto, Err(reason)) => reason,
            (IoChoice::Auto, Ok(ability)) => {
                match Self::start_all(count, Some(ability), String::new(), on_panic.clone()) {
                    Ok(reactors) => return Ok(reactors),
                    Err(error) => error.to_string(),
                }
            }
        };
        Self::start_all(count, None, reason, on_panic)
    }

    fn start_all(
        count: usize,
        ability: Option<RingAbility>,
        without_ring: String,
        on_panic: Option<OnPanic>,
    ) -> Result<Self, StartError> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let shared = Arc::new(Shared {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            ability,
            without_ring,
            counters: Counters::new(),
            reactors: (0..count).map(|_| Remote::new()).collect(),
            ahead: Remote::new(),
            next_reactor: AtomicUsize::new(0),
            spare_rings: Arc::new(SpareRings::new()),
            on_panic,
        });
        let (lives, ended) = channel();
        let mut reactors = Self { platform: LinuxPlatform { shared }, threads: Vec::new(), ended: Mutex::new(ended) };
        for number in 0..count {
            let remote = Arc::clone(&reactors.platform.shared.reactors[number]);
            let name = format!("afflux-{number}");
            let thread = reactors.platform.start_reactor(name, remote, ability, || (), lives.clone());
            reactors.threads.push(thread.map_err(|source| StartError::Thread { number, source })?);
        }
        let ahead = Arc::clone(&reactors.platform.shared.ahead);
        let thread = reactors.platform.start_reactor("afflux-ahead".to_owned(), ahead, None, go_first, lives);
        reactors.threads.push(thread.map_err(|source| StartError::Thread { number: count, source })?);
        Ok(reactors)
    }

    /// Stops them as dropping does, but waits no longer than so long for what is in flight. False: not all have ended;
    /// those that have not go on until the kernel has answered, which nobody can take back from it.
    #[must_use]
    pub fn stop_within(mut self, patience: Duration) -> bool {
        self.tell_to_stop();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let all_ended = ended.recv_timeout(patience) != Err(RecvTimeoutError::Timeout);
        if !all_ended {
            self.threads.retain(JoinHandle::is_finished);
        }
        all_ended
    }

    fn tell_to_stop(&self) {
        let Shared { reactors, ahead, spare_rings, .. } = &*self.platform.shared;
        for remote in reactors.iter().chain([ahead]) {
            let _ = remote.send(Mail::Run(Box::new(|reactor| reactor.stop())));
        }
        spare_rings.end();
    }

    /// The platform.
    pub fn platform(&self) -> LinuxPlatform {
        self.platform.clone()
    }
}

impl Drop for Reactors {
    fn drop(&mut self) {
        self.tell_to_stop();
        for thread in self.threads.drain(..) {
            // On a reactor's own thread it cannot be waited for; it ends after this.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl LinuxPlatform {
    /// Starts the thread of a reactor; `first` is the first that it does. `lives` goes with it.
    fn start_reactor(
        &self,
        name: String,
        remote: Arc<Remote>,
        ability: Option<RingAbility>,
        first: fn(),
        lives: Sender<()>,
    ) -> std::io::Result<JoinHandle<()>> {
        let platform = self.shared.number;
        let on_panic = self.shared.on_panic.clone();
        let (told, started) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            first();
            let _held = HeldWakes::new();
            let reactor = match Reactor::new(platform, remote, ability, None) {
                Ok(reactor) => reactor,
                Err(error) => return drop(told.send(Err(error))),
            };
            let _ = told.send(Ok(()));
            let entered = reactor.enter();
            // What is in flight has to end and the word to stop has to be heard, so it goes on after a panic.
            while let Err(panic) = catch_unwind(AssertUnwindSafe(|| reactor.run())) {
                match &on_panic {
                    Some(on_panic) => on_panic(reactor.running(), panic_text(panic.as_ref())),
                    None => give_up(reactor.running(), panic.as_ref()),
                }
            }
            drop(entered);
            drop(reactor);
            drop(lives);
        })?;
        match started.recv() {
            Ok(Ok(())) => Ok(thread),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(std::io::Error::other("it ended at once")),
        }
    }

    /// Polls `future` on this thread until it ends, and does the I/O that it starts meanwhile on this
    /// thread too. A future that is ready at once costs little more than its poll. What this thread's
    /// ring has in flight is completed when this returns, so it may wait for readahead.
    ///
    /// # Panics
    /// When this thread is a reactor's, or in `block_on` already.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.try_block_on(future)
            .unwrap_or_else(|_| panic!("block_on inside a task or inside block_on would stop its thread"))
    }

    /// As [`LinuxPlatform::block_on`], but where that would panic the future is dropped unpolled and the answer says so.
    pub fn try_block_on<F: Future>(&self, future: F) -> Result<F::Output, WaitInside> {
        let _held = HeldWakes::new();
        let reactor = self.waiting_reactor();
        let entered = reactor.try_enter().ok_or(WaitInside)?;
        let output = reactor.block_on(future);
        // What completes from here on may submit more: on the platform's reactors, or this thread
        // could be kept for ever.
        drop(entered);
        reactor.drain();
        Ok(output)
    }

    /// Does work that a task of another program awaits. The work never sees the task's waker: that one is woken where no
    /// lock is held, and a panic in it ends there.
    pub async fn for_foreign_task<T>(&self, work: impl Future<Output = T>) -> T {
        foreign::awaited(work, || -> Arc<dyn Elsewhere> { Arc::<Remote>::clone(self.next_reactor()) }).await
    }

    /// Gives back what this thread keeps for its next [`LinuxPlatform::block_on`]: a ring, if it ever did I/O there, which
    /// goes to the next thread that needs one. Otherwise that stays until the thread ends, or waits on another platform once this one is gone.
    pub fn forget_this_thread(&self) {
        let mine = WAITING.try_with(|waiting| {
            let mut waiting = waiting.borrow_mut();
            let at = waiting.iter().position(|(shared, _)| shared.as_ptr() == Arc::as_ptr(&self.shared))?;
            Some(waiting.swap_remove(at))
        });
        drop(mine);
    }

    /// Whether this thread waits in [`LinuxPlatform::block_on`], so that it may also wait for the host.
    pub fn waits_on_this_thread(&self) -> bool {
        self.current_reactor().is_some_and(|reactor| !reactor.stays())
    }

    /// Whether this thread is one of its reactors, or waits in [`LinuxPlatform::block_on`].
    pub fn drives_this_thread(&self) -> bool {
        self.current_reactor().is_some()
    }

    /// The reactor that this thread uses while it waits.
    fn waiting_reactor(&self) -> Rc<Reactor> {
        let made = || {
            let Shared { number, ability, spare_rings, .. } = &*self.shared;
            let made = Reactor::new(*number, Remote::new(), *ability, Some(Arc::downgrade(spare_rings)));
            made.unwrap_or_else(|_| unreachable!("only a thread that stays needs a descriptor"))
        };
        let kept = WAITING.try_with(|waiting| {
            let mut waiting = waiting.borrow_mut();
            let known = waiting.iter().find(|(shared, _)| shared.as_ptr() == Arc::as_ptr(&self.shared));
            if let Some((_, reactor)) = known {
                return Rc::clone(reactor);
            }
            waiting.retain(|(shared, _)| shared.strong_count() > 0);
            let reactor = made();
            waiting.push((Arc::downgrade(&self.shared), Rc::clone(&reactor)));
            reactor
        });
        // At the very end of a thread nothing is kept any more.
        kept.unwrap_or_else(|_| made())
    }

    /// How I/O is done here, for the log.
    pub fn describe(&self) -> String {
        let count = self.shared.reactors.len();
        let plural = if count == 1 { "" } else { "s" };
        match self.shared.ability {
            Some(_) => format!("io_uring, {count} reactor{plural}"),
            None => {
                format!("poll and worker threads ({}), {count} reactor{plural}", self.shared.without_ring)
            }
        }
    }

    /// How many reactors there are.
    pub fn reactors(&self) -> usize {
        self.shared.reactors.len()
    }

    /// Whether io_uring is used.
    pub(crate) fn uses_ring(&self) -> bool {
        self.shared.ability.is_some()
    }

    /// The reactor that drives this thread, if it is one of ours or waits in our `block_on`.
    pub(crate) fn current_reactor(&self) -> Option<Rc<Reactor>> {
        Reactor::current(self.shared.number)
    }

    /// The door of one of the reactors, each in turn.
    pub(crate) fn next_reactor(&self) -> &Arc<Remote> {
        let next = self.shared.next_reactor.fetch_add(1, Ordering::Relaxed);
        self.reactor(next)
    }

    /// The door of a reactor, counted round.
    pub(crate) fn reactor(&self, number: usize) -> &Arc<Remote> {
        &self.shared.reactors[number % self.shared.reactors.len()]
    }
}

impl Platform for LinuxPlatform {
    fn now(&self) -> Nanos {
        clock::monotonic()
    }

    fn wall_clock(&self) -> WallNanos {
        clock::wall()
    }

    fn random_u64(&self) -> u64 {
        clock::random()
    }

    fn sleep_until(&self, deadline: Nanos) -> impl Future<Output = ()> + Send + 'static {
        Sleep::new(deadline, Arc::clone(self.reactor(0)))
    }

    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        spawn_on(self.next_reactor(), name, task);
    }

    fn spawn_near(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        match Reactor::current(self.shared.number).filter(|reactor| reactor.stays()) {
            Some(reactor) => reactor.add_task(name, Box::pin(task)),
            None => self.spawn(name, task),
        }
    }

    /// On a thread of their own: a reactor's other tasks may compute for long, such as a reader that finds all it reads
    /// read ahead. The thread goes before others of the process where the host lets it.
    fn spawn_ahead(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        spawn_on(&self.shared.ahead, name, task);
    }

    fn preemption_point(&self) -> impl Future<Output = ()> + Send + 'static {
        YieldOnce { yielded: false }
    }

    fn unwatched_ns(&self) -> u64 {
        watch::unwatched_ns()
    }

    #[inline]
    fn local(&self) -> &Local {
        local::of(self.shared.number, &self.shared.counters)
    }

    fn counters(&self) -> &Counters {
        &self.shared.counters
    }
}

/// Adds a task to a reactor.
fn spawn_on(remote: &Remote, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
    let add = Mail::Run(Box::new(move |reactor: &Rc<Reactor>| reactor.add_task(name, Box::pin(task))));
    // A platform that has stopped drops its tasks; this one is dropped a little earlier.
    drop(remote.send(add));
}

/// Has this thread go before others of the process. Whoever may not raise a thread above others goes on as it is.
fn go_first() {
    let _ = setpriority_process(Some(gettid()), AHEAD_NICE);
}

struct YieldOnce {
    yielded: bool,
}

impl Future for YieldOnce {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// What a panic said.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// Ends the process after a panic on a reactor, and says so where it is not captured.
fn give_up(task: &str, panic: &(dyn Any + Send)) -> ! {
    let text = panic_text(panic);
    let text = format!("afflux: panic in task '{task}': {text}\n");
    let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
    std::process::abort()
}

#[cfg(test)]
mod tests;
