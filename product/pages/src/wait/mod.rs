//! Waiting: the few forms that the engine has.
//!
//! Owns: queues of wakers in order of asking, single answers, slots in a line that serves first come, first served
//! (`permits`).
//! Does not own: conditions; a waiter checks its own, and the code that changes one wakes.
//! Invariants: a dropped waiter strands nobody: a permit granted to it goes to the next one. It leaves nothing behind:
//! memory is bounded by the present waiters, however long nothing happens. To find a waiter and to leave take time in
//! the logarithm of the waiters' number (`many_waiters_take_and_leave_their_places_in_any_order`). No lock of this
//! module is held while a waker runs.
//!
//! The queues are our own, since no crate has these rules. `event-listener` 5.4 wakes while it holds its lock, and
//! allocates for a queue and for a waiter. It passes neither values nor amounts. `tokio::sync` 1.54 takes its lock at
//! each release, also if nobody waits, and leaves no permits to others. Our loom models cannot follow its atomics.

mod permits;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use smallvec::SmallVec;

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use crate::sync::{self, Mutex};

pub use permits::{Permits, WaitSlots};

/// Locks one of the engine's ordinary mutexes.
pub fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tasks to wake, in order of asking.
#[derive(Default)]
struct Wakers(Tickets<Waker>);

impl Wakers {
    /// Gives the waiter a slot, unless it still has one. Returns whether the slot is new.
    fn try_add(&mut self, ticket: &mut Option<u64>, waker: &Waker) -> bool {
        if let Some(known) = ticket.and_then(|ticket| self.0.get_mut(ticket)) {
            known.clone_from(waker);
            return false;
        }
        *ticket = Some(self.0.enter(waker.clone()));
        true
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes the waiter's slot away; to be dropped without a lock held.
    fn remove(&mut self, ticket: u64) -> Option<Waker> {
        self.0.leave(ticket)
    }

    /// All wakers; no waiter has a slot afterwards.
    fn take(&mut self) -> impl Iterator<Item = Waker> + use<> {
        self.0.take()
    }
}

/// Proof that a condition has changed, and that every later check sees the change: one fence for all queues to wake.
pub struct Changed(());

impl Changed {
    /// A change that this thread has made already.
    pub fn now() -> Self {
        fence(Ordering::SeqCst);
        Self(())
    }

    /// Makes the change by one read-modify-write in sequential order, which needs no fence beside it.
    #[inline]
    pub(crate) fn with<T>(change: impl FnOnce(Ordering) -> T) -> (T, Self) {
        let value = change(Ordering::SeqCst);
        // The model checker knows that order only for fences.
        #[cfg(loom)]
        fence(Ordering::SeqCst);
        (value, Self(()))
    }
}

/// Tasks that wait for something to change.
#[derive(Default)]
pub struct WaitQueue {
    wakers: Mutex<Wakers>,
    waiting: AtomicUsize,
}

impl WaitQueue {
    /// A queue in which nobody waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until `ready` returns a value. It is called now and after each wake-up. A dropped waiter leaves nothing
    /// behind.
    pub async fn until<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
        let mut waiter = Waiter { queue: self, ticket: None };
        poll_fn(|cx| {
            if let Some(value) = ready() {
                return Poll::Ready(value);
            }
            waiter.register(cx);
            fence(Ordering::SeqCst);
            // A change between the check and the registration would otherwise be missed.
            ready().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Wakes all waiters. Cheap if there are none.
    pub fn wake_all(&self) {
        self.wake_for(&Changed::now());
    }

    /// As [`WaitQueue::wake_all`], for a change that has been fenced.
    #[inline]
    pub fn wake_for(&self, _changed: &Changed) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.wake_waiting();
        }
    }

    /// Whether somebody waits, as far as this thread knows.
    #[inline]
    pub(crate) fn has_waiters(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    fn wake_waiting(&self) {
        let woken = {
            let mut wakers = sync::lock(&self.wakers);
            self.waiting.store(0, Ordering::SeqCst);
            wakers.take()
        };
        woken.for_each(Waker::wake);
    }
}

/// A waiter, which may have a slot in the queue.
struct Waiter<'a> {
    queue: &'a WaitQueue,
    ticket: Option<u64>,
}

impl Waiter<'_> {
    fn register(&mut self, cx: &Context<'_>) {
        let mut wakers = sync::lock(&self.queue.wakers);
        if wakers.try_add(&mut self.ticket, cx.waker()) {
            self.queue.waiting.store(wakers.len(), Ordering::SeqCst);
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        // Zero comes from a wake-up after it got its slot: there is none to give back.
        if self.queue.waiting.load(Ordering::Relaxed) > 0 {
            let mut wakers = sync::lock(&self.queue.wakers);
            let place = wakers.remove(ticket);
            self.queue.waiting.store(wakers.len(), Ordering::SeqCst);
            drop(wakers);
            drop(place);
        }
    }
}

/// A value that arrives once and can be read by many.
pub struct Answer<T> {
    state: Mutex<AnswerState<T>>,
    given: AtomicBool,
}

struct AnswerState<T> {
    value: Option<T>,
    wakers: Wakers,
}

impl<T> Default for Answer<T> {
    fn default() -> Self {
        let state = Mutex::new(AnswerState { value: None, wakers: Wakers::default() });
        Self { state, given: AtomicBool::new(false) }
    }
}

impl<T: Clone> Answer<T> {
    /// An answer that has not come.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Resets the answer for reuse.
    pub fn renew(&mut self) {
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner).value = None;
        self.given.store(false, Ordering::Relaxed);
    }

