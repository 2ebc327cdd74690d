//! An allocation of one frame, from the look at the low mark to giving up: of a page, and of a slab.
//!
//! Owns: the order of the tries.
//! Does not own: the marks and what is done before the last try (`policy`).
//! Invariants: who may not retry makes one direct reclaim at most. Who may goes round until there is a frame.

use super::direct::{NO_PROGRESS_NS, reclaim_directly};
use super::mechanisms::{Event, Mechanisms};
use super::policy::ReclaimPolicy;

/// Whether an allocation may go round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MayRetry {
    /// It fails after one direct reclaim: readahead.
    No,
    /// It must not fail: a reader that cannot do without.
    Yes,
}

/// Takes a frame; nothing is there only for who may not retry.
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
        // Between what it has freed and its try others may take that: it is no more than anybody's.
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

/// Takes a frame for a slab, as the slab allocator SLAB of Linux 2.6.39 does where NUMA is compiled in.
///
/// It asks twice for a frame of its own node alone (`cache_alloc_refill`, then `____cache_alloc_node`). Such a request
/// (`GFP_THISNODE`) neither wakes kswapd nor reclaims, so it fails at the low mark, also where there is but one node. The
/// third (`fallback_alloc`) is like any other and may retry.
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
