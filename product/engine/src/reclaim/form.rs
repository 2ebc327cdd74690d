//! Forms of reclaim other than the engine's own: how much a task that finds no frame frees itself.
//!
//! Owns: the seam, and the passes of one reclaim under a form. Does not own: any form (those of kernels are in
//! `linux-policies`); which pages go (`eviction`), taking them out and the wait for a frame (`reclaim`).
//! Invariants: a reclaim ends under any form: with nothing left to look at, or after looks that go round all pages
//! twice. Without a form nothing here runs.

use afflux_frames::Watermarks;

use super::{BATCH, Reclaim};
use crate::platform::{Nanos, Platform};

/// The state of a task's reclaim between two of its passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passes {
    /// Passes made.
    pub made: u32,
    /// Pages looked at.
    pub scanned: u64,
    /// Pages evicted.
    pub reclaimed: u64,
    /// When it began.
    pub began: Nanos,
    /// Now.
    pub now: Nanos,
    /// Free frames.
    pub free: u32,
    /// Pages in the cache.
    pub cached: u64,
    /// The marks on free frames.
    pub marks: Watermarks,
}

/// Decides how long a task that finds no frame frees pages. With a form in place of the engine's own, readers do not
/// make up for the frames they took. Background reclaim is then an ordinary task, which does not go ahead of readers.
pub trait ReclaimForm: Send + Sync + 'static {
    /// Pages to look at in the next pass; 0 to stop.
    fn next_pass(&self, so_far: &Passes) -> u64;
}

impl<P: Platform> Reclaim<P> {
    /// A task's reclaim under the form.
    pub(super) async fn reclaim_by(&self, form: &dyn ReclaimForm) {
        let (cache, began) = (&self.base.cache, self.base.now());
        let (mut made, mut scanned, mut reclaimed) = (0, 0, 0);
        let looks_max = 2 * cache.total_pages();
        loop {
            let (free, now, marks) = (cache.frames.shared_free_count(), self.base.now(), cache.frames.watermarks());
            let cached = cache.total_pages() - u64::from(cache.frames.free_count());
            let mut left = form.next_pass(&Passes { made, scanned, reclaimed, began, now, free, cached, marks });
            if left == 0 {
                return;
            }
            while left > 0 {
                let evicted = self.evict(BATCH.min(left as usize));
                scanned += evicted.scanned;
                reclaimed += evicted.pages as u64;
                if evicted.scanned == 0 || scanned >= looks_max {
                    return;
                }
                left = left.saturating_sub(evicted.scanned);
                // A simulated CPU may be lost here, as a real one may at any time.
                self.base.platform.between_requests().await;
            }
            made += 1;
        }
    }
}
