//! Syncs by their callers: at once, beside each other, or a round in the call of a blocked thread, so that no other
//! thread has to be woken.
//!
//! *At once*: a caller that waits for its sync of few pages takes requests, and claims the file's few runs of dirty
//! pages. Then the device gets the bytes, and the flush. Then the pages become clean and durable at once. Until then
//! they stay under writeback, so no tag has to say that a flush will follow.
//!
//! *Beside*: a caller that comes while a round at once is under way claims the dirty pages, notes the rounds under way,
//! writes and flushes. Then it waits for the noted rounds: they or the caller have each page that was dirty at its
//! call.
//!
//! *In the call*: a blocked caller runs its own round, the next one if it is that round's first caller. It gives the
//! file one slice, as the flusher would, if a request is free. The flusher writes the rest. If the caller goes away, a
//! task goes on with its round.
//!
//! Owns: which rounds have these forms, the order of their steps, the handover of a round.
//! Does not own: the steps of other rounds and their tasks (`sync`), the effect of each end (`complete`, `sync`), the
//! choice of a runner (`devices::file::rounds`).
//! Invariants: pages are clean after the flush, not before (test `pages_stay_under_writeback_until_the_flush`; loom's
//! model of the page is `loom_a_page_under_writeback_does_not_change_and_loses_no_overwrite`). If the write fails, its
//! pages are as after any failed write, and an ordinary round goes on. If the flush fails, they are as after any failed
//! flush (`a_failed_flush_at_once_leaves_its_pages_dirty`). A failed flush fails each round at once whose writes began
//! before the failure was known (`a_flush_that_fails_is_about_writes_that_ended_meanwhile`), and has ordinary writes
//! that ended before written again (the seed `failed-flush-beside-an-ordinary-write`). No round begins beside others
//! while a caller waits for an ordinary round, or on a device that says that syncs may not overlap. A caller that may
//! be refused while the device hangs runs no round.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use afflux_device::counters::Counter;
use afflux_device::error::{DeviceError, Error};
use afflux_device::platform::Platform;
use afflux_device::policy::FlushSlice;
use afflux_device::request::{Completion, Operation, Request, TransferHere};
use afflux_pages::cache::nodes::Tag;
use afflux_pages::memory::FrameMemory;
use afflux_pages::rare::Rare;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::{Answer, lock};
use smallvec::SmallVec;

use crate::devices::DeviceState;
use crate::devices::file::{FileInner, FileState, RoundPart, SharedRound};
use crate::devices::in_flight::Terms;
use crate::writeback::batch::{Run, claim};
use crate::writeback::complete::{Durable, Moved};
use crate::writeback::{WriteEnds, Writeback};

/// A round at once writes its runs one after the other. With more of them, requests side by side are faster.
const RUNS_MAX: usize = 4;

/// Which other rounds of the file are under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Others {
    None,
    /// Rounds at once.
    AtOnce,
}

/// The writes of a round at once: mostly one.
pub(super) struct WritesAtOnce<P: Platform> {
    claimed: SmallVec<[Run; 1]>,
    begun: SmallVec<[WriteAtOnce<P>; 1]>,
    /// The file's failed flushes before.
    failures: u64,
}

/// A write whose pages stay under writeback until the round ends it.
struct WriteAtOnce<P: Platform> {
    ends: WriteEnds<P>,
    operation: Operation,
    /// None while a request has it.
    memory: Option<FrameMemory>,
    moved: Option<Moved>,
}

impl<P: Platform> Default for WritesAtOnce<P> {
    fn default() -> Self {
        Self { claimed: SmallVec::new(), begun: SmallVec::new(), failures: 0 }
    }
}

impl<P: Platform> WritesAtOnce<P> {
    pub(super) fn is_empty(&self) -> bool {
        self.claimed.is_empty() && self.begun.is_empty()
    }

    /// Ends those whose bytes are at the device. The others have ended.
    pub(super) fn end(&mut self, result: Result<(), DeviceError>, durable: Durable) {
        self.begun.iter().for_each(|write| write.end(result, durable));
        self.begun.clear();
    }
}

