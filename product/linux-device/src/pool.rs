//! Threads for calls that block: opens, directory reads, and file I/O where there is no ring.
//!
//! Owns: its threads (started when needed, ended when idle), the callers that wait for a slot in the queue; when each
//! call began that a thread is making now, without a lock.
//! Does not own: the work; the tasks that wait for it; the order of work (`queue`), how long a call may take
//! (`device`).
//! Invariants: at most `threads_max` threads; at most `queue_max` pieces of work wait. Posted work does not count,
//! since its caller bounds it. Queued work runs, even if its waiter has gone. A stopped pool takes no work. While
//! queued work may have a thread, and a thread is free, a thread is coming to the queue.
//!
//! The thread that has been idle for the shortest time is woken first: its stack is still in the processor's cache. No
//! more threads are coming at a time than there are processors: a thread that takes work wakes the next if there is
//! more. So one thread does several short pieces in a row, and a blocking piece holds up nothing else.

mod call;
mod queue;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::{self, Thread};
use std::time::Duration;

use afflux_engine::Nanos;

use crate::foreign_wakers::{DeferredWakes, make_wakes};
use crate::pool::queue::WorkQueue;
use crate::{clock, in_place};

pub use self::call::{PoolCall, PoolWork};
pub use self::queue::Lane;

/// An idle thread ends after this long.
const IDLE: Duration = Duration::from_secs(10);

/// A piece of work for a thread of a pool.
pub enum PoolTask {
    /// Work in a box of its own.
    Posted(Box<dyn FnOnce() + Send>),
    /// Work with its memory elsewhere.
    Job(Arc<dyn Job>),
}

impl PoolTask {
    /// Work in a box of its own.
    pub fn posted(work: impl FnOnce() + Send + 'static) -> Self {
        Self::Posted(Box::new(work))
    }

    fn run(self) {
        match self {
            Self::Posted(work) => work(),
            Self::Job(job) => job.run(),
        }
    }
}

/// Work that retains its memory and may run again.
pub trait Job: Send + Sync {
    /// Runs it, on the thread that took it out of the queue.
    fn run(&self);
}

/// The result of an attempt to queue work.
enum Entrance {
    Queued,
    /// The queue is full; the next attempt uses this ticket.
    Waits(u64),
    /// The pool takes no more.
    Closed,
}

/// A bounded set of threads with a bounded queue. Clones share it; when the last clone is dropped, queued work still
/// runs and then the threads end.
#[derive(Clone)]
pub struct WorkerPool {
    owner: Arc<Owner>,
}

struct Owner(Arc<Inner>);

struct Inner {
    name: String,
    threads_max: usize,
    queue_max: usize,
    /// Most threads that may be coming to the queue.
    coming_max: usize,
    underway: Arc<Underway>,
    state: Mutex<PoolState>,
    /// Signalled when the last thread of a closed pool has ended.
    all_ended: Condvar,
}

struct PoolState {
    queue: WorkQueue<PoolTask>,
    threads: usize,
    /// Idle threads; the last of them is idle for the shortest time. The remover of a thread wakes it.
    idle: Vec<Thread>,
    /// Threads that were woken or started and have not looked at the queue since.
    coming: usize,
    /// Futures that wait for a slot, oldest first.
    waiting: BTreeMap<u64, Waker>,
    /// Futures that were granted a slot and have not used it yet: their slots are taken.
    granted: BTreeSet<u64>,
    next_ticket: u64,
    closed: bool,
}

impl WorkerPool {
    /// A pool of at most `threads_max` threads called `name`, with `queue_max` slots for work that no thread is free
    /// for; both at least 1 (0 counts as 1). Starts no thread yet.
    pub fn new(name: &str, threads_max: usize, queue_max: usize) -> Self {
        Self {
            owner: Arc::new(Owner(Arc::new(Inner {
                name: name.to_owned(),
                threads_max: threads_max.max(1),
                queue_max: queue_max.max(1),
                coming_max: thread::available_parallelism().map_or(1, usize::from),
                underway: Arc::new(Underway::new()),
                state: Mutex::new(PoolState::new(threads_max.max(1))),
                all_ended: Condvar::new(),
            }))),
        }
    }

