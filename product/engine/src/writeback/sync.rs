//! Sync: data dirty at the call is durable on return.
//!
//! A caller asks for a round of the file's writeback, and waits for its result. If the file is durable, there is none.
//! Otherwise the caller joins the next round, or begins one *beside* those under way. Then the caller waits for
//! these, too: each page that was dirty at the call is in one of these rounds or in the caller's.
//!
//! Owns: the choice of the round and of its driver. The driver is a task, or the caller if its thread may wait: then no
//! other thread has to be woken. Also the tasks: each drives one file's rounds at a time, and stays for the next.
//! Does not own: the steps of a round (`round`), how an idle task gets a file (`recycler`).
//! Invariants: a file has one ordinary round at a time. A caller that comes while it runs gets the next, so no sync
//! waits for more than two. A round begins beside others only while no caller waits for an ordinary round, and only on
//! a device whose syncs may overlap. If a caller that drives a round goes away, a task goes on with it
//! (`a_caller_that_goes_away_leaves_its_round_to_a_task`). A caller that may be refused while the device hangs drives
//! no round.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use afflux_device::client::Client;
use afflux_device::error::Error;
use afflux_device::platform::Platform;
use afflux_pages::rare::Rare;
use afflux_pages::wait::lock;

use crate::call::FileCall;
use crate::devices::file::{Earlier, FileInner, RoundPart, SharedRound};
use crate::devices::waits::WaitsFor;
use crate::devices::withholding::RangeId;
use crate::recycler::IdleTask;
use crate::writeback::Writeback;
use crate::writeback::direct_sync::WritesAtOnce;

/// The party that steps a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Driver {
    Task,
    /// A caller of the round, on a thread that may wait.
    Caller,
}

/// A round that a caller of a sync waits for.
struct Joined<P: Platform> {
    round: Arc<SharedRound>,
    kind: RoundKind<P>,
    /// The rounds that were under way when it began beside them.
    earlier: Vec<Arc<SharedRound>>,
}

enum RoundKind<P: Platform> {
    /// The file's next round, and the caller's part in it.
    Next(RoundPart),
    /// A round beside others, which has claimed its pages. The caller drives it.
    Beside(Box<WritesAtOnce<P>>),
}

impl<P: Platform> Writeback<P> {
    /// [`Engine::sync`](crate::Engine::sync).
    pub(crate) async fn sync(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        client: Option<&Client>,
        range: Range<u64>,
    ) -> Result<(), Error> {
        match self.sync_or_order(file, client, &range).await? {
            None => Ok(()),
            // On the heap: few syncs need it.
            Some(order) => Box::pin(self.sync_in_order(file, range, order, client)).await,
        }
    }

    /// Syncs the range. Returns what some of its bytes have to wait for, if so: then they are not synced.
    pub(crate) async fn sync_or_order(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        client: Option<&Client>,
        range: &Range<u64>,
    ) -> Result<Option<(RangeId, Earlier)>, Error> {
        let (joined, withholds) = self.join(file, range.clone(), self.driver(file));
        if withholds && let Some(order) = Self::order_of(file, range)? {
            return Ok(Some(order));
        }
        let Some(Joined { round, kind, earlier }) = joined else { return Ok(None) };
        let call = FileCall::new(file, client);
        let _wait = call.begins(&self.base, WaitsFor::Sync, None, u64::MAX);
        self.drive(file, &round, kind).await;
        let mut result = round.result.wait().await;
        for round in earlier {
            result = result.and(round.result.wait().await);
        }
        result.map(|()| None)
    }

    /// The round to wait for; `None` if all is durable. A task drives it.
    pub(crate) fn join_round(self: &Arc<Self>, file: &Arc<FileInner>, range: Range<u64>) -> Option<Arc<SharedRound>> {
        Some(self.join(file, range, Driver::Task).0?.round)
    }

