//! A file's slice: the steps of flushers.
//!
//! Owns: taking a file off its list, writing a run of it, putting it on the list for its next slice.
//! Does not own: which reason comes next (`flusher`), the run (`batch`), requests (`requests`).
//! Invariants: a run is claimed only with a free request. A file that was taken is put back: dropping a [`FileSlice`]
//! does it.

use std::sync::Arc;

use afflux_device::counters::Counter;
use afflux_device::platform::{Nanos, Platform};
use afflux_device::policy::FlushSlice;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::rare::Rare;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use super::Writeback;
use super::batch::{FileRemainder, Run, claim};
use super::requests::RequestAllowance;
use crate::devices::file::{FileInner, FileState};
use crate::devices::usage::RequestStream;
use crate::devices::{DeviceState, Size};
use crate::trace::EngineEvent;

/// Time before another check of pages that a writer was copying to.
const BUSY_NS: u64 = 50_000;

/// A run that a step submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wrote {
    pub(crate) pages: u64,
    pub(crate) bytes: u64,
}

pub(crate) struct FileSlice {
    open: Option<Arc<FileInner>>,
    device: Arc<DeviceState>,
    slice: FlushSlice,
    remainder: FileRemainder,
    taken_at: Nanos,
    /// Pages submitted to the device.
    pages: u64,
    batch: RequestAllowance,
}

impl FileSlice {
    /// The file, while it has its slice.
    pub(crate) fn file(&self) -> Option<Arc<FileInner>> {
        self.open.clone()
    }

    /// Whether a sync waits for this slice.
    pub(crate) fn is_for_sync(&self) -> bool {
        self.slice == FlushSlice::Sync
    }

    /// Whether a sync waits that goes ahead of this slice.
    pub(super) fn must_yield_to_sync(&self) -> bool {
        self.slice != FlushSlice::Sync && self.device.should_sync_go_first()
    }

    /// Ends a sync's slice if no marked page remains, without waiting for a request. Returns whether it does.
    pub(super) fn ends_if_written(&mut self) -> bool {
        let Some(file) = self.open.as_ref().filter(|_| self.slice == FlushSlice::Sync) else { return false };
        let _state = lock(&file.state);
        let has_all = !file.has_tagged(Tag::ToWrite);
        if has_all {
            self.remainder = FileRemainder::Nothing;
        }
        has_all
    }

    /// Whether the slice's present run goes on, for at most `bytes` bytes.
    pub(super) fn does_run_end_within(&self, bytes: u64) -> bool {
        let Some(file) = &self.open else { return false };
        let state = lock(&file.state);
        let (nodes, index, from) = (&file.cache.nodes, &file.pages.index, state.position.cursor());
        let end = from + bytes / PAGE_BYTES + 1;
        (from + 1..end).contains(&index.next_untagged(nodes, from, end, self.tag()))
    }

    /// `bytes` bytes from the slice's position, or fewer, so that it ends at a multiple of `align`.
    pub(super) fn aligned_slice(&self, bytes: u64, align: u64) -> u64 {
        let Some(file) = self.open.as_ref().filter(|_| (1..=bytes).contains(&align)) else { return bytes };
        let from = lock(&file.state).position.cursor() * PAGE_BYTES % align;
        (from + bytes) / align * align - from
    }

    pub(super) fn state_of_device(&self) -> &DeviceState {
        &self.device
    }

    fn tag(&self) -> Tag {
        if self.slice == FlushSlice::Sync { Tag::ToWrite } else { Tag::Dirty }
    }

    /// Claims the file's next run. If the slice writes in passes, an ended pass sets the file's age.
    fn claim(&self, file: &FileInner, state: &mut FileState, now: Nanos, bytes_max: u32) -> Result<Run, FileRemainder> {
        let by_passes = self.slice.is_by_passes() && !state.is_held();
        if by_passes {
            let is_old = matches!(self.slice, FlushSlice::Oldest { .. });
            state.position.go_on(now, file.size().div_ceil(PAGE_BYTES), is_old);
        }
        let claimed = claim(file, state, self.tag(), bytes_max);
        let ended = match &claimed {
            Ok(run) if by_passes => state.position.went(run.offset / PAGE_BYTES),
            Err(FileRemainder::Nothing) if by_passes => state.position.found_nothing(),
            _ => None,
        };
        ended.into_iter().for_each(|began| state.marks.raise_dirtied_at(began));
        claimed
    }

