//! Calls in flight: a queue to submit them to, and to take their outcomes from.
//!
//! Owns: the queue, its calls from submission until their outcome is taken, its descriptor for poll(2).
//! Does not own: the work of a call (`afflux`), the reactor of a queue's own thread (`own_thread`).
//! Invariants: a call's memory is used only inside submitting, waiting and closing, by the thread that makes these
//! calls; after closing, never. The queue has at most as many calls as its depth. Each outcome is returned once, and an
//! outcome that is not taken keeps its slot. While the caller's memory is used, only the lock of that one call is held.

mod own_thread;

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::future::{Future, poll_fn};
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use afflux::{Cache, File};
use rustix::event::{EventfdFlags, eventfd};

use self::own_thread::OwnThread;
use crate::border::{Answer, CallFailure, count, guarded, keep, status};
use crate::cache::{CacheHandle, on_cache};
use crate::code::Code;
use crate::file::{FileHandle, on_file};
use crate::handle::HandleTable;
use crate::memory::{Out, array, bytes, bytes_mut};

static QUEUES: HandleTable<Queue> = HandleTable::new(4, "queue");

/// Most calls in a queue.
pub const DEPTH_MAX: u32 = 65_536;

/// This many outcomes are handed over without an allocation.
const FEW: usize = 32;

/// A queue of calls in flight. The threads that submit or wait carry the calls on, so that the queue needs no threads
/// of its own. Calls may be for files of several caches. Several threads may use a queue of afflux_queue_new().
pub struct QueueHandle {
    _private: [u8; 0],
}

/// The kind of a call in a queue.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// As afflux_read(): `data`, `len`, `offset`.
    Read = 0,
    /// As afflux_write(): `data`, `len`, `offset`.
    Write = 1,
    /// As afflux_sync_data().
    SyncData = 2,
    /// As afflux_sync_all().
    SyncAll = 3,
    /// As afflux_sync_range(): `offset`, `len`.
    SyncRange = 4,
    /// As afflux_punch_hole(): `offset`, `len`.
    PunchHole = 5,
    /// As afflux_append(): `data`, `len`. The outcome is the offset of the bytes.
    Append = 6,
    /// As afflux_set_len(): `len`.
    SetLen = 7,
}

/// A call to make.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// One of afflux_op.
    pub op: u32,
    /// Must be 0.
    pub reserved: u32,
    /// The file. Its handle may be released while the call is in flight.
    pub file: *mut FileHandle,
    /// Memory to read into or to write from. It belongs to the call until its outcome is taken, or the queue is closed.
    pub data: *mut c_void,
    /// Number of bytes.
    pub len: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Returned with the outcome.
    pub tag: u64,
}

/// The outcome of a call.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The tag of the request.
    pub tag: u64,
    /// The result of the blocking call: a count, or an error below 0.
    pub result: i64,
}

struct Queue {
    shared: Arc<Shared>,
    /// None if all threads may use it.
    own: Option<OwnThread>,
}

struct Shared {
    depth: usize,
    /// Calls in it, including those whose outcome is not taken.
    inside: AtomicUsize,
    state: Mutex<QueueState>,
    /// Wakes waiting threads when there is something to do.
    woken: Condvar,
}

#[derive(Default)]
struct QueueState {
    /// Calls in flight, by slot.
    calls: Vec<Option<Arc<Call>>>,
    vacant: Vec<usize>,
    /// Calls that can go on.
    ready: VecDeque<Arc<Call>>,
    done: VecDeque<Completion>,
    /// Threads that wait.
    waiting: usize,
    /// Wakes the queue's own thread.
    own_waker: Option<Waker>,
    event: Option<EventDescriptor>,
    closed: bool,
}

/// The descriptor, and whether it is readable.
struct EventDescriptor {
    fd: OwnedFd,
    is_readable: bool,
}

/// A call in flight.
struct Call {
    queue: Arc<Shared>,
    index: usize,
    tag: u64,
    /// Whether it is in `ready`, or is about to be.
    scheduled: AtomicBool,
    /// None once it has ended.
    work: Mutex<Option<PendingWork>>,
}

struct PendingWork {
    future: Pin<Box<dyn Future<Output = Answer<u64>> + Send>>,
    cache: Cache,
}

