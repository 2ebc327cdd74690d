//! The syncs of a file: they run one round at a time, and syncs that arrive meanwhile share the next.
//!
//! Owns: whether rounds run, the next round, the choice of its runner. Does not own: the steps of a round (`writeback::sync`).
//! Invariants: a round that callers share covers the ranges of all of them. The next round has a caller that will run it, or
//! a task gets it.

use std::ops::Range;
use std::sync::Arc;

use afflux_pages::wait::Answer;

use crate::devices::withholding::ranges::do_overlap;
use crate::error::Error;

/// The answers that callers of a round share.
#[derive(Default)]
pub struct SharedRound {
    /// The round's result.
    pub result: Answer<Result<(), Error>>,
    /// Given to the caller that runs the round, when the round before has ended.
    pub turn: Answer<()>,
}

#[derive(Default)]
pub struct Rounds {
    running: bool,
    /// The range of the round that runs.
    now: Range<u64>,
    next: Option<SyncRound>,
}

/// One round: its pages and its waiters.
pub struct SyncRound {
    /// The bytes of the file that it makes durable.
    pub range: Range<u64>,
    /// The answers of its callers.
    pub shared: Arc<SharedRound>,
    /// A caller of the round waits for its turn to run it.
    is_led: bool,
}

/// A caller's part in the round that it joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoundPart {
    /// No rounds were running: the caller runs it, or starts a task that does.
    Starts,
    /// The caller runs it, once it has its turn. A caller that cannot steps down ([`Rounds::step_down`]).
    Leads,
    /// Somebody else runs it.
    Follows,
}

/// The runner of the round after one that has ended.
pub enum NextRunner {
    /// There is none.
    Nobody,
    /// A task, to be started unless it runs already.
    Task,
    /// A caller of the round, to be given its turn.
    Caller(Arc<SharedRound>),
}

impl Rounds {
    pub fn are_running(&self) -> bool {
        self.running
    }

    /// Whether the round that runs, or the next one, covers some of these bytes.
    pub(crate) fn try_cover(&self, bytes: &Range<u64>) -> bool {
        do_overlap(&self.now, bytes) || self.next.as_ref().is_some_and(|next| do_overlap(&next.range, bytes))
    }

    /// A caller joins the next round. The first caller makes its memory with `new`. Rounds run from here on.
    pub fn join(
        &mut self,
        range: Range<u64>,
        may_lead: bool,
        new: impl FnOnce() -> Arc<SharedRound>,
    ) -> (Arc<SharedRound>, RoundPart) {
        if let Some(next) = &mut self.next {
            next.range = next.range.start.min(range.start)..next.range.end.max(range.end);
            return (Arc::clone(&next.shared), RoundPart::Follows);
        }
        let part = match (std::mem::replace(&mut self.running, true), may_lead) {
            (false, _) => RoundPart::Starts,
            (true, true) => RoundPart::Leads,
            (true, false) => RoundPart::Follows,
        };
        let shared = new();
        self.next = Some(SyncRound { range, shared: Arc::clone(&shared), is_led: part == RoundPart::Leads });
        (shared, part)
    }

    /// The caller that leads this round will not run it. Returns whether the caller had its turn already. If so, it has to
    /// start a task.
    pub fn try_step_down(&mut self, shared: &Arc<SharedRound>) -> bool {
        let next = self.next.as_mut().filter(|next| Arc::ptr_eq(&next.shared, shared));
        next.is_some_and(|next| !std::mem::replace(&mut next.is_led, false))
    }

    /// A round has ended. If there is another, rounds are still running.
    pub fn ends_one(&mut self) -> NextRunner {
        self.running = self.next.is_some();
        self.now = 0..0;
        let Some(next) = &mut self.next else { return NextRunner::Nobody };
        match std::mem::replace(&mut next.is_led, false) {
            true => NextRunner::Caller(Arc::clone(&next.shared)),
            false => NextRunner::Task,
        }
    }

    /// The next round, for its runner.
    pub fn take_next(&mut self) -> Option<SyncRound> {
        let next = self.next.take();
        self.now = next.as_ref().map_or(0..0, |next| next.range.clone());
        next
    }
}