    /// Another pool of the same name and bounds, with threads and a queue of its own.
    pub fn another(&self) -> Self {
        let inner = &self.owner.0;
        Self::new(&inner.name, inner.threads_max, inner.queue_max)
    }

    /// The calls that its threads, and threads that block in place, are making.
    pub(crate) fn underway(&self) -> &Arc<Underway> {
        &self.owner.0.underway
    }

    /// Queues a call if a slot is free, or if one was granted to its `ticket` from an earlier attempt.
    fn enter(&self, lane: Lane, call: Arc<dyn Job>, ticket: Option<u64>, waker: &Waker) -> Entrance {
        let inner = &self.owner.0;
        let mut state = inner.lock();
        if state.closed {
            return Entrance::Closed;
        }
        let places_taken = state.queue.len() + state.granted.len() + state.waiting.len();
        let may_queue = match ticket {
            Some(ticket) => state.granted.remove(&ticket),
            None => places_taken < inner.queue_max,
        };
        if !may_queue {
            let ticket = ticket.unwrap_or(state.next_ticket);
            state.next_ticket = state.next_ticket.max(ticket + 1);
            state.waiting.insert(ticket, waker.clone());
            return Entrance::Waits(ticket);
        }
        state.queue.push(lane, PoolTask::Job(call));
        inner.ensure_threads(state);
        Entrance::Queued
    }

    /// Ends the wait for a slot with this ticket.
    fn leave(&self, ticket: u64) {
        let mut state = self.owner.0.lock();
        state.waiting.remove(&ticket);
        // A slot that was granted to it goes to the next.
        let next = if state.granted.remove(&ticket) { state.grant() } else { None };
        drop(state);
        next.into_iter().for_each(Waker::wake);
    }

    /// Queues `work` whether a slot is free or not, for callers that bound their own posts. A stopped pool drops the
    /// work; the objects in it then report that they are lost.
    pub fn post(&self, work: impl FnOnce() + Send + 'static) {
        self.post_on(Lane::default(), work);
    }

    /// As [`WorkerPool::post`], for work of a lane.
    pub(crate) fn post_on(&self, lane: Lane, work: impl FnOnce() + Send + 'static) {
        self.post_work(lane, PoolTask::posted(work));
    }

    /// As [`WorkerPool::post`].
    pub(crate) fn post_job(&self, job: Arc<dyn Job>) {
        self.post_work(Lane::default(), PoolTask::Job(job));
    }

    fn post_work(&self, lane: Lane, work: PoolTask) {
        let inner = &self.owner.0;
        let mut state = inner.lock();
        if state.closed {
            drop(state);
            return drop(work);
        }
        state.queue.push(lane, work);
        inner.ensure_threads(state);
    }

    /// As [`WorkerPool::post`]; but a thread of the pool itself does the work, right after the result of its current
    /// work, and so does a thread that makes host calls in place. This wakes no other thread.
    pub fn post_near(&self, work: impl FnOnce() + Send + 'static) {
        let mut work: Option<Box<dyn FnOnce() + Send>> = Some(Box::new(work));
        let _ = OWN.try_with(|own| match &mut *own.borrow_mut() {
            Some(own) if Arc::ptr_eq(&own.inner, &self.owner.0) => {
                own.deferred.extend(work.take().map(PoolTask::Posted))
            }
            _ => {}
        });
        let work = work.and_then(in_place::leave);
        work.into_iter().for_each(|work| self.post_work(Lane::default(), PoolTask::Posted(work)));
    }

