//! Queues of waiting tasks.
//!
//! Owns: the queues, in the order of arrival. Does not own: conditions; a woken task checks its own.
//! Invariants: an entry is removed when its task is woken or gives up. A task adds its entry before it checks its
//! condition for the last time, so no wake-up is lost.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use afflux_engine::Platform;
use afflux_simulator::SimPlatform;

/// Locks a mutex of the model.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Waiter {
    woken: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Waiter {
    fn wake(&self) {
        self.woken.store(true, Ordering::Relaxed);
        let waker = lock(&self.waker).take();
        waker.into_iter().for_each(Waker::wake);
    }
}

/// A wait queue.
#[derive(Clone, Default)]
pub(crate) struct WaitQueue(Arc<Mutex<VecDeque<Arc<Waiter>>>>);

/// A task's entry in a queue: a future that ends when the task is woken.
pub(crate) struct QueueEntry {
    queue: WaitQueue,
    waiter: Arc<Waiter>,
}

impl WaitQueue {
    /// Adds an entry at the end (`prepare_to_wait`).
    pub(crate) fn enter(&self) -> QueueEntry {
        let waiter = Arc::new(Waiter::default());
        lock(&self.0).push_back(Arc::clone(&waiter));
        QueueEntry { queue: self.clone(), waiter }
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    pub(crate) fn wake_one(&self) {
        let first = lock(&self.0).pop_front();
        first.into_iter().for_each(|waiter| waiter.wake());
    }

    pub(crate) fn wake_all(&self) {
        let all = std::mem::take(&mut *lock(&self.0));
        all.into_iter().for_each(|waiter| waiter.wake());
    }
}

impl QueueEntry {
    /// Waits until woken, at most `ns`; returns whether it was woken.
    pub(crate) async fn at_most(mut self, platform: &SimPlatform, ns: u64) -> bool {
        let mut timer = pin!(platform.sleep_until(platform.now().after(ns)));
        poll_fn(|cx| match Pin::new(&mut self).poll(cx) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => timer.as_mut().poll(cx).map(|()| false),
        })
        .await
    }
}

impl Future for QueueEntry {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.waiter.woken.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        *lock(&self.waiter.waker) = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for QueueEntry {
    fn drop(&mut self) {
        lock(&self.queue.0).retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
    }
}
