//! The reactor: one thread's tasks, timers, sockets and files, driven together.
//!
//! Owns: its thread's tasks and timers, the wakers of tasks, the ring or poller, operations in flight.
//! Does not own: threads (`platform` starts them), the meaning of operations (devices, connections).
//! Invariants: only its own thread uses a reactor, except for its `Remote`. An operation's owner lives until the kernel
//! has reported it. Nothing of the reactor is borrowed while a task is polled or an owner gets its outcome. A wake on
//! the reactor's own thread makes no system call. A thread that waits for one file operation alone, and does not stay,
//! makes the call itself. A thread whose ring the kernel refuses goes on with system calls.

pub mod io;
mod mailbox;
mod poller;
mod ring;
mod sleep;
mod timers;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use afflux_engine::{Nanos, Recycler};

use self::io::{Owner, RingOperation};
use self::mailbox::Mailbox;
use self::poller::Poller;
use self::ring::Ring;
use self::timers::Timers;
use crate::clock;
use crate::foreign_wakers::{DueWake, WakeThread, make_wakes};
use crate::reactor::io::SlotTable;
use crate::watch::ReportedLook;

pub(crate) use self::ring::RingAbility;
pub use self::sleep::Sleep;

/// Tasks polled in one round before the reactor checks sockets and files again.
const POLLS_A_ROUND: usize = 256;
/// Completions reported in one round. The woken tasks mostly submit more. With a larger number, a disk that completes
/// many requests at once would be idle until the last of them was reported.
const REPORTS_A_ROUND: usize = 8;

/// Most idle rings of ended threads: enough for a server with a thread for each request, few enough to leave idle.
pub(crate) const RINGS_POOLED: usize = 32;

/// Rings of ended threads, for threads that wait later. Nothing is in flight in such a ring, and it hears no doorbell.
/// A program may start a new thread for each request. The setup and removal of a ring cost the host more than several
/// reads of 4 KiB.
pub(crate) type SpareRings = Recycler<Ring>;

/// A task of a reactor, pinned on the heap.
pub type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

/// A thread's reactor. Used through an `Rc`, by that thread alone.
pub struct Reactor {
    pub(crate) remote: Arc<Remote>,
    /// The number of the platform it belongs to.
    platform: u64,
    /// The kind of ring to make, if any.
    ability: Option<RingAbility>,
    drives: Drives,
    /// A visitor waits for one call, and nothing else waits meanwhile.
    is_one_call: Cell<bool>,
    /// Values that hold a visitor's operations in flight between two waits.
    users: Cell<u32>,
    /// Made when first needed.
    driver: RefCell<Option<Driver>>,
    operations: RefCell<SlotTable<Box<dyn Owner>>>,
    /// The only operation of a thread that waits for it, not begun yet, and its key.
    lone: Cell<Option<(usize, RingOperation)>>,
    reaped: RefCell<VecDeque<(u64, i32)>>,
    mail: RefCell<Vec<Mail>>,
    tasks: RefCell<SlotTable<Task>>,
    ready: RefCell<VecDeque<Arc<TaskWake>>>,
    /// Tasks that woke themselves while they were polled: they are ready in the next round.
    again: RefCell<VecDeque<Arc<TaskWake>>>,
    /// The key of the task that is being polled.
    polled: Cell<Option<usize>>,
    timers: RefCell<Timers>,
    root: Arc<TaskWake>,
    root_waker: Waker,
    root_ready: Cell<bool>,
    stopping: Cell<bool>,
    running: Cell<&'static str>,
    /// The time of its last check for completions.
    looked: Cell<Nanos>,
    /// The earliest time at which completions may have arrived unseen; none if they were seen at once.
    there_since: Cell<Option<Nanos>>,
}

/// The thread that a reactor drives, and until when.
pub(crate) enum Drives {
    /// All the time, for tasks of all devices and connections. Their longest poll is noted.
    Shared(Arc<LongestPoll>),
    /// All the time, for the tasks of one device. These alone wait while a call of the host holds the thread.
    OneDevice,
    /// Until the end of one wait. The ring comes from here, and goes back at the thread's end.
    Visitor(Weak<SpareRings>),
}