    /// Gives the value and wakes all who wait for it. A second value is dropped.
    pub fn give(&self, value: T) {
        let woken = {
            let mut state = sync::lock(&self.state);
            state.value.get_or_insert(value);
            self.given.store(true, Ordering::Relaxed);
            state.wakers.take()
        };
        woken.for_each(Waker::wake);
    }

    /// Whether the answer has come, as far as this thread knows. Takes no lock.
    pub fn is_given(&self) -> bool {
        self.given.load(Ordering::Relaxed)
    }

    /// Waits until the value is there.
    pub async fn wait(&self) -> T {
        let mut asker = Asker { answer: self, ticket: None };
        poll_fn(|cx| {
            let mut state = sync::lock(&self.state);
            match &state.value {
                Some(value) => Poll::Ready(value.clone()),
                None => {
                    state.wakers.try_add(&mut asker.ticket, cx.waker());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// A task that waits for an answer.
struct Asker<'a, T> {
    answer: &'a Answer<T>,
    ticket: Option<u64>,
}

impl<T> Drop for Asker<'_, T> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let place = sync::lock(&self.answer.state).wakers.remove(ticket);
        drop(place);
    }
}

/// Waits for the first of both to end; drops the other.
pub async fn either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| {
        if one.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        other.as_mut().poll(cx)
    })
    .await;
}

/// A signal for one task: set by anybody, taken by its owner.
#[derive(Default)]
pub struct Signal {
    queue: WaitQueue,
    set: AtomicBool,
}

impl Signal {
    /// A signal that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the signal, and wakes its waiter.
    pub fn raise(&self) {
        if !self.set.swap(true, Ordering::AcqRel) {
            self.queue.wake_all();
        }
    }

    /// Takes the signal; waits for it, or until `timeout` ends.
    pub async fn wait_or(&self, timeout: impl Future<Output = ()>) {
        either(self.queue.until(|| self.set.swap(false, Ordering::AcqRel).then_some(())), timeout).await;
    }
}

#[cfg(all(test, loom))]
mod loom_models;

/// The first value, mostly the only one, needs no heap memory.
struct Tickets<T> {
    /// With a gap where a value has left.
    entries: SmallVec<[(u64, Option<T>); 1]>,
    values: usize,
    last: u64,
}

impl<T> Default for Tickets<T> {
    fn default() -> Self {
        Self { entries: SmallVec::new(), values: 0, last: 0 }
    }
}

impl<T> Tickets<T> {
    /// The number of values.
    fn len(&self) -> usize {
        self.values
    }

    /// Adds a value at the end; returns its ticket.
    fn enter(&mut self, value: T) -> u64 {
        self.last += 1;
        self.entries.push((self.last, Some(value)));
        self.values += 1;
        self.last
    }

    fn at(&self, ticket: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&ticket, |entry| entry.0).ok()
    }

    fn get_mut(&mut self, ticket: u64) -> Option<&mut T> {
        let at = self.at(ticket)?;
        self.entries[at].1.as_mut()
    }

    /// Takes a value out.
    fn leave(&mut self, ticket: u64) -> Option<T> {
        let at = self.at(ticket)?;
        let value = self.entries[at].1.take()?;
        self.values -= 1;
        if self.entries.len() > 2 * self.values + 1 {
            self.entries.retain(|entry| entry.1.is_some());
        }
        Some(value)
    }

    /// Takes all values out, in order.
    fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.values = 0;
        std::mem::take(&mut self.entries).into_iter().filter_map(|entry| entry.1)
    }

    #[cfg(test)]
    fn tickets(&self) -> Vec<u64> {
        self.entries.iter().filter(|entry| entry.1.is_some()).map(|entry| entry.0).collect()
    }
}

#[cfg(test)]
mod tests;
