//! The forms of direct reclaim on an engine: its seam asks pass by pass, and they answer as in the kernel's loops.
//!
//! What an engine does not have is left out: it has one list as far as a form sees, per-CPU lists that are never drained
//! for others, marks of its own, and readahead that does without frames instead of reclaiming.
//!
//! Owns: the size of each pass. Does not own: the decisions (`policy`), the scan (the engine).
//! Invariants: a pass is a page at least, so that a small cache is scanned too.

use afflux_engine::{Passes, ReclaimForm};

use super::pass::{BATCH_PAGES, PRIORITY_START};
use super::policy::{Progress, ReclaimPolicy};

impl ReclaimForm for ReclaimPolicy {
    fn next_pass(&self, so_far: &Passes) -> u64 {
        let Passes { made, scanned, reclaimed, began, now, free, cached, marks } = *so_far;
        let enough = made > 0 && self.has_done_enough(&Progress { reclaimed, scanned, began, now, free }, &marks);
        let Some(priority) = PRIORITY_START.checked_sub(made).filter(|_| !enough) else { return 0 };
        let share = (cached >> priority).max(1);
        if made == 0 {
            return share;
        }
        // A later pass ends in its middle once it has brought the whole target by itself.
        share.min(self.target_pages(&marks).next_multiple_of(BATCH_PAGES))
    }
}