/// The longest poll of a task: tasks of the same thread have waited for so long. A thread that the host does not run
/// counts, too.
#[derive(Default)]
pub(crate) struct LongestPoll(AtomicU64);

impl LongestPoll {
    pub(crate) fn ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn note(&self, ns: u64) {
        if ns > self.ns() {
            self.0.fetch_max(ns, Ordering::Relaxed);
        }
    }
}

enum Driver {
    Ring(Box<Ring>),
    Poller(Poller),
}

struct Task {
    name: &'static str,
    /// Taken out while it is polled.
    future: Option<TaskFuture>,
    wake: Arc<TaskWake>,
}

/// Names an operation in flight on its reactor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(usize);

thread_local! {
    static CURRENT: RefCell<Option<Rc<Reactor>>> = const { RefCell::new(None) };
}

impl Reactor {
    /// A reactor for this thread. `ability` says whether it may use io_uring. A thread that stays
    /// gets its doorbell and its ring now, and the error names the refused one. Other threads get them when they first
    /// start an operation, or do without.
    pub(crate) fn new(
        platform: u64,
        remote: Arc<Remote>,
        ability: Option<RingAbility>,
        drives: Drives,
    ) -> std::io::Result<Rc<Self>> {
        let _ = remote.0.thread.set(std::thread::current());
        let root = TaskWake::new(ROOT, &remote);
        let reactor = Rc::new(Self {
            root_waker: root.waker(),
            root,
            remote,
            platform,
            ability,
            drives,
            is_one_call: Cell::new(true),
            users: Cell::new(0),
            driver: RefCell::new(None),
            operations: RefCell::new(SlotTable::new()),
            lone: Cell::new(None),
            reaped: RefCell::default(),
            mail: RefCell::default(),
            tasks: RefCell::new(SlotTable::new()),
            ready: RefCell::default(),
            again: RefCell::default(),
            polled: Cell::new(None),
            timers: RefCell::default(),
            root_ready: Cell::new(false),
            stopping: Cell::new(false),
            running: Cell::new(""),
            looked: Cell::new(clock::monotonic()),
            there_since: Cell::new(None),
        });
        if reactor.is_lasting() {
            reactor.remote.0.make_doorbell()?;
            *reactor.driver() = Some(reactor.make_driver()?);
        }
        Ok(reactor)
    }

    /// Calls `with` on the reactor that drives this thread now, if one does. `with` must not run
    /// code of tasks or owners.
    pub fn with_current<R>(with: impl FnOnce(&Rc<Reactor>) -> R) -> Option<R> {
        CURRENT.try_with(|current| current.borrow().as_ref().map(with)).ok().flatten()
    }

    /// The reactor that drives this thread now, if it is the platform's.
    pub(crate) fn current(platform: u64) -> Option<Rc<Self>> {
        Self::with_current(|reactor| (reactor.platform == platform).then(|| Rc::clone(reactor))).flatten()
    }

    /// Makes this the thread's current reactor until the guard is dropped.
    ///
    /// # Panics
    /// If the thread already has a reactor.
    pub(crate) fn enter(self: &Rc<Self>) -> ReactorEntered {
        self.try_enter().unwrap_or_else(|| panic!("a reactor's thread has a reactor already"))
    }

    /// Like [`Reactor::enter`], but returns `None` instead of a panic.
    pub(crate) fn try_enter(self: &Rc<Self>) -> Option<ReactorEntered> {
        let entered = CURRENT.try_with(|current| {
            let mut current = current.borrow_mut();
            current.is_none().then(|| {
                *current = Some(Rc::clone(self));
                ReactorEntered
            })
        });
        // At the very end of a thread it cannot have a reactor any more either.
        entered.ok().flatten()
    }

