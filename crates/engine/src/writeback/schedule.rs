//! What a flusher does next: a pure choice.
//!
//! Owns: the order of reasons to write: syncs first, then second tries, then what is drained or stands in the way
//! of those who need frames; the rest is the policy's.
//! Does not own: lists, clocks, the writing; what there is too much of, and what is too old (`policy`).
//! Invariants: same view, same choice.

use crate::platform::Nanos;
use crate::policy::Next;

/// What the choice is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) now: Nanos,
    /// A sync waits for pages.
    pub(crate) sync_waiting: bool,
    /// A file that failed, or was busy, is to be tried again.
    pub(crate) retry_due: bool,
    /// Files with dirty pages that may be written now.
    pub(crate) files_ready: bool,
    /// Somebody asked for everything to be written.
    pub(crate) draining: bool,
    /// Somebody found no frame, or waits in the admission queue.
    pub(crate) memory_short: bool,
    /// When the first of the files that failed, or were busy, may be tried again.
    pub(crate) next_retry: Option<Nanos>,
    /// How often to look again at all.
    pub(crate) interval_ns: u64,
}

/// Why a file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlushReason {
    /// A sync waits for it.
    Sync,
    /// Its last write failed, or it was busy, and the pause is over.
    Retry,
    /// The device has too much that is dirty, or somebody needs the room.
    Background,
    /// It has been dirty since then, which is too long.
    Expired {
        /// The latest instant that is too long ago.
        before: Nanos,
    },
}

/// What the flusher does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlushChoice {
    /// Write some of the next file of the reason's list.
    Write(FlushReason),
    /// Nothing to do before then, unless woken.
    WaitUntil(Nanos),
}

/// The next step; `policy` is asked if nothing comes before its business.
pub(crate) fn choose(view: &View, policy: impl FnOnce() -> Next) -> FlushChoice {
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
