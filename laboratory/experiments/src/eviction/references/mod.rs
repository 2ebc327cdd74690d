//! Policies for comparison that run in this study only: FIFO, LRU, ARC, S3-FIFO, SIEVE, Belady's.
//!
//! Owns: the study's cache trait and these six. Does not own: the policies of the engine (`ours`).
//! Invariants: a cache never holds more pages than it has frames. As in the engine, the first touch of a page read
//! ahead is the use that the readahead was for, and says nothing about the page's popularity.

mod arc;
mod belady;
mod lists;
mod queue;
mod s3_fifo;
mod sieve;

use afflux_workloads::touches::Touch;

pub(super) use arc::Arc;
pub(super) use belady::Belady;
pub(super) use queue::Queue;
pub(super) use s3_fifo::S3Fifo;
pub(super) use sieve::Sieve;

/// A cache of numbered pages under some policy.
pub(super) trait Cache {
    /// Requests a page: returns whether it is in the cache, and counts a use if it is.
    fn touch(&mut self, page: u32) -> bool {
        let there = self.holds(page);
        if there {
            self.used(page);
        }
        there
    }

    /// A page of the cache is used.
    fn used(&mut self, page: u32);

    /// Brings in a page that is not in the cache; evicts another if no frame is free.
    fn insert(&mut self, page: u32, ahead: bool);

    /// Whether a page is in the cache; counts no use.
    fn holds(&self, page: u32) -> bool;

    /// Pages looked at for evictions, if the policy counts them.
    fn looked_at(&self) -> Option<u64> {
        None
    }
}

/// The counts of a run after the warm-up.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counts {
    pub(super) hits: u64,
    pub(super) touches: u64,
}

impl Counts {
    pub(super) fn hit_ratio(self) -> f64 {
        self.hits as f64 / self.touches.max(1) as f64
    }

    pub(super) fn miss_ratio(self) -> f64 {
        1.0 - self.hit_ratio()
    }
}

/// Runs all touches in order; the first `warm` fill the cache and are not counted.
pub(super) fn run(cache: &mut dyn Cache, touches: &[Touch], warm: usize) -> Counts {
    let mut counts = Counts::default();
    for (at, touch) in touches.iter().enumerate() {
        let hit = cache.touch(touch.page);
        if !hit {
            cache.insert(touch.page, false);
        }
        for page in (touch.page + 1)..=(touch.page + u32::from(touch.ahead)) {
            if !cache.holds(page) {
                cache.insert(page, true);
            }
        }
        if at >= warm {
            counts.touches += 1;
            counts.hits += u64::from(hit);
        }
    }
    counts
}

#[cfg(test)]
mod tests;
