//! Running calls, each in a future that exists before the call.
//!
//! Owns: the futures, the queue of those to poll, their calls and replies, the memory that one call leaves to the next.
//! Does not own: the work of calls (`procedures`), the number that may run (`connection`).
//! Invariants: a worker has one call at a time, and is polled after it got one or was woken. [`IDLE_MAX`] workers stay
//! without a call, each with memory for a short record and a short reply. So a connection in use allocates nothing for
//! READ, WRITE and COMMIT, and a silent one holds little. Of a busy connection's further workers, at most
//! [`SPARES_MAX`] of all connections stay, until their connection is silent. A poll of the connection polls workers
//! whose calls have at most [`CHARGES_PER_POLL_MAX`] bytes, and one more. Dropping the workers drops the calls.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use afflux_volume::{Platform, Volume};
use bytes::BytesMut;
use futures_util::future::BoxFuture;
use futures_util::task::AtomicWaker;

use crate::limits::CHARGES_PER_POLL_MAX;
use crate::v3::procedures::{self, WaitingCall};
use crate::v4::course::{self, WaitingCompound};
use crate::wire::reply::Reply;

/// Idle workers that stay: each takes some 11 KiB.
const IDLE_MAX: usize = 8;
/// Idle workers beyond these, of all connections together. A client that reads uncached data has more calls in flight,
/// and making and dropping a worker for each costs a twelfth of such a READ.
const SPARES_MAX: usize = 256;

/// Number of idle workers of all connections beyond [`IDLE_MAX`].
#[derive(Default)]
pub(crate) struct Spares(AtomicUsize);

impl Spares {
    /// Adds one; false if there are too many.
    fn try_add(&self) -> bool {
        let more = |count| (count < SPARES_MAX).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn remove(&self, count: usize) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }
}

/// The task of a worker.
pub(crate) enum WorkerTask<P: Platform> {
    /// A call of version 3.
    Call(WaitingCall<P>),
    /// A compound of version 4, which runs to its end once it has begun to change something.
    Compound(WaitingCompound<P>),
    Other(BoxFuture<'static, Reply>),
}

/// An idle worker, and the memory of its last call.
pub(crate) struct Free {
    index: usize,
    /// For the copy of a call's record.
    pub(crate) record: BytesMut,
    /// For the reply.
    pub(crate) draft: Vec<u8>,
}

struct Worker<P: Platform> {
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
    desk: Arc<Desk<P>>,
    bell: Arc<Bell>,
    waker: Waker,
    /// The charge of its call, and its state as an idle worker afterwards; none without a call.
    busy: Option<(u64, Free)>,
}

/// A worker takes its call from here, and leaves the reply.
struct Desk<P: Platform> {
    papers: Mutex<(Option<WorkerTask<P>>, Option<Reply>)>,
    /// The call may not be dropped. Only the worker sets it during a call.
    lasts: AtomicBool,
}

/// The queue of workers to poll.
#[derive(Default)]
struct Ready {
    ready: Mutex<VecDeque<usize>>,
    task: AtomicWaker,
}

/// Wakes a worker.
struct Bell {
    index: usize,
    rung: AtomicBool,
    ready: Arc<Ready>,
}

/// The workers of a connection.
pub(crate) struct Workers<P: Platform> {
    volume: Arc<Volume<P>>,
    ready: Arc<Ready>,
    workers: Vec<Option<Worker<P>>>,
    free: Vec<Free>,
    spares: Arc<Spares>,
    calls: usize,
    /// Workers with an ended call. The connection has not taken the replies.
    ended: VecDeque<usize>,
}

impl<P: Platform> Workers<P> {
    pub(crate) fn new(volume: Arc<Volume<P>>, spares: Arc<Spares>) -> Self {
        Self {
            volume,
            ready: Arc::default(),
            workers: Vec::new(),
            free: Vec::new(),
            spares,
            calls: 0,
            ended: VecDeque::new(),
        }
    }

    /// Number of calls in progress: begun, and without a reply taken.
    pub(crate) fn len(&self) -> usize {
        self.calls
    }

    /// An idle worker, for `give_back` or `begin`.
    pub(crate) fn take(&mut self) -> Free {
        if self.free.len() > IDLE_MAX {
            self.spares.remove(1);
        }
        self.free.pop().unwrap_or_else(|| self.hire())
    }

    #[cold]
    fn hire(&mut self) -> Free {
        let index = self.workers.iter().position(Option::is_none).unwrap_or(self.workers.len());
        let (desk, ready) = (Arc::new(Desk::default()), Arc::clone(&self.ready));
        let bell = Arc::new(Bell { index, rung: AtomicBool::new(false), ready });
        let future = Box::pin(work(Arc::clone(&self.volume), Arc::clone(&desk)));
        let worker = Worker { future, desk, waker: Waker::from(Arc::clone(&bell)), bell, busy: None };
        match self.workers.get_mut(index) {
            Some(vacant) => *vacant = Some(worker),
            None => self.workers.push(Some(worker)),
        }
        Free { index, record: BytesMut::new(), draft: Vec::new() }
    }

    /// Takes an idle worker back.
    pub(crate) fn give_back(&mut self, free: Free) {
        if self.free.len() < IDLE_MAX || self.spares.try_add() {
            self.free.push(free);
        } else {
            self.workers[free.index] = None;
        }
    }

    /// Drops the workers that only a busy connection needs.
    pub(crate) fn shrink(&mut self) {
        for free in self.free.drain(IDLE_MAX.min(self.free.len())..) {
            self.workers[free.index] = None;
            self.spares.remove(1);
        }
    }

