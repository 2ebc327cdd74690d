//! The syncs of a file: they run one round at a time, and syncs that arrive meanwhile share the next.
//!
//! Owns: whether rounds run, the next round. Does not own: the steps of a round (`writeback::sync`).
//! Invariants: a round that callers share covers the ranges of all of them.

use std::ops::Range;
use std::sync::Arc;

use super::overlap;
use crate::error::Error;
use crate::wait::Answer;

pub(crate) type RoundAnswer = Arc<Answer<Result<(), Error>>>;

#[derive(Default)]
pub(crate) struct Rounds {
    running: bool,
    /// The range of the round that runs.
    now: Range<u64>,
    next: Option<SyncRound>,
}

/// One round: its pages and its waiters.
pub(crate) struct SyncRound {
    pub(crate) range: Range<u64>,
    pub(crate) answer: RoundAnswer,
}

impl Rounds {
    pub(crate) fn are_running(&self) -> bool {
        self.running
    }

    /// Whether the round that runs, or the next one, covers some of these bytes.
    pub(crate) fn cover(&self, bytes: &Range<u64>) -> bool {
        overlap(&self.now, bytes) || self.next.as_ref().is_some_and(|next| overlap(&next.range, bytes))
    }

    /// A caller joins the next round; returns its answer, which is `new` for the first caller.
    pub(crate) fn join(&mut self, range: Range<u64>, new: impl FnOnce() -> RoundAnswer) -> RoundAnswer {
        match &mut self.next {
            Some(next) => {
                next.range = next.range.start.min(range.start)..next.range.end.max(range.end);
                Arc::clone(&next.answer)
            }
            none => {
                let answer = new();
                *none = Some(SyncRound { range, answer: Arc::clone(&answer) });
                answer
            }
        }
    }

    /// Rounds have to run; returns whether the caller has to start them.
    pub(crate) fn start(&mut self) -> bool {
        !std::mem::replace(&mut self.running, true)
    }

    /// A round has ended, and its runner runs no other. Returns whether there is another, for somebody else; rounds are still
    /// running then.
    pub(crate) fn ends_one(&mut self) -> bool {
        self.running = self.next.is_some();
        self.now = 0..0;
        self.running
    }

    /// The next round; without one, rounds run no more.
    pub(crate) fn take_next(&mut self) -> Option<SyncRound> {
        let next = self.next.take();
        self.running = next.is_some();
        self.now = next.as_ref().map_or(0..0, |next| next.range.clone());
        next
    }
}
