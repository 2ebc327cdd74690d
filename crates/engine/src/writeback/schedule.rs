//! What a flusher does next: a pure choice.
//!
//! Owns: the order of reasons to write. Does not own: lists, clocks, the writing.
//! Invariants: same view, same choice.

use crate::platform::Nanos;

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
    /// Somebody found no frame, or waits for the dirty limit.
    pub(crate) memory_short: bool,
    pub(crate) dirty_pages: u64,
    pub(crate) background_pages: u64,
    /// The law in force wants background writeback.
    pub(crate) over_law: bool,
    /// What is too old is written by this flusher.
    pub(crate) expires_here: bool,
    /// When the file that has been dirty longest became so.
    pub(crate) oldest: Option<Nanos>,
    pub(crate) expire_ns: u64,
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
    /// The device has more than its background threshold, or somebody needs the room.
    Background,
    /// It has been dirty for too long.
    Expired,
}

/// What the flusher does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlushChoice {
    /// Write some of the next file of the reason's list.
    Write(FlushReason),
    /// Nothing to do before then, unless woken.
    WaitUntil(Nanos),
}

/// Syncs first, then second tries, then what there is too much of, then what is too old.
pub(crate) fn choose(view: &View) -> FlushChoice {
    if view.sync_waiting {
        return FlushChoice::Write(FlushReason::Sync);
    }
    if view.retry_due {
        return FlushChoice::Write(FlushReason::Retry);
    }
    let over = view.over_law || view.dirty_pages > view.background_pages;
    if view.files_ready && (over || view.draining || view.memory_short) {
        return FlushChoice::Write(FlushReason::Background);
    }
    let expires = view.oldest.filter(|_| view.expires_here).map(|since| since.after(view.expire_ns));
    if view.files_ready && expires.is_some_and(|at| at <= view.now) {
        return FlushChoice::Write(FlushReason::Expired);
    }
    let look_again = view.now.after(view.interval_ns);
    let deadlines = [expires.filter(|_| view.files_ready), view.next_retry, Some(look_again)];
    let next = deadlines.into_iter().flatten().min().unwrap_or(look_again);
    FlushChoice::WaitUntil(next.max(view.now.after(1)))
}

#[cfg(test)]
mod tests;
