//! The syncs of a file, in rounds, and the flushes that its changes need. Syncs that arrive during a round share the
//! next.
//!
//! The pages of a round that writes and flushes at once stay under writeback. So other callers may begin such rounds
//! beside the first. Each of them also waits for answers of the rounds before it. Once a caller waits for the next
//! round, no more rounds begin beside the present ones. The last of these to end starts the next round.
//!
//! Owns: whether rounds run, the next round, the choice of its runner; whether a flush is owed, whether the last one
//! failed, whether pages are gone that a flush has to cover. Does not own: the steps of a round
//! (`writeback::round`), the device's list of files with a flush owed (`worklist`).
//! Invariants: a round that callers share covers the ranges of all of them. The next round has a caller that will run
//! it, or a task gets it. It begins when no other is under way
//! (`the_next_round_waits_for_all_that_run_beside_each_other`). A change that ends during a flush owes another.

use std::ops::Range;
use std::sync::Arc;

use afflux_device::error::{DeviceError, Error};
use afflux_pages::wait::Answer;

use crate::devices::withholding::do_overlap;

/// The answers that callers of a round have in common.
#[derive(Default)]
pub(crate) struct SharedRound {
    /// The round's result.
    pub result: Answer<Result<(), Error>>,
    /// Given to the caller that runs the round, when the round before has ended.
    pub granted: Answer<()>,
}

#[derive(Default)]
pub(crate) struct Rounds {
    /// The range of the rounds that run.
    now: Range<u64>,
    /// The answers of the rounds that run.
    under_way: Vec<Arc<SharedRound>>,
    /// The round that runs writes and flushes at once.
    is_at_once: bool,
    next: Option<SyncRound>,
}

/// One round: its pages and its waiters.
pub(crate) struct SyncRound {
    /// The bytes of the file that it makes durable.
    pub range: Range<u64>,
    /// The answers of its callers.
    pub shared: Arc<SharedRound>,
    /// A caller of the round waits for the grant to run it.
    is_led: bool,
}

/// A caller's part in the round that it joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RoundPart {
    /// No rounds were running: the caller runs it, or starts a task that does.
    Starts,
    /// The caller runs it, once it has the grant.
    Leads,
    /// Somebody else runs it.
    Follows,
}

/// The runner of the round after one that has ended.
pub(crate) enum NextRunner {
    /// There is none.
    Nobody,
    /// A task, to be started unless it runs already.
    Task,
    /// A caller of the round, to be given the grant.
    Caller(Arc<SharedRound>),
}

impl NextRunner {
    /// Gives the grant to the caller that runs it, if one does.
    pub(crate) fn wake_caller(&self) {
        if let Self::Caller(round) = self {
            round.granted.give(());
        }
    }

    /// Whether a task runs it.
    pub(crate) fn is_task(&self) -> bool {
        matches!(self, Self::Task)
    }
}

impl Rounds {
    /// Whether a round is under way, or asked for.
    pub(crate) fn are_running(&self) -> bool {
        self.next.is_some() || !self.under_way.is_empty()
    }

    /// Whether the round that runs, or the next one, covers some of these bytes.
    pub(crate) fn try_cover(&self, bytes: &Range<u64>) -> bool {
        do_overlap(&self.now, bytes) || self.next.as_ref().is_some_and(|next| do_overlap(&next.range, bytes))
    }

    /// A caller joins the next round. The first caller makes its memory with `new`. Rounds run from here on.
    pub(crate) fn join(
        &mut self,
        range: Range<u64>,
        may_lead: bool,
        new: impl FnOnce() -> Arc<SharedRound>,
    ) -> (Arc<SharedRound>, RoundPart) {
        if let Some(next) = &mut self.next {
            next.range = next.range.start.min(range.start)..next.range.end.max(range.end);
            return (Arc::clone(&next.shared), RoundPart::Follows);
        }
        let part = match (self.are_running(), may_lead) {
            (false, _) => RoundPart::Starts,
            (true, true) => RoundPart::Leads,
            (true, false) => RoundPart::Follows,
        };
        let shared = new();
        self.next = Some(SyncRound { range, shared: Arc::clone(&shared), is_led: part == RoundPart::Leads });
        (shared, part)
    }

