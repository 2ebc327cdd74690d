//! Syncs of one file beside each other, by callers that wait.
//!
//! A caller that comes while a round at once is under way writes and flushes beside it. First the caller claims the
//! dirty pages, and notes the rounds under way. Then it writes and flushes. Then it waits for the noted rounds: they or
//! the caller have each page that was dirty at its call.
//!
//! Owns: when a caller does so, its answer.
//! Does not own: the writes and the flush (`at_once`), when the next ordinary round begins (`devices::file::rounds`).
//! Invariants: the device says that syncs may overlap. A failed flush fails each round at once whose writes began
//! before the failure was known (`a_flush_that_fails_is_about_writes_that_ended_meanwhile`), and has ordinary writes
//! that ended before written again (the seed `failed-flush-beside-an-ordinary-write`). No round begins beside others
//! while a caller waits for an ordinary round, so that caller waits for few.

use std::sync::Arc;

use afflux_device::error::Error;
use afflux_device::platform::Platform;
use afflux_pages::wait::lock;

use super::Writeback;
use super::at_once::{Others, WritesAtOnce};
use super::complete::Durable;
use super::in_call::RoundInCall;
use crate::devices::file::{FileInner, FileState, SharedRound};

/// A round at once that has begun beside others.
pub(super) struct Beside<P: Platform> {
    own: Arc<SharedRound>,
    writes: WritesAtOnce<P>,
    /// The rounds under way when it began.
    earlier: Vec<Arc<SharedRound>>,
}

impl<P: Platform> Writeback<P> {
    /// Begins a round beside those under way, if these leave nothing else to be waited for.
    pub(super) fn try_begin_beside(self: &Arc<Self>, file: &Arc<FileInner>) -> Option<Beside<P>> {
        let (own, mut writes) = (self.spare.round(), WritesAtOnce::default());
        let begin = |state: &mut FileState| state.rounds.begin_beside(Arc::clone(&own));
        let earlier = self.claim_at_once(file, Others::AtOnce, &mut writes, begin)?;
        Some(Beside { own, writes, earlier })
    }

    /// Carries the round out, and waits for those that were under way before it.
    ///
    /// # Errors
    /// The first error of them.
    pub(super) async fn sync_beside(self: &Arc<Self>, file: &Arc<FileInner>, beside: Beside<P>) -> Result<(), Error> {
        let Beside { own, writes, earlier } = beside;
        let (writeback, of, shared) = (Arc::clone(self), Arc::clone(file), Arc::clone(&own));
        RoundInCall::begin(self, async move { writeback.run_beside(&of, &shared, writes).await }).await;
        let mut result = own.result.wait().await;
        for round in earlier {
            result = result.and(round.result.wait().await);
        }
        result
    }

    async fn run_beside(self: &Arc<Self>, file: &Arc<FileInner>, own: &Arc<SharedRound>, mut writes: WritesAtOnce<P>) {
        let done = self.write_and_flush_beside(file, &mut writes).await;
        let runner = lock(&file.state).rounds.end(own);
        runner.wake_caller();
        if runner.is_task() {
            self.start_rounds(file);
        }
        let result = match done {
            Some(result) => result,
            // A write failed or was set aside: an ordinary round finds out what became of it.
            None => match self.join_round(file, 0..u64::MAX) {
                Some(round) => round.result.wait().await,
                None => Ok(()),
            },
        };
        own.result.give(result);
    }

    /// None if a write did not do as it should: its pages have ended as those of any write.
    async fn write_and_flush_beside(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        writes: &mut WritesAtOnce<P>,
    ) -> Option<Result<(), Error>> {
        if writes.is_empty() {
            return Some(Ok(()));
        }
        if !self.try_write_at_once(file, writes).await {
            return None;
        }
        self.base.rare_yield().await;
        let result = self.flush_at_once(file, writes).await;
        self.base.rare_yield().await;
        // After a failed flush the bytes may be gone: they are dirty again, as after a failed write. So are those of
        // ordinary writes that ended meanwhile.
        writes.end(result, Durable::Now);
        match result {
            Ok(()) => Some(Ok(())),
            Err(_) => Some(self.flush_ended(file, false, result).await),
        }
    }
}
