//! The limit that writers really meet: it rises at once and falls slowly.
//!
//! Linux 6.1, `update_dirty_limit`. The limit rises to a higher threshold in one step. It
//! falls at most every 200 ms, by 1/32 of the distance to the threshold or to the dirty pages, whichever is higher. So
//! a falling threshold stops no writer at once, and gaps under 32 pages never close.
//!
//! Owns: the limit. Does not own: the threshold.
//! Invariants: the limit is never below the threshold.

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HardLimit {
    limit: u64,
    updated: u64,
}

impl HardLimit {
    /// The limit in force with this threshold.
    pub(crate) fn pages(&self, thresh: u64) -> u64 {
        self.limit.max(thresh)
    }

    /// Follows the threshold if `every` ticks (200 ms) have passed.
    pub(crate) fn update(&mut self, thresh: u64, dirty: u64, now: u64, every: u64) {
        if now.saturating_sub(self.updated) < every {
            return;
        }
        self.updated = now;
        if self.limit < thresh {
            self.limit = thresh;
            return;
        }
        self.limit -= self.limit.saturating_sub(thresh.max(dirty)) >> 5;
    }
}

#[cfg(test)]
mod tests;
