//! Direct reclaim: a task that needs a frame frees pages itself.
//!
//! Owns: the passes of one reclaim, and the figures for the decision about another.
//! Does not own: the decision (`policy`), a pass (`pass`), the next steps (`allocate`).
//! Invariants: there are at most thirteen passes. A reclaim does not wait for devices, since no page here is dirty.

use afflux_engine::Nanos;

use super::mechanisms::{Event, Mechanisms, Scanner};
use super::pass::{PRIORITY_START, scan_pass};
use super::policy::{Progress, ReclaimPolicy};

/// Frees pages until the policy says that it is enough; returns their number.
pub async fn reclaim_directly<M: Mechanisms>(policy: &ReclaimPolicy, memory: &M) -> u64 {
    memory.count(Event::AllocStall, 1);
    let marks = memory.marks();
    let target = policy.target_pages(&marks);
    let began = memory.now();
    let mut progress = Progress { reclaimed: 0, scanned: 0, began, now: began, free: 0 };
    for priority in (0..=PRIORITY_START).rev() {
        let sizes = memory.sizes();
        let pass = scan_pass(memory, Scanner::Direct, priority, Some(target)).await;
        memory.shrink_caches(pass.scanned, sizes.inactive + sizes.active).await;
        progress.scanned += pass.scanned;
        progress.reclaimed += pass.reclaimed;
        (progress.now, progress.free) = (memory.now(), memory.free());
        if policy.has_done_enough(&progress, &marks) {
            break;
        }
    }
    memory.reclaimed_for(memory.now().since(began));
    progress.reclaimed
}

/// Time that a task waits after it found nothing to free.
pub(super) const NO_PROGRESS_NS: u64 = Nanos::MILLISECOND;
