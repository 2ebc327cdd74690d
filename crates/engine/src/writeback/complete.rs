//! What the end of a write request means for its pages.
//!
//! Owns: the transitions out of writeback, for success and failure; the order of steps at a request's end.
//! Does not own: the way there (`batch`), waiting, what follows for the device's policy.
//! Invariants: run by whoever reaps, with no lock held before. Under the file's lock states change;
//! wake-ups follow after it. A failed write leaves its sectors dirty and queues the file for later.

use std::sync::Arc;

use frames::FrameId;

use super::Writeback;
use super::batch::sectors_of;
use super::spare::Boxed;
use crate::cache::nodes::Tag;
use crate::counters::Counter;
use crate::devices::Kind;
use crate::devices::file::{FAILING_TRIES, FileInner, FileState};
use crate::devices::in_flight::Ticket;
use crate::dirty::{failing, room_was_made};
use crate::error::DeviceError;
use crate::memory::{FrameMemory, Piece};
use crate::page::{DIRTY, FAILED, PRESENT, PRIOR, Sectors, WRITEBACK};
use crate::platform::{Nanos, Platform};
use crate::policy::{Completed, Direction};
use crate::request::{Completion, Operation};
use crate::settings::Knob;
use crate::trace::Event;
use crate::wait::{Changed, lock};

/// The end of a write request.
pub(super) struct WriteEnds<P: Platform> {
    pub(super) writeback: Arc<Writeback<P>>,
    pub(super) file: Arc<FileInner>,
    pub(super) sequence: u64,
    /// Whether it counts as a run of its own.
    pub(super) runs: i64,
    pub(super) submitted: Nanos,
    /// Writes in flight then, itself included.
    pub(super) in_flight: u64,
    pub(super) ticket: Ticket,
}

impl<P: Platform> Completion for Boxed<WriteEnds<P>> {
    fn file_bytes(&self) -> u64 {
        self.get().file.size()
    }

    fn completed(
        mut self: Box<Self>,
        operation: Operation,
        memory: Option<FrameMemory>,
        result: Result<(), DeviceError>,
    ) {
        let ends = self.take();
        ends.writeback.spare.writes.keep(self);
        ends.completed(operation, memory, result);
    }
}

impl<P: Platform> WriteEnds<P> {
    /// The file first, then the accounts, then the policy; waiters last, when all of it is seen.
    fn completed(self, operation: Operation, memory: Option<FrameMemory>, result: Result<(), DeviceError>) {
        let base = &self.writeback.base;
        let now = base.now();
        let pieces = memory.as_ref().map_or(&[][..], FrameMemory::pieces);
        let bytes = if let Operation::Write { len, .. } = operation { u64::from(len) } else { 0 };
        let (ended, kept) = self.end_pages(operation, pieces, result, now);
        let ns = now.since(self.submitted);
        base.trace_file(now, &self.file, None, || Event::Completed { operation, ns, error: result.err() });
        self.count(&ended, result);
        self.note_failures(&ended, result.map(|()| bytes), now);
        ended.released.iter().for_each(|frame| self.file.cache.release(*frame));
        self.settle_accounts(&ended, bytes, result, now);
        self.tell_policy(&ended, if result.is_ok() { bytes } else { 0 }, now);
        if ended.uncharged > 0 {
            room_was_made(&base.devices, &self.file.device, base.moment_at(now));
        }
        self.file.cache.rare_wake();
        self.writeback.release_request(&self.file.device);
        self.wake_waiters();
        drop(kept);
    }
}

/// What became of a request's pages.
#[derive(Default)]
struct Ended {
    uncharged: u64,
    written: u64,
    truncated: u64,
    released: Vec<FrameId>,
    /// Tries in a row that failed, without this one and with it.
    tries: (u32, u32),
}

impl<P: Platform> WriteEnds<P> {
    /// Under the file's lock: its pages' states, what is owed to it, where it is queued. The reference that is
    /// returned is dropped last.
    fn end_pages(
        &self,
        operation: Operation,
        pieces: &[Piece],
        result: Result<(), DeviceError>,
        now: Nanos,
    ) -> (Ended, Option<Arc<FileInner>>) {
        let (file, cache) = (&self.file, &self.file.cache);
        let mut ended = Ended::default();
        let mut state = lock(&file.state);
        state.writes_in_flight.remove(&self.sequence);
        state.host_changes += 1;
        if let (Ok(()), Operation::Write { offset, len }) = (result, operation) {
            state.host_size = state.host_size.max(offset + u64::from(len));
            file.owe_flush(&mut state, now);
        }
        for piece in pieces {
            end_page(file, &mut state, piece.frame, result.map(|()| sectors_of(piece)), &mut ended);
        }
        // A page that was cut off or replaced is not there any more: since a moment ago, its last holder may free its frame.
        let mut gone = ended.released.iter().peekable();
        let mut stays = pieces.iter().map(|piece| piece.frame).filter(|frame| gone.next_if_eq(&frame).is_none());
        cache.eviction.cleaned(&cache.pages, &mut stays);
        let changed = Changed::now();
        for piece in pieces {
            cache.page_queue(piece.frame).wake_for(&changed);
        }
        ended.tries.0 = state.failures_in_row;
        self.note_result(&mut state, result, now);
        ended.tries.1 = state.failures_in_row;
        file.note_failed(&mut state);
        let pages = pieces.len() as u64;
        state.writing_pages -= pages;
        file.device.writeback_ends(pages);
        file.requeue(&mut state, now);
        let kept = file.settle(&mut state);
        (ended, kept)
    }

