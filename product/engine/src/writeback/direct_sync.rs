//! Rounds at once: a caller that waits for its sync of few pages takes requests, and claims the file's few runs of
//! dirty pages. Then the device gets the bytes, and the flush. Then the pages become clean and durable at once. Until
//! then they stay under writeback, so no tag has to say that a flush will follow.
//!
//! Owns: which rounds have this form, and which may begin beside others; the claim, the write and the flush of one.
//! Does not own: the steps of ordinary rounds (`round`), the driver of a round (`sync`), the effect of each end
//! (`complete`, `flush`).
//! Invariants: pages are clean after the flush, not before (test `pages_stay_under_writeback_until_the_flush`; loom's
//! model of the page is `loom_a_page_under_writeback_does_not_change_and_loses_no_overwrite`). If the write fails, its
//! pages are as after any failed write. If the flush fails, they are dirty again, as after a failed write
//! (`a_failed_flush_at_once_leaves_its_pages_dirty`). A failed flush fails each round at once whose writes began before
//! the failure was known (`a_flush_that_fails_is_about_writes_that_ended_meanwhile`), and has ordinary writes that
//! ended before written again (the seed `failed-flush-beside-an-ordinary-write`).

use std::ops::Range;
use std::sync::{Arc, Mutex};

use afflux_device::error::{DeviceError, Error};
use afflux_device::platform::Platform;
use afflux_device::request::{Completion, Operation, Request, TransferHere};
use afflux_pages::cache::nodes::Tag;
use afflux_pages::memory::FrameMemory;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::{Answer, lock};
use smallvec::SmallVec;

use crate::devices::DeviceState;
use crate::devices::file::{FileInner, FileState};
use crate::devices::in_flight::{EndedRequest, Terms};
use crate::devices::usage::RequestStream;
use crate::writeback::batch::{Run, claim};
use crate::writeback::complete::Durable;
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
    /// Requests taken for the runs.
    requests: usize,
    /// The file's failed flushes before.
    failures: u64,
}

/// A write whose pages stay under writeback until the round ends it.
struct WriteAtOnce<P: Platform> {
    ends: WriteEnds<P>,
    operation: Operation,
    memory: Option<FrameMemory>,
    moved: EndedRequest,
}

impl<P: Platform> Default for WritesAtOnce<P> {
    fn default() -> Self {
        Self { claimed: SmallVec::new(), begun: SmallVec::new(), requests: 0, failures: 0 }
    }
}

impl<P: Platform> WritesAtOnce<P> {
    /// Ends those whose bytes are at the device. The others have ended.
    fn end(&mut self, result: Result<(), DeviceError>, durable: Durable) {
        self.begun.iter().for_each(|write| write.end(result, durable));
        self.begun.clear();
    }
}

impl<P: Platform> Writeback<P> {
    /// Claims all dirty pages of a file that runs no other round, for a round at once. If false, an ordinary round has
    /// to go on.
    pub(super) fn try_claim_alone(self: &Arc<Self>, file: &Arc<FileInner>, writes: &mut WritesAtOnce<P>) -> bool {
        let has_all = {
            let mut state = lock(&file.state);
            let has_all = self.try_claim_at_once(file, &mut state, Others::None, writes);
            state.rounds.set_at_once(has_all);
            has_all
        };
        if !has_all {
            self.give_up_claims(file, writes);
        }
        has_all
    }

    /// Claims all dirty pages of the file for a round at once beside those under way. If false, the caller gives up
    /// what it has claimed, once the file's lock is free.
    pub(super) fn try_claim_beside(
        &self,
        file: &FileInner,
        state: &mut FileState,
        range: &Range<u64>,
        writes: &mut WritesAtOnce<P>,
    ) -> bool {
        let may = *range == (0..u64::MAX) && file.device.limits().syncs_overlap;
        may && self.try_claim_at_once(file, state, Others::AtOnce, writes)
    }

    /// False if the file has failed lately, has other writes in flight, or more runs than a round at once writes.
    fn try_claim_at_once(
        &self,
        file: &FileInner,
        state: &mut FileState,
        others: Others,
        writes: &mut WritesAtOnce<P>,
    ) -> bool {
        let wanted = state.dirty_runs();
        if wanted > RUNS_MAX || !may_claim_at_once(file, state, others) {
            return false;
        }
        let terms = file.device.in_flight.terms();
        writes.failures = state.flushes.failures();
        while writes.claimed.len() < wanted && self.try_take_request_in_call(&file.device, &terms) {
            writes.requests += 1;
            let Some(run) = claim_next(file, state, &terms) else { break };
            writes.claimed.push(run);
        }
        // Sectors of the same page may be dirty beyond its run.
        let has_all = writes.claimed.len() == wanted && !file.has_tagged(Tag::Dirty);
        if has_all {
            writes.claimed.iter().for_each(|run| state.flight.mark_at_once(run.sequence));
        }
        has_all
    }

