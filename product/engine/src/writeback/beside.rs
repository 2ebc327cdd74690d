//! Syncs of one file beside each other, by callers that wait.
//!
//! A caller that comes while a round at once is under way writes and flushes beside it. First the caller claims the dirty pages, and
//! notes the rounds under way. Then it writes and flushes. Then it waits for the noted rounds: they or the caller have each page
//! that was dirty at its call.
//!
//! Owns: when a caller does so, its answer.
//! Does not own: the writes and the flush (`at_once`), when the next ordinary round begins (`devices::file::rounds`).
//! Invariants: the device says that syncs may overlap. A failed flush fails each round at once whose writes began before the failure
//! was known (`a_flush_that_fails_is_about_writes_that_ended_meanwhile`). No round begins beside others while a caller waits for
//! an ordinary round, so that caller waits for few.

use std::sync::Arc;

use afflux_device::devices::file::{FileInner, NextRunner, SharedRound};
use afflux_device::error::Error;
use afflux_device::platform::Platform;

use super::Writeback;
use super::at_once::{Claimed, Others};
use super::complete::Durable;
use super::in_call::RoundInCall;
use afflux_pages::wait::lock;

/// A round at once that has begun beside others.
pub(super) struct Beside {
    own: Arc<SharedRound>,
    claimed: Claimed,
    /// The rounds under way when it began.
    earlier: Vec<Arc<SharedRound>>,
}

impl<P: Platform> Writeback<P> {
    /// Begins a round beside those under way, if these leave nothing else to be waited for.
    pub(super) fn try_begin_beside(self: &Arc<Self>, file: &Arc<FileInner>) -> Option<Beside> {
        let own = self.spare.round();
        let begun = self.claim_at_once(file, Others::AtOnce, |state| state.rounds.begin_beside(Arc::clone(&own)));
        let (claimed, earlier) = begun?;
        Some(Beside { own, claimed, earlier })
    }

    /// Carries the round out, and waits for those that were under way before it.
    ///
    /// # Errors
    /// The first error of them.
    pub(super) async fn sync_beside(self: &Arc<Self>, file: &Arc<FileInner>, beside: Beside) -> Result<(), Error> {
        let Beside { own, claimed, earlier } = beside;
        let (writeback, of, shared) = (Arc::clone(self), Arc::clone(file), Arc::clone(&own));
        RoundInCall::begin(self, async move { writeback.run_beside(&of, &shared, claimed).await }).await;
        let mut result = own.result.wait().await;
        for round in earlier {
            result = result.and(round.result.wait().await);
        }
        result
    }

    async fn run_beside(self: &Arc<Self>, file: &Arc<FileInner>, own: &Arc<SharedRound>, claimed: Claimed) {
        let done = self.write_and_flush_beside(file, claimed).await;
        let runner = lock(&file.state).rounds.end(own);
        self.hand_over(file, runner);
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
        claimed: Claimed,
    ) -> Option<Result<(), Error>> {
        if claimed.len() == 0 {
            return Some(Ok(()));
        }
        let failures = claimed.failures;
        let written = self.write_runs(file, claimed).await?;
        self.base.rare_yield().await;
        let result = self.flush_at_once(file, failures).await;
        self.base.rare_yield().await;
        // After a failed flush the bytes may be gone: they are dirty again, as after a failed write.
        written.end(result, Durable::Now);
        Some(result.map_err(Error::Device))
    }

    /// Has the next round begin.
    fn hand_over(self: &Arc<Self>, file: &Arc<FileInner>, runner: NextRunner) {
        match runner {
            NextRunner::Nobody => {}
            NextRunner::Task => self.start_rounds(file),
            NextRunner::Caller(round) => round.turn.give(()),
        }
    }
}
