//! The effect of a write request's end on its pages.
//!
//! Owns: the transitions out of writeback, for success and failure; the order of steps at a request's end.
//! Does not own: the submission (`batch`), waiting, the effect on the device's policy.
//! Invariants: runs on the thread that reaps, with no lock held before. Under the file's lock states change; wake-ups
//! follow after it. A failed write leaves its sectors dirty and queues the file for later.

use std::sync::Arc;

use afflux_device::counters::Counter;
use afflux_device::error::DeviceError;
use afflux_device::platform::{Nanos, Platform};
use afflux_device::policy::{AtEnd, Completed, Direction};
use afflux_device::request::{Completion, Operation};
use afflux_frames::FrameId;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::memory::{FrameMemory, Piece};
use afflux_pages::page::{DIRTY, FAILED, PRESENT, PRIOR, Sectors, WRITEBACK};
use afflux_pages::wait::{Changed, lock};

use super::WriteEnds;
use super::batch::sectors_of;
use crate::devices::file::{FAILING_TRIES, FileInner, FileState};
use crate::devices::in_flight::EndedRequest;
use crate::dirty::{self, after_cleaning};
use crate::recycler::Boxed;
use crate::trace::EngineEvent;

/// The pause before a failed write is tried again; it doubles with each failure in a row. Nobody waits for it: a sync
/// has the write tried at once.
const RETRY_NS_MIN: u64 = 100 * Nanos::MILLISECOND;
/// The longest such pause. A mended device gets its data within that time.
const RETRY_NS_MAX: u64 = 30 * Nanos::SECOND;

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
        ends.writeback.spare.writes.try_keep(self);
        ends.completed(operation, memory, result);
    }
}

/// When a write's pages are durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Durable {
    /// With the file's next flush.
    Later,
    /// A flush has followed the write: they become clean and durable at once.
    Now,
}

impl<P: Platform> WriteEnds<P> {
    fn completed(self, operation: Operation, memory: Option<FrameMemory>, result: Result<(), DeviceError>) {
        let pieces = memory.as_ref().map_or(&[][..], FrameMemory::pieces);
        let request = self.end_transfer(operation, result);
        self.end_pages(operation, pieces, result, &request, Durable::Later);
        if !request.was_aside {
            self.writeback.release_request(&self.file.device);
        }
        self.wake_waiters();
    }

    /// The device has taken the bytes, or refused them: it is free for others.
    pub(super) fn end_transfer(&self, operation: Operation, result: Result<(), DeviceError>) -> EndedRequest {
        let base = &self.writeback.base;
        let ended = self.file.request_ends(self.number, result.is_ok(), base.now());
        let (ns, error) = (ended.latency_ns, result.err());
        base.trace_file(ended.at, &self.file, None, || EngineEvent::Completed { operation, ns, error });
        ended
    }

    /// The file first, then the accounts, then the policy.
    pub(super) fn end_pages(
        &self,
        operation: Operation,
        pieces: &[Piece],
        result: Result<(), DeviceError>,
        request: &EndedRequest,
        durable: Durable,
    ) {
        let (base, device) = (&self.writeback.base, &self.file.device);
        let (ended, kept) = self.change_pages(operation, pieces, result, request.at, durable);
        self.count(&ended, result);
        self.note_failures(&ended, result, request.at);
        ended.released.iter().for_each(|frame| self.file.cache.release(*frame));
        device.charges.note_written(ended.written);
        device.charges.release_deferred(ended.uncharged);
        match request.device {
            // The time of its wait is not the device's.
            None => base.devices.refresh_bounds(device, base.moment_at(request.at)),
            Some(at_end) => self.report_to_policy(&ended, request, at_end),
        }
        if ended.uncharged > 0 {
            after_cleaning(&base.devices, device, base.moment_at(request.at));
        }
        self.file.cache.rare_wake();
        drop(kept);
    }
}

/// The outcome for a request's pages.
#[derive(Default)]
struct Ended {
    uncharged: u64,
    written: u64,
    truncated: u64,
    released: Vec<FrameId>,
    /// Failed attempts in a row, before this one and including it.
    tries: (u32, u32),
}

impl<P: Platform> WriteEnds<P> {
    /// Updates, under the file's lock, the states of its pages, its owed flush and its position in the lists. The
    /// returned reference is dropped last.
    fn change_pages(
        &self,
        operation: Operation,
        pieces: &[Piece],
        result: Result<(), DeviceError>,
        now: Nanos,
        durable: Durable,
    ) -> (Ended, Option<Arc<FileInner>>) {
        let (file, cache) = (&self.file, &self.file.cache);
        let mut ended = Ended::default();
        let mut state = lock(&file.state);
        let pages = pieces.len() as u64;
        state.flight.write_ends(self.sequence, pages);
        state.host.note_change();
        if let (Ok(()), Operation::Write { offset, len }) = (result, operation) {
            state.host.reaches(offset + u64::from(len));
            if durable == Durable::Later {
                file.owe_flush(&mut state, now);
            }
        }
        for piece in pieces {
            end_page(file, &mut state, piece.frame, result.map(|()| sectors_of(piece)), durable, &mut ended);
        }
        // A page that was cut off or replaced is not there any more: since a moment ago, its last holder may free its
        // frame.
        let mut gone = ended.released.iter().peekable();
        let mut stays = pieces.iter().map(|piece| piece.frame).filter(|frame| gone.next_if_eq(&frame).is_none());
        cache.eviction.cleaned(&cache.pages, &mut stays);
        let changed = Changed::now();
        for piece in pieces {
            cache.page_queue(piece.frame).wake_for(&changed);
        }
        ended.tries.0 = state.failures.in_row();
        self.note_result(&mut state, pages, result, now);
        ended.tries.1 = state.failures.in_row();
        file.note_failed(&mut state);
        file.device.charges.writeback_ends(pages);
        file.requeue(&mut state, now);
        let kept = file.settle(&mut state);
        (ended, kept)
    }

