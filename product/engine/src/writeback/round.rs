//! A round of writeback: the dirty pages of a file are written, and a flush makes them durable.
//!
//! An ordinary round marks the dirty pages, has them written, and waits for them and for earlier writes in flight. Then
//! it flushes the device, and answers all callers that asked for it. A round *at once* (`direct_sync`) claims few pages
//! itself, and they become clean with the flush.
//!
//! Owns: the order of the steps, the end of a round.
//! Does not own: the callers and the driver of a round (`sync`), the flusher's writes, device time spent on them, the
//! effect of the flush on pages (`flush`), the choice of the next round (`devices::file::rounds`).
//! Invariants: a page dirtied after the mark is not in the round, so a rewriter cannot prolong it. If a write of a
//! round at once fails, an ordinary round goes on.

use std::ops::Range;
use std::sync::Arc;

use afflux_device::error::Error;
use afflux_device::platform::Platform;
use afflux_device::policy::FlushSlice;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::wait::lock;

use crate::devices::DeviceState;
use crate::devices::file::{FileInner, SharedRound};
use crate::devices::in_flight::Terms;
use crate::writeback::Writeback;
use crate::writeback::direct_sync::{Others, WritesAtOnce};
use crate::writeback::sync::Driver;

/// The most pages marked in one hold of the file's lock.
const MARK_PAGES: u64 = 4096;

impl<P: Platform> Writeback<P> {
    /// Runs the file's next round, and answers its callers. Returns whether a task has to run another one.
    pub(super) async fn run_next_round(self: &Arc<Self>, file: &Arc<FileInner>, driver: Driver) -> bool {
        let (next, last_later) = {
            let mut state = lock(&file.state);
            (state.rounds.take_next(), state.withheld.later().last_position())
        };
        let Some(round) = next else { return false };
        let result = self.write_and_flush(file, &round.range, driver).await;
        if let (Some(last), Ok(())) = (last_later, &result) {
            self.let_go_later(file, last, &round.range);
        }
        round.shared.result.give(result);
        self.end_round(file, &round.shared)
    }

    /// Runs a round beside others, whose pages are claimed already, and answers its caller.
    pub(super) async fn run_beside(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        own: &Arc<SharedRound>,
        writes: &mut WritesAtOnce<P>,
    ) {
        let ended = self.write_and_flush_at_once(file, writes, Others::AtOnce).await;
        if self.end_round(file, own) {
            self.start_rounds(file);
        }
        let result = match ended {
            Some(result) => result,
            // An ordinary round finds out what became of its writes.
            None => match self.join_round(file, 0..u64::MAX) {
                Some(round) => round.result.wait().await,
                None => Ok(()),
            },
        };
        own.result.give(result);
    }

    /// Ends a round, and gives the grant to the caller that drives the next one. Returns whether a task has to.
    fn end_round(&self, file: &FileInner, round: &Arc<SharedRound>) -> bool {
        let next = lock(&file.state).rounds.end(round);
        next.wake_caller();
        next.is_task()
    }

    async fn write_and_flush(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        range: &Range<u64>,
        driver: Driver,
    ) -> Result<(), Error> {
        if driver == Driver::Caller && *range == (0..u64::MAX) {
            let mut writes = WritesAtOnce::default();
            if self.try_claim_alone(file, &mut writes) {
                if let Some(result) = self.write_and_flush_at_once(file, &mut writes, Others::None).await {
                    return result;
                }
                lock(&file.state).rounds.set_at_once(false);
            }
        }
        // Other requests may pass earlier writes in the device, just as they may pass the round's.
        let _waits = file.device.in_flight.sync_waits(file.pages.slot);
        let failures_before = lock(&file.state).failures.count();
        let sequence = self.mark_dirty(file, range, driver).await;
        if driver == Driver::Caller {
            self.write_marked(file).await;
        }
        if file.device.in_flight.allowed().syncs_pass {
            file.device.requests().write_ended().wake_all();
        }
        wait_for_writes_before(file, sequence, true).await;
        self.base.rare_yield().await;
        // Writes for the round have later numbers: they must have ended, too.
        let sequence = lock(&file.state).flight.next_write();
        wait_for_writes_before(file, sequence, false).await;
        self.check_failures(file, failures_before)?;
        self.base.rare_yield().await;
        self.flush(file).await
    }

    /// Marks the dirty pages of the range. Returns the number of the first write that is not earlier than the round.
    async fn mark_dirty(&self, file: &Arc<FileInner>, range: &Range<u64>, driver: Driver) -> u64 {
        let mut unmarked = FileInner::pages_of(range);
        loop {
            {
                let mut state = lock(&file.state);
                if mark(file, &mut unmarked) && driver == Driver::Task {
                    file.queue_sync(&mut state);
                }
                if unmarked.is_empty() {
                    state.flushes.owe_again();
                    // Pages claimed before the mark reached them belong to the earlier writes.
                    return state.flight.next_write();
                }
            }
            self.base.pass().await;
        }
    }

    /// The error of a write of this round, or of an earlier one whose page is still dirty.
    fn check_failures(&self, file: &Arc<FileInner>, failures_before: u64) -> Result<(), Error> {
        let mut state = lock(&file.state);
        let fails = state.failures.count() > failures_before || state.failures.pages() > 0;
        let Some(error) = state.failures.error().filter(|_| fails && !state.is_discarded()) else { return Ok(()) };
        // This round makes no flush: another must.
        if state.flushes.is_owed() {
            file.owe_flush(&mut state, self.base.now());
        }
        Err(error.into())
    }

    /// Gives the file a slice to write marked pages; the flusher writes the rest.
    async fn write_marked(self: &Arc<Self>, file: &Arc<FileInner>) {
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

/// Returns once no write with an earlier number is in flight and, if `marked`, no marked page remains to be written.
async fn wait_for_writes_before(file: &FileInner, sequence: u64, marked: bool) {
    let has_ended = || {
        let state = lock(&file.state);
        let must_write = marked && (file.has_tagged(Tag::ToWrite) || state.is_held());
        let is_over = marked && state.is_discarded();
        (is_over || !(must_write || state.flight.has_writes_before(sequence))).then_some(())
    };
    file.queue.until(has_ended).await;
}
