//! The platform of real machines, and its reactor threads.
//!
//! Owns: the choice of the I/O driver, the reactor threads, the thread for urgent tasks, the counters, the reactor of a
//! thread that waits in `block_on`; one thread for the flusher of each device, which the host may hold in a call; the
//! fence of all threads.
//! Does not own: the work on the reactors; the moments at which a fence is needed (the engine).
//! Invariants: the number of shared reactors is fixed at start. A panic in a task ends the process, since nothing else
//! can continue the task's work. A caller may start the reactors with a callback for panics instead.

mod visit;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use afflux_engine::counters::{Counters, Local};
use afflux_engine::{Nanos, Platform, WallNanos};
use rustix::process::setpriority_process;
use rustix::thread::gettid;

use crate::foreign_wakers::{self, DeferredWakes, WakeThread};
use crate::platform::visit::Visit;
use crate::reactor::{Drives, LongestPoll, Mail, RINGS_POOLED, Reactor, Remote, RingAbility, Sleep, SpareRings};
use crate::{clock, in_place, local, watch};

pub use self::visit::WaitInside;
pub use crate::platform::visit::RetainedReactor;

/// Most reactor threads: more than any machine can use.
pub const REACTORS_MAX: usize = 256;

/// The nice value of the thread for urgent tasks.
const AHEAD_NICE: i32 = -10;

/// How files and sockets are driven.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IoChoice {
    /// io_uring where the host has it, otherwise system calls.
    #[default]
    Auto,
    /// io_uring; the start fails if the host has none.
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
        /// The requested number.
        count: usize,
    },
    /// io_uring was requested and cannot be used.
    #[error("io_uring cannot be used here: {reason}")]
    NoUring {
        /// The host's answer.
        reason: String,
    },
    /// The host gave no thread or no descriptor.
    #[error("reactor {index} could not be started: {source}")]
    Thread {
        /// The index of the reactor.
        index: usize,
        /// The host's answer.
        source: std::io::Error,
    },
}

/// Called after a panic in a task with the task and the message. The reactor goes on with its other tasks.
pub type OnPanic = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// The reactor threads of a platform. The drop stops them: it drops their tasks, waits for operations in flight, and
/// joins the threads. Do not drop it on one of these threads.
pub struct Reactors {
    platform: LinuxPlatform,
    threads: Vec<JoinHandle<()>>,
    /// A channel without messages: it ends when the last thread has dropped its sender.
    ended: Mutex<Receiver<()>>,
}

/// The world of a Linux host. Cloning shares it.
#[derive(Clone)]
pub struct LinuxPlatform {
    shared: Arc<Shared>,
}

thread_local! {
    /// This thread's reactors for its waits, one for each platform.
    static WAITING: RefCell<Vec<(Weak<Shared>, Rc<Reactor>)>> = const { RefCell::new(Vec::new()) };
    /// Whether this thread polls work in [`LinuxPlatform::poll_here`].
    static POLLS_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Until it is dropped, this thread polls work that may wait in a system call.
struct PollsHere<'a> {
    platform: &'a LinuxPlatform,
    /// The thread enters its reactor after this. Otherwise the drop waits for the operations of the work, also after a
    /// panic: others may wait for the same pages.
    goes_on: bool,
}

impl<'a> PollsHere<'a> {
    fn begin(platform: &'a LinuxPlatform) -> Self {
        POLLS_HERE.set(true);
        Self { platform, goes_on: false }
    }
}

impl Drop for PollsHere<'_> {
    fn drop(&mut self) {
        POLLS_HERE.set(false);
        if !self.goes_on {
            self.platform.known_waiting_reactor().as_ref().inspect(|reactor| visit::leave(reactor));
        }
    }
}

struct Shared {
    /// Distinguishes platforms of one process.
    id: u64,
    ability: Option<RingAbility>,
    /// Why io_uring is not used.
    without_ring: String,
    counters: Counters,
    reactors: Vec<Arc<Remote>>,
    /// The reactor for urgent tasks. It drives no files.
    ahead: Arc<Remote>,
    of_devices: DeviceThreads,
    next_reactor: AtomicUsize,
    /// For threads that wait in `block_on`.
    spare_rings: Arc<SpareRings>,
    /// Of the tasks of all reactors that several devices and connections share.
    longest_poll: Arc<LongestPoll>,
    on_panic: Option<OnPanic>,
}

