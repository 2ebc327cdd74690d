//! Sync: data dirty at the call is durable on return.
//!
//! Owns: rounds. A round marks the dirty pages, has them written, and waits for them and for earlier writes in flight.
//! It then flushes the device, and answers all callers that asked for it. Also the tasks that run rounds: each has one
//! file's at a time, and stays for the next.
//! Does not own: the writing (`flusher`), device time spent on it, how an idle task gets a file (`recycler`).
//! Invariants: a file has one ordinary round at a time. A caller that comes while it runs gets the next, so no sync
//! waits for more than two. Only rounds at once run beside each other (`direct_sync`). A page dirtied after the mark is
//! not in the round, so a rewriter cannot prolong it. A separate task runs the round, or a blocked caller does
//! (`direct_sync`): callers that go away strand nobody, and a file never waits for a task.

use std::ops::Range;
use std::sync::Arc;

use afflux_device::client::Client;
use afflux_device::counters::Counter;
use afflux_device::error::{DeviceError, Error};
use afflux_device::platform::Platform;
use afflux_device::request::Operation;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::page::{DIRTY, FAILED, Sectors, WRITEBACK};
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use crate::call::FileCall;
use crate::devices::file::{Earlier, FileInner, FileState, RoundPart, SharedRound, SyncRound};
use crate::devices::waits::WaitsFor;
use crate::devices::withholding::RangeId;
use crate::dirty::force_charge;
use crate::recycler::IdleTask;
use crate::trace::EngineEvent;
use crate::writeback::Writeback;

/// The most pages marked in one hold of the file's lock.
const MARK_PAGES: u64 = 4096;
/// The most pages updated after a flush in one hold of the file's lock.
const PIECE_PAGES: u64 = 1024;
/// The most leaves of the index whose tags are cleared in one hold of the file's lock.
const UNMARK_LEAVES: u64 = 1024;

/// The state of a file for a caller of its sync.
enum Asked {
    /// All is durable.
    Durable,
    /// A round at once may begin beside those under way.
    Beside,
    /// The round to wait for, and the caller's part in it.
    Round(Arc<SharedRound>, RoundPart),
}

