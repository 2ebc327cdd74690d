//! Background reclaim: frees frames before anybody needs them.
//!
//! Whoever takes frames and finds that less than the low mark is free starts it; it is a task that goes ahead of
//! others, frees pages in batches until the high mark is reached, and ends. So it is paced by what is consumed, and
//! costs nothing while nothing is. A small cache has none: there the marks are a large part of all, and a batch that a
//! reader frees itself serves it for long.
//!
//! Owns: when it starts and ends. Does not own: which pages go (`eviction`), taking them out (`reclaim`).
//! Invariants: one task at a time. It ends: it is given up where a thousand pages in a row could not go, and does not
//! start again at once then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{BATCH, LOOK_AGAIN_NS, Reclaim};
use crate::platform::Platform;

/// The smallest cache that has it: 4 MiB.
const FRAMES_MIN: u32 = 1024;
/// Pages looked at in a row of which none could go, after which it ends.
const FRUITLESS_MAX: u64 = 1024;

/// Whether it runs.
pub(super) struct Background {
    is_on: bool,
    runs: AtomicBool,
    /// Not to be started before: the last run was given up.
    not_before_ns: AtomicU64,
}

/// A run of it.
struct Run<P: Platform>(Arc<Reclaim<P>>);

impl Background {
    pub(super) fn new(frames: u32) -> Self {
        Self { is_on: frames >= FRAMES_MIN, runs: AtomicBool::new(false), not_before_ns: AtomicU64::new(0) }
    }
}

impl<P: Platform> Reclaim<P> {
    /// Whether frames are freed in the background.
    pub(crate) fn has_background(&self) -> bool {
        self.background.is_on
    }

    /// Starts it if too little is free. Costs two loads where there is enough.
    pub(crate) fn look_ahead(self: &Arc<Self>) {
        let Background { is_on, runs, not_before_ns } = &self.background;
        let frames = &self.base.cache.frames;
        let is_enough = || frames.shared_free_count() >= frames.low_watermark();
        if !is_on || is_enough() || runs.load(Ordering::Relaxed) {
            return;
        }
        let is_early = self.base.now().0 < not_before_ns.load(Ordering::Relaxed);
        if !is_early && !runs.swap(true, Ordering::Relaxed) {
            let run = Run(Arc::clone(self));
            self.base.platform.spawn_ahead("reclaim", async move { run.fill_up().await });
        }
    }
}

impl<P: Platform> Run<P> {
    /// Frees frames up to the high mark.
    async fn fill_up(&self) {
        let Self(reclaim) = self;
        let frames = &reclaim.base.cache.frames;
        let high = frames.watermarks().high;
        let mut fruitless = 0;
        while frames.shared_free_count() < high {
            let evicted = reclaim.evict(BATCH);
            fruitless = if evicted.pages > 0 { 0 } else { fruitless + evicted.scanned };
            if evicted.scanned == 0 || fruitless >= FRUITLESS_MAX {
                let again = reclaim.base.now().after(LOOK_AGAIN_NS);
                reclaim.background.not_before_ns.store(again.0, Ordering::Relaxed);
                return;
            }
            reclaim.base.pass().await;
        }
    }
}

impl<P: Platform> Drop for Run<P> {
    /// Also where a world that stops drops its tasks.
    fn drop(&mut self) {
        self.0.background.runs.store(false, Ordering::Relaxed);
    }
}
