//! The allocation of one frame, for a page or a slab, from the check of the low mark to giving up.
//!
//! Owns: the order of the tries.
//! Does not own: the marks, and the step before the last try (`policy`).
//! Invariants: an allocation that may not retry makes at most one direct reclaim. One that may retry repeats until
//! there is a frame.

use super::direct::{NO_PROGRESS_NS, reclaim_directly};
use super::mechanisms::{Event, Mechanisms};
use super::policy::ReclaimPolicy;

/// Whether an allocation may retry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MayRetry {
    /// For readahead: fails after one direct reclaim.
    No,
    /// For a reader that needs the page: never fails.
    Yes,
}

/// Takes a frame; returns `None` only with [`MayRetry::No`].
pub async fn allocate<M: Mechanisms>(policy: &ReclaimPolicy, memory: &M, may_retry: MayRetry) -> Option<M::Frame> {
    let marks = memory.marks();
    if let Some(frame) = memory.take(marks.low) {
        return Some(frame);
    }
    loop {
        memory.wake_background();
        if let Some(frame) = memory.take(marks.min) {
            return Some(frame);
        }
        let reclaimed = reclaim_directly(policy, memory).await;
        // Between the reclaim and the next try, other tasks may take the freed frames, which are not reserved for this
        // one.
        memory.resched().await;
        if reclaimed > 0
            && let Some(frame) = retry(policy, memory)
        {
            return Some(frame);
        }
        if may_retry == MayRetry::No {
            memory.count(Event::AllocFail, 1);
            return None;
        }
        memory.count(Event::DemandAllocFail, 1);
        if reclaimed == 0 {
            memory.sleep(NO_PROGRESS_NS).await;
        }
    }
}

/// Takes a frame for a slab, like the slab allocator SLAB of Linux 2.6.39 with NUMA compiled in.
///
/// SLAB asks twice for a frame of its own node alone (`cache_alloc_refill`, then `____cache_alloc_node`). Such a
/// request (`GFP_THISNODE`) neither wakes kswapd nor reclaims, so it fails at the low mark, even on a machine with one
/// node. The third request (`fallback_alloc`) is an ordinary one and may retry.
pub async fn allocate_slab<M: Mechanisms>(policy: &ReclaimPolicy, memory: &M) -> Option<M::Frame> {
    for _ in 0..2 {
        if let Some(frame) = memory.take(memory.marks().low) {
            return Some(frame);
        }
        memory.count(Event::SlabAllocFail, 1);
    }
    allocate(policy, memory, MayRetry::Yes).await
}

fn retry<M: Mechanisms>(policy: &ReclaimPolicy, memory: &M) -> Option<M::Frame> {
    let mark = policy.retry_mark(&memory.marks());
    memory.take(mark).or_else(|| {
        if !policy.drains {
            return None;
        }
        memory.drain_all();
        memory.take(mark)
    })
}
