//! An allocation of one frame, from the look at the low mark to giving up.
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