impl<P: Platform> Writeback<P> {
    /// Runs a round at once, if it is one for the whole file, and the file has few runs of dirty pages. None: an
    /// ordinary round has to go on.
    pub(super) async fn round_at_once(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        range: &Range<u64>,
    ) -> Option<Result<(), Error>> {
        if *range != (0..u64::MAX) {
            return None;
        }
        let mut writes = WritesAtOnce::default();
        self.claim_at_once(file, Others::None, &mut writes, |state| state.rounds.set_at_once(true))?;
        if !self.try_write_at_once(file, &mut writes).await {
            lock(&file.state).rounds.set_at_once(false);
            return None;
        }
        self.base.rare_yield().await;
        // Writes that end from here on owe another flush.
        let owed = lock(&file.state).flushes.try_begin();
        let result = self.flush_at_once(file, &writes).await;
        self.base.rare_yield().await;
        let durable = if result.is_ok() { Durable::Now } else { Durable::Later };
        writes.end(Ok(()), durable);
        // Without earlier writes that owed a flush, no page has a tag to be removed.
        match result {
            Ok(()) if !owed => Some(Ok(())),
            _ => Some(self.flush_ended(file, false, result).await),
        }
    }

    /// Claims all dirty pages of the file for a round at once. None if the file has failed lately, has other writes in
    /// flight, or more runs than a round at once writes. `begin` is called in the same hold of the file's lock.
    pub(super) fn claim_at_once<T>(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        others: Others,
        writes: &mut WritesAtOnce<P>,
        begin: impl FnOnce(&mut FileState) -> T,
    ) -> Option<T> {
        let terms = file.device.in_flight.terms();
        let has_request = self.try_take_request_in_call(&file.device, &terms);
        let (mut taken, mut begun) = (usize::from(has_request), None);
        let claimed = &mut writes.claimed;
        {
            let mut state = lock(&file.state);
            let wanted = state.dirty_runs();
            if has_request && wanted <= RUNS_MAX && may_claim_at_once(file, &state, others) {
                writes.failures = state.flushes.failures();
                for count in 0..wanted {
                    if count >= taken && !self.try_take_request_in_call(&file.device, &terms) {
                        break;
                    }
                    taken = taken.max(count + 1);
                    let Some(run) = claim_next(file, &mut state, &terms) else { break };
                    claimed.push(run);
                }
                // Sectors of the same page may be dirty beyond its run.
                if claimed.len() == wanted && !file.has_tagged(Tag::Dirty) {
                    claimed.iter().for_each(|run| state.flight.mark_at_once(run.sequence));
                    begun = Some(begin(&mut state));
                }
            }
        }
        (claimed.len()..taken).for_each(|_| self.release_request(&file.device));
        if begun.is_none() {
            claimed.drain(..).for_each(|run| self.submit_write(file, run, true));
        }
        begun
    }

    /// Takes a request for a caller that writes beside the flusher, if one is free.
    fn try_take_request_in_call(&self, device: &DeviceState, terms: &Terms) -> bool {
        // A store's syncs pass other writes: the flusher divides its calls.
        let may = !terms.flight.syncs_pass && self.may_write_beside(device, terms);
        if !may || !device.try_count_another(terms, self.base.settings(), false) {
            return false;
        }
        let has_slot = device.slots().try_take(1);
        if !has_slot {
            self.uncount_write(device);
        }
        has_slot
    }

    /// Writes what was claimed, one run after the other. False if a write failed, or took so long that it was set
    /// aside: then all have ended as any write.
    pub(super) async fn try_write_at_once(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        writes: &mut WritesAtOnce<P>,
    ) -> bool {
        let mut all = true;
        for run in std::mem::take(&mut writes.claimed) {
            let (operation, memory, ends) = self.begin_write(file, run, true);
            let mut write = WriteAtOnce { ends, operation, memory: Some(memory), moved: None };
            let result = self.carry(file, &mut write).await;
            let moved = write.ends.end_transfer(operation, result);
            write.moved = Some(moved);
            if !moved.was_aside() {
                self.release_request(&file.device);
            }
            if result.is_ok() && !moved.was_aside() {
                writes.begun.push(write);
            } else {
                write.end(result, Durable::Later);
                all = false;
            }
        }
        if !all {
            writes.end(Ok(()), Durable::Later);
        }
        all
    }

    /// Flushes after the writes of a round at once. Fails, too, if another flush of the file has failed since the
    /// writes were claimed: the device may have dropped their bytes then.
    pub(super) async fn flush_at_once(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        writes: &WritesAtOnce<P>,
    ) -> Result<(), DeviceError> {
        self.base.local().count(Counter::SyncRequests, 1);
        self.call(file, Operation::Sync).await?;
        lock(&file.state).flushes.failure_since(writes.failures).map_or(Ok(()), Err)
    }

