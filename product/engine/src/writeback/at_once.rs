//! A caller that waits for its sync of few pages writes them, flushes, and changes the pages once.
//!
//! First the caller takes requests, and claims the file's few runs of dirty pages. Then the device gets the bytes, and
//! the flush. Then the pages become clean and durable at once. Until then they stay under writeback, so no tag has to
//! say that a flush will follow.
//!
//! Owns: which rounds go this way, the order of these steps.
//! Does not own: such rounds beside each other (`beside`), the steps of other rounds (`sync`), the effect of each end
//! (`complete`, `sync`).
//! Invariants: pages are clean after the flush, not before (test `pages_stay_under_writeback_until_the_flush`; loom's
//! model of the page is `loom_a_page_under_writeback_does_not_change_and_loses_no_overwrite`). If the write fails, its
//! pages are as after any failed write, and an ordinary round goes on. If the flush fails, they are as after any failed
//! flush (`a_failed_flush_at_once_leaves_its_pages_dirty`).

use std::ops::Range;
use std::sync::{Arc, Mutex};

use afflux_device::counters::Counter;
use afflux_device::error::{DeviceError, Error};
use afflux_device::platform::Platform;
use afflux_device::request::{Completion, Operation, Request, TransferHere};
use afflux_pages::cache::nodes::Tag;
use afflux_pages::memory::FrameMemory;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::{Answer, lock};
use smallvec::SmallVec;

use super::batch::{Run, claim};
use super::complete::{Durable, Moved};
use super::{WriteEnds, Writeback};
use crate::devices::DeviceState;
use crate::devices::file::{FileInner, FileState};
use crate::devices::in_flight::Terms;

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

/// Whether nothing of the file stands in the way of a round at once.
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
        self.ends.end_pages(self.operation, pieces, result, (moved, durable));
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
