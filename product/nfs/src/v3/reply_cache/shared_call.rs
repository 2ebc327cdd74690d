//! A call whose reply several transmissions get.
//!
//! Owns: the running call, its reply, the tasks that wait for the reply.
//! Does not own: which calls are cached (`reply_cache`).
//! Invariants: each task that awaits the call may drive it, one at a time. A wake of the call reaches each task that
//! waits, and runs their wakers without a lock: a waker may poll the call at once
//! (`a_waker_that_polls_the_call_at_once_finds_no_lock`). A panic of the call is not caught: it ends the process.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::status::NfsStatus;

/// A reply that can be sent more than once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CachedReply {
    pub(crate) record: Bytes,
    pub(crate) status: NfsStatus,
}

/// A running or answered call; any task that awaits it drives it. Must not own the cache.
#[derive(Clone)]
pub(crate) struct SharedCall(Arc<Shared>);

struct Shared(Mutex<Running>);

struct Running {
    stage: Stage,
    /// The tasks that wait for the reply, each once.
    waiting: Vec<Waker>,
    /// The call was woken while a task polled it.
    is_woken: bool,
}

enum Stage {
    Waits(BoxFuture<'static, CachedReply>),
    /// A task polls it.
    Polled,
    Answered(CachedReply),
}

impl SharedCall {
    pub(super) fn new(call: BoxFuture<'static, CachedReply>) -> Self {
        let running = Running { stage: Stage::Waits(call), waiting: Vec::new(), is_woken: false };
        Self(Arc::new(Shared(Mutex::new(running))))
    }

    pub(super) fn is_answered(&self) -> bool {
        matches!(self.0.lock().stage, Stage::Answered(_))
    }

    /// The reply, if the call has it; or the call, for this task to poll.
    fn begin(&self, waker: &Waker) -> Poll<Result<CachedReply, BoxFuture<'static, CachedReply>>> {
        let mut running = self.0.lock();
        if let Stage::Answered(reply) = &running.stage {
            return Poll::Ready(Ok(reply.clone()));
        }
        if !running.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
            running.waiting.push(waker.clone());
        }
        match mem::replace(&mut running.stage, Stage::Polled) {
            Stage::Waits(call) => {
                running.is_woken = false;
                Poll::Ready(Err(call))
            }
            _ => Poll::Pending,
        }
    }
}

impl Future for SharedCall {
    type Output = CachedReply;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CachedReply> {
        let mut call = match self.begin(cx.waker()) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(reply)) => return Poll::Ready(reply),
            Poll::Ready(Err(call)) => call,
        };
        let own = Waker::from(Arc::clone(&self.0));
        match call.as_mut().poll(&mut Context::from_waker(&own)) {
            Poll::Ready(reply) => {
                drop(call);
                self.0.go_on(Stage::Answered(reply.clone()), Some(cx.waker()));
                Poll::Ready(reply)
            }
            Poll::Pending => {
                self.0.go_on(Stage::Waits(call), None);
                Poll::Pending
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a poll. Wakes the tasks that wait if there is a reply for them, or a wake came meanwhile.
    fn go_on(&self, stage: Stage, but: Option<&Waker>) {
        let mut running = self.lock();
        let wakes = mem::take(&mut running.is_woken) || matches!(stage, Stage::Answered(_));
        running.stage = stage;
        let waiting = if wakes { mem::take(&mut running.waiting) } else { Vec::new() };
        drop(running);
        let others = waiting.into_iter().filter(|waker| !but.is_some_and(|own| own.will_wake(waker)));
        others.for_each(Waker::wake);
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        let mut running = self.lock();
        match running.stage {
            Stage::Polled => running.is_woken = true,
            Stage::Answered(_) => {}
            Stage::Waits(_) => {
                let waiting = mem::take(&mut running.waiting);
                drop(running);
                waiting.into_iter().for_each(Waker::wake);
            }
        }
    }
}

#[cfg(test)]
mod tests;