    /// Whether its thread drives it all the time, and not only until the end of one wait.
    pub(crate) fn is_lasting(&self) -> bool {
        !matches!(self.drives, Drives::Visitor(_))
    }

    /// Whether work for several devices, or for connections, waits while a call of the host holds its thread.
    pub(crate) fn is_shared(&self) -> bool {
        match self.drives {
            Drives::Shared(_) => true,
            Drives::OneDevice => false,
            Drives::Visitor(_) => !self.is_one_call.get(),
        }
    }

    /// Whether its thread waits for one call, and may also wait for it in the host.
    pub(crate) fn is_for_one_call(&self) -> bool {
        !self.is_lasting() && self.is_one_call.get()
    }

    /// From now on a visitor waits for one call, or drives many.
    pub(crate) fn drive_one_call(&self, is_one: bool) {
        self.is_one_call.set(is_one);
    }

    /// Whether the thread comes back for operations still in flight.
    pub(crate) fn is_retained(&self) -> bool {
        self.users.get() > 0
    }

    /// One more value holds the operations in flight.
    pub(crate) fn retain(&self) {
        self.users.update(|users| users + 1);
    }

    /// One value less holds the operations in flight. The last one waits for them.
    pub(crate) fn release(self: &Rc<Self>) {
        self.users.update(|users| users - 1);
        if !self.is_retained() {
            self.drain();
        }
    }

