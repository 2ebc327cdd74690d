//! A caller that waits for its sync of few pages writes them, flushes, and changes the pages once.
//!
//! First the caller takes a request, and claims the file's only run of dirty pages. Then the device gets the bytes, and the
//! flush. Then the pages become clean and durable at once. Until then they stay under writeback, so no tag has to say that a
//! flush will follow.
//!
//! Owns: which rounds go this way, the order of these steps.
//! Does not own: the steps of other rounds (`sync`), the effect of each end (`complete`, `sync`).
//! Invariants: pages are clean after the flush, not before (test `pages_stay_under_writeback_until_the_flush`; loom's model of
//! the page is `loom_a_page_under_writeback_does_not_change_and_loses_no_overwrite`). If the write
//! fails, its pages are as after any failed write, and an ordinary round goes on. If the flush fails, they are as after any
//! failed flush (`a_failed_flush_at_once_leaves_its_pages_dirty`).

use std::ops::Range;
use std::sync::{Arc, Mutex};

use afflux_device::counters::Counter;
use afflux_device::devices::DeviceState;
use afflux_device::devices::file::FileInner;
use afflux_device::devices::in_flight::Terms;
use afflux_device::error::{DeviceError, Error};
use afflux_device::platform::Platform;
use afflux_device::request::{Completion, Operation, Request, TransferHere};
use afflux_pages::cache::nodes::Tag;
use afflux_pages::memory::FrameMemory;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::{Answer, lock};

use super::Writeback;
use super::batch::{Run, claim};
use super::complete::{Durable, Moved, WriteEnds};

/// A write whose pages are still under writeback.
struct Written<P: Platform> {
    ends: WriteEnds<P>,
    operation: Operation,
    memory: FrameMemory,
    moved: Moved,
}

impl<P: Platform> Writeback<P> {
    /// Runs a round at once, if it is one for the whole file, and the file has one run of dirty pages. None: an ordinary round
    /// has to go on.
    pub(super) async fn round_at_once(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        range: &Range<u64>,
    ) -> Option<Result<(), Error>> {
        let terms = file.device.in_flight.terms();
        if *range != (0..u64::MAX) || !self.try_take_request_in_call(&file.device, &terms) {
            return None;
        }
        let Some((run, is_all)) = claim_at_once(file, &terms) else {
            self.release_request(&file.device);
            return None;
        };
        if !is_all {
            self.submit_write(file, run, true);
            return None;
        }
        let written = self.write_at_once(file, run).await?;
        self.base.rare_yield().await;
        // Writes that end from here on owe another flush.
        let owed = lock(&file.state).flushes.try_begin();
        self.base.local().count(Counter::SyncRequests, 1);
        let result = self.call(file, Operation::Sync).await;
        self.base.rare_yield().await;
        written.end(Ok(()), if result.is_ok() { Durable::Now } else { Durable::Later });
        // Without earlier writes that owed a flush, no page has a tag to be removed.
        match result {
            Ok(()) if !owed => Some(Ok(())),
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

    /// Writes a run. None if the write failed, or took so long that it was set aside: then it has ended as any write.
    async fn write_at_once(self: &Arc<Self>, file: &Arc<FileInner>, run: Run) -> Option<Written<P>> {
        let (operation, memory, ends) = self.begin_write(file, run, true);
        let (memory, result) = self.carry(file, operation, memory).await;
        let moved = ends.end_transfer(operation, result);
        if !moved.was_aside() {
            self.release_request(&file.device);
        }
        let written = Written { ends, operation, memory, moved };
        match result {
            Ok(()) if !moved.was_aside() => Some(written),
            _ => {
                written.end(result, Durable::Later);
                None
            }
        }
    }

    /// Brings bytes to the device: on this thread if it may wait and the device can, or by a request.
    async fn carry(
        &self,
        file: &Arc<FileInner>,
        operation: Operation,
        memory: FrameMemory,
    ) -> (FrameMemory, Result<(), DeviceError>) {
        if let Operation::Write { offset, .. } = operation
            && self.base.platform.may_wait_on_this_thread()
            && file.device.write_here(&TransferHere::new(&file.backing, offset, &memory)).is_some()
        {
            return (memory, Ok(()));
        }
        let carried = Arc::new(Carried { memory: Mutex::default(), answer: Answer::default() });
        let ends = CarriedEnds { file: Arc::clone(file), carried: Arc::clone(&carried) };
        let request = Request::new(Box::new(ends), file.backing.clone(), operation, Some(memory));
        file.device.submit(request.for_sync(true));
        let result = carried.answer.wait().await;
        let memory = lock(&carried.memory).take();
        (memory.unwrap_or_else(|| unreachable!("it came with the answer")), result)
    }
}

/// Claims a run, and says whether it has all dirty pages of the file. None if the file has failed lately, has writes in
/// flight, or more dirty pages than one run.
fn claim_at_once(file: &FileInner, terms: &Terms) -> Option<(Run, bool)> {
    let mut state = lock(&file.state);
    let has_failed = state.failures.error().is_some() || state.failures.pages() > 0 || state.flushes.has_failed();
    let is_quiet = !has_failed && !state.is_discarded() && !state.flight.has_writes() && state.unplaced_from.is_none();
    if !is_quiet || !state.has_one_run() || file.is_withholding() {
        return None;
    }
    let bytes_max = terms.flight.request_bytes.max(PAGE_BYTES);
    let bytes_max = u64::from(file.device.limits().request_bytes_max).min(bytes_max) as u32;
    let run = claim(file, &mut state, Tag::Dirty, bytes_max).ok()?;
    // Sectors of the same page may be dirty beyond the run.
    let is_all = !file.has_tagged(Tag::Dirty);
    let first = run.offset / PAGE_BYTES;
    // Nothing of the file is in flight, so the device has to seek to it.
    file.device.figures.writes_on(first, (file.pages.slot, first + run.pages));
    Some((run, is_all))
}

impl<P: Platform> Written<P> {
    fn end(self, result: Result<(), DeviceError>, durable: Durable) {
        self.ends.end_pages(self.operation, self.memory.pieces(), result, (self.moved, durable));
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