    /// Begins a call with the charge `charge`.
    pub(crate) fn begin(&mut self, free: Free, work: WorkerTask<P>, charge: u64) {
        let index = free.index;
        let worker = self.workers[index].as_mut().unwrap_or_else(|| unreachable!("worker {index} is free"));
        let lasts = matches!(&work, WorkerTask::Compound(waiting) if waiting.compound.has_to_last());
        worker.desk.lasts.store(lasts, Ordering::Release);
        worker.desk.lock().0 = Some(work);
        worker.busy = Some((charge, free));
        self.calls += 1;
        // The caller polls after this, so that no task needs a wake.
        if !worker.bell.rung.swap(true, Ordering::AcqRel) {
            lock(&self.ready.ready).push_back(index);
        }
    }

    /// Polls workers in the queue, until their calls' charges have used up `left`. Returns the first reply, its call's
    /// charge, and the worker, which is idle again.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>, left: &mut u64) -> Option<(Reply, u64, Free)> {
        loop {
            let index = self.ended.pop_front().or_else(|| self.poll_ended(cx, left))?;
            // A worker that is gone may have ended before.
            let Some(worker) = &mut self.workers[index] else { continue };
            let (reply, (charge, free)) = (worker.desk.lock().1.take()?, worker.busy.take()?);
            self.calls -= 1;
            return Some((reply, charge, free));
        }
    }

    /// Polls workers in the queue as [`Workers::poll_next`] does; that returns the replies later.
    pub(crate) fn poll_all(&mut self, cx: &mut Context<'_>) {
        let mut left = CHARGES_PER_POLL_MAX;
        while let Some(index) = self.poll_ended(cx, &mut left) {
            self.ended.push_back(index);
        }
    }

    /// Polls workers in the queue until one has ended its call.
    fn poll_ended(&mut self, cx: &mut Context<'_>, left: &mut u64) -> Option<usize> {
        self.ready.task.register(cx.waker());
        let turns = lock(&self.ready.ready).len();
        for _ in 0..turns {
            if *left == 0 {
                break;
            }
            let index = lock(&self.ready.ready).pop_front()?;
            // A worker that is gone may have been woken before.
            let Some(worker) = &mut self.workers[index] else { continue };
            *left = left.saturating_sub(worker.busy.as_ref().map_or(0, |(charge, _)| *charge));
            worker.bell.rung.swap(false, Ordering::AcqRel);
            let ended = worker.future.as_mut().poll(&mut Context::from_waker(&worker.waker)).is_ready();
            debug_assert!(!ended, "a worker has no end");
            if worker.desk.lock().1.is_some() {
                return Some(index);
            }
        }
        if turns > 0 && !lock(&self.ready.ready).is_empty() {
            // These workers were woken meanwhile, or were not polled: other tasks run first.
            cx.waker().wake_by_ref();
        }
        None
    }
}

impl<P: Platform> Workers<P> {
    /// The charges of the calls that may not be dropped.
    pub(crate) fn lasting_charge(&self) -> u64 {
        self.workers.iter().flatten().filter_map(Worker::lasting_charge).sum()
    }

    /// Takes the calls that may not be dropped, and drops all others. The future ends when they have ended; it calls
    /// `ended` with the charge of each. None if there are none.
    pub(crate) fn lasting<F: FnMut(u64) + Send>(
        &mut self,
        mut ended: F,
    ) -> Option<impl Future<Output = ()> + Send + use<P, F>> {
        let is_one = |worker: &Option<Worker<P>>| worker.as_ref().is_some_and(|it| it.lasting_charge().is_some());
        if !self.workers.iter().any(is_one) {
            return None;
        }
        let others = Self::new(Arc::clone(&self.volume), Arc::clone(&self.spares));
        let mut rest = std::mem::replace(self, others);
        rest.workers.iter_mut().filter(|worker| !is_one(worker)).for_each(|worker| *worker = None);
        rest.calls = rest.workers.iter().flatten().count();
        Some(poll_fn(move |cx| {
            let mut left = CHARGES_PER_POLL_MAX;
            while let Some((_, charge, free)) = rest.poll_next(cx, &mut left) {
                rest.workers[free.index] = None;
                ended(charge);
            }
            if rest.len() == 0 { Poll::Ready(()) } else { Poll::Pending }
        }))
    }
}

impl<P: Platform> Worker<P> {
    /// The charge of its call, if that may not be dropped.
    fn lasting_charge(&self) -> Option<u64> {
        let (charge, _) = self.busy.as_ref()?;
        self.desk.lasts.load(Ordering::Acquire).then_some(*charge)
    }
}

impl<P: Platform> Drop for Workers<P> {
    fn drop(&mut self) {
        self.spares.remove(self.free.len().saturating_sub(IDLE_MAX));
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            lock(&self.ready.ready).push_back(self.index);
            self.ready.task.wake();
        }
    }
}

impl<P: Platform> Default for Desk<P> {
    fn default() -> Self {
        Self { papers: Mutex::new((None, None)), lasts: AtomicBool::new(false) }
    }
}

impl<P: Platform> Desk<P> {
    fn lock(&self) -> MutexGuard<'_, (Option<WorkerTask<P>>, Option<Reply>)> {
        lock(&self.papers)
    }
}

async fn work<P: Platform>(volume: Arc<Volume<P>>, desk: Arc<Desk<P>>) {
    loop {
        let work = poll_fn(|_| desk.lock().0.take().map_or(Poll::Pending, Poll::Ready)).await;
        let reply = match work {
            WorkerTask::Call(call) => procedures::carry_out(&volume, call).await,
            WorkerTask::Compound(waiting) => course::carry_out(&volume, waiting, &desk.lasts).await,
            WorkerTask::Other(call) => call.await,
        };
        desk.lock().1 = Some(reply);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
