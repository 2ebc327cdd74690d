//! What the end of a request means for its pages.
//!
//! Owns: the transitions out of writeback and out of being read, for success and failure.
//! Does not own: the way there (`batch`, `read`); waiting.
//! Invariants: run by whoever reaps, with no lock held before. Under the file's lock states change;
//! wake-ups follow after it. A failed write leaves its sectors dirty and queues the file for later.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use frames::FrameId;

use super::batch::sectors_of;
use crate::cache::file::{FileInner, FileState};
use crate::cache::memory::FrameMemory;
use crate::cache::nodes::Tag;
use crate::cache::wait::{Changed, lock};
use crate::counters::Counter;
use crate::dirty::{failing, uncharge};
use crate::engine::Engine;
use crate::error::DeviceError;
use crate::page::{DIRTY, FAILED, PRESENT, PRIOR, Sectors, WRITEBACK};
use crate::platform::{Nanos, Platform};
use crate::request::{Completion, Operation};
use crate::settings::Knob;
use crate::writeback::driver::PutBack;

/// The end of a write request.
pub(crate) struct WriteEnds<P: Platform> {
    pub(crate) engine: Arc<Engine<P>>,
    pub(crate) file: Arc<FileInner>,
    pub(crate) sequence: u64,
}

impl<P: Platform> Completion for WriteEnds<P> {
    fn completed(self: Box<Self>, operation: Operation, memory: Option<FrameMemory>, result: Result<(), DeviceError>) {
        let (engine, file) = (&self.engine, &self.file);
        let device = &file.device;
        let now = engine.platform().now();
        let pieces = memory.as_ref().map_or(&[][..], FrameMemory::pieces);
        let mut ended = Ended::default();
        let (kept, tries_before, tries);
        {
            let mut state = lock(&file.state);
            state.writes_in_flight.remove(&self.sequence);
            state.host_changes += 1;
            if let (Ok(()), Operation::Write { offset, len }) = (result, operation) {
                state.host_size = state.host_size.max(offset + u64::from(len));
                owe_flush(file, &mut state, now);
            }
            for piece in pieces {
                let written = result.map(|()| sectors_of(piece));
                end_page(file, &mut state, piece.frame, written, &mut ended);
            }
            file.cache.lru.insert_clean(&file.cache.pages, pieces.iter().map(|piece| piece.frame));
            let changed = Changed::now();
            for piece in pieces {
                file.cache.page_queue(piece.frame).wake_for(&changed);
            }
            tries_before = state.failures_in_row;
            note_result(engine, file, &mut state, result, now);
            tries = state.failures_in_row;
            failing::note(file, &mut state);
            device.writeback_pages.fetch_sub(pieces.len() as u64, Ordering::Relaxed);
            device.totals.writeback_ends(device.id, pieces.len() as u64);
            requeue(file, &mut state, now);
            kept = engine.settle(file, &mut state);
        }
        let local = engine.local();
        match result {
            Ok(()) => local.count(Counter::PagesWritten, ended.written),
            Err(_) => local.count(Counter::WriteErrors, 1),
        }
        local.count(Counter::PagesTruncated, ended.truncated);
        let bytes = if let Operation::Write { len, .. } = operation { u64::from(len) } else { 0 };
        device.note_write(result.map(|()| bytes), tries_before > 0);
        if let (Err(error), true) = (result, tries_before < failing::TRIES && tries >= failing::TRIES) {
            // Writers of the file that wait for room are told; others go on waiting.
            device.budget.fail(error);
        }
        // After that, so that the room is not given to those who wait to write to this very file.
        failing::apply_room(&file.cache, device);
        for frame in ended.released {
            file.cache.release(frame);
        }
        device.written_pages.fetch_add(ended.written, Ordering::Relaxed);
        device.request_ends(now);
        device.write_ends(now, if result.is_ok() { bytes } else { 0 });
        uncharge(&file.cache, device, ended.uncharged);
        if ended.written > 0 {
            let pages = ended.written;
            engine.ask_law(device, |law, view, own, shared| law.wrote(view, pages, &mut **own, &mut **shared));
        }
        file.cache.rare_wake();
        engine.release_request(device);
        let changed = Changed::now();
        file.cache.memory_queue.wake_for(&changed);
        file.queue.wake_for(&changed);
        drop(kept);
    }
}

