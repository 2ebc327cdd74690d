//! Rounds inside the call of a blocked caller: its thread writes and flushes, and no other thread has to be woken.
//!
//! Owns: when a caller does so, its first requests, the handover of its round.
//! Does not own: the steps of a round (`sync`), the tasks that run all other rounds (`round_tasks`), the choice of a
//! runner (`devices::file::rounds`).
//! Invariants: a caller runs its own round only. The first caller of the next round runs that, if it may. If a caller
//! goes away, a task goes on with its round. The caller gives the file one turn, as the flusher would, if a request is
//! free. The flusher writes the rest. A caller that may be refused while the device hangs runs no round.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use afflux_device::platform::Platform;
use afflux_device::policy::FlushSlice;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::rare::Rare;
use afflux_pages::wait::lock;

use super::Writeback;
use crate::devices::DeviceState;
use crate::devices::file::{FileInner, RoundPart, SharedRound};
use crate::devices::in_flight::Terms;

/// A caller's own round, which it has not begun. If the caller goes away, a task runs it.
pub(super) struct OwnRound<'a, P: Platform> {
    writeback: &'a Arc<Writeback<P>>,
    file: &'a Arc<FileInner>,
    round: &'a Arc<SharedRound>,
    part: RoundPart,
}

impl<P: Platform> OwnRound<'_, P> {
    /// Waits for its turn, then runs the round.
    pub(super) async fn runs(self) {
        if self.part == RoundPart::Leads {
            self.round.granted.wait().await;
        }
        let (writeback, file) = (Arc::clone(self.writeback), Arc::clone(self.file));
        std::mem::forget(self);
        let running = Arc::clone(&writeback);
        // The next round of the file, which nobody else runs.
        let round = async move {
            if running.run_next_round(&file, true).await {
                running.start_rounds(&file);
            }
        };
        RoundInCall::begin(&writeback, round).await;
    }
}

impl<P: Platform> Drop for OwnRound<'_, P> {
    fn drop(&mut self) {
        if self.part == RoundPart::Starts || lock(&self.file.state).rounds.try_step_down(self.round) {
            self.writeback.start_rounds(self.file);
        }
    }
}

/// A round that its caller polls. If the caller goes away, a task polls it.
pub(super) struct RoundInCall<P: Platform> {
    writeback: Arc<Writeback<P>>,
    /// None while it is polled, and once it has ended.
    round: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<P: Platform> RoundInCall<P> {
    pub(super) fn begin(writeback: &Arc<Writeback<P>>, round: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { writeback: Arc::clone(writeback), round: Some(Box::pin(round)) }
    }
}

impl<P: Platform> Future for RoundInCall<P> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(mut round) = self.round.take() else { return Poll::Ready(()) };
        let polled = round.as_mut().poll(cx);
        if polled.is_pending() {
            self.round = Some(round);
        }
        polled
    }
}

impl<P: Platform> Drop for RoundInCall<P> {
    fn drop(&mut self) {
        if let Some(round) = self.round.take() {
            self.writeback.base.platform.spawn("sync", round);
        }
    }
}

impl<P: Platform> Writeback<P> {
    /// Whether this caller of a sync runs the round itself.
    pub(super) fn may_sync_in_call(&self, file: &FileInner) -> bool {
        let base = &self.base;
        let waits = base.platform.may_wait_on_this_thread() || base.cache.rare.is_forced(Rare::SyncInCall);
        // A thread in a system call cannot go.
        waits && !file.device.hang().may_refuse()
    }

    /// The round that falls to a caller of it, if `runs_itself`. Otherwise its drop leaves it to a task.
    pub(super) fn own_round<'a>(
        self: &'a Arc<Self>,
        file: &'a Arc<FileInner>,
        round: &'a Arc<SharedRound>,
        part: RoundPart,
        runs_itself: bool,
    ) -> Option<OwnRound<'a, P>> {
        let own = (part != RoundPart::Follows).then(|| OwnRound { writeback: self, file, round, part });
        own.filter(|_| runs_itself)
    }

    /// Gives the file a turn to write marked pages; the flusher writes the rest.
    pub(super) async fn write_marked(self: &Arc<Self>, file: &Arc<FileInner>) {
        let terms = file.device.in_flight.terms();
        if self.may_write_beside(&file.device, &terms) && file.device.may_send_write(self.base.settings()) {
            let kept_off = lock(&file.state).marks.try_keep_off_list_for_sync();
            let mut slice = self.begin_slice(Arc::clone(file), FlushSlice::Sync);
            self.write_slice(&mut slice).await;
            if kept_off {
                lock(&file.state).marks.sync_begins();
            }
            self.put_back(slice);
        }
        // The flusher writes marked pages that are left. They may have waited for a request that has ended meanwhile.
        let mut state = lock(&file.state);
        if file.has_tagged(Tag::ToWrite) {
            file.queue_sync(&mut state);
        }
    }

    /// Whether a caller may write beside the flusher, as soon as a request is free: no other writes go before syncs.
    pub(super) fn may_write_beside(&self, device: &DeviceState, terms: &Terms) -> bool {
        let is_ahead = device.in_flight.is_sync_ahead_by(terms);
        if is_ahead && !device.worklist().are_others_due() {
            device.in_flight.nothing_but_syncs();
            return true;
        }
        !is_ahead
    }
}
