//! Calls that wait and can be interrupted.
//!
//! Owns: the list of them, by the request's number, with their threads; the choice of who answers a call: the call
//! itself or its interrupter.
//! Does not own: the moment of an interrupt (`answering`).
//! Invariants: a call is in the list while its future lives, and is taken out by its end or its drop. A call has one
//! answer: its own, or the interrupter's if a thread was inside the call then.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::future::poll_fn;

#[derive(Default)]
pub(crate) struct Interrupts(Mutex<BTreeMap<u64, Arc<Call>>>);

/// The maker of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requester {
    /// The thread of the program.
    pub(crate) thread: u32,
    /// An interrupt ends its call at once: the call has begun nothing.
    pub(crate) expects_interrupts: bool,
}

struct Call {
    requester: Requester,
    stage: Mutex<Stage>,
}

enum Stage {
    /// A thread is inside it. The host may hold up this thread.
    Polled,
    Waits(Waker),
    Interrupted,
    /// The interrupter has answered.
    Answered,
}

/// The end of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallEnd<T> {
    /// With its outcome.
    Itself(T),
    /// By an interrupt: the call itself answers.
    Interrupted,
    /// The interrupter has answered it meanwhile. The outcome, if there is one, reaches nobody.
    Late(Option<T>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Interrupts {
    /// Runs a call of a program, until it is interrupted. The caller pins the call: an async function that pins an
    /// argument reserves memory for it twice.
    pub(crate) async fn run<T>(
        &self,
        unique: u64,
        requester: Requester,
        mut call: Pin<&mut impl Future<Output = T>>,
    ) -> CallEnd<T> {
        let listed = Arc::new(Call { requester, stage: Mutex::new(Stage::Polled) });
        lock(&self.0).insert(unique, Arc::clone(&listed));
        let _listed = Listed { interrupts: self, unique };
        poll_fn(|cx| poll_staged(&listed.stage, cx, |cx| call.as_mut().poll(cx))).await
    }

    /// The maker of a call, until the call has ended.
    pub(crate) fn requester(&self, unique: u64) -> Option<Requester> {
        lock(&self.0).get(&unique).map(|call| call.requester)
    }

    /// Interrupts a call that has not ended. True if its answer is now the caller's: the host may hold up the call's
    /// thread.
    pub(crate) fn try_take_answer(&self, unique: u64) -> bool {
        let Some(call) = lock(&self.0).remove(&unique) else { return false };
        let mut stage = lock(&call.stage);
        match std::mem::replace(&mut *stage, Stage::Interrupted) {
            Stage::Waits(waker) => {
                drop(stage);
                waker.wake();
                false
            }
            Stage::Polled => {
                *stage = Stage::Answered;
                true
            }
            Stage::Interrupted | Stage::Answered => false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.0).len()
    }
}

fn poll_staged<T>(
    stage: &Mutex<Stage>,
    cx: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<CallEnd<T>> {
    if let Stage::Interrupted = std::mem::replace(&mut *lock(stage), Stage::Polled) {
        return Poll::Ready(CallEnd::Interrupted);
    }
    let polled = poll(cx);
    let mut stage = lock(stage);
    match (&*stage, polled) {
        (Stage::Answered, polled) => {
            let late = match polled {
                Poll::Ready(outcome) => Some(outcome),
                Poll::Pending => None,
            };
            Poll::Ready(CallEnd::Late(late))
        }
        (_, Poll::Ready(outcome)) => {
            *stage = Stage::Interrupted;
            Poll::Ready(CallEnd::Itself(outcome))
        }
        (_, Poll::Pending) => {
            *stage = Stage::Waits(cx.waker().clone());
            Poll::Pending
        }
    }
}

struct Listed<'a> {
    interrupts: &'a Interrupts,
    unique: u64,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        lock(&self.interrupts.0).remove(&self.unique);
    }
}

#[cfg(test)]
mod tests;