impl Reactors {
    /// Starts `count` reactor threads (1 to [`REACTORS_MAX`]) that do their I/O as `choice` says.
    pub fn start(count: usize, choice: IoChoice) -> Result<Self, StartError> {
        Self::start_as(count, choice, None)
    }

    /// Like [`Reactors::start`], but a panic in a task calls `on_panic` and drops the task.
    pub fn start_with_panic_hook(count: usize, choice: IoChoice, on_panic: OnPanic) -> Result<Self, StartError> {
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
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let (lives, ended) = channel();
        let shared = Arc::new(Shared {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            ability,
            without_ring,
            counters: Counters::new(),
            reactors: (0..count).map(|_| Remote::new()).collect(),
            ahead: Remote::new(),
            of_devices: DeviceThreads::new(lives.clone()),
            next_reactor: AtomicUsize::new(0),
            spare_rings: Arc::new(SpareRings::new(RINGS_POOLED)),
            longest_poll: Arc::default(),
            on_panic,
        });
        let mut reactors = Self { platform: LinuxPlatform { shared }, threads: Vec::new(), ended: Mutex::new(ended) };
        for index in 0..count {
            let remote = Arc::clone(&reactors.platform.shared.reactors[index]);
            let name = format!("afflux-{index}");
            let drives = Drives::Shared(Arc::clone(&reactors.platform.shared.longest_poll));
            let thread = reactors.platform.start_reactor(name, remote, drives, ability, || (), lives.clone());
            reactors.threads.push(thread.map_err(|source| StartError::Thread { index, source })?);
        }
        let ahead = Arc::clone(&reactors.platform.shared.ahead);
        let drives = Drives::Shared(Arc::clone(&reactors.platform.shared.longest_poll));
        let thread = reactors.platform.start_reactor("afflux-ahead".to_owned(), ahead, drives, None, go_first, lives);
        reactors.threads.push(thread.map_err(|source| StartError::Thread { index: count, source })?);
        Ok(reactors)
    }

    /// Stops the threads as the drop does, but waits at most `patience` for operations in flight. Returns false if some
    /// threads have not ended. They end once the kernel has answered; the operations cannot be withdrawn.
    #[must_use]
    pub fn try_stop_within(mut self, patience: Duration) -> bool {
        self.request_stop();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let all_ended = ended.recv_timeout(patience) != Err(RecvTimeoutError::Timeout);
        if !all_ended {
            self.threads.retain(JoinHandle::is_finished);
        }
        all_ended
    }

    fn request_stop(&mut self) {
        let Shared { reactors, ahead, of_devices, spare_rings, .. } = &*self.platform.shared;
        let (of_devices, threads) = of_devices.end();
        self.threads.extend(threads);
        for remote in reactors.iter().chain([ahead]).chain(&of_devices) {
            let _ = remote.send(Mail::Run(Box::new(|reactor| reactor.stop())));
        }
        spare_rings.end();
    }

    /// Platform of the tasks that run on these reactors.
    pub fn platform(&self) -> LinuxPlatform {
        self.platform.clone()
    }
}