    /// Whether this caller of a sync may drive a round.
    fn driver(&self, file: &FileInner) -> Driver {
        let base = &self.base;
        let may_wait = base.platform.may_wait_on_this_thread() || base.cache.rare.is_forced(Rare::SyncInCall);
        // A thread in a system call cannot go.
        if may_wait && !file.device.hang().may_refuse() { Driver::Caller } else { Driver::Task }
    }

    /// Joins or begins a round; `None` if all is durable. Also returns whether pages of the file are withheld: a range
    /// that is withheld from here on leaves the round its pages. Starts a task for a round that has no driver.
    fn join(self: &Arc<Self>, file: &Arc<FileInner>, range: Range<u64>, driver: Driver) -> (Option<Joined<P>>, bool) {
        let mut state = lock(&file.state);
        let withholds = file.is_withholding();
        if state.is_discarded() || (state.is_durable() && !state.rounds.are_running()) {
            return (None, withholds);
        }
        let drives = driver == Driver::Caller && !withholds;
        let mut claimed = WritesAtOnce::default();
        if drives && self.try_claim_beside(file, &mut state, &range, &mut claimed) {
            let round = self.spare.round();
            let earlier = state.rounds.begin_beside(Arc::clone(&round));
            return (Some(Joined { round, kind: RoundKind::Beside(Box::new(claimed)), earlier }), withholds);
        }
        let (round, part) = state.rounds.join(range, drives, || self.spare.round());
        drop(state);
        self.give_up_claims(file, &mut claimed);
        let part = match part {
            RoundPart::Starts | RoundPart::Leads if !drives => {
                self.start_rounds(file);
                RoundPart::Follows
            }
            part => part,
        };
        (Some(Joined { round, kind: RoundKind::Next(part), earlier: Vec::new() }), withholds)
    }

    /// Does the caller's part of its round.
    async fn drive(self: &Arc<Self>, file: &Arc<FileInner>, round: &Arc<SharedRound>, kind: RoundKind<P>) {
        let (writeback, file, round) = (Arc::clone(self), Arc::clone(file), Arc::clone(round));
        let steps: BoxFuture = match kind {
            RoundKind::Next(RoundPart::Follows) => return,
            RoundKind::Next(part) => Box::pin(async move {
                if part == RoundPart::Leads {
                    round.granted.wait().await;
                }
                if writeback.run_next_round(&file, Driver::Caller).await {
                    writeback.start_rounds(&file);
                }
            }),
            RoundKind::Beside(mut claimed) => {
                Box::pin(async move { writeback.run_beside(&file, &round, &mut claimed).await })
            }
        };
        InCall { platform: Arc::clone(&self.base.platform), steps: Some(steps) }.await;
    }

    /// Has a task drive the rounds requested in the file's state, until none remains.
    pub(super) fn start_rounds(self: &Arc<Self>, file: &Arc<FileInner>) {
        let file = Arc::clone(file);
        match self.idle_tasks.take() {
            Some(task) => task.give(file),
            None => self.base.platform.spawn("sync", drive_rounds_of_files(Arc::clone(self), file)),
        }
    }
}

async fn drive_rounds_of_files<P: Platform>(writeback: Arc<Writeback<P>>, mut file: Arc<FileInner>) {
    let task = Arc::new(IdleTask::default());
    loop {
        while writeback.run_next_round(&file, Driver::Task).await {}
        drop(file);
        if !writeback.idle_tasks.try_keep(Arc::clone(&task)) {
            return;
        }
        file = task.next_file().await;
    }
}

type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Steps of a round that a caller polls. If the caller's future is dropped before they have ended, a task goes on.
struct InCall<P: Platform> {
    platform: Arc<P>,
    /// None while they are polled, and once they have ended.
    steps: Option<BoxFuture>,
}

impl<P: Platform> Future for InCall<P> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(mut steps) = self.steps.take() else { return Poll::Ready(()) };
        let polled = steps.as_mut().poll(cx);
        if polled.is_pending() {
            self.steps = Some(steps);
        }
        polled
    }
}

impl<P: Platform> Drop for InCall<P> {
    fn drop(&mut self) {
        if let Some(steps) = self.steps.take() {
            self.platform.spawn("sync", steps);
        }
    }
}
