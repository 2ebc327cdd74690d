//! The flusher's next step: a pure choice.
//!
//! Owns: the order of reasons to write: syncs first, as long as they have not used more than their lead; then retries;
//! then drains and shortages of frames. The policy chooses the rest.
//! Does not own: lists, clocks, the writing; which amounts are too much or too old (`policy`).
//! Invariants: same view, same choice. While nothing else is due a sync never waits.

use afflux_device::policy::{FlushSlice, Next};

use crate::devices::worklist::FlusherView;

/// The next step. Asks `policy` if no other reason comes first, and tells it whether any dirty file has to be written.
pub(super) fn choose(view: &FlusherView, policy: impl FnOnce(bool) -> Next) -> Next {
    if view.sync_waiting && !view.sync_ahead {
        return Next::FlushSlice(FlushSlice::Sync);
    }
    match other_than_sync(view, policy) {
        Next::WaitUntil(_) if view.sync_waiting => Next::FlushSlice(FlushSlice::Sync),
        choice => choice,
    }
}

fn other_than_sync(view: &FlusherView, policy: impl FnOnce(bool) -> Next) -> Next {
    if view.retry_due {
        return Next::FlushSlice(FlushSlice::Retry);
    }
    let pressed = view.files_ready && (view.draining || view.memory_short);
    let due = match policy(pressed) {
        Next::FlushSlice(slice) => return Next::FlushSlice(slice),
        Next::WaitUntil(_) if pressed => return Next::FlushSlice(FlushSlice::InOrder),
        Next::WaitUntil(due) => due,
    };
    let look_again = view.now.after(view.interval_ns);
    let next = view.next_retry.map_or(due, |retry| retry.min(due)).min(look_again);
    Next::WaitUntil(next.max(view.now.after(1)))
}

#[cfg(test)]
mod tests;