impl Asked {
    fn round(self) -> Option<(Arc<SharedRound>, RoundPart)> {
        if let Self::Round(round, part) = self { Some((round, part)) } else { None }
    }
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
        let runs_itself = self.may_sync_in_call(file);
        let may_begin_beside = runs_itself && *range == (0..u64::MAX) && file.device.limits().syncs_overlap;
        let mut asked = self.ask_for_round(file, range.clone(), runs_itself, may_begin_beside);
        if let Asked::Beside = asked {
            if let Some(beside) = self.try_begin_beside(file) {
                let call = FileCall::new(file, client);
                let _wait = call.begins(&self.base, WaitsFor::Sync, None, u64::MAX);
                return self.sync_beside(file, beside).await.map(|()| None);
            }
            asked = self.ask_for_round(file, range.clone(), runs_itself, false);
        }
        let joined = asked.round();
        // A range that is withheld from here on leaves the round its pages.
        let withholds = file.is_withholding();
        let own =
            joined.as_ref().and_then(|(round, part)| self.own_round(file, round, *part, runs_itself && !withholds));
        if withholds && let Some(order) = Self::order_of(file, range)? {
            return Ok(Some(order));
        }
        let Some((round, _)) = &joined else { return Ok(None) };
        let call = FileCall::new(file, client);
        let _wait = call.begins(&self.base, WaitsFor::Sync, None, u64::MAX);
        if let Some(own) = own {
            own.runs().await;
        }
        round.result.wait().await.map(|()| None)
    }

    /// The round to wait for; `None` if all is durable.
    pub(crate) fn join_round(self: &Arc<Self>, file: &Arc<FileInner>, range: Range<u64>) -> Option<Arc<SharedRound>> {
        let (round, part) = self.ask_for_round(file, range, false, false).round()?;
        if part == RoundPart::Starts {
            self.start_rounds(file);
        }
        Some(round)
    }

    /// As [`Writeback::join_round`]; the caller does its part in the round afterwards.
    fn ask_for_round(&self, file: &FileInner, range: Range<u64>, may_lead: bool, may_begin_beside: bool) -> Asked {
        let mut state = lock(&file.state);
        if state.is_discarded() || (state.is_durable() && !state.rounds.are_running()) {
            return Asked::Durable;
        }
        if may_begin_beside && state.rounds.may_begin_beside() {
            return Asked::Beside;
        }
        let (round, part) = state.rounds.join(range, may_lead, || self.spare.round());
        Asked::Round(round, part)
    }

    /// Runs the file's next round, and answers its callers. Returns whether a task has to run another one.
    pub(super) async fn run_next_round(self: &Arc<Self>, file: &Arc<FileInner>, in_call: bool) -> bool {
        let next = lock(&file.state).rounds.take_next();
        let Some(round) = next else { return false };
        let shared = Arc::clone(&round.shared);
        self.run_round(file, round, in_call).await;
        let runner = lock(&file.state).rounds.end(&shared);
        runner.wake_caller();
        runner.is_task()
    }

    async fn run_round(self: &Arc<Self>, file: &Arc<FileInner>, round: SyncRound, in_call: bool) {
        let last_later = lock(&file.state).withheld.later().last_position();
        let result = self.round(file, &round.range, in_call).await;
        if let (Some(last), Ok(())) = (last_later, &result) {
            self.let_go_later(file, last, &round.range);
        }
        round.shared.result.give(result);
    }

    async fn round(self: &Arc<Self>, file: &Arc<FileInner>, range: &Range<u64>, in_call: bool) -> Result<(), Error> {
        if in_call && let Some(result) = self.round_at_once(file, range).await {
            return result;
        }
        // Other requests may pass earlier writes in the device, just as they may pass the round's.
        let _waits = file.device.in_flight.sync_waits(file.pages.slot);
        let failures_before = lock(&file.state).failures.count();
        let mut unmarked = FileInner::pages_of(range);
        let sequence = loop {
            {
                let mut state = lock(&file.state);
                if mark(file, &mut unmarked) && !in_call {
                    file.queue_sync(&mut state);
                }
                if unmarked.is_empty() {
                    state.flushes.owe_again();
                    // Pages claimed before the mark reached them belong to the earlier writes.
                    break state.flight.next_write();
                }
            }
            self.base.pass().await;
        };
        if in_call {
            self.write_marked(file).await;
        }
        if file.device.in_flight.allowed().syncs_pass {
            file.device.requests().write_ended().wake_all();
        }
        file.queue
            .until(|| {
                let state = lock(&file.state);
                let earlier = state.flight.has_writes_before(sequence);
                let marked = file.has_tagged(Tag::ToWrite);
                (state.is_discarded() || !(earlier || marked || state.is_held())).then_some(())
            })
            .await;
        self.base.rare_yield().await;
        // Writes for the round have later numbers: they must have ended, too.
        let sequence = lock(&file.state).flight.next_write();
        file.queue
            .until(|| {
                let state = lock(&file.state);
                let earlier = state.flight.has_writes_before(sequence);
                (!earlier).then_some(())
            })
            .await;
        {
            let mut state = lock(&file.state);
            if state.is_discarded() {
                return Ok(());
            }
            let fails = state.failures.count() > failures_before || state.failures.pages() > 0;
            if let Some(error) = state.failures.error().filter(|_| fails) {
                // This round makes no flush: another must.
                if state.flushes.is_owed() {
                    file.owe_flush(&mut state, self.base.now());
                }
                return Err(error.into());
            }
        }
        self.base.rare_yield().await;
        self.flush(file).await
    }

    async fn flush(self: &Arc<Self>, file: &Arc<FileInner>) -> Result<(), Error> {
        // Every write that ends from here on owes another.
        let failed_before = {
            let mut state = lock(&file.state);
            if !state.flushes.try_begin() {
                return Ok(());
            }
            state.flushes.has_failed()
        };
        self.base.local().count(Counter::SyncRequests, 1);
        let result = self.call(file, Operation::Sync).await;
        self.flush_ended(file, failed_before, result).await
    }

    /// A flush of the file has ended.
    pub(super) async fn flush_ended(
        &self,
        file: &Arc<FileInner>,
        failed_before: bool,
        result: Result<(), DeviceError>,
    ) -> Result<(), Error> {
        if file.device.note_write(result, failed_before) {
            self.base.trace_device(Some(file.device.id()), || EngineEvent::DeviceFailing { error: result.err() });
        }
        match result {
            Ok(()) => self.flushed(file).await,
            Err(error) => self.flush_failed(file, error).await,
        }
        let kept = {
            let mut state = lock(&file.state);
            // No page of it has to stay any more, and no caller waits for the answer.
            if state.is_discarded() {
                return Ok(());
            }
            file.settle(&mut state)
        };
        drop(kept);
        result.map_err(Error::Device)
    }

    /// A flush succeeded: the pages that it covered lose their tags. If a write ends meanwhile, its pages need a tag
    /// until the next flush. Then all remaining tags stay until that flush.
    async fn flushed(&self, file: &Arc<FileInner>) {
        let mut next = Some(0);
        while let Some(from) = next {
            {
                let mut state = lock(&file.state);
                if from == 0 && !state.is_discarded() {
                    state.flushes.forget_failure();
                }
                if state.is_discarded() || state.flushes.is_owed() {
                    return;
                }
                if from == 0 {
                    file.device.worklist().forget_unflushed(file.pages.slot);
                    file.keep_flushed(&mut state);
                }
                next = self.unmark_flushed(file, &state, from);
                // A page that went before its tag did was durable.
                state.flushes.evicted_are_durable();
            }
            if next.is_some() {
                self.base.pass().await;
            }
        }
    }

    /// Clears the tags of some pages that a flush covered, from a page on. Pages that had to stay until the flush may
    /// go again. Returns where to continue, if there may be more.
    fn unmark_flushed(&self, file: &FileInner, _: &FileState, from: u64) -> Option<u64> {
        let (cache, index) = (&file.cache, &file.pages.index);
        if file.device.limits().readable_before_flush {
            let leaves = cache.piece(UNMARK_LEAVES);
            cache.longest_hold.raise_to(leaves);
            return index.clear_tag(&cache.nodes, from, Tag::Unflushed, leaves);
        }
        let tagged = |page| index.next_tagged(&cache.nodes, page, Tag::Unflushed);
        let next = cache.visit_piece(PIECE_PAGES, from, tagged, |page| {
            index.set_tag(&cache.nodes, page, Tag::Unflushed, false);
            cache.frame_at(&file.pages, page).into_iter().for_each(|frame| cache.note_clean(frame));
        });
        cache.memory_queue.wake_all();
        next
    }

    /// A flush failed: data written since the last one may not be durable. Pages still cached become dirty again; if
    /// some are gone, unsynced data may have been lost. A page that the flush covered stays in the cache until it is
    /// dirty again (`redirtying`).
    async fn flush_failed(&self, file: &Arc<FileInner>, error: DeviceError) {
        let mut next = Some(0);
        while let Some(from) = next {
            {
                let mut state = lock(&file.state);
                if state.is_discarded() {
                    return;
                }
                if from == 0 {
                    self.base.local().count(Counter::WriteErrors, 1);
                    if state.failures.insert_error(error) {
                        file.device.failures.file_fails();
                    }
                    state.flushes.fails();
                    file.owe_flush(&mut state, self.base.now());
                }
                next = self.redirty(file, &mut state, from);
                // Not at the end only: between two pieces, a reader may find the device's old bytes.
                if state.flushes.take_evicted() {
                    self.base.devices.note_lost();
                }
                if next.is_none() {
                    state.flushes.end_redirtying();
                    file.requeue(&mut state, self.base.now());
                }
            }
            if next.is_some() {
                self.base.pass().await;
            }
        }
    }

    /// Makes some pages that the failed flush covered dirty again, from a page on. Returns where to continue, if there
    /// may be more.
    fn redirty(&self, file: &Arc<FileInner>, state: &mut FileState, from: u64) -> Option<u64> {
        let (nodes, index) = (&file.cache.nodes, &file.pages.index);
        let tagged = |page| index.next_tagged(nodes, page, Tag::Unflushed);
        file.cache.visit_piece(PIECE_PAGES, from, tagged, |page| {
            index.set_tag(nodes, page, Tag::Unflushed, false);
            self.redirty_page(file, state, page);
        })
    }

    fn redirty_page(&self, file: &Arc<FileInner>, state: &mut FileState, page: u64) {
        let cache = &file.cache;
        let Some(frame) = cache.frame_at(&file.pages, page) else { return };
        let in_file = file.size().saturating_sub(page * PAGE_BYTES).min(PAGE_BYTES) as usize;
        let doubtful = cache.pages.unflushed(frame).intersection(Sectors::touched(0..in_file));
        if doubtful.is_empty() {
            return;
        }
        let word = cache.pages.word(frame);
        if word.has_any(DIRTY | WRITEBACK) {
            cache.pages.set_dirty(frame, cache.pages.dirty(frame).union(doubtful));
            if !word.has(DIRTY) {
                // The request in flight may leave some sectors dirty: the next sync has to mark the page.
                file.tag_dirty(state, page, true);
                state.failures.add_pages(u64::from(!cache.pages.change(frame, 0, FAILED).has(FAILED)));
            }
            return;
        }
        cache.pages.set_dirty(frame, doubtful);
        cache.pages.change(frame, 0, DIRTY | FAILED);
        file.tag_dirty(state, page, true);
        state.failures.add_pages(1);
        cache.eviction.dirtied(&cache.pages, frame);
        self.base.local().count(Counter::PagesDirtied, 1);
        file.note_dirtied(state, || self.base.now());
        force_charge(&file.device, 1);
    }
}