    /// Whether the file is no longer as old as the slice requires.
    fn is_unexpired(&self, state: &FileState) -> bool {
        matches!(self.slice, FlushSlice::Oldest { before, .. } if state.marks.dirtied_at() > before)
    }

    /// Whether the file pauses after a failure: then it is written only for a sync.
    fn must_pause(&self, state: &FileState, now: Nanos) -> bool {
        self.slice != FlushSlice::Sync && state.failures.backs_off(now).is_some()
    }

    /// Ends the slice at once if the file pauses after a failure.
    pub(super) fn try_pause(&mut self, now: Nanos) -> bool {
        let Some(file) = self.open.clone() else { return true };
        let pauses = self.must_pause(&lock(&file.state), now);
        if pauses {
            self.remainder = FileRemainder::Paused;
        }
        pauses
    }

    /// Puts the file on the list for its next slice.
    fn close(&mut self, now: Nanos) {
        let Some(file) = self.open.take() else { return };
        self.device.worklist().slice_ends();
        let mut state = lock(&file.state);
        let busy_until = now.after(BUSY_NS);
        if self.slice == FlushSlice::Sync {
            match self.remainder {
                FileRemainder::More => file.queue_sync(&mut state),
                FileRemainder::Busy => file.queue_sync_later(&mut state, busy_until),
                FileRemainder::Nothing | FileRemainder::Paused => {}
            }
            return;
        }
        if self.slice != FlushSlice::Retry {
            // The slice took the file off its list; writers that dirtied the file meanwhile relied on that.
            state.marks.slice_ends();
        }
        if let FlushSlice::Oldest { before, .. } = self.slice {
            // Behind files that are as old.
            state.marks.raise_dirtied_at(before);
        }
        match self.remainder {
            FileRemainder::Busy => file.wake_flusher_at(&mut state, busy_until),
            FileRemainder::More if self.slice == FlushSlice::Retry => file.wake_flusher_at(&mut state, now),
            // The remaining pages wait for a completion or a release, which queues the file.
            FileRemainder::Nothing if state.flight.has_any() || state.is_held() => {}
            FileRemainder::More | FileRemainder::Nothing | FileRemainder::Paused => file.requeue(&mut state, now),
        }
    }
}

impl Drop for FileSlice {
    fn drop(&mut self) {
        let now = self.taken_at;
        self.close(now);
    }
}

impl<P: Platform> Writeback<P> {
    /// Gives the next file of the reason's list its slice.
    pub(crate) fn take(&self, device: &Arc<DeviceState>, slice: FlushSlice) -> Option<FileSlice> {
        let file = self.next_file(device, slice)?;
        match slice {
            FlushSlice::Sync => lock(&file.state).marks.sync_begins(),
            FlushSlice::Retry => lock(&file.state).marks.retry_begins(),
            // These retain their mark until the slice ends.
            FlushSlice::InOrder | FlushSlice::Largest { .. } | FlushSlice::Idle { .. } => {}
            FlushSlice::Queued { .. } | FlushSlice::Old { .. } | FlushSlice::Oldest { .. } => {}
        }
        Some(self.begin_slice(file, slice))
    }

    /// Gives a slice to a file that is in no list for it.
    pub(super) fn begin_slice(&self, file: Arc<FileInner>, slice: FlushSlice) -> FileSlice {
        let device = Arc::clone(&file.device);
        self.base.local().count(Counter::FlusherTurns, 1);
        device.worklist().slice_begins();
        let (remainder, taken_at, batch) = (FileRemainder::More, self.base.now(), RequestAllowance::default());
        FileSlice { open: Some(file), device, slice, remainder, taken_at, pages: 0, batch }
    }