/// Makes a queue for `depth` calls at a time, 1 to AFFLUX_DEPTH_MAX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_queue_new(depth: u32, queue: *mut *mut QueueHandle) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let index = unsafe { Out::new(queue, "the place for the queue") }?;
        index.put(QUEUES.open(Queue { shared: Shared::new(depth)?, own: None })?);
        Ok(())
    })
}

/// As afflux_queue_new(), for this thread alone: a ring of its own makes the reads of `cache`, and no other thread is
/// woken for them. That is the shortest way for many reads in flight. Another thread that submits or waits gets
/// AFFLUX_ERROR_INVALID.
///
/// A read completes only while this thread is in afflux_submit(), afflux_wait() or a blocking call of the cache. Until
/// then, other callers wait for the same pages, a sync or a change of size may wait, too, and the disk looks slow or
/// hung. So a thread that stays away for long closes the queue. A loop that sleeps in epoll_wait(2) uses the other kind
/// of queue, which has a descriptor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_queue_new_own(
    cache: *mut CacheHandle,
    depth: u32,
    queue: *mut *mut QueueHandle,
) -> c_int {
    status(|| {
        on_cache(cache, |cache| {
            // SAFETY: the caller's promise.
            let index = unsafe { Out::new(queue, "the place for the queue") }?;
            let shared = Shared::new(depth)?;
            index.put(QUEUES.open(Queue { shared, own: Some(OwnThread::begin(cache)?) })?);
            Ok(())
        })
    })
}

/// Submits calls, in order, and begins them. Returns the number that the queue accepted: fewer than `requests` if it is
/// full, or at an invalid request (then afflux_last_error() names the reason). If the first one is refused, returns its
/// error. A call whose bytes are cached is done when this returns; its outcome comes as all others do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_submit(queue: *mut QueueHandle, calls: *const Request, requests: usize) -> i64 {
    count(|| {
        let queue = QUEUES.enter(queue)?;
        // SAFETY: the caller's promise.
        let calls = unsafe { array(calls, requests, "the array of requests") }?;
        // SAFETY: as above.
        let submit = || unsafe { queue.shared.submit_all(calls) };
        match &queue.own {
            Some(own) => own.drive(async { submit() }),
            None => submit(),
        }
    })
}

/// Carries calls on, and takes outcomes: up to `room`, waiting for `least` of them for at most `timeout_ns`
/// nanoseconds, or for ever if that is below 0. Returns the number taken: fewer than `least` if the time was over, or
/// if no more calls are in the queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_wait(
    queue: *mut QueueHandle,
    outcomes: *mut Completion,
    room: usize,
    least: usize,
    timeout_ns: i64,
) -> i64 {
    count(|| {
        let queue = QUEUES.enter(queue)?;
        if room == 0 || least > room {
            return Err(CallFailure::invalid(format!("room for {room} outcomes, and {least} are waited for")));
        }
        // SAFETY: the caller's promise, for the first and so for all.
        unsafe { Out::new(outcomes, "the place for the outcomes") }?;
        let deadline = u64::try_from(timeout_ns).ok().map(Duration::from_nanos);
        let deadline = deadline.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut taken = 0;
        match &queue.own {
            Some(own) => queue.shared.wait_on_own_thread(own, room, least, deadline)?,
            None => queue.shared.wait(room, least, deadline)?,
        }
        queue.shared.take(room, |completion| {
            // SAFETY: the caller's promise: there is room for this many.
            unsafe { outcomes.add(taken).write(completion) };
            taken += 1;
        });
        Ok(taken as u64)
    })
}

/// A descriptor for poll(2) and epoll(7), readable when afflux_wait() has something to do. Perhaps an outcome is there,
/// or a call can go on and ends only later; so use a timeout of 0 then. The queue owns the descriptor: do not read it;
/// it closes with the queue. A queue of afflux_queue_new_own() has none (AFFLUX_ERROR_UNSUPPORTED).
#[unsafe(no_mangle)]
pub extern "C" fn afflux_queue_fd(queue: *mut QueueHandle) -> c_int {
    let fd = count(|| {
        let queue = QUEUES.enter(queue)?;
        if queue.own.is_some() { Err(CallFailure::of(Code::Unsupported)) } else { queue.shared.descriptor() }
    });
    fd as c_int
}