    /// Brings bytes to the device: on this thread if it may wait and the device can, or by a request.
    async fn carry(&self, file: &Arc<FileInner>, write: &mut WriteAtOnce<P>) -> Result<(), DeviceError> {
        if let (Operation::Write { offset, .. }, Some(memory)) = (write.operation, &write.memory)
            && self.base.platform.may_wait_on_this_thread()
            && file.device.write_here(&TransferHere::new(&file.backing, offset, memory)).is_some()
        {
            return Ok(());
        }
        let carried = Arc::new(Carried { memory: Mutex::default(), answer: Answer::default() });
        let ends = CarriedEnds { file: Arc::clone(file), carried: Arc::clone(&carried) };
        let request = Request::new(Box::new(ends), file.backing.clone(), write.operation, write.memory.take());
        file.device.submit(request.for_sync(true));
        let result = carried.answer.wait().await;
        write.memory = lock(&carried.memory).take();
        result
    }
}

/// Whether nothing of the file prevents a round at once.
fn may_claim_at_once(file: &FileInner, state: &FileState, others: Others) -> bool {
    let has_failed = state.failures.error().is_some() || state.failures.pages() > 0 || state.flushes.has_failed();
    let is_quiet = !has_failed && !state.is_discarded() && state.unplaced_from.is_none() && !file.is_withholding();
    is_quiet
        && match others {
            Others::None => state.dirty_runs() > 0 && !state.flight.has_writes(),
            // A flush that is owed for earlier writes is for one that begins alone. So is a longer file: the flush that
            // makes its size durable may be another's.
            Others::AtOnce => {
                let owes_more = state.flushes.is_owed() || file.size() > state.host.size();
                state.rounds.may_begin_beside() && !state.flight.has_other_writes() && !owes_more
            }
        }
}

fn claim_next(file: &FileInner, state: &mut FileState, terms: &Terms) -> Option<Run> {
    let bytes_max = terms.flight.request_bytes.max(PAGE_BYTES);
    let bytes_max = u64::from(file.device.limits().request_bytes_max).min(bytes_max) as u32;
    let run = claim(file, state, Tag::Dirty, bytes_max).ok()?;
    let first = run.offset / PAGE_BYTES;
    // Nothing of the file is in flight before it, so the device has to seek to it.
    file.device.figures.try_continue_write(first, (file.pages.slot, first + run.pages));
    Some(run)
}

impl<P: Platform> WriteAtOnce<P> {
    fn end(&self, result: Result<(), DeviceError>, durable: Durable) {
        let pieces = self.memory.as_ref().map_or(&[][..], FrameMemory::pieces);
        let Some(moved) = self.moved else { return };
        self.ends.end_pages(self.operation, pieces, result, moved, durable);
        self.ends.wake_waiters();
    }
}

/// A request that only carries bytes: its waiter ends the pages.
struct Carried {
    memory: Mutex<Option<FrameMemory>>,
    answer: Answer<Result<(), DeviceError>>,
}

struct CarriedEnds {
    file: Arc<FileInner>,
    carried: Arc<Carried>,
}

impl Completion for CarriedEnds {
    fn file_bytes(&self) -> u64 {
        self.file.size()
    }

    fn completed(self: Box<Self>, _: Operation, memory: Option<FrameMemory>, result: Result<(), DeviceError>) {
        *lock(&self.carried.memory) = memory;
        self.carried.answer.give(result);
    }
}

/// A round at once that has begun beside others.
pub(super) struct Beside<P: Platform> {
    own: Arc<SharedRound>,
    writes: WritesAtOnce<P>,
    /// The rounds under way when it began.
    earlier: Vec<Arc<SharedRound>>,
}

impl<P: Platform> Writeback<P> {
    /// Begins a round beside those under way, if nothing else has to be waited for.
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

/// A caller's own round, which it has not begun. If the caller goes away, a task runs it.
pub(super) struct OwnRound<'a, P: Platform> {
    writeback: &'a Arc<Writeback<P>>,
    file: &'a Arc<FileInner>,
    round: &'a Arc<SharedRound>,
    part: RoundPart,
}

impl<P: Platform> OwnRound<'_, P> {
    /// Waits for the grant, then runs the round.
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

    /// Gives the file a slice to write marked pages; the flusher writes the rest.
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
        // The flusher writes the remaining marked pages. They may have waited for a request that has ended meanwhile.
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
