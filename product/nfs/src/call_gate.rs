//! The gate that holds all calls back while the clients of an earlier server come back.
//!
//! Owns: whether calls may start, the tasks that wait for it.
//! Does not own: the return of clients (`v4::service`), the calls (`connection`).
//! Invariants: the gate opens once, and never shuts again. A task that found it shut is woken when it opens
//! (`a_file_that_is_gone_ends_its_opens_before_the_first_answer`).

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Open from the start, unless somebody shuts it before the first call.
#[derive(Default)]
pub(crate) struct CallGate {
    is_shut: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl CallGate {
    /// Holds all calls back from now on.
    pub(crate) fn shut(&self) {
        self.is_shut.store(true, Ordering::Release);
    }

    /// Lets calls start.
    pub(crate) fn open(&self) {
        let waiting = {
            let mut waiting = self.waiting();
            self.is_shut.store(false, Ordering::Release);
            std::mem::take(&mut *waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Ready once calls may start.
    #[inline]
    pub(crate) fn poll_open(&self, cx: &Context<'_>) -> Poll<()> {
        if self.is_shut.load(Ordering::Acquire) { self.poll_shut(cx) } else { Poll::Ready(()) }
    }

    #[cold]
    fn poll_shut(&self, cx: &Context<'_>) -> Poll<()> {
        let mut waiting = self.waiting();
        if !self.is_shut.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        if !waiting.iter().any(|known| known.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Waits until calls may start.
    pub(crate) fn opened(&self) -> impl Future<Output = ()> + Send + '_ {
        poll_fn(|cx| self.poll_open(cx))
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
