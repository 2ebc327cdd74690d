//! Appends to a file, one at a time.
//!
//! Owns: the turn, the wakers of waiting appends.
//! Does not own: the file's size (the engine).
//! Invariants: dropping a waiting append, or one that has the turn, blocks no further append.

use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

#[derive(Default)]
pub(crate) struct Tail(Mutex<TailState>);

#[derive(Default)]
struct TailState {
    taken: bool,
    waiting: Vec<Waker>,
}

/// A turn; it ends when this is dropped.
pub(crate) struct TailGuard<'a>(&'a Tail);

impl Tail {
    /// Waits for a turn. When one ends, the first task that looks gets the next.
    pub(crate) async fn enter(&self) -> TailGuard<'_> {
        poll_fn(|cx| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if !state.taken {
                state.taken = true;
                return Poll::Ready(TailGuard(self));
            }
            if !state.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}

impl Drop for TailGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.taken = false;
        // All are woken, since the first of them may be gone.
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests;
