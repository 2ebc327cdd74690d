//! What a flusher does next: a pure choice.
//!
//! Owns: the order of reasons to write: syncs first, then second tries, then what is drained or stands in the way
//! of those who need frames; the rest is the policy's.
//! Does not own: lists, clocks, the writing; what there is too much of, and what is too old (`policy`).
//! Invariants: same view, same choice.

use crate::devices::FlushReason;
use crate::devices::state::FlusherView;
use crate::platform::Nanos;
use crate::policy::Next;

/// What the flusher does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlushChoice {
    /// Write some of the next file of the reason's list.
    Write(FlushReason),
    /// Nothing to do before then, unless woken.
    WaitUntil(Nanos),
}

/// The next step; `policy` is asked if nothing comes before its business.
pub(crate) fn choose(view: &FlusherView, policy: impl FnOnce() -> Next) -> FlushChoice {
    if view.sync_waiting {
        return FlushChoice::Write(FlushReason::Sync);
    }
    if view.retry_due {
        return FlushChoice::Write(FlushReason::Retry);
    }
    if view.files_ready && (view.draining || view.memory_short) {
        return FlushChoice::Write(FlushReason::Background);
    }
    let due = match policy() {
        Next::InTurn => return FlushChoice::Write(FlushReason::Background),
        Next::Old { before } => return FlushChoice::Write(FlushReason::Expired { before }),
        Next::WaitUntil(due) => due,
    };
    let look_again = view.now.after(view.interval_ns);
    let next = view.next_retry.map_or(due, |retry| retry.min(due)).min(look_again);
    FlushChoice::WaitUntil(next.max(view.now.after(1)))
}

#[cfg(test)]
mod tests;