    /// The task that is being polled.
    pub(crate) fn running(&self) -> &'static str {
        self.running.get()
    }

    /// Whether nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.operations.borrow().len() == 0
    }

    /// Adds a task; it is polled in a later round.
    pub fn add_task(&self, name: &'static str, future: TaskFuture) {
        let mut tasks = self.tasks.borrow_mut();
        let wake = TaskWake::new(tasks.next_key(), &self.remote);
        wake.scheduled.store(true, Ordering::Relaxed);
        let key = tasks.insert(Task { name, future: Some(future), wake: Arc::clone(&wake) });
        debug_assert_eq!(key, wake.key);
        drop(tasks);
        self.ready.borrow_mut().push_back(wake);
    }

    /// Starts an operation; `owner` gets its outcome. Gives `owner` back if this thread's driver cannot do it (file
    /// operations without io_uring).
    ///
    /// # Safety
    /// The pointers in `io`, and its descriptor, are `owner`'s and stay valid while it lives.
    pub unsafe fn start<O: Owner + 'static>(&self, io: RingOperation, owner: Box<O>) -> Result<Token, Box<O>> {
        if self.is_idle() {
            self.looked.set(clock::monotonic());
            if self.may_do_alone(&io) {
                let key = self.operations.borrow_mut().insert(owner);
                self.lone.set(Some((key, io)));
                return Ok(Token(key));
            }
        }
        if !self.made_driver().check_support(&io) {
            return Err(owner);
        }
        self.try_queue_lone();
        let token = self.operations.borrow_mut().insert(owner);
        // SAFETY: the owner stays in `operations` until the token is reported.
        unsafe { self.made_driver().start(token as u64, &io) };
        Ok(Token(token))
    }

    /// Whether this thread may do the operation with a system call, once it has nothing else to do: nothing else may
    /// need the thread before the operation has ended.
    fn may_do_alone(&self, io: &RingOperation) -> bool {
        self.is_for_one_call()
            && io.is_about_a_file()
            && self.timers.borrow().earliest().is_none()
            && self.tasks.borrow().len() == 0
    }

    /// Whether this thread can only wait for its lone operation.
    fn has_only_lone(&self) -> bool {
        let lone = self.lone.take();
        let has_lone = lone.is_some();
        self.lone.set(lone);
        has_lone
            && !self.root_ready.get()
            && self.ready.borrow().is_empty()
            && self.timers.borrow().earliest().is_none()
    }

    /// Leaves the lone operation to the driver. Returns whether there was one that the driver takes.
    fn try_queue_lone(&self) -> bool {
        let Some((key, io)) = self.lone.take() else { return false };
        let mut driver = self.made_driver();
        let takes = driver.check_support(&io);
        if takes {
            // SAFETY: as in `start`.
            unsafe { driver.start(key as u64, &io) };
        } else {
            self.lone.set(Some((key, io)));
        }
        takes
    }

    /// Does the lone operation, if there is one. A system call takes the kernel less than a ring does, as long as there
    /// is one operation.
    fn try_lone(&self) -> bool {
        let Some((key, io)) = self.lone.take() else { return false };
        // SAFETY: the owner, which has the pointers and the descriptor, is in `operations` until the key is reported.
        let result = unsafe { io.perform() };
        self.reaped.borrow_mut().push_back((key as u64, result));
        true
    }

    /// Submits started operations now, not at the end of the round: for operations that take the kernel long while this
    /// thread computes.
    pub(crate) fn submit(&self) {
        self.try_queue_lone();
        if let Some(driver) = self.driver().as_mut() {
            driver.submit();
        }
        self.leave_refused_ring();
    }

    /// Leaves a refused ring: system calls do the untaken operations.
    fn leave_refused_ring(&self) {
        let mut driver = self.driver();
        let Some(ring) = driver.take_if(|driver| matches!(driver, Driver::Ring(ring) if ring.is_refused())) else {
            return;
        };
        let Driver::Ring(mut ring) = ring else { unreachable!("only a ring is left") };
        let untaken = ring.take_untaken();
        let driver = driver.insert(Driver::Poller(Poller::after(ring)));
        for (token, io) in untaken {
            if io.is_about_a_file() {
                // SAFETY: the owner of the pointers and the descriptor is in `operations` until the token is reported,
                // and the kernel never took the operation.
                let result = unsafe { io.perform() };
                self.reaped.borrow_mut().push_back((token, result));
            } else {
                // SAFETY: as above.
                unsafe { driver.start(token, &io) };
            }
        }
    }

    /// Whether all started operations were submitted.
    #[cfg(test)]
    pub(crate) fn has_handed_over(&self) -> bool {
        match self.driver().as_mut() {
            Some(Driver::Ring(ring)) => ring.check_submitted(),
            _ => true,
        }
    }

    /// Asks the driver to end an operation soon.
    pub fn cancel(&self, token: Token) {
        if let Some(driver) = self.driver().as_mut() {
            driver.cancel(token.0 as u64);
        }
    }

    fn driver(&self) -> std::cell::RefMut<'_, Option<Driver>> {
        self.driver.borrow_mut()
    }

    fn made_driver(&self) -> std::cell::RefMut<'_, Driver> {
        // A thread whose ring is refused does without.
        let made = || self.make_driver().unwrap_or_else(|_| Driver::Poller(Poller::default()));
        std::cell::RefMut::map(self.driver(), |driver| driver.get_or_insert_with(made))
    }

    fn make_driver(&self) -> std::io::Result<Driver> {
        let Some(ability) = self.ability else { return Ok(Driver::Poller(Poller::default())) };
        let mut ring = match self.spare().and_then(|spare| spare.take()) {
            Some(ring) => ring,
            None => Ring::new(ability, self.is_lasting() || self.is_retained())?,
        };
        ring.listen(self.remote.0.make_doorbell()?);
        Ok(Driver::Ring(Box::new(ring)))
    }

    /// The spare rings, if they are for this thread and the platform still exists.
    fn spare(&self) -> Option<Arc<SpareRings>> {
        if let Drives::Visitor(spare) = &self.drives { spare.upgrade() } else { None }
    }

    /// Polls `future` until it ends, and drives this thread's operations and timers meanwhile.
    pub(crate) fn block_on<F: Future>(self: &Rc<Self>, future: F) -> F::Output {
        let mut context = Context::from_waker(&self.root_waker);
        let mut future = std::pin::pin!(future);
        loop {
            self.root_ready.set(false);
            if self.root.scheduled.load(Ordering::Relaxed) {
                self.root.scheduled.swap(false, Ordering::AcqRel);
            }
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            // At least once: a future that wakes itself waits for tasks, timers and operations, too.
            loop {
                self.step();
                if self.root_ready.get() {
                    break;
                }
            }
        }
    }

    /// Runs rounds until [`Reactor::stop`], then drops its tasks and ends its operations.
    pub(crate) fn run(self: &Rc<Self>) {
        while !self.stopping.get() {
            self.round();
        }
        for mail in self.remote.0.close() {
            match mail {
                Mail::Make(due) => due.make(),
                // The drop of unread mail informs its sender: a request in it completes as lost.
                Mail::Wake(_) | Mail::Run(_) => drop(mail),
            }
        }
        loop {
            let key = self.tasks.borrow().any_key();
            let Some(task) = key.and_then(|key| self.tasks.borrow_mut().remove(key)) else { break };
            drop(task);
        }
        self.drain();
    }

    /// Ends [`Reactor::run`] after this round.
    pub(crate) fn stop(&self) {
        self.stopping.set(true);
    }

    /// Waits until nothing is in flight.
    pub(crate) fn drain(self: &Rc<Self>) {
        while !self.is_idle() {
            self.drive(None);
        }
    }

    /// A round, or the lone operation alone.
    fn step(self: &Rc<Self>) {
        if self.has_only_lone() {
            make_wakes();
            self.drive(None);
        } else {
            self.round();
        }
    }

    fn round(self: &Rc<Self>) {
        self.read_mail();
        self.fire_timers();
        self.poll_tasks();
        // Before the thread waits.
        make_wakes();
        let told = self.reaped.borrow().is_empty();
        let busy = !told || !self.ready.borrow().is_empty() || self.root_ready.get() || self.stopping.get();
        if busy || !self.remote.0.try_prepare_to_wait() {
            self.drive(Some(Duration::ZERO));
        } else {
            let due = self.timers.borrow().earliest();
            let wait = due.map(|due| Duration::from_nanos(due.since(clock::monotonic())));
            self.drive(wait);
        }
        make_wakes();
    }

    fn read_mail(self: &Rc<Self>) {
        let mut mail = self.mail.take();
        self.remote.0.take(&mut mail);
        for mail in mail.drain(..) {
            match mail {
                Mail::Wake(wake) => self.ready.borrow_mut().push_back(wake),
                Mail::Run(run) => run(self),
                Mail::Make(due) => due.make(),
            }
        }
        self.mail.replace(mail);
    }

    fn fire_timers(&self) {
        if self.timers.borrow().earliest().is_none() {
            return;
        }
        let now = clock::monotonic();
        loop {
            let due = self.timers.borrow_mut().take_due(now);
            let Some(waker) = due else { return };
            waker.wake();
        }
    }

    /// Polls ready tasks, and the tasks that these wake: a call through several tasks waits for no round between them.
    fn poll_tasks(&self) {
        let noted = match &self.drives {
            Drives::Shared(longest) if !self.ready.borrow().is_empty() => Some(longest),
            _ => None,
        };
        let mut since = noted.map_or(Nanos(0), |_| clock::monotonic());
        for _ in 0..POLLS_A_ROUND {
            let next = self.ready.borrow_mut().pop_front();
            let Some(wake) = next else { break };
            if wake.key == ROOT {
                self.root_ready.set(true);
            } else {
                self.poll_task(&wake);
            }
            if let Some(longest) = noted {
                let began = std::mem::replace(&mut since, clock::monotonic());
                longest.note(since.since(began));
            }
        }
        self.ready.borrow_mut().append(&mut self.again.borrow_mut());
    }

    /// Records that a task of this reactor was woken on its own thread. If a task wakes itself, sockets and files are
    /// looked at before its next poll.
    fn woken(&self, wake: Arc<TaskWake>) {
        if wake.key == ROOT {
            return self.root_ready.set(true);
        }
        let queue = if self.polled.get() == Some(wake.key) { &self.again } else { &self.ready };
        queue.borrow_mut().push_back(wake);
    }

    fn poll_task(&self, wake: &Arc<TaskWake>) {
        let future = {
            let mut tasks = self.tasks.borrow_mut();
            // A wake may come late: its task has ended, and another may have its key.
            let task = tasks.get_mut(wake.key).filter(|task| Arc::ptr_eq(&task.wake, wake));
            task.and_then(|task| Some((task.name, task.future.take()?)))
        };
        let Some((name, mut future)) = future else { return };
        // An exchange: either this poll sees everything that the wakers did before, or a new wake comes.
        wake.scheduled.swap(false, Ordering::AcqRel);
        self.running.set(name);
        self.polled.set(Some(wake.key));
        let outcome = future.as_mut().poll(&mut Context::from_waker(&wake.waker()));
        self.polled.set(None);
        self.running.set("");
        if outcome.is_ready() {
            let task = self.tasks.borrow_mut().remove(wake.key);
            drop(future);
            drop(task);
        } else if let Some(task) = self.tasks.borrow_mut().get_mut(wake.key) {
            task.future = Some(future);
        }
    }

    /// Submits, waits, and reports completions to their owners. If there are many, some remain for the next round,
    /// which then only submits.
    fn drive(&self, wait: Option<Duration>) {
        if self.reaped.borrow().is_empty() {
            self.look(wait);
        } else {
            self.submit();
        }
        let _telling = if self.reaped.borrow().is_empty() {
            None
        } else {
            let away_ns = self.there_since.get().map_or(0, |since| clock::monotonic().since(since));
            // The remaining completions were there at this check.
            self.there_since.update(|since| since.or(Some(self.looked.get())));
            Some(ReportedLook::after(away_ns))
        };
        for _ in 0..REPORTS_A_ROUND {
            let next = self.reaped.borrow_mut().pop_front();
            let Some((token, result)) = next else { return };
            let owner = self.operations.borrow_mut().remove(token as usize);
            let Some(owner) = owner else { unreachable!("operation {token} was reported twice") };
            owner.completed(result);
        }
    }

    /// Submits, waits, and takes completions.
    fn look(&self, wait: Option<Duration>) {
        let is_idle = self.is_idle();
        let waits = wait != Some(Duration::ZERO);
        // A timer does not wait for the lone operation.
        let left_lone = waits && wait.is_some() && self.try_queue_lone();
        let were_there = match self.driver().as_mut() {
            _ if waits && !left_lone && self.try_lone() => false,
            Some(driver) => driver.take_completions(&self.remote, wait, &mut self.reaped.borrow_mut()),
            None if !waits => false,
            None => {
                self.wait_without_driver(wait);
                false
            }
        };
        self.leave_refused_ring();
        self.remote.0.awake();
        if !is_idle {
            let looked = self.looked.replace(clock::monotonic());
            self.there_since.set(were_there.then_some(looked));
        }
    }

    /// A thread that only waits for others needs no ring.
    fn wait_without_driver(&self, wait: Option<Duration>) {
        Poller::default().take_completions(self.remote.0.doorbell.get(), wait, &mut VecDeque::new());
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        // Only a panic in `block_on` leaves operations in flight: the kernel still uses their memory.
        while !self.is_idle() {
            self.drive(None);
        }
        if let (Some(spare), Some(Driver::Ring(mut ring))) = (self.spare(), self.driver.get_mut().take()) {
            ring.stop_listening();
            if !ring.is_refused() {
                spare.try_keep(*ring);
            }
        }
        // A late wake and its `Remote` would hold each other alive for ever.
        drop(self.remote.0.close());
    }
}