/// Closes a queue. Calls in flight are given up: a read returns nothing, a write may have written a part, a sync
/// guarantees nothing. When this returns, the memory of calls is not used any more. Threads that wait for the queue get
/// AFFLUX_ERROR_CLOSED. A queue of afflux_queue_new_own() is closed by its thread, which waits for its reads; once this
/// thread has ended, any thread may close it.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_queue_close(queue: *mut QueueHandle) -> c_int {
    status(|| {
        if let Some(own) = &QUEUES.enter(queue)?.own {
            own.check_closable()?;
        }
        let queue = QUEUES.close(queue)?;
        queue.shared.close();
        if let Some(own) = &queue.own {
            own.end();
        }
        Ok(())
    })
}

impl Shared {
    fn new(depth: u32) -> Answer<Arc<Self>> {
        if !(1..=DEPTH_MAX).contains(&depth) {
            return Err(CallFailure::invalid(format!("a depth of {depth}: 1 to {DEPTH_MAX} can be")));
        }
        let (inside, state, woken) = (AtomicUsize::new(0), Mutex::default(), Condvar::new());
        Ok(Arc::new(Self { depth: depth as usize, inside, state, woken }))
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Safety
    /// As for [`Shared::submit`], for each request.
    unsafe fn submit_all(self: &Arc<Self>, requests: &[Request]) -> Answer<u64> {
        for (taken, request) in requests.iter().enumerate() {
            // SAFETY: the caller's promise.
            if let Err(failure) = unsafe { self.submit(request) } {
                if taken == 0 {
                    return Err(failure);
                }
                keep(failure);
                return Ok(taken as u64);
            }
        }
        Ok(requests.len() as u64)
    }

    /// # Safety
    /// The request's memory is valid, and only the call uses it, until its outcome is taken or the queue is closed.
    unsafe fn submit(self: &Arc<Self>, request: &Request) -> Answer<()> {
        if self.inside.fetch_add(1, Ordering::Relaxed) >= self.depth {
            self.inside.fetch_sub(1, Ordering::Relaxed);
            return Err(CallFailure::of(Code::WouldBlock));
        }
        // SAFETY: the caller's promise.
        let begun = on_file(request.file, |file| unsafe { begin(file, request) });
        match begun {
            Ok(StartedCall::Done(result)) => self.done(&mut self.state(), request.tag, result),
            Ok(StartedCall::Work(future, cache)) => self.add(request.tag, PendingWork { future, cache })?,
            Err(failure) => {
                self.inside.fetch_sub(1, Ordering::Relaxed);
                return Err(failure);
            }
        }
        Ok(())
    }

    fn add(self: &Arc<Self>, tag: u64, work: PendingWork) -> Answer<()> {
        let mut state = self.state();
        if state.closed {
            self.inside.fetch_sub(1, Ordering::Relaxed);
            return Err(closed());
        }
        let index = state.vacant.pop().unwrap_or(state.calls.len());
        if index == state.calls.len() {
            state.calls.push(None);
        }
        let scheduled = AtomicBool::new(true);
        let call = Arc::new(Call { queue: Arc::clone(self), index, tag, scheduled, work: Mutex::new(Some(work)) });
        state.calls[index] = Some(Arc::clone(&call));
        drop(state);
        call.go_on();
        Ok(())
    }

    fn done(&self, state: &mut QueueState, tag: u64, result: Answer<u64>) {
        let result = result.map_or_else(|failure| keep(failure).into(), u64::cast_signed);
        state.done.push_back(Completion { tag, result });
        self.wake_waiters(state);
    }

    /// Wakes the threads that wait: there is something to do.
    fn wake_waiters(&self, state: &mut QueueState) {
        if state.waiting > 0 {
            self.woken.notify_all();
        }
        if let Some(waker) = state.own_waker.take() {
            waker.wake();
        }
        state.ring();
    }

    /// Carries calls on until there are `least` outcomes, nothing is in flight, or the time is over.
    fn wait(&self, room: usize, least: usize, deadline: Option<Instant>) -> Answer<()> {
        let over = || deadline.is_some_and(|deadline| deadline <= Instant::now());
        let mut state = self.state();
        // Calls that can go on now do so even if the time is over. Later ones do not, since they may wake each other
        // for ever.
        let mut due = state.ready.len();
        loop {
            if state.closed {
                return Err(closed());
            }
            if state.done.len() < room
                && (due > 0 || !over())
                && let Some(call) = state.ready.pop_front()
            {
                due = due.saturating_sub(1);
                drop(state);
                call.go_on();
                state = self.state();
                continue;
            }
            if state.done.len() >= least || state.in_flight() == 0 || over() {
                return Ok(());
            }
            state.waiting += 1;
            state = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(left) => self.woken.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.woken.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
            state.waiting -= 1;
        }
    }

    /// [`Shared::wait`] on the queue's own thread, which sleeps in its reactor.
    fn wait_on_own_thread(&self, own: &OwnThread, room: usize, least: usize, deadline: Option<Instant>) -> Answer<()> {
        // With nobody to wait for, the thread still looks once for completed reads.
        let deadline = if least == 0 { Some(Instant::now()) } else { deadline };
        let outcomes = poll_fn(|cx| self.poll_least(room, least.max(1), cx));
        match deadline {
            Some(deadline) => own.drive_until(deadline, outcomes),
            None => own.drive(outcomes),
        }
    }

    fn poll_least(&self, room: usize, least: usize, cx: &mut Context<'_>) -> Poll<Answer<()>> {
        let mut state = self.state();
        // Calls that these wake go on after a look for completions.
        let mut due = state.ready.len();
        loop {
            if state.closed {
                return Poll::Ready(Err(closed()));
            }
            if due > 0
                && state.done.len() < room
                && let Some(call) = state.ready.pop_front()
            {
                due -= 1;
                drop(state);
                call.go_on();
                state = self.state();
                continue;
            }
            if state.done.len() >= least || state.in_flight() == 0 {
                return Poll::Ready(Ok(()));
            }
            state.own_waker = Some(cx.waker().clone());
            if !state.ready.is_empty() {
                self.wake_waiters(&mut state);
            }
            return Poll::Pending;
        }
    }

    /// Takes outcomes, up to `room`.
    fn take(&self, room: usize, take: impl FnMut(Completion)) {
        let mut state = self.state();
        let count = state.done.len().min(room);
        let (mut few, mut many) = ([Completion { tag: 0, result: 0 }; FEW], Vec::new());
        if count <= FEW {
            few.iter_mut().zip(state.done.drain(..count)).for_each(|(index, completion)| *index = completion);
        } else {
            many.extend(state.done.drain(..count));
        }
        self.inside.fetch_sub(count, Ordering::Relaxed);
        state.unring();
        // Writing to the caller's memory may take long.
        drop(state);
        few[..if many.is_empty() { count } else { 0 }].iter().chain(&many).copied().for_each(take);
    }

    fn descriptor(&self) -> Answer<u64> {
        let mut state = self.state();
        if state.closed {
            return Err(closed());
        }
        if state.event.is_none() {
            let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(std::io::Error::from)?;
            state.event = Some(EventDescriptor { fd, is_readable: false });
            if !state.is_idle() {
                state.ring();
            }
        }
        Ok(state.event.as_ref().map_or(0, |event| event.fd.as_raw_fd() as u64))
    }

    fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let calls = std::mem::take(&mut state.calls);
        state.vacant.clear();
        state.ready.clear();
        state.done.clear();
        state.event = None;
        self.woken.notify_all();
        drop(state);
        // This waits for a call that another thread carries on right now, with the caller's memory.
        calls.iter().flatten().for_each(|call| drop(call.work().take()));
    }
}