    /// The next file for a slice. A file that the reason no longer fits is listed again: a sync wrote it since it was
    /// listed, so its dirty pages are younger or fewer, or it was not left alone.
    fn next_file(&self, device: &DeviceState, slice: FlushSlice) -> Option<Arc<FileInner>> {
        loop {
            let (file, listed) = device.worklist().next(slice)?;
            let mut state = lock(&file.state);
            match slice {
                FlushSlice::Old { before } | FlushSlice::Oldest { before, .. } if state.marks.dirtied_at() > before => {
                    state.marks.slice_ends();
                    // `before` is good enough as the instant: a pause that has ended since is found at the next check.
                    file.requeue(&mut state, before);
                }
                FlushSlice::Queued { before } if state.marks.dirtied_at() > before.max(listed.dirtied_at) => {
                    file.queue_dirty(&mut state);
                }
                FlushSlice::Largest { .. } if Size::of(state.waiting_pages()) < listed.size => {
                    file.queue_more(&mut state)
                }
                FlushSlice::Idle { now } if !self.check_idle(&file, &mut state, now) => {
                    file.queue_more(&mut state);
                }
                _ => {
                    drop(state);
                    return Some(file);
                }
            }
        }
    }

    /// Writes the file's next run, at most `bytes_max` but at least a page, as one request. Returns the run; none
    /// if nothing of the file can be written now.
    pub(crate) async fn write_run(self: &Arc<Self>, taken: &mut FileSlice, bytes_max: u64) -> Option<Wrote> {
        let file = taken.file()?;
        let (device, for_sync) = (&file.device, taken.is_for_sync());
        if !for_sync && self.wait_for_slot_or_sync(device).await {
            taken.remainder = FileRemainder::More;
            return None;
        }
        let waited = self.try_acquire_request(device, &mut taken.batch, for_sync).await;
        while self.base.cache.rare.is_forced(Rare::SlotTaken) {
            self.release_request(device);
            self.base.pass().await;
            self.try_acquire_request(device, &mut taken.batch, for_sync).await;
        }
        let bytes_max = bytes_max.min(device.in_flight.allowed().request_bytes).max(PAGE_BYTES);
        let request_max = u64::from(device.limits().request_bytes_max).min(bytes_max) as u32;
        let now = self.base.now();
        let claimed = {
            let mut state = lock(&file.state);
            // A write of this slice may have failed: the remaining pages wait for the pause, too.
            if taken.must_pause(&state, now) {
                Err(FileRemainder::Paused)
            } else if taken.is_unexpired(&state) {
                Err(FileRemainder::More)
            } else {
                taken.claim(&file, &mut state, now, request_max)
            }
        };
        let mut run = match claimed {
            Ok(run) => run,
            Err(remainder) => {
                taken.remainder = remainder;
                self.release_request(device);
                return None;
            }
        };
        let first = run.offset / PAGE_BYTES;
        let (slot, end) = (file.pages.slot, first + run.pages);
        // All requests may have ended together while the slice waited for one: nothing came between.
        run.continues |= device.in_flight.try_continue(RequestStream::Writes, slot, first, end) && waited;
        if matches!(taken.slice, FlushSlice::Idle { .. }) {
            // Each waits for the one before, but the device's head is where that ended.
            run.continues |= device.in_flight.try_continue(RequestStream::IdleWrites, slot, first, end);
        }
        let wrote = Wrote { pages: run.pages, bytes: u64::from(run.len) };
        taken.remainder = FileRemainder::More;
        taken.pages += wrote.pages;
        self.submit_write(&file, run, for_sync);
        self.base.platform.between_requests().await;
        Some(wrote)
    }

    pub(crate) fn put_back(&self, mut taken: FileSlice) {
        let now = self.base.now();
        if let Some(file) = &taken.open {
            let (slice, pages, ns) = (taken.slice, taken.pages, now.since(taken.taken_at));
            self.base.trace_file(now, file, None, || EngineEvent::FlushSlice { slice, pages, ns });
        }
        taken.close(now);
    }
}
