//! Whether background reclaim runs, or may.
//!
//! Owns: that state. Does not own: the task (`background`), the free frames that decide.
//! Invariants: one task at a time. After it gave up none starts before the instant that it set.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use afflux_device::platform::Nanos;

/// The smallest cache with background reclaim: 4 MiB.
const FRAMES_MIN: u32 = 1024;

pub(super) struct RunState {
    is_on: bool,
    runs: AtomicBool,
    /// No start before this: the last run gave up.
    not_before_ns: AtomicU64,
}

impl RunState {
    pub(super) fn new(frames: u32) -> Self {
        Self { is_on: frames >= FRAMES_MIN, runs: AtomicBool::new(false), not_before_ns: AtomicU64::new(0) }
    }

    /// Whether the cache has background reclaim at all.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether a task could be started: none runs.
    pub(super) fn may_run(&self) -> bool {
        self.is_on && !self.runs.load(Ordering::Relaxed)
    }

    /// Claims the run for the caller, which starts the task. False if another has it.
    pub(super) fn try_run(&self) -> bool {
        !self.runs.swap(true, Ordering::Relaxed)
    }

    pub(super) fn end_run(&self) {
        self.runs.store(false, Ordering::Relaxed);
    }

    /// Whether a look at many pages was fruitless not long ago. Asks for the time only then.
    pub(super) fn is_given_up(&self, now: impl FnOnce() -> Nanos) -> bool {
        let until = self.not_before_ns.load(Ordering::Relaxed);
        until > 0 && now().0 < until
    }

    pub(super) fn give_up_until(&self, until: Nanos) {
        self.not_before_ns.store(until.0, Ordering::Relaxed);
    }
}