fn closed() -> CallFailure {
    CallFailure::of(Code::Closed)
}

impl QueueState {
    fn in_flight(&self) -> usize {
        self.calls.len() - self.vacant.len()
    }

    /// Whether there is nothing to do for a thread that waits.
    fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.done.is_empty()
    }

    fn ring(&mut self) {
        if let Some(event) = self.event.as_mut().filter(|event| !event.is_readable) {
            event.is_readable = rustix::io::write(&event.fd, &1_u64.to_ne_bytes()).is_ok();
        }
    }

    fn unring(&mut self) {
        let idle = self.is_idle();
        if let Some(event) = self.event.as_mut().filter(|event| event.is_readable && idle) {
            let _ = rustix::io::read(&event.fd, &mut [0; 8]);
            event.is_readable = false;
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Calls and the queue refer to each other; closing breaks the circle.
        self.shared.close();
    }
}

impl Call {
    fn work(&self) -> MutexGuard<'_, Option<PendingWork>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries the call on, on this thread.
    fn go_on(self: &Arc<Self>) {
        let mut index = self.work();
        // A wake from here on schedules it again.
        self.scheduled.swap(false, Ordering::AcqRel);
        let Some(work) = &mut *index else { return };
        let waker = Waker::from(Arc::clone(self));
        let PendingWork { future, cache } = work;
        let polled = guarded(
            || cache.clone(),
            || match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(result) => result.map(Some),
                Poll::Pending => Ok(None),
            },
        );
        let result = match polled {
            Ok(None) => return,
            Ok(Some(count)) => Ok(count),
            Err(failure) => Err(failure),
        };
        let ended = index.take();
        drop(index);
        drop(ended);
        let mut state = self.queue.state();
        // The queue was closed meanwhile: nobody takes the outcome.
        if state.closed {
            return;
        }
        let call = state.calls[self.index].take();
        state.vacant.push(self.index);
        self.queue.done(&mut state, self.tag, result);
        drop(state);
        drop(call);
    }
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        if self.scheduled.swap(true, Ordering::AcqRel) {
            return;
        }
        let queue = Arc::clone(&self.queue);
        let mut state = queue.state();
        if !state.closed {
            state.ready.push_back(self);
            queue.wake_waiters(&mut state);
        }
    }
}

