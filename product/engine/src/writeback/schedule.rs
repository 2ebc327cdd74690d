//! The flusher's next step: a pure choice.
//!
//! Owns: the order of reasons to write: syncs first, as long as they have not used more than their lead; then retries;
//! then drains and shortages of frames. The policy chooses the rest.
//! Does not own: lists, clocks, the writing; which amounts are too much or too old (`policy`).
//! Invariants: same view, same choice. While nothing else is due a sync never waits.

use crate::devices::FlushReason;
use crate::devices::agenda::FlusherView;
use crate::platform::Nanos;
use crate::policy::Next;

/// The flusher's next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlushChoice {
    /// Write a part of the next file of the reason's list.
    Write(FlushReason),
    /// No work before then, unless woken.
    WaitUntil(Nanos),
}

/// The question for the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Question {
    /// The next file that is due.
    Due,
    /// The first of all dirty files.
    Pressed,
}

/// The next step; asks `policy` if no other reason comes first.
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
