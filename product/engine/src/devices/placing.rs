//! Whether a device's dirty pages have their place there, once space gets small.
//!
//! Owns: the stage, and the waiters for its change. Does not own: the pass over the files, or when space is small
//! (`writing`).
//! Invariants: one pass runs at a time. Its end wakes all waiters, also if it failed.

use std::sync::atomic::{AtomicU8, Ordering};

use afflux_pages::wait::WaitQueue;

/// There is plenty of space: no writer asks for a place.
const PLENTY: u8 = 0;
/// A pass gives dirty pages their places.
const RUNNING: u8 = 1;
/// The pass has ended.
const ENDED: u8 = 2;

/// The stage of one device.
#[derive(Default)]
pub(crate) struct Placing {
    stage: AtomicU8,
    ended: WaitQueue,
}

impl Placing {
    /// Whether a pass has begun since there was plenty of space.
    pub(crate) fn has_begun(&self) -> bool {
        self.stage.load(Ordering::Acquire) != PLENTY
    }

    /// There is plenty of space again. When it gets small the next time, a new pass runs.
    pub(crate) fn forget(&self) {
        let _ = self.stage.compare_exchange(ENDED, PLENTY, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether the caller has to run the pass.
    pub(crate) fn try_begin(&self) -> bool {
        self.stage.compare_exchange(PLENTY, RUNNING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The pass has ended.
    pub(crate) fn ends(&self) {
        self.stage.store(ENDED, Ordering::Release);
        self.ended.wake_all();
    }

    /// Waits while a pass runs.
    pub(crate) async fn wait(&self) {
        self.ended.until(|| (self.stage.load(Ordering::Acquire) != RUNNING).then_some(())).await;
    }
}