    /// Takes no more work, finishes the queued work, and waits at most `patience` for the threads to end. Returns
    /// whether they have.
    pub fn try_stop_within(&self, patience: Duration) -> bool {
        let inner = &self.owner.0;
        inner.close();
        let busy = |state: &mut PoolState| state.threads > 0 || !state.queue.is_empty();
        let waited = inner.all_ended.wait_timeout_while(inner.lock(), patience, busy);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Whether the current thread is one of the pool's.
    pub fn is_own_thread(&self) -> bool {
        let own = |own: &RefCell<Option<OwnThread>>| {
            own.borrow().as_ref().is_some_and(|own| Arc::ptr_eq(&own.inner, &self.owner.0))
        };
        OWN.try_with(own).unwrap_or(false)
    }

    /// The number of pieces of work that are queued and not yet begun.
    pub fn queued(&self) -> usize {
        self.owner.0.lock().queue.len()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The state of a pool's thread.
struct OwnThread {
    inner: Arc<Inner>,
    /// The work to do after the current result was given.
    deferred: Vec<PoolTask>,
    /// The slot of the current call.
    slot: Option<usize>,
}

thread_local! {
    /// None on other threads.
    static OWN: RefCell<Option<OwnThread>> = const { RefCell::new(None) };
}

/// Called by work of several calls between two of them.
pub fn begin_next_call() {
    OWN.with_borrow(|own| {
        if let Some(OwnThread { inner, slot: Some(slot), .. }) = own {
            inner.underway.begin_next(*slot);
        }
    });
}

/// Called by long work on a thread of a pool: does the deferred work.
pub fn run_deferred() {
    let next = || OWN.with_borrow_mut(|own| own.as_mut()?.deferred.pop());
    while let Some(work) = next() {
        begin_next_call();
        // It may panic; the thread goes on.
        let _ = catch_unwind(AssertUnwindSafe(|| work.run()));
    }
    begin_next_call();
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes no work from here on; idle threads end.
    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.coming += state.idle.len();
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        idle.iter().for_each(Thread::unpark);
    }

    /// Called with work in the queue: wakes or starts a thread, unless enough are coming. Does the work here if the
    /// host gives us no thread at all.
    fn ensure_threads(self: &Arc<Self>, mut state: MutexGuard<'_, PoolState>) {
        if state.coming >= self.coming_max {
            return;
        }
        if let Some(idle) = state.idle.pop() {
            state.coming += 1;
            drop(state);
            return idle.unpark();
        }
        if state.threads == self.threads_max {
            return;
        }
        state.threads += 1;
        state.coming += 1;
        drop(state);
        let inner = Arc::clone(self);
        let started = thread::Builder::new().name(self.name.clone()).spawn(move || inner.serve());
        if started.is_err() {
            let mut state = self.lock();
            state.threads -= 1;
            state.coming -= 1;
            if state.threads == 0 {
                let (taken, waker) = state.take();
                drop(state);
                waker.into_iter().for_each(Waker::wake);
                if let Some((lane, work)) = taken {
                    work.run();
                    self.lock().queue.end(lane);
                }
            }
        }
    }

    fn serve(self: Arc<Self>) {
        OWN.set(Some(OwnThread { inner: Arc::clone(&self), deferred: Vec::new(), slot: None }));
        let _held = DeferredWakes::new();
        let mut state = self.lock();
        state.coming -= 1;
        loop {
            let (taken, waker) = state.take();
            if let Some((lane, work)) = taken {
                if state.queue.is_empty() {
                    drop(state);
                } else {
                    // The work taken here may be long.
                    self.ensure_threads(state);
                }
                waker.into_iter().for_each(Waker::wake);
                make_wakes();
                self.carry_out(work);
                state = self.lock();
                state.queue.end(lane);
                continue;
            }
            if state.closed {
                break;
            }
            let (woken, was_idle) = self.wait(state);
            state = woken;
            if was_idle {
                break;
            }
        }
        state.threads -= 1;
        if state.threads == 0 {
            self.all_ended.notify_all();
        }
        drop(state);
        OWN.set(None);
    }

    /// Does a piece of work, and the work that it deferred.
    fn carry_out(&self, work: PoolTask) {
        let begun = self.underway.begin();
        OWN.with_borrow_mut(|own| own.iter_mut().for_each(|own| own.slot = begun.slot()));
        // Posted work reports its own failure: the unwinding drops the objects in it, which then complete as lost. The
        // thread goes on.
        let _ = catch_unwind(AssertUnwindSafe(|| work.run()));
        make_wakes();
        run_deferred();
        OWN.with_borrow_mut(|own| own.iter_mut().for_each(|own| own.slot = None));
        drop(begun);
        make_wakes();
    }

    /// Waits for work. True if none came for so long that the thread can end.
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, PoolState>) -> (MutexGuard<'a, PoolState>, bool) {
        let me = thread::current();
        let until = clock::monotonic().0 + IDLE.as_nanos() as u64;
        state.idle.push(me.clone());
        loop {
            drop(state);
            let rest = until.saturating_sub(clock::monotonic().0);
            thread::park_timeout(Duration::from_nanos(rest));
            state = self.lock();
            let Some(at) = state.idle.iter().rposition(|idle| idle.id() == me.id()) else {
                state.coming -= 1;
                return (state, false);
            };
            if clock::monotonic().0 >= until {
                state.idle.remove(at);
                return (state, true);
            }
        }
    }
}

impl PoolState {
    fn new(threads_max: usize) -> Self {
        Self {
            queue: WorkQueue::new(threads_max),
            threads: 0,
            idle: Vec::new(),
            coming: 0,
            waiting: BTreeMap::new(),
            granted: BTreeSet::new(),
            next_ticket: 0,
            closed: false,
        }
    }