impl Drop for Reactors {
    fn drop(&mut self) {
        self.request_stop();
        for thread in self.threads.drain(..) {
            // A reactor's own thread cannot be joined here; it ends after this.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl LinuxPlatform {
    /// The longest poll of a task since the start, on the threads that several devices and connections share: other
    /// tasks of the thread have waited for so long. A thread that the host does not run counts, too.
    pub fn longest_poll_ns(&self) -> u64 {
        self.shared.longest_poll.ns()
    }

    /// Starts the thread of a reactor; the thread first runs `first`. `lives` is dropped at its end.
    fn start_reactor(
        &self,
        name: String,
        remote: Arc<Remote>,
        drives: Drives,
        ability: Option<RingAbility>,
        first: fn(),
        lives: Sender<()>,
    ) -> std::io::Result<JoinHandle<()>> {
        let platform = self.shared.id;
        let on_panic = self.shared.on_panic.clone();
        let (told, started) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            first();
            let _held = DeferredWakes::new();
            let reactor = match Reactor::new(platform, remote, ability, drives) {
                Ok(reactor) => reactor,
                Err(error) => return drop(told.send(Err(error))),
            };
            let _ = told.send(Ok(()));
            let entered = reactor.enter();
            // After a panic it goes on: operations in flight have to end, and the stop must be received.
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

    /// Polls `future` to its end, and drives its I/O, both on this thread. A future that is ready at once costs little
    /// more than its poll. All operations in flight on this thread's ring complete before this returns, so it may wait
    /// for readahead. They do not if this thread has a [`RetainedReactor`].
    ///
    /// # Panics
    /// If this thread is a reactor's, or in `block_on` already.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.try_block_on(future)
            .unwrap_or_else(|_| panic!("block_on inside a task or inside block_on would stop its thread"))
    }

    /// As [`LinuxPlatform::block_on`], but instead of panicking it drops the future unpolled and returns an error.
    pub fn try_block_on<F: Future>(&self, future: F) -> Result<F::Output, WaitInside> {
        let _held = DeferredWakes::new();
        Ok(Visit::begin(self.waiting_reactor(), true)?.reactor.block_on(future))
    }

    /// Retains this thread's reactor, and what is in flight there, until the value is dropped.
    pub fn keep_reactor(&self) -> RetainedReactor {
        RetainedReactor::new(self.waiting_reactor())
    }

    /// Polls work once, on a thread that may wait in the host's system calls meanwhile. Work that needs nothing else
    /// has ended then, and no reactor was entered. Otherwise the caller goes on with [`LinuxPlatform::try_block_on`],
    /// which also drives the operations that the poll has started. A reactor's thread, and one that polls already, gets
    /// `Pending` without a poll: its other work would wait, too.
    pub fn poll_here<T>(&self, work: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        if self.is_driving_this_thread() || POLLS_HERE.get() {
            return Poll::Pending;
        }
        let mut polls = PollsHere::begin(self);
        let polled = work.poll(&mut Context::from_waker(Waker::noop()));
        polls.goes_on = polled.is_pending();
        polled
    }

    /// Does work that a task of another program awaits. The work never sees the task's waker: the waker is called where
    /// no lock is held, and a panic in it ends there.
    pub async fn for_foreign_task<T>(&self, work: Pin<&mut impl Future<Output = T>>) -> T {
        foreign_wakers::awaited(work, || -> Arc<dyn WakeThread> { Arc::<Remote>::clone(self.next_reactor()) }).await
    }

    /// Gives back this thread's ring, if it did I/O in [`LinuxPlatform::block_on`]; the next thread that needs a ring
    /// gets it. Otherwise the thread retains the ring until its end, or until a wait on another platform after the end
    /// of this one.
    pub fn forget_this_thread(&self) {
        let mine = WAITING.try_with(|waiting| {
            let mut waiting = waiting.borrow_mut();
            let at = waiting.iter().position(|(shared, _)| shared.as_ptr() == Arc::as_ptr(&self.shared))?;
            Some(waiting.swap_remove(at))
        });
        drop(mine);
    }

    /// Whether this thread is one of its reactors, or waits in [`LinuxPlatform::block_on`].
    pub fn is_driving_this_thread(&self) -> bool {
        self.current_reactor().is_some()
    }

    /// The reactor that drives this thread's operations. [`LinuxPlatform::poll_here`] runs before the thread enters it.
    pub(crate) fn driving_reactor(&self) -> Option<Rc<Reactor>> {
        self.current_reactor().or_else(|| POLLS_HERE.get().then(|| self.waiting_reactor()))
    }

    /// This thread's reactor for waits, once the thread has waited.
    fn known_waiting_reactor(&self) -> Option<Rc<Reactor>> {
        let known = |waiting: &RefCell<Vec<(Weak<Shared>, Rc<Reactor>)>>| {
            let waiting = waiting.borrow();
            let mine = waiting.iter().find(|(shared, _)| shared.as_ptr() == Arc::as_ptr(&self.shared));
            mine.map(|(_, reactor)| Rc::clone(reactor))
        };
        WAITING.try_with(known).ok().flatten()
    }

    /// This thread's reactor for waits.
    fn waiting_reactor(&self) -> Rc<Reactor> {
        let made = || {
            let Shared { id, ability, spare_rings, .. } = &*self.shared;
            let visits = Drives::Visitor(Arc::downgrade(spare_rings));
            let made = Reactor::new(*id, Remote::new(), *ability, visits);
            made.unwrap_or_else(|_| unreachable!("only a thread that stays needs a descriptor"))
        };
        self.known_waiting_reactor().unwrap_or_else(|| {
            let reactor = made();
            // At the very end of a thread nothing is retained any more.
            let _ = WAITING.try_with(|waiting| {
                let mut waiting = waiting.borrow_mut();
                waiting.retain(|(shared, _)| shared.strong_count() > 0);
                waiting.push((Arc::downgrade(&self.shared), Rc::clone(&reactor)));
            });
            reactor
        })
    }

    /// Does work outside the reactors. A panic in it is one in a task `name`.
    pub fn watch_panics<T>(&self, name: &str, work: impl FnOnce() -> T) -> Option<T> {
        match (catch_unwind(AssertUnwindSafe(work)), &self.shared.on_panic) {
            (Ok(result), _) => Some(result),
            (Err(panic), Some(on_panic)) => {
                on_panic(name, panic_text(panic.as_ref()));
                None
            }
            (Err(panic), None) => give_up(name, panic.as_ref()),
        }
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

    /// The number of reactors.
    pub fn reactors(&self) -> usize {
        self.shared.reactors.len()
    }

    /// Whether io_uring is used.
    pub(crate) fn is_on_ring(&self) -> bool {
        self.shared.ability.is_some()
    }

    /// Why io_uring is not used; `None` if it is.
    pub(crate) fn without_ring(&self) -> Option<&str> {
        if self.is_on_ring() { None } else { Some(&self.shared.without_ring) }
    }

    /// The platform's reactor on this thread: a reactor thread's own, or the one behind `block_on`.
    pub(crate) fn current_reactor(&self) -> Option<Rc<Reactor>> {
        Reactor::current(self.shared.id)
    }

    /// The next reactor's `Remote`, one after the other.
    pub(crate) fn next_reactor(&self) -> &Arc<Remote> {
        let next = self.shared.next_reactor.fetch_add(1, Ordering::Relaxed);
        self.reactor(next)
    }

    /// The `Remote` of a reactor, counted modulo their number.
    pub fn reactor(&self, number: usize) -> &Arc<Remote> {
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

    /// The device's tasks have a thread of their own. It begins their writes itself, where a shared reactor has another
    /// thread begin them.
    fn spawn_for_device(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let start = |remote, lives| {
            let (name, ability) = ("afflux-disk".to_owned(), self.shared.ability);
            self.start_reactor(name, remote, Drives::OneDevice, ability, || (), lives)
        };
        // Without a ring, other threads make the calls.
        match self.is_on_ring().then(|| self.shared.of_devices.add(start)).flatten() {
            Some(remote) => spawn_on(&remote, name, task),
            None => self.spawn(name, task),
        }
    }

    fn spawn_near(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        match Reactor::current(self.shared.id).filter(|reactor| reactor.is_lasting()) {
            Some(reactor) => reactor.add_task(name, Box::pin(task)),
            None if in_place::is_marked() => {
                // Most such tasks end here: without a wake-up of another thread.
                let mut task = Box::pin(task);
                if task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                    self.spawn(name, task);
                }
            }
            None => self.spawn(name, task),
        }
    }

    /// Urgent tasks have a thread of their own: a reactor's other tasks may compute for long, such as a reader whose
    /// pages are all read ahead. The thread has a higher priority than the process's others if the host allows it.
    fn spawn_ahead(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        spawn_on(&self.shared.ahead, name, task);
    }

    fn preemption_point(&self) -> impl Future<Output = ()> + Send + 'static {
        YieldOnce { yielded: false }
    }

    /// Whether this thread waits in [`LinuxPlatform::block_on`] or polls in [`LinuxPlatform::poll_here`], so that it
    /// may also wait for the host.
    fn may_wait_on_this_thread(&self) -> bool {
        POLLS_HERE.get() || self.current_reactor().is_some_and(|reactor| reactor.is_for_one_call())
    }

    fn unwatched_ns(&self) -> u64 {
        watch::unwatched_ns()
    }

    fn fence_all_threads(&self) -> Option<fn()> {
        fence_of_all_threads()
    }

    #[inline]
    fn local(&self) -> &Local {
        local::of(self.shared.id, &self.shared.counters)
    }

    fn counters(&self) -> &Counters {
        &self.shared.counters
    }
}

/// Adds a task to a reactor.
fn spawn_on(remote: &Remote, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
    let add = Mail::Run(Box::new(move |reactor: &Rc<Reactor>| reactor.add_task(name, Box::pin(task))));
    // A stopped platform drops its tasks; this one is dropped a little earlier.
    drop(remote.send(add));
}

/// Raises this thread's priority above the process's others. Without the right to do so, the thread goes on as it is.
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

/// The message of a panic.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// Ends the process after a panic on a reactor, with a message on the real standard error.
fn give_up(task: &str, panic: &(dyn Any + Send)) -> ! {
    let text = panic_text(panic);
    let text = format!("afflux: panic in task '{task}': {text}\n");
    let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
    std::process::abort()
}

/// The call, if the host has it (since Linux 4.14) and allows it.
pub(crate) fn fence_of_all_threads() -> Option<fn()> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered = REGISTERED.get_or_init(|| {
        let register = membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        register.and_then(|()| membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)).is_ok()
    });
    registered.then_some(fence)
}