    /// Sets the file's error, and the time of its retry.
    fn note_result(&self, state: &mut FileState, pages: u64, result: Result<(), DeviceError>, now: Nanos) {
        match result {
            Ok(()) => state.failures.write_succeeds(pages),
            // No caller waits for the answer.
            Err(_) if state.is_discarded() => {}
            Err(error) => {
                if state.failures.insert_error(error) {
                    self.file.device.failures.file_fails();
                }
                state.failures.try_fails(now, |tries| (RETRY_NS_MIN << tries.min(20)).min(RETRY_NS_MAX));
            }
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

    /// Applies the file's failures, or their end, to the waiters in the device's line.
    fn note_failures(&self, ended: &Ended, result: Result<(), DeviceError>, now: Nanos) {
        let (base, device, (before, tries)) = (&self.writeback.base, &self.file.device, ended.tries);
        if device.note_write(result, before > 0) {
            base.trace_device(Some(device.id()), || EngineEvent::DeviceFailing { error: result.err() });
        }
        if tries != before && (before == 0 || tries == FAILING_TRIES) {
            // Writers of the file in the device's line now wait for its retries, or get the error.
            device.admission().file_changed(self.file.pages.slot);
        }
        // Only now, so that the extra pages do not go to waiting writers of this very file.
        dirty::apply_failed(&base.devices, device, base.moment_at(now));
        if result.is_err() {
            dirty::end_waits(device);
        }
    }

    fn report_to_policy(&self, ended: &Ended, request: &EndedRequest, at_end: AtEnd) {
        let (base, device) = (&self.writeback.base, &self.file.device);
        let EndedRequest { load, bytes, at, latency_ns, .. } = *request;
        // A world may have to ask its host for this.
        let unwatched_ns = if base.devices.policy.needs().reads { base.platform.unwatched_ns() } else { 0 };
        let done = Completed {
            direction: Direction::Write,
            at,
            device: at_end,
            more_to_write: device.has_more_to_write(),
            runs: load.runs,
            pages: ended.written,
            bytes,
            latency_ns,
            in_flight: self.in_flight,
            held_back: device.in_flight.is_waited_for(),
            unwatched_ns: unwatched_ns.min(latency_ns),
            too_many: device.take_too_many(),
        };
        base.devices.request_ended(device, base.moment_at(at), done);
    }

    pub(super) fn wake_waiters(&self) {
        let changed = Changed::now();
        self.file.cache.memory_queue.wake_for(&changed);
        self.file.queue.wake_for(&changed);
    }
}

/// `result`: the sectors that the device has now. After the last page the waiters for pages are woken, and clean pages
/// are linked.
fn end_page(
    file: &FileInner,
    state: &mut FileState,
    frame: FrameId,
    result: Result<Sectors, DeviceError>,
    durable: Durable,
    ended: &mut Ended,
) {
    let (cache, ok) = (&file.cache, result.is_ok());
    let pages = &cache.pages;
    let page = pages.identity(frame).index;
    if !pages.word(frame).has(PRESENT) {
        // The page was cut off, or a newer version has replaced it and inherited its dirty sectors.
        pages.change(frame, WRITEBACK, 0);
        ended.released.push(frame);
        ended.uncharged += 1;
        ended.truncated += u64::from(!ok);
        ended.written += u64::from(ok);
        state.page_is_clean();
        if let Some(newer) = cache.frame_at(&file.pages, page) {
            pages.change(newer, PRIOR, 0);
        }
        return;
    }
    let written = result.unwrap_or(Sectors::NONE);
    let left = pages.dirty(frame).without(written);
    if ok {
        pages.set_dirty(frame, left);
    }
    if ok && durable == Durable::Later {
        pages.note_written(frame, written, file.pages.index.has_tag(&cache.nodes, page, Tag::Unflushed));
        file.pages.index.set_tag(&cache.nodes, page, Tag::Unflushed, true);
    }
    if left == Sectors::NONE {
        let before = pages.change(frame, WRITEBACK | FAILED, 0);
        if before.has(FAILED) {
            state.failures.remove_pages(1);
            // A flush that failed meanwhile had the page written again; this request did that.
            file.untag(state, page);
        }
        ended.uncharged += 1;
        ended.written += 1;
        state.page_is_clean();
        return;
    }
    let before = pages.change(frame, WRITEBACK, if ok { DIRTY } else { DIRTY | FAILED });
    state.failures.add_pages(u64::from(!ok && !before.has(FAILED)));
    file.tag_dirty(state, page, true);
    if !ok {
        // A sync that waits for the page gets the error.
        file.pages.index.set_tag(&cache.nodes, page, Tag::ToWrite, false);
    }
}