    /// The next piece of work that may have a thread, and the future that gets its slot in the queue.
    fn take(&mut self) -> (Option<(Lane, PoolTask)>, Option<Waker>) {
        match self.queue.take() {
            Some(taken) => (Some(taken), self.grant()),
            None => (None, None),
        }
    }

    /// Gives a free slot to the future that waited longest.
    fn grant(&mut self) -> Option<Waker> {
        let (ticket, waker) = self.waiting.pop_first()?;
        self.granted.insert(ticket);
        Some(waker)
    }
}

/// The calls that are known; more than a pool has threads.
const CALLS_KNOWN: usize = 64;
/// Slots in a line of the processor's cache.
const SLOTS_A_LINE: usize = 8;

/// The beginnings of calls, in nanoseconds of the monotonic clock; 0 in a free slot.
pub(crate) struct Underway([AtomicU64; CALLS_KNOWN]);

/// A call that is being made. The drop ends it.
struct CallUnderway<'a> {
    underway: &'a Underway,
    slot: Option<usize>,
}

impl Underway {
    fn new() -> Self {
        Self([const { AtomicU64::new(0) }; CALLS_KNOWN])
    }

    /// This thread begins a call.
    fn begin(&self) -> CallUnderway<'_> {
        let (first, now) = (FIRST.with(|first| *first), clock::monotonic().0.max(1));
        let take = |slot: &usize| {
            let was = self.0[*slot].compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
            was.is_ok()
        };
        CallUnderway { underway: self, slot: (first..CALLS_KNOWN).chain(0..first).find(take) }
    }

    /// The call in this slot has ended, and the same work begins another.
    fn begin_next(&self, slot: usize) {
        self.0[slot].store(clock::monotonic().0.max(1), Ordering::Relaxed);
    }

    /// When the oldest call began.
    pub(crate) fn oldest(&self) -> Option<Nanos> {
        self.0.iter().map(|slot| slot.load(Ordering::Relaxed)).filter(|begun| *begun != 0).min().map(Nanos)
    }
}

impl CallUnderway<'_> {
    fn slot(&self) -> Option<usize> {
        self.slot
    }
}

impl Drop for CallUnderway<'_> {
    fn drop(&mut self) {
        self.slot.into_iter().for_each(|slot| self.underway.0[slot].store(0, Ordering::Relaxed));
    }
}

thread_local! {
    /// The slot that this thread tries first. Threads share no line while there are fewer of them than lines.
    static FIRST: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        let number = THREADS.fetch_add(1, Ordering::Relaxed);
        (number * SLOTS_A_LINE + number / SLOTS_A_LINE) % CALLS_KNOWN
    };
}

#[cfg(test)]
mod tests;
