//! Background reclaim: frees frames before anybody needs them.
//!
//! A reader whose request is on its way makes up for the frames that it took, if few are free. Whoever
//! takes frames and finds that less than the low mark is free all the same starts a task that goes ahead of
//! others, frees pages in batches until the high mark is reached, and ends. So both are paced by what is consumed, and
//! cost nothing while nothing is. A small cache has none: there the marks are a large part of all, and a batch that a
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
/// Batches that a reader frees for one request.
const MADE_UP_MAX: u64 = 8;

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
        let Background { is_on, runs, .. } = &self.background;
        let frames = &self.base.cache.frames;
        let is_enough = || frames.shared_free_count() >= frames.watermarks().low;
        if !is_on || is_enough() || runs.load(Ordering::Relaxed) {
            return;
        }
        if !self.is_given_up() && !runs.swap(true, Ordering::Relaxed) {
            let run = Run(Arc::clone(self));
            let task = async move { run.fill_up().await };
            match self.form {
                None => self.base.platform.spawn_ahead("reclaim", task),
                Some(_) => self.base.platform.spawn("reclaim", task),
            }
        }
    }

    /// Frees as many frames as a reader has just taken, whose request is on its way, if less is free than half-way between
    /// the low and the high mark. The reader would wait now anyway, and where it runs the frames are needed next: a task
    /// elsewhere would cost both more than the work.
    pub(crate) fn make_up_for(&self, taken: u64) {
        let frames = &self.base.cache.frames;
        let marks = frames.watermarks();
        let is_enough = || frames.shared_free_count() >= u32::midpoint(marks.low, marks.high);
        if !self.background.is_on || self.form.is_some() || is_enough() || self.is_given_up() {
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

    /// Whether a look at many pages was for nothing not long ago.
    fn is_given_up(&self) -> bool {
        let until = self.background.not_before_ns.load(Ordering::Relaxed);
        until > 0 && self.base.now().0 < until
    }

    fn give_up(&self) {
        let again = self.base.now().after(LOOK_AGAIN_NS);
        self.background.not_before_ns.store(again.0, Ordering::Relaxed);
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
    /// Also where a world that stops drops its tasks.
    fn drop(&mut self) {
        self.0.background.runs.store(false, Ordering::Relaxed);
    }
}