#[derive(Default)]
struct Ended {
    uncharged: u64,
    written: u64,
    truncated: u64,
    released: Vec<FrameId>,
}

/// `result`: the sectors that are now the device's. Who waits for the page is woken after the last one,
/// and clean pages are linked then.
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
        if let Some(newer) = cache.frame_at(file, page) {
            pages.change(newer, PRIOR, 0);
        }
        return;
    }
    let left = pages.dirty(frame).without(result.unwrap_or(Sectors::NONE));
    if ok {
        pages.set_dirty(frame, left);
        file.index.set_tag(&cache.nodes, page, Tag::Unflushed, true);
    }
    if left == Sectors::NONE {
        let before = pages.change(frame, WRITEBACK | FAILED, 0);
        if before.has(FAILED) {
            state.failed_pages -= 1;
            // A flush that failed meanwhile had it written again; this request did.
            file.index.set_tag(&cache.nodes, page, Tag::Dirty, false);
            file.index.set_tag(&cache.nodes, page, Tag::ToWrite, false);
        }
        ended.uncharged += 1;
        ended.written += 1;
        state.dirty_pages -= 1;
        return;
    }
    let before = pages.change(frame, WRITEBACK, if ok { DIRTY } else { DIRTY | FAILED });
    state.failed_pages += u64::from(!ok && !before.has(FAILED));
    file.index.set_tag(&cache.nodes, page, Tag::Dirty, true);
    if !ok {
        // A sync that waits for it gets the error.
        file.index.set_tag(&cache.nodes, page, Tag::ToWrite, false);
    }
}

fn note_result<P: Platform>(
    engine: &Engine<P>,
    file: &FileInner,
    state: &mut FileState,
    result: Result<(), DeviceError>,
    now: Nanos,
) {
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
                let knob = |knob| file.device.knob(&engine.cache().settings, knob) * Nanos::MILLISECOND;
                let pause = knob(Knob::RetryMinMs) << state.failures_in_row.min(20);
                state.retry_at = now.after(pause.min(knob(Knob::RetryMaxMs)));
                state.failures_in_row += 1;
            }
        }
    }
    if !was_failed && state.error.is_some() {
        file.device.files_failed.fetch_add(1, Ordering::Relaxed);
    }
}

/// The device has something of the file that a flush has to follow.
pub(crate) fn owe_flush(file: &Arc<FileInner>, state: &mut FileState, now: Nanos) {
    state.unflushed = true;
    if !state.discarded {
        file.device.keep_unflushed(file, now);
    }
}

/// Puts a file with dirty pages back in a list unless it is in one, or held: who lets go queues it.
pub(crate) fn requeue(file: &Arc<FileInner>, state: &mut FileState, now: Nanos) {
    requeue_as(file, state, now, PutBack::More);
}

/// [`requeue`], with the place of a file that may be written at once.
pub(crate) fn requeue_as(file: &Arc<FileInner>, state: &mut FileState, now: Nanos, how: PutBack) {
    if state.holds > 0 {
        return;
    }
    let index = &file.index;
    if index.next_tagged(&file.cache.nodes, 0, Tag::ToWrite).is_some() {
        file.device.queue_sync(file, state);
    }
    if index.next_tagged(&file.cache.nodes, 0, Tag::Dirty).is_none() {
        return;
    }
    if state.backs_off(now) {
        if !state.retry_queued {
            state.retry_queued = true;
            file.device.queue_later(file, state.retry_at);
        }
    } else if !state.queued {
        state.queued = true;
        match how {
            PutBack::More => file.device.queue_more(file, state.dirtied_at),
            PutBack::Redirty => state.dirtied_at = file.device.queue_redirtied(file, state.dirtied_at, now),
        }
        file.device.flusher.raise();
    }
}
