//! Reclaim in passes, as in a kernel: how much a task that finds no frame frees itself.
//!
//! Owns: the passes of one reclaim. Does not own: their sizes (the kernel's); which pages go (`eviction`), taking them
//! out and the wait for a frame (`reclaim`).
//! Invariants: a reclaim ends under any kernel: with nothing left to look at, or after looks that go round all pages
//! twice.

use super::{OldKernel, Passes};
use crate::platform::Platform;
use crate::reclaim::{BATCH, Reclaim};

impl<P: Platform> Reclaim<P> {
    /// A task's reclaim under the kernel.
    pub(crate) async fn reclaim_in_passes(&self, kernel: &dyn OldKernel) {
        let (cache, began) = (&self.base.cache, self.base.now());
        let (mut made, mut scanned, mut reclaimed) = (0, 0, 0);
        let looks_max = 2 * cache.total_pages();
        loop {
            let (free, now, marks) = (cache.frames.shared_free_count(), self.base.now(), cache.frames.watermarks());
            let cached = cache.total_pages() - u64::from(cache.frames.free_count());
            let mut left = kernel.next_pass(&Passes { made, scanned, reclaimed, began, now, free, cached, marks });
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