    /// The file's error, and when it is tried again.
    fn note_result(&self, state: &mut FileState, result: Result<(), DeviceError>, now: Nanos) {
        let was_failed = state.error.is_some();
        match result {
            Ok(()) => state.failures_in_row = 0,
            // Nobody is left to be told.
            Err(_) if state.discarded => {}
            Err(error) => {
                state.error = Some(error);
                state.failures += 1;
                // Requests that were under way together fail together: that is one try.
                if state.failures_in_row == 0 || state.retry_at <= now {
                    let settings = self.writeback.base.settings();
                    let knob_ns = |knob| self.file.device.knob_ns(settings, knob);
                    let pause = knob_ns(Knob::RetryMinMs) << state.failures_in_row.min(20);
                    state.retry_at = now.after(pause.min(knob_ns(Knob::RetryMaxMs)));
                    state.failures_in_row += 1;
                }
            }
        }
        if !was_failed && state.error.is_some() {
            self.file.device.file_fails();
        }
    }

    fn count(&self, ended: &Ended, result: Result<(), DeviceError>) {
        let local = self.writeback.base.local();
        match result {
            Ok(()) => local.count(Counter::PagesWritten, ended.written),
            Err(_) => local.count(Counter::WriteErrors, 1),
        }
        local.count(Counter::PagesTruncated, ended.truncated);
    }

    /// What the failures of the file, or their end, mean for those who wait for the device's room.
    fn note_failures(&self, ended: &Ended, result: Result<u64, DeviceError>, now: Nanos) {
        let (base, device, (before, tries)) = (&self.writeback.base, &self.file.device, ended.tries);
        if device.note_write(result, before > 0) {
            base.trace_device(Some(device.id), || Event::DeviceFailing { error: result.err() });
        }
        if let (Err(error), true) = (result, before < FAILING_TRIES && tries >= FAILING_TRIES) {
            // Writers of the file that wait for room are told; others go on waiting.
            device.admission.fail(error);
        }
        // After that, so that the room is not given to those who wait to write to this very file.
        failing::apply_room(&base.devices, device, base.moment_at(now));
        if result.is_err() {
            failing::end_waits(device);
        }
    }

    /// What the request took up is given back, and its pages are charged to nobody any more.
    fn settle_accounts(&self, ended: &Ended, bytes: u64, result: Result<(), DeviceError>, now: Nanos) {
        let device = &self.file.device;
        device.note_written_pages(ended.written);
        device.transfer_ends(Kind::Write, bytes, result.is_ok(), (self.submitted, now));
        device.admission.add_runs(-self.runs);
        device.in_flight.end(self.ticket);
        device.give_pages_back_unserved(ended.uncharged);
    }

    fn tell_policy(&self, ended: &Ended, bytes: u64, now: Nanos) {
        let (base, device) = (&self.writeback.base, &self.file.device);
        let (direction, runs, latency_ns) = (Direction::Write, self.runs as u64, now.since(self.submitted));
        let (in_flight, held_back) = (self.in_flight, device.in_flight.is_waited_for());
        // A world may have to ask its host for that.
        let unwatched_ns = if base.devices.policy.needs().reads { base.platform.unwatched_ns() } else { 0 };
        let done = Completed {
            direction,
            runs,
            pages: ended.written,
            bytes,
            latency_ns,
            in_flight,
            held_back,
            unwatched_ns: unwatched_ns.min(latency_ns),
        };
        base.devices.write_ended(device, base.moment_at(now), &done);
    }

    fn wake_waiters(&self) {
        let changed = Changed::now();
        self.file.cache.memory_queue.wake_for(&changed);
        self.file.queue.wake_for(&changed);
    }
}

/// `result`: the sectors that are now the device's. After the last page the callers that wait for pages are woken, and clean
/// pages are linked.
fn end_page(
    file: &FileInner,
    state: &mut FileState,
    frame: FrameId,
    result: Result<Sectors, DeviceError>,
    ended: &mut Ended,
) {
    let (cache, ok) = (&file.cache, result.is_ok());
    let pages = &cache.pages;
    let page = pages.identity(frame).index;
    if !pages.word(frame).has(PRESENT) {
        // Cut off, or replaced by a newer version that has inherited its dirty sectors.
        pages.change(frame, WRITEBACK, 0);
        ended.released.push(frame);
        ended.uncharged += 1;
        ended.truncated += u64::from(!ok);
        ended.written += u64::from(ok);
        state.dirty_pages -= 1;
        if let Some(newer) = cache.frame_at(&file.pages, page) {
            pages.change(newer, PRIOR, 0);
        }
        return;
    }
    let left = pages.dirty(frame).without(result.unwrap_or(Sectors::NONE));
    if ok {
        pages.set_dirty(frame, left);
        file.pages.index.set_tag(&cache.nodes, page, Tag::Unflushed, true);
    }
    if left == Sectors::NONE {
        let before = pages.change(frame, WRITEBACK | FAILED, 0);
        if before.has(FAILED) {
            state.failed_pages -= 1;
            // A flush that failed meanwhile had it written again; this request did.
            file.untag(state, page);
        }
        ended.uncharged += 1;
        ended.written += 1;
        state.dirty_pages -= 1;
        return;
    }
    let before = pages.change(frame, WRITEBACK, if ok { DIRTY } else { DIRTY | FAILED });
    state.failed_pages += u64::from(!ok && !before.has(FAILED));
    file.tag_dirty(state, page, true);
    if !ok {
        // A sync that waits for it gets the error.
        file.pages.index.set_tag(&cache.nodes, page, Tag::ToWrite, false);
    }
}
