//! The end of a file, one who appends at a time.
//!
//! Owns: whose turn it is, the wakers of those that wait.
//! Does not own: the file's size (the engine).
//! Invariants: who goes away while waiting, or while it has its turn, strands nobody.

use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

/// The turns.
#[derive(Default)]
pub(crate) struct Tail(Mutex<State>);

#[derive(Default)]
struct State {
    taken: bool,
    waiting: Vec<Waker>,
}

/// A turn; it ends when this is dropped.
pub(crate) struct Turn<'a>(&'a Tail);

impl Tail {
    /// Waits for a turn. Whoever looks first when one ends has the next.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        poll_fn(|cx| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if !state.taken {
                state.taken = true;
                return Poll::Ready(Turn(self));
            }
            if !state.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.taken = false;
        // All: the first of them may have gone away.
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests;