    /// The round that runs writes and flushes at once, or goes on as any other.
    pub(crate) fn set_at_once(&mut self, is_at_once: bool) {
        self.is_at_once = is_at_once;
    }

    /// Whether a round at once may begin beside those that run.
    pub(crate) fn may_begin_beside(&self) -> bool {
        self.is_at_once && self.next.is_none()
    }

    /// A round at once begins beside those that run. Returns their answers: its caller waits for these, too.
    pub(crate) fn begin_beside(&mut self, shared: Arc<SharedRound>) -> Vec<Arc<SharedRound>> {
        let earlier = self.under_way.clone();
        self.under_way.push(shared);
        earlier
    }

    /// A round has ended. While others run, or if there is a next one, rounds are still running.
    pub(crate) fn end(&mut self, shared: &Arc<SharedRound>) -> NextRunner {
        self.under_way.retain(|other| !Arc::ptr_eq(other, shared));
        if !self.under_way.is_empty() {
            return NextRunner::Nobody;
        }
        (self.is_at_once, self.now) = (false, 0..0);
        let Some(next) = &mut self.next else { return NextRunner::Nobody };
        match std::mem::replace(&mut next.is_led, false) {
            true => NextRunner::Caller(Arc::clone(&next.shared)),
            false => NextRunner::Task,
        }
    }

    /// The next round, for its runner.
    pub(crate) fn take_next(&mut self) -> Option<SyncRound> {
        let next = self.next.take()?;
        self.now = next.range.clone();
        self.under_way.push(Arc::clone(&next.shared));
        Some(next)
    }
}

pub(crate) struct Flushes {
    owed: bool,
    /// Pages were written and evicted before a flush followed.
    evicted: bool,
    failed: bool,
    redirtying: bool,
    /// How many have failed, and how the last did.
    failures: (u64, Option<DeviceError>),
}

impl Flushes {
    /// Earlier changes to the host's file are unknown, so the first sync flushes.
    pub(super) fn new() -> Self {
        Self { owed: true, evicted: false, failed: false, redirtying: false, failures: (0, None) }
    }

    /// Whether the file was written or resized since the last flush of the device for it.
    pub(crate) fn is_owed(&self) -> bool {
        self.owed
    }

    pub(super) fn owe(&mut self) {
        self.owed = true;
    }

    /// A failed flush has to be retried even if nothing else is new.
    pub(crate) fn owe_again(&mut self) {
        self.owed |= self.failed;
    }

    /// A flush begins if one is owed; returns whether it does.
    pub(crate) fn try_begin(&mut self) -> bool {
        std::mem::take(&mut self.owed)
    }

    /// The last flush failed: the writes it covered may not be durable. Pages that it covered are made dirty again.
    pub(crate) fn fails(&mut self) {
        (self.failed, self.redirtying) = (true, true);
    }

    /// Whether pages that the failed flush covered were gone.
    pub(crate) fn take_evicted(&mut self) -> bool {
        std::mem::take(&mut self.evicted)
    }

    /// The pages that the failed flush covered are dirty again.
    pub(crate) fn end_redirtying(&mut self) {
        self.redirtying = false;
    }

    /// Whether pages that the failed flush covered are being made dirty again: until then they stay.
    pub(crate) fn is_redirtying(&self) -> bool {
        self.redirtying
    }

    /// The device has answered a flush with an error.
    pub(crate) fn note_failure(&mut self, error: DeviceError) {
        self.failures = (self.failures.0 + 1, Some(error));
    }

    /// How many have failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.0
    }

    /// The error of the last that failed, if more have than `before`.
    pub(crate) fn failure_since(&self, before: u64) -> Option<DeviceError> {
        self.failures.1.filter(|_| self.failures.0 > before)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    pub(crate) fn forget_failure(&mut self) {
        self.failed = false;
    }

    /// A clean page was evicted; `unflushed`: a flush has to cover it.
    pub(crate) fn note_evicted(&mut self, unflushed: bool) {
        self.evicted |= unflushed;
    }

    pub(crate) fn evicted_are_durable(&mut self) {
        self.evicted = false;
    }
}

#[cfg(test)]
mod tests;
