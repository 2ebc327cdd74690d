//! What a flusher does next: a pure choice.
//!
//! Owns: the order of reasons to write: syncs first, as long as they have not used more than their lead; then second
//! tries, then what is drained or stands in the way of those who need frames; the rest is the policy's.
//! Does not own: lists, clocks, the writing; what there is too much of, and what is too old (`policy`).
//! Invariants: same view, same choice. Where nothing else is due a sync never waits.

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

/// What the policy is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Question {
    /// What is due.
    Due,
    /// What goes first of what there is.
    Pressed,
}

/// The next step; `policy` is asked if nothing comes before its business.
pub(super) fn choose(view: &FlusherView, policy: impl FnOnce(Question) -> Next) -> FlushChoice {
    if view.sync_waiting && !view.sync_ahead {
        return FlushChoice::Write(FlushReason::Sync);
    }
    match other_than_sync(view, policy) {
        FlushChoice::WaitUntil(_) if view.sync_waiting => FlushChoice::Write(FlushReason::Sync),
        choice => choice,
    }
}

fn other_than_sync(view: &FlusherView, policy: impl FnOnce(Question) -> Next) -> FlushChoice {
    if view.retry_due {
        return FlushChoice::Write(FlushReason::Retry);
    }
    let pressed = view.files_ready && (view.draining || view.memory_short);
    let due = match policy(if pressed { Question::Pressed } else { Question::Due }) {
        Next::InTurn => return FlushChoice::Write(FlushReason::Background),
        Next::MostDirty { hot } => return FlushChoice::Write(FlushReason::Largest { hot }),
        Next::Old { before } => return FlushChoice::Write(FlushReason::Expired { before }),
        Next::Oldest { before, hot } => return FlushChoice::Write(FlushReason::Oldest { before, hot }),
        Next::Idle => return FlushChoice::Write(FlushReason::Idle { now: view.now }),
        Next::WaitUntil(_) if pressed => return FlushChoice::Write(FlushReason::Background),
        Next::WaitUntil(due) => due,
    };
    let look_again = view.now.after(view.interval_ns);
    let next = view.next_retry.map_or(due, |retry| retry.min(due)).min(look_again);
    FlushChoice::WaitUntil(next.max(view.now.after(1)))
}

#[cfg(test)]
mod tests;
