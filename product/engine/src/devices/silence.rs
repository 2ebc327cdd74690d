//! Whether a device has completed nothing for so long that it counts as hung, and what follows for its writers.
//!
//! Owns: the state, who is told of it, the refusal of writers and syncs.
//! Does not own: for how long (the policy), the looking (`writeback::silence`), when something ended last (`busy`).
//! Invariants: whatever ends takes the state back, in the same step. A refusal drops nothing: what is dirty stays so.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use crate::error::{DeviceError, Error};
use crate::wait::{Signal, WaitQueue};

/// A device's.
pub(crate) struct Silent {
    stalled: AtomicBool,
    refuses: AtomicBool,
    /// Something is in flight and looked at, or nobody wants to look.
    watched: AtomicBool,
    /// Whoever looks should do so now.
    pub(crate) look: Signal,
    refused: WaitQueue,
}

impl Silent {
    /// Nobody looks.
    pub(super) fn new() -> Self {
        Self {
            stalled: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
            watched: AtomicBool::new(true),
            look: Signal::new(),
            refused: WaitQueue::new(),
        }
    }

    /// It has completed nothing for too long.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed)
    }

    /// And for so long that nobody is to wait for it.
    pub(crate) fn refuses(&self) -> bool {
        self.refuses.load(Ordering::Relaxed)
    }

    /// Something is in flight.
    pub(super) fn begins(&self) {
        if !self.watched.load(Ordering::Relaxed) && !self.watched.swap(true, Ordering::Relaxed) {
            self.look.raise();
        }
    }

    /// Something has ended.
    pub(super) fn ends(&self) {
        if self.is_stalled() {
            self.set(false, false);
            self.look.raise();
        }
    }

    pub(super) fn set_watched(&self, watched: bool) {
        self.watched.store(watched, Ordering::Relaxed);
    }

    /// The caller shows by its lock that nothing ends meanwhile, or that something has.
    pub(super) fn set(&self, stalled: bool, refuses: bool) {
        self.stalled.store(stalled, Ordering::Relaxed);
        self.refuses.store(refuses, Ordering::Relaxed);
    }

    /// Those who wait look whether they are refused.
    pub(super) fn tell(&self) {
        self.refused.wake_all();
    }

    /// Whether it refuses work now.
    ///
    /// # Errors
    /// If it does.
    pub(crate) fn takes_work(&self) -> Result<(), Error> {
        if self.refuses() { Err(DeviceError::Hung.into()) } else { Ok(()) }
    }

    /// Does the work as far as it waits for nothing, and the rest unless the device refuses that meanwhile.
    pub(crate) async fn unless_refused<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let (mut work, mut refusal) = (pin!(work), pin!(self.refused.until(|| self.takes_work().err())));
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => refusal.as_mut().poll(cx).map(Err),
        })
        .await
    }
}
