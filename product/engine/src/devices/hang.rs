//! Whether a device has completed nothing for so long that it counts as hung, and the effect on its writers.
//!
//! Owns: the state, its listeners, the refusal of writers and syncs.
//! Does not own: the time limits (the policy), the looking (`writeback::hang_watch`), the last completion (`usage`).
//! Invariants: any completion resets the state, in the same step. A refusal drops nothing: dirty data stays dirty.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use afflux_device::error::{DeviceError, Error};
use afflux_pages::wait::{Signal, WaitQueue};

/// The state of a device that may hang, with its waiters.
pub(crate) struct HangState {
    stalled: Arc<AtomicBool>,
    refuses: AtomicBool,
    /// The policy refuses callers at some time during a hang. It says so when a knob changes.
    may_refuse: AtomicBool,
    /// Requests are in flight and watched, or no watcher wants to check.
    watched: AtomicBool,
    /// Raised when the watcher should check now.
    look: Signal,
    refused: WaitQueue,
}

impl HangState {
    /// No watcher checks.
    pub(super) fn new() -> Self {
        Self {
            stalled: Arc::default(),
            refuses: AtomicBool::new(false),
            may_refuse: AtomicBool::new(true),
            watched: AtomicBool::new(true),
            look: Signal::new(),
            refused: WaitQueue::new(),
        }
    }

    /// Whether the device has completed nothing for too long, now and later.
    pub(super) fn stalled(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stalled)
    }

    /// Whether the device has completed nothing for too long.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed)
    }

    /// Whether that has lasted so long that callers are not to wait for the device.
    pub(crate) fn is_refusing(&self) -> bool {
        self.refuses.load(Ordering::Relaxed)
    }

    /// Whether callers are refused at some time during a hang, so that they must be able to go.
    pub(crate) fn may_refuse(&self) -> bool {
        self.may_refuse.load(Ordering::Relaxed)
    }

    pub(super) fn set_may_refuse(&self, may_refuse: bool) {
        self.may_refuse.store(may_refuse, Ordering::Relaxed);
    }

    /// Raised when the watcher should check now.
    pub(crate) fn look(&self) -> &Signal {
        &self.look
    }

    /// A request is in flight.
    pub(super) fn begins(&self) {
        if !self.watched.load(Ordering::Relaxed) && !self.watched.swap(true, Ordering::Relaxed) {
            self.look.raise();
        }
    }

    /// A request has ended.
    pub(super) fn ends(&self) {
        if self.is_stalled() {
            self.set(false, false);
            self.look.raise();
        }
    }

    pub(super) fn set_watched(&self, watched: bool) {
        self.watched.store(watched, Ordering::Relaxed);
    }

    /// The caller's lock shows that no request ends meanwhile, or that one has ended.
    pub(super) fn set(&self, stalled: bool, refuses: bool) {
        self.stalled.store(stalled, Ordering::Relaxed);
        self.refuses.store(refuses, Ordering::Relaxed);
    }

    /// Wakes waiters to check whether they are refused.
    pub(super) fn wake_waiters(&self) {
        self.refused.wake_all();
    }

    /// Checks that the device does not refuse work now.
    ///
    /// # Errors
    /// If the device refuses work.
    pub(crate) fn takes_work(&self) -> Result<(), Error> {
        if self.is_refusing() { Err(DeviceError::Hung.into()) } else { Ok(()) }
    }

    /// Does the work as far as it does not wait, and the rest unless the device refuses work meanwhile. The caller pins
    /// the work: an async function that pins an argument reserves memory for it twice.
    pub(crate) async fn unless_refused<T>(
        &self,
        mut work: Pin<&mut impl Future<Output = Result<T, Error>>>,
    ) -> Result<T, Error> {
        let mut refusal = pin!(self.refused.until(|| self.takes_work().err()));
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => refusal.as_mut().poll(cx).map(Err),
        })
        .await
    }
}
