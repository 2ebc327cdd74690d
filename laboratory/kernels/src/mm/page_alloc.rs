//! The allocation of one frame, for a page or a slab (`mm/page_alloc.c`).
//!
//! Owns: the order of the tries, drains of all CPUs' lists.
//! Does not own: the marks (`form`), reclaim (`vmscan`).
//! Invariants: an allocation with `__GFP_NORETRY` makes at most one direct reclaim. Others repeat until there is a
//! frame.

use std::sync::atomic::Ordering;

use afflux_engine::Nanos;

use super::{Event, Memory};
use crate::zone::Temperature;

/// Time that a task waits after it found nothing to free.
const NO_PROGRESS_NS: u64 = Nanos::MILLISECOND;

/// The part of a request's flags that matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gfp {
    /// `__GFP_NORETRY`, as readahead asks: fails after one direct reclaim.
    NoRetry,
    /// Never fails.
    MayRetry,
}

impl Memory {
    /// `__alloc_pages_nodemask` and its slow path for one frame; `None` only with [`Gfp::NoRetry`].
    pub(super) async fn alloc_page(&self, task: u32, gfp: Gfp) -> Option<u32> {
        self.platform.charge_ns(self.options.costs.allocate_ns);
        let marks = self.watermarks();
        if let Some(frame) = self.get_page_from_freelist(marks.low) {
            return Some(frame);
        }
        self.wakeup_kswapd();
        if let Some(frame) = self.get_page_from_freelist(marks.min) {
            return Some(frame);
        }
        loop {
            let (reclaimed, frame) = self.alloc_pages_direct_reclaim(task).await;
            if frame.is_some() {
                return frame;
            }
            if gfp == Gfp::NoRetry {
                self.count(Event::AllocFail, 1);
                return None;
            }
            self.count(Event::DemandAllocFail, 1);
            if reclaimed == 0 {
                self.sleep(NO_PROGRESS_NS).await;
            }
        }
    }

    async fn alloc_pages_direct_reclaim(&self, task: u32) -> (u64, Option<u32>) {
        let (form, mark) = (&self.options.form, self.options.form.retry_mark(&self.watermarks()));
        self.cond_resched().await;
        let (reclaimed, kept) = self.try_to_free_pages(task).await;
        // Between the reclaim and the next try, other tasks may take the freed frames, which are reserved for nobody.
        self.cond_resched().await;
        self.free_pages(kept);
        if reclaimed == 0 {
            return (0, None);
        }
        let mut frame = self.get_page_from_freelist(mark);
        if frame.is_none() && form.drains {
            self.drain_all_pages();
            frame = self.get_page_from_freelist(mark);
        }
        (reclaimed, frame)
    }

    /// Takes a frame for a slab, like the slab allocator SLAB with NUMA compiled in.
    ///
    /// SLAB asks twice for a frame of its own node alone (`cache_alloc_refill`, then `____cache_alloc_node`). Such a
    /// request (`GFP_THISNODE`) neither wakes kswapd nor reclaims, so it fails at the low mark, even on a machine with
    /// one node. The third request (`fallback_alloc`) is an ordinary one and may retry.
    pub(super) async fn alloc_slab(&self, task: u32) -> Option<u32> {
        for _ in 0..2 {
            if let Some(frame) = self.get_page_from_freelist(self.watermarks().low) {
                return Some(frame);
            }
            self.count(Event::SlabAllocFail, 1);
        }
        self.alloc_page(task, Gfp::MayRetry).await
    }

    fn get_page_from_freelist(&self, mark: u32) -> Option<u32> {
        self.take(self.platform.cpu(), mark)
    }

    /// `free_hot_cold_page` for each.
    pub(super) fn free_pages(&self, frames: Vec<u32>) {
        let cpu = self.platform.cpu();
        frames.into_iter().for_each(|frame| self.zone.free(cpu, frame, 0, Temperature::Cold));
    }

    /// `drain_all_pages`: interrupts all other CPUs.
    fn drain_all_pages(&self) {
        let own = self.platform.cpu();
        let others = (0..self.options.cpus).filter(|cpu| *cpu != own);
        others.for_each(|cpu| _ = self.interrupts[cpu].fetch_add(1, Ordering::Relaxed));
        self.zone.drain_all();
    }

    /// `zone_watermark_ok_safe`: the exact count is summed up only where the parts of all CPUs could hide more than
    /// lies between the low and the min mark.
    pub(super) fn zone_watermark_ok_safe(&self, mark: u32) -> bool {
        let marks = self.watermarks();
        let drift_max = self.options.cpus as u32 * self.drift_frames;
        let seen = self.zone.seen_free();
        let is_unsure = drift_max > marks.low - marks.min && seen < marks.high + drift_max;
        (if is_unsure { self.zone.buddy_frames() } else { seen }) > mark
    }
}
