//! The gate: whether calls may enter, the count of calls inside, and the calls that must leave when it closes.
//!
//! Owns: the state of the cache (open, closed, poisoned, not of this process), the count of calls inside, the wakers of
//! calls that wait inside.
//! Does not own: the work of calls, the end of the cache (`ending`).
//! Invariants: after the closing no call enters, and waiting calls leave with an error. A future is inside while it is
//! polled; a blocking call from its beginning to its end. So a wait until nobody is inside never waits for a future
//! that nobody polls. A panic inside poisons the cache: others may wait for what that call had begun.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;

use afflux_linux_device::ProcessWord;

use crate::error::Error;

const OPEN: NonZeroU32 = NonZeroU32::MIN;
const CLOSED: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);
const POISONED: NonZeroU32 = NonZeroU32::MIN.saturating_add(2);

/// Calls of files with different numbers seldom count in the same word.
const STRIPES: usize = 16;

/// The gate of a cache.
pub(crate) struct Gate {
    state: ProcessWord,
    /// The message of the panic that poisoned it.
    panic: OnceLock<Arc<str>>,
    stripes: [Stripe; STRIPES],
    nobody_inside: Condvar,
    /// The mutex of the condition variable.
    leaving: Mutex<()>,
}

#[derive(Default)]
#[repr(align(128))]
struct Stripe {
    inside: AtomicU32,
    waiting: Mutex<GateWaiters>,
}

#[derive(Default)]
struct GateWaiters {
    tickets: u64,
    wakers: BTreeMap<u64, Waker>,
}

/// Counts a call as inside until it is dropped.
pub(crate) struct Inside<'a> {
    gate: &'a Gate,
    stripe: &'a Stripe,
    /// The thread panicked before: the call belongs to a drop.
    was_panicking: bool,
}

impl Gate {
    /// An open gate.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            state: ProcessWord::new(OPEN)?,
            panic: OnceLock::new(),
            stripes: Default::default(),
            nobody_inside: Condvar::new(),
            leaving: Mutex::default(),
        })
    }

    /// Whether calls may enter: costs a load.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.state.load() == OPEN.get() { Ok(()) } else { Err(self.why()) }
    }

    #[cold]
    fn why(&self) -> Error {
        match self.state.load() {
            0 => Error::Forked,
            state if state == POISONED.get() => {
                Error::Poisoned { panic: self.panic.get().cloned().unwrap_or_else(|| "panic in a call".into()) }
            }
            _ => Error::Closed,
        }
    }

    /// Whether this is a child of the process that made the cache. A child must not use the cache: its threads do not
    /// exist here, and may hold its locks.
    pub(crate) fn is_forked(&self) -> bool {
        self.state.load() == 0
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.state.load() == POISONED.get()
    }

    pub(crate) fn enter(&self, stripe: u64) -> Result<Inside<'_>, Error> {
        // This comes before the first write to memory: a child writes none.
        self.check()?;
        let stripe = self.stripe(stripe);
        stripe.inside.fetch_add(1, Ordering::SeqCst);
        let inside = Inside { gate: self, stripe, was_panicking: thread::panicking() };
        // Sequentially consistent with the closing: one of the two sees the other.
        if self.state.load_in_order() == OPEN.get() { Ok(inside) } else { Err(self.why()) }
    }

    fn stripe(&self, number: u64) -> &Stripe {
        &self.stripes[number as usize % STRIPES]
    }

    /// Does the work unless the gate closes meanwhile.
    pub(crate) async fn pass<T>(
        &self,
        stripe: u64,
        mut work: Pin<&mut impl Future<Output = Result<T, Error>>>,
    ) -> Result<T, Error> {
        let mut waiter = Waiter { stripe: self.stripe(stripe), ticket: None };
        poll_fn(|cx| {
            let _inside = match self.enter(stripe) {
                Ok(inside) => inside,
                Err(error) => return Poll::Ready(Err(error)),
            };
            let done = work.as_mut().poll(cx);
            if done.is_pending() {
                waiter.register(cx);
                // Otherwise a closing between the entry and the registration would be missed.
                if let Err(error) = self.check() {
                    return Poll::Ready(Err(error));
                }
            }
            done
        })
        .await
    }

    /// Closes it. Calls that wait inside leave.
    pub(crate) fn close(&self) {
        self.state.try_change(OPEN, CLOSED);
        self.wake_all();
    }

    /// Closes it because of a panic.
    pub(crate) fn poison(&self, task: &str, panic: &str) {
        let _ = self.panic.set(format!("panic in task '{task}': {panic}").into());
        self.close_after_panic();
    }

    fn close_after_panic(&self) {
        self.state.try_change(OPEN, POISONED);
        self.wake_all();
    }

    fn wake_all(&self) {
        for stripe in &self.stripes {
            let wakers = std::mem::take(&mut stripe.waiting().wakers);
            wakers.into_values().for_each(Waker::wake);
        }
    }

    /// Waits until no call is inside. False if the deadline passes first.
    pub(crate) fn is_empty_by(&self, deadline: Instant) -> bool {
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        while self.stripes.iter().any(|stripe| stripe.inside.load(Ordering::SeqCst) > 0) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.nobody_inside.wait_timeout(leaving, left);
            leaving = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        if thread::panicking() && !self.was_panicking {
            // The message is the unwinding thread's. Whoever catches it may add it.
            self.gate.close_after_panic();
        }
        let was = self.stripe.inside.fetch_sub(1, Ordering::SeqCst);
        if was == 1 && self.gate.state.load_in_order() != OPEN.get() {
            // The lock ensures that the waiting thread is not between its check and its wait.
            let leaving = self.gate.leaving.lock().unwrap_or_else(PoisonError::into_inner);
            self.gate.nobody_inside.notify_all();
            drop(leaving);
        }
    }
}

impl Stripe {
    fn waiting(&self) -> MutexGuard<'_, GateWaiters> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits inside, with its waker at the gate.
struct Waiter<'a> {
    stripe: &'a Stripe,
    ticket: Option<u64>,
}

impl Waiter<'_> {
    fn register(&mut self, cx: &Context<'_>) {
        let mut waiting = self.stripe.waiting();
        let ticket = self.ticket.unwrap_or(waiting.tickets);
        waiting.tickets = waiting.tickets.max(ticket + 1);
        self.ticket = Some(ticket);
        let old = waiting.wakers.insert(ticket, cx.waker().clone());
        drop(waiting);
        drop(old);
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let waker = self.stripe.waiting().wakers.remove(&ticket);
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests;
