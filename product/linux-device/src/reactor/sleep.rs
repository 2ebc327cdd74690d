//! The future that waits for a deadline.
//!
//! Owns: its deadline, which it removes when it is dropped.
//! Does not own: the table of deadlines (`timers`).
//! Invariants: a sleep never ends early; a dropped sleep leaves no deadline behind.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use afflux_engine::Nanos;

use super::timers::TimerKey;
use super::{Mail, Reactor, Remote};
use crate::clock;

/// Ends at its deadline. The reactor of the polling thread holds the timer, or `home` if that thread has none.
pub struct Sleep {
    deadline: Nanos,
    home: Arc<Remote>,
    set: Option<(Arc<Remote>, TimerKey)>,
}

impl Sleep {
    /// A sleep that nobody has polled yet.
    pub fn new(deadline: Nanos, home: Arc<Remote>) -> Self {
        Self { deadline, home, set: None }
    }

    fn forget(&mut self) {
        let Some((remote, key)) = self.set.take() else { return };
        let here = Reactor::with_current(|reactor| {
            let own = Arc::ptr_eq(&remote, &reactor.remote);
            // The waker is dropped after the borrow: its drop may run any code.
            own.then(|| reactor.timers.borrow_mut().forget(key))
        });
        if here.flatten().is_none() {
            let _ = remote.send(Mail::Run(Box::new(move |reactor| {
                let waker = reactor.timers.borrow_mut().forget(key);
                drop(waker);
            })));
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if clock::monotonic() >= self.deadline {
            self.forget();
            return Poll::Ready(());
        }
        let here = Reactor::with_current(|reactor| Arc::clone(&reactor.remote));
        let remote = here.clone().unwrap_or_else(|| Arc::clone(&self.home));
        if self.set.as_ref().is_some_and(|(before, _)| !Arc::ptr_eq(before, &remote)) {
            self.forget();
        }
        let deadline = self.deadline;
        let (_, key) =
            self.set.get_or_insert_with(|| (Arc::clone(&remote), (deadline, NEXT.fetch_add(1, Ordering::Relaxed))));
        let (key, waker) = (*key, cx.waker().clone());
        if here.is_some() {
            let before = Reactor::with_current(|reactor| reactor.timers.borrow_mut().set(key, waker));
            drop(before);
        } else {
            let sent = remote.send(Mail::Run(Box::new(move |reactor| {
                let before = reactor.timers.borrow_mut().set(key, waker);
                drop(before);
            })));
            // No reactor remains for the timer; this happens only after a platform has stopped.
            drop(sent);
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.forget();
    }
}
