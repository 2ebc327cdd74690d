//! Background reclaim: frees frames before anybody needs them.
//!
//! Whoever takes frames and finds that less than the low mark is free starts it; it is a task that goes ahead of
//! others, frees pages in batches until the high mark is reached, and ends. So it is paced by what is consumed, and
//! costs nothing while nothing is. A small cache has none: there the marks are a large part of all, and a batch that a
//! reader frees itself serves it for long.
//!
//! Owns: when it starts and ends. Does not own: which pages go (`eviction`), taking them out (`reclaim`).
//! Invariants: one task at a time. It ends: each page is looked at twice at most. If it freed nothing, it does not
//! start again at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{BATCH, LOOK_AGAIN_NS, Reclaim};
use crate::platform::Platform;

/// The smallest cache that has it: 16 MiB.
const FRAMES_MIN: u32 = 4096;

/// Whether it runs.
pub(super) struct Background {
    is_on: bool,
    runs: AtomicBool,
    /// Not to be started before: the last run freed nothing.
    not_before_ns: AtomicU64,
}

impl Background {
    pub(super) fn new(frames: u32) -> Self {
        Self { is_on: frames >= FRAMES_MIN, runs: AtomicBool::new(false), not_before_ns: AtomicU64::new(0) }
    }
}

impl<P: Platform> Reclaim<P> {
    /// Whether frames are freed in the background.
    pub(super) fn has_background(&self) -> bool {
        self.background.is_on
    }

    /// Starts it if too little is free. Costs two loads where there is enough.
    pub(super) fn look_ahead(self: &Arc<Self>) {
        let frames = &self.base.cache.frames;
        if !self.background.is_on || frames.shared_free_count() >= frames.low_watermark() {
            return;
        }
        let is_early = || self.base.now().0 < self.background.not_before_ns.load(Ordering::Relaxed);
        if !self.background.runs.load(Ordering::Relaxed)
            && !is_early()
            && !self.background.runs.swap(true, Ordering::Relaxed)
        {
            let reclaim = Arc::clone(self);
            self.base.platform.spawn_ahead("reclaim", async move { reclaim.fill_up().await });
        }
    }

    /// Frees frames up to the high mark.
    async fn fill_up(&self) {
        let frames = &self.base.cache.frames;
        let high = frames.watermarks().high;
        let (mut left, mut freed) = (2 * self.base.cache.total_pages(), 0);
        while frames.shared_free_count() < high && left > 0 {
            let evicted = self.evict(BATCH);
            if evicted.scanned == 0 {
                break;
            }
            left = left.saturating_sub(evicted.scanned);
            freed += evicted.pages;
            self.base.pass().await;
        }
        if freed == 0 {
            self.background.not_before_ns.store(self.base.now().after(LOOK_AGAIN_NS).0, Ordering::Relaxed);
        }
        self.background.runs.store(false, Ordering::Relaxed);
    }
}