/// Marks dirty pages of the range, as many as the lock may be held for, and leaves the others in it; returns whether
/// there were any.
fn mark(file: &FileInner, pages: &mut Range<u64>) -> bool {
    let (nodes, index, end) = (&file.cache.nodes, &file.pages.index, pages.end);
    let mut any = false;
    let dirty = |page| index.next_tagged(nodes, page, Tag::Dirty).filter(|page| *page < end);
    let next = file.cache.visit_piece(MARK_PAGES, pages.start, dirty, |page| {
        index.set_tag(nodes, page, Tag::ToWrite, true);
        any = true;
    });
    pages.start = next.unwrap_or(end);
    any
}

impl<P: Platform> Writeback<P> {
    /// Has a task run the rounds requested in the file's state, until none remains.
    pub(super) fn start_rounds(self: &Arc<Self>, file: &Arc<FileInner>) {
        let file = Arc::clone(file);
        match self.idle_tasks.take() {
            Some(task) => task.give(file),
            None => self.base.platform.spawn("sync", run_rounds_of_files(Arc::clone(self), file)),
        }
    }
}

async fn run_rounds_of_files<P: Platform>(writeback: Arc<Writeback<P>>, mut file: Arc<FileInner>) {
    let task = Arc::new(IdleTask::default());
    loop {
        while writeback.run_next_round(&file, false).await {}
        drop(file);
        if !writeback.idle_tasks.try_keep(Arc::clone(&task)) {
            return;
        }
        file = task.next_file().await;
    }
}