/// A call that was begun.
enum StartedCall {
    Done(Answer<u64>),
    Work(Pin<Box<dyn Future<Output = Answer<u64>> + Send>>, Cache),
}

/// Completes a call at once if it need not wait; otherwise returns its future.
///
/// # Safety
/// As for [`Shared::submit`].
unsafe fn begin(file: &File, request: &Request) -> Answer<StartedCall> {
    let Request { op, reserved, data, offset, tag: _, file: _, len } = *request;
    if reserved != 0 {
        return Err(CallFailure::invalid("a request that this version does not know: reserved is not 0".to_owned()));
    }
    let len_here = || usize::try_from(len).map_err(|_| CallFailure::invalid(format!("a length of {len} bytes")));
    let range = || {
        let end = offset.checked_add(len);
        end.map(|end| offset..end).ok_or_else(|| CallFailure::invalid(format!("{offset} + {len} bytes is no range")))
    };
    let would_block = Code::WouldBlock as c_int;
    let own = file.clone();
    let work: Pin<Box<dyn Future<Output = Answer<u64>> + Send>> = match op {
        op if op == Op::Read as u32 => {
            // SAFETY: the caller's promise.
            let into = unsafe { bytes_mut(data, len_here()?) }?;
            match file.try_read_at(into, offset).map_err(CallFailure::from) {
                Err(failure) if failure.code == would_block => {}
                done => return Ok(StartedCall::Done(done.map(|count| count as u64))),
            }
            Box::pin(async move { Ok(own.read_at_async(into, offset).await? as u64) })
        }
        op if op == Op::Write as u32 => {
            // SAFETY: the caller's promise.
            let from = unsafe { bytes(data, len_here()?) }?;
            match file.try_write_at(from, offset).map_err(CallFailure::from) {
                Err(failure) if failure.code == would_block => {}
                done => return Ok(StartedCall::Done(done.map(|()| len))),
            }
            Box::pin(async move { Ok(own.write_at_async(from, offset).await.map(|()| len)?) })
        }
        op if op == Op::SyncData as u32 => Box::pin(async move { Ok(own.sync_data_async().await.map(|()| 0)?) }),
        op if op == Op::SyncAll as u32 => Box::pin(async move { Ok(own.sync_all_async().await.map(|()| 0)?) }),
        op if op == Op::SyncRange as u32 => {
            let range = range()?;
            Box::pin(async move { Ok(own.sync_range_async(range).await.map(|()| 0)?) })
        }
        op if op == Op::PunchHole as u32 => {
            let range = range()?;
            Box::pin(async move { Ok(own.punch_hole_async(range).await.map(|()| 0)?) })
        }
        op if op == Op::Append as u32 => {
            // SAFETY: the caller's promise.
            let from = unsafe { bytes(data, len_here()?) }?;
            Box::pin(async move { Ok(own.append_async(from).await?) })
        }
        op if op == Op::SetLen as u32 => Box::pin(async move { Ok(own.set_len_async(len).await.map(|()| 0)?) }),
        other => return Err(CallFailure::invalid(format!("op {other}: it is one of afflux_op, 0 to 7"))),
    };
    Ok(StartedCall::Work(work, file.cache()))
}

#[cfg(test)]
mod tests;