/// # Panics
/// If the host refuses what it has allowed: a filter for system calls was installed later that lacks the call.
fn fence() {
    while let Err(error) = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
        // The kernel takes memory for the set of CPUs.
        assert!(error.raw_os_error() == Some(libc::ENOMEM), "membarrier was allowed and is refused now: {error}");
        std::thread::yield_now();
    }
}

fn membarrier(command: libc::c_int) -> io::Result<()> {
    let (flags, cpu): (libc::c_uint, libc::c_int) = (0, 0);
    // SAFETY: the call takes numbers only and changes no memory.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, command, flags, cpu) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The threads of a platform's devices.
struct DeviceThreads(Mutex<DeviceThreadsState>);

struct DeviceThreadsState {
    /// Each thread drops its copy at its end. None after the end.
    lives: Option<Sender<()>>,
    remotes: Vec<Arc<Remote>>,
    threads: Vec<JoinHandle<()>>,
}

impl DeviceThreads {
    fn new(lives: Sender<()>) -> Self {
        Self(Mutex::new(DeviceThreadsState { lives: Some(lives), remotes: Vec::new(), threads: Vec::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, DeviceThreadsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread with `start`. None after the end, or if the host gives no thread.
    fn add(
        &self,
        start: impl FnOnce(Arc<Remote>, Sender<()>) -> std::io::Result<JoinHandle<()>>,
    ) -> Option<Arc<Remote>> {
        let mut state = self.lock();
        let remote = Remote::new();
        let thread = start(Arc::clone(&remote), state.lives.clone()?).ok()?;
        state.threads.push(thread);
        state.remotes.push(Arc::clone(&remote));
        Some(remote)
    }

    /// No thread is started from now on. Returns those that were, for the caller to stop and to join.
    fn end(&self) -> (Vec<Arc<Remote>>, Vec<JoinHandle<()>>) {
        let mut state = self.lock();
        state.lives = None;
        (std::mem::take(&mut state.remotes), std::mem::take(&mut state.threads))
    }
}

#[cfg(test)]
mod tests;
