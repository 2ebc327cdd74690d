//! Work that runs to its end, even if its waiter goes away.
//!
//! Owns: passing the result from the task that does the work to the waiting one.
//! Does not own: the task (the platform's), or the work.
//! Invariants: the waiter always ends: with the result, or without one if the task was dropped
//! unfinished.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use afflux_engine::Platform;
use futures_util::FutureExt;

enum Slot<T> {
    Empty(Option<Waker>),
    Full(T),
    /// The result was taken, or will never come.
    Closed,
}

struct Sender<T>(Arc<Mutex<Slot<T>>>);

impl<T> Sender<T> {
    fn put(&self, slot: Slot<T>) {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Slot::Empty(waker) = &mut *shared {
            let waker = waker.take();
            *shared = slot;
            drop(shared);
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.put(Slot::Closed);
    }
}

struct Receiver<T>(Arc<Mutex<Slot<T>>>);

impl<T> Future for Receiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *slot, Slot::Closed) {
            Slot::Full(value) => Poll::Ready(Some(value)),
            Slot::Closed => Poll::Ready(None),
            Slot::Empty(_) => {
                *slot = Slot::Empty(Some(cx.waker().clone()));
                Poll::Pending
            }
        }
    }
}

/// Runs `work` as a task of its own, from the call on. The result is its result: `None` if the platform dropped it.
///
/// The work is moved once, to the task: a future that waits for its result reserves no memory for it.
pub(crate) fn to_the_end<P, T, F>(
    platform: &P,
    name: &'static str,
    work: F,
) -> impl Future<Output = Option<T>> + Send + use<P, T, F>
where
    P: Platform,
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let slot = Arc::new(Mutex::new(Slot::Empty(None)));
    let sender = Sender(Arc::clone(&slot));
    platform.spawn_near(name, work.map(move |value| sender.put(Slot::Full(value))));
    Receiver(slot)
}