    /// Writes the claimed pages as any others, and gives back the requests that no run uses.
    pub(super) fn give_up_claims(self: &Arc<Self>, file: &Arc<FileInner>, writes: &mut WritesAtOnce<P>) {
        (writes.claimed.len()..writes.requests).for_each(|_| self.release_request(&file.device));
        writes.claimed.drain(..).for_each(|run| self.submit_write(file, run, true));
    }

    /// Writes what a round claimed, flushes the device, and marks the pages durable. None if a write failed or was set
    /// aside: its pages have ended as those of any write.
    pub(super) async fn write_and_flush_at_once(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        writes: &mut WritesAtOnce<P>,
        others: Others,
    ) -> Option<Result<(), Error>> {
        if writes.claimed.is_empty() {
            return Some(Ok(()));
        }
        if !self.try_write_at_once(file, writes).await {
            return None;
        }
        self.base.rare_yield().await;
        // Alone, the flush covers earlier writes, too. A write that ends from here on owes another.
        let covers_earlier = others == Others::None && lock(&file.state).flushes.try_begin();
        let result = self.call_flush(file, writes.failures).await;
        self.base.rare_yield().await;
        // After a failed flush the bytes may be gone: they are dirty again, as after a failed write. So are those of
        // ordinary writes that ended meanwhile.
        writes.end(result, Durable::Now);
        match result {
            // No page has a tag to be removed.
            Ok(()) if !covers_earlier => Some(Ok(())),
            _ => Some(self.flush_ended(file, false, result).await),
        }
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
    async fn try_write_at_once(self: &Arc<Self>, file: &Arc<FileInner>, writes: &mut WritesAtOnce<P>) -> bool {
        let mut all = true;
        for run in std::mem::take(&mut writes.claimed) {
            let (operation, memory, ends) = self.begin_write(file, run, true);
            let (memory, result) = self.carry(file, operation, memory).await;
            let moved = ends.end_transfer(operation, result);
            let write = WriteAtOnce { ends, operation, memory, moved };
            if !moved.was_aside {
                self.release_request(&file.device);
            }
            if result.is_ok() && !moved.was_aside {
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

    /// Brings bytes to the device: on this thread if it may wait and the device can, or by a request.
    async fn carry(
        &self,
        file: &Arc<FileInner>,
        operation: Operation,
        memory: FrameMemory,
    ) -> (Option<FrameMemory>, Result<(), DeviceError>) {
        if let Operation::Write { offset, .. } = operation
            && self.base.platform.may_wait_on_this_thread()
            && file.device.hardware.write_here(&TransferHere::new(&file.backing, offset, &memory)).is_some()
        {
            return (Some(memory), Ok(()));
        }
        let carried = Arc::new(Carried { file: Arc::clone(file), memory: Mutex::default(), answer: Answer::default() });
        let sink = Box::new(CarriedEnds(Arc::clone(&carried)));
        let request = Request::new(sink, file.backing.clone(), operation, Some(memory));
        file.device.hardware.submit(request.for_sync(true));
        let result = carried.answer.wait().await;
        (lock(&carried.memory).take(), result)
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
    file.device.in_flight.try_continue(RequestStream::Writes, file.pages.slot, first, first + run.pages);
    Some(run)
}

impl<P: Platform> WriteAtOnce<P> {
    fn end(&self, result: Result<(), DeviceError>, durable: Durable) {
        let pieces = self.memory.as_ref().map_or(&[][..], FrameMemory::pieces);
        self.ends.end_pages(self.operation, pieces, result, &self.moved, durable);
        self.ends.wake_waiters();
    }
}

/// A request that only carries bytes: its waiter ends the pages.
struct Carried {
    file: Arc<FileInner>,
    memory: Mutex<Option<FrameMemory>>,
    answer: Answer<Result<(), DeviceError>>,
}

struct CarriedEnds(Arc<Carried>);

impl Completion for CarriedEnds {
    fn file_bytes(&self) -> u64 {
        self.0.file.size()
    }

    fn completed(self: Box<Self>, _: Operation, memory: Option<FrameMemory>, result: Result<(), DeviceError>) {
        *lock(&self.0.memory) = memory;
        self.0.answer.give(result);
    }
}