/// While this lives, a reactor drives its thread.
pub(crate) struct ReactorEntered;

impl Drop for ReactorEntered {
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|current| current.borrow_mut().take());
    }
}

impl Driver {
    fn check_support(&mut self, io: &RingOperation) -> bool {
        match self {
            Self::Ring(ring) => ring.check_support(io),
            Self::Poller(poller) => poller.is_supported(io),
        }
    }

    /// # Safety
    /// The pointers in `io` stay valid until `token` was reported.
    unsafe fn start(&mut self, token: u64, io: &RingOperation) {
        match self {
            // SAFETY: the caller's promise.
            Self::Ring(ring) => unsafe { ring.start(token, io) },
            // SAFETY: the caller's promise.
            Self::Poller(poller) => unsafe { poller.start(token, io) },
        }
    }

    fn cancel(&mut self, token: u64) {
        match self {
            Self::Ring(ring) => ring.cancel(token),
            Self::Poller(poller) => poller.cancel(token),
        }
    }

    /// Submits started operations.
    fn submit(&mut self) {
        match self {
            Self::Ring(ring) => ring.submit(),
            // Operations that cannot be done at once wait for their sockets.
            Self::Poller(_) => {}
        }
    }

    /// Returns whether completions were there before it looked for them.
    fn take_completions(&mut self, remote: &Remote, wait: Option<Duration>, reaped: &mut VecDeque<(u64, i32)>) -> bool {
        match self {
            Self::Ring(ring) => ring.take_completions(wait, reaped),
            Self::Poller(poller) => {
                poller.take_completions(remote.0.doorbell.get(), wait, reaped);
                // Files are never polled.
                false
            }
        }
    }
}

