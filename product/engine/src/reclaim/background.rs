//! Background reclaim: frees frames before anybody needs them.
//!
//! A reader with a request in flight makes up for the frames that it took, if few are free. A task that takes frames
//! may still find fewer free than the low mark. It then starts a task that goes ahead of others, frees pages in batches
//! up to the high mark, and ends. So consumption paces both, and without it they cost nothing. A small cache has no
//! background reclaim: the marks are a large part of it, and a batch that a reader frees itself serves it for long.
//!
//! Owns: when it starts and ends. Does not own: its state (`run_state`), which pages go (`eviction`), taking them out
//! (`reclaim`).
//! Invariants: it ends: if a thousand pages in a row cannot go, it gives up, and does not start
//! again at once.

use std::sync::Arc;

use afflux_device::platform::Platform;

use super::{BATCH, LOOK_AGAIN_NS, Reclaim};

/// Fruitless looks at pages in a row after which it ends.
const FRUITLESS_MAX: u64 = 1024;
/// Batches that a reader frees for one request.
const MADE_UP_MAX: u64 = 8;

struct Run<P: Platform>(Arc<Reclaim<P>>);

impl<P: Platform> Reclaim<P> {
    /// Whether frames are freed in the background.
    pub(crate) fn has_background(&self) -> bool {
        self.background.is_on()
    }

    /// Starts background reclaim if too few frames are free. Costs two loads if there are enough.
    pub(crate) fn look_ahead(self: &Arc<Self>) {
        let frames = &self.base.cache.frames;
        let is_enough = || frames.shared_free_count() >= frames.watermarks().low;
        if !self.background.may_run() || is_enough() || self.is_given_up() {
            return;
        }
        if self.background.try_run() {
            let run = Run(Arc::clone(self));
            let task = async move { run.fill_up().await };
            self.base.platform.spawn_ahead("reclaim", task);
        }
    }

    /// Frees as many frames as a reader with a request in flight has just taken, if fewer are free than halfway between
    /// the low and the high mark. The reader would wait now anyway, and its CPU needs the frames next: a task elsewhere
    /// would cost both more than the work.
    pub(crate) fn make_up_for(&self, taken: u64) {
        let frames = &self.base.cache.frames;
        let marks = frames.watermarks();
        let is_enough = || frames.shared_free_count() >= u32::midpoint(marks.low, marks.high);
        if !self.background.is_on() || is_enough() || self.is_given_up() {
            return;
        }
        for _ in 0..taken.div_ceil(BATCH as u64).min(MADE_UP_MAX) {
            if self.evict(BATCH).pages == 0 {
                return self.give_up();
            }
            if is_enough() {
                return;
            }
        }
    }

    fn is_given_up(&self) -> bool {
        self.background.is_given_up(|| self.base.now())
    }

    fn give_up(&self) {
        self.background.give_up_until(self.base.now().after(LOOK_AGAIN_NS));
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
                return reclaim.give_up();
            }
            reclaim.base.pass().await;
        }
    }
}

impl<P: Platform> Drop for Run<P> {
    /// Also runs if a world that stops drops its tasks.
    fn drop(&mut self) {
        self.0.background.end_run();
    }
}
