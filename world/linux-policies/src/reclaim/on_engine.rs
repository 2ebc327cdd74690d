//! The forms of direct reclaim on an engine: its seam asks pass by pass, and they answer as in the kernel's loops.
//!
//! Mechanisms that an engine lacks are left out. A form sees one list. Per-CPU lists are never drained for others. The
//! marks are the engine's own, and readahead does without frames instead of reclaiming.
//!
//! Owns: the size of each pass. Does not own: the decisions (`policy`), the scan (the engine).
//! Invariants: a pass is at least a page, so that a small cache is scanned, too.

use afflux_engine::old_kernels::{OldKernel, Passes};

use super::pass::{BATCH_PAGES, PRIORITY_START};
use super::policy::{Progress, ReclaimPolicy};

impl OldKernel for ReclaimPolicy {
    fn next_pass(&self, so_far: &Passes) -> u64 {
        let Passes { made, scanned, reclaimed, began, now, free, cached, marks } = *so_far;
        let enough = made > 0 && self.has_done_enough(&Progress { reclaimed, scanned, began, now, free }, &marks);
        let Some(priority) = PRIORITY_START.checked_sub(made).filter(|_| !enough) else { return 0 };
        let share = (cached >> priority).max(1);
        if made == 0 {
            return share;
        }
        // A later pass ends early once it has freed the whole target by itself.
        share.min(self.target_pages(&marks).next_multiple_of(BATCH_PAGES))
    }
}