/// The key of the future of `block_on`, which is in no table.
const ROOT: usize = usize::MAX;

/// Something to do on a reactor's thread.
type Errand = Box<dyn FnOnce(&Rc<Reactor>) + Send>;

/// A message of another thread to a reactor.
pub(crate) enum Mail {
    /// Poll a task.
    Wake(Arc<TaskWake>),
    /// Run a closure on the reactor's thread.
    Run(Errand),
    /// Wake a foreign task.
    Make(DueWake),
}

/// The reactor as other threads see it.
pub struct Remote(Mailbox<Mail>);

impl Remote {
    /// The `Remote` of a reactor that has not begun yet.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mailbox::new()))
    }

    /// Has the reactor do this on its thread. A reactor that has ended drops it.
    pub fn run(&self, errand: impl FnOnce(&Rc<Reactor>) + Send + 'static) {
        drop(self.send(Mail::Run(Box::new(errand))));
    }

    /// Leaves `mail`, or gives it back if the reactor has ended.
    pub(crate) fn send(&self, mail: Mail) -> Result<(), Mail> {
        self.0.send(mail)
    }
}

impl WakeThread for Remote {
    fn make(&self, due: DueWake) -> Result<(), DueWake> {
        match self.send(Mail::Make(due)) {
            Err(Mail::Make(due)) => Err(due),
            _ => Ok(()),
        }
    }
}

/// A task's waker: its reactor and its key there.
pub(crate) struct TaskWake {
    key: usize,
    remote: Arc<Remote>,
    /// Whether its poll is scheduled already.
    scheduled: AtomicBool,
}

impl TaskWake {
    fn new(key: usize, remote: &Arc<Remote>) -> Arc<Self> {
        Arc::new(Self { key, remote: Arc::clone(remote), scheduled: AtomicBool::new(false) })
    }

    fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }
}

impl Wake for TaskWake {
    fn wake(self: Arc<Self>) {
        // Acquire and release: the poll that follows sees everything that the waker did before.
        if self.scheduled.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut wake = Some(self);
        Reactor::with_current(|reactor| {
            if let Some(own) = wake.take_if(|wake| Arc::ptr_eq(&wake.remote, &reactor.remote)) {
                reactor.woken(own);
            }
        });
        if let Some(wake) = wake {
            let remote = Arc::clone(&wake.remote);
            // An ended reactor has dropped its tasks, so no task remains to be woken.
            let _ = remote.send(Mail::Wake(wake));
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.scheduled.load(Ordering::Acquire) {
            Arc::clone(self).wake();
        }
    }
}

#[cfg(test)]
mod tests;
