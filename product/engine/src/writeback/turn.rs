//! A file's turn to be written: the steps of flushers, of external drivers and of writers that write back themselves.
//!
//! Owns: taking a file off its list, writing a run of it, putting it where its next turn will be looked for.
//! Does not own: which reason comes next (`schedule`), the run (`batch`), requests (`requests`).
//! Invariants: a run is claimed only with a request in hand. A file that was taken is put back: dropping a
//! [`FileTurn`] does it.

use std::sync::Arc;

use super::Writeback;
use super::batch::{Claim, claim};
use super::requests::Batch;
use crate::cache::nodes::Tag;
use crate::counters::Counter;
use crate::devices::file::{FileInner, FileState};
use crate::devices::{DeviceId, DeviceState, FlushReason, PutBack, Size};
use crate::platform::{Nanos, Platform};
use crate::rare::Rare;
use crate::trace::{Event, TurnReason};
use crate::units::{PAGE_BYTES, Pages};
use crate::wait::lock;

/// Time before another look at pages that a writer was copying to.
const BUSY_NS: u64 = 50_000;

/// Whether a step waits for a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    /// The step waits.
    Wait,
    /// The step gives up if the queue is congested.
    Try,
}

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A run was submitted.
    Wrote {
        /// Its pages.
        pages: u64,
        /// Its bytes.
        bytes: u64,
    },
    /// The queue is congested.
    Congested,
    /// Nothing of the file can be written now.
    Ended,
}

/// The reason in the trace's form.
fn reason_of(reason: FlushReason) -> TurnReason {
    match reason {
        FlushReason::Sync => TurnReason::Sync,
        FlushReason::Retry => TurnReason::Retry,
        FlushReason::Background | FlushReason::Largest { .. } => TurnReason::Background,
        FlushReason::Expired { .. } | FlushReason::Oldest { .. } => TurnReason::Expired,
        FlushReason::Idle { .. } => TurnReason::Idle,
    }
}

/// The state after a file's last step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StepOutcome {
    /// There may be more to write.
    More,
    /// No page that is not in flight.
    Nothing,
    /// Only pages that a writer is copying to.
    Busy,
    /// The file failed lately, and is written only for syncs.
    Paused,
}

/// A file that has its turn.
pub struct FileTurn {
    open: Option<Arc<FileInner>>,
    device: Arc<DeviceState>,
    reason: FlushReason,
    left: StepOutcome,
    taken_at: Nanos,
    /// Pages submitted to the device.
    pages: u64,
    batch: Batch,
}

impl FileTurn {
    /// The device that the file is on.
    pub fn device(&self) -> DeviceId {
        self.device.id()
    }

    /// Whether a sync waits that goes ahead of this turn.
    pub(super) fn yields_to_sync(&self) -> bool {
        self.reason != FlushReason::Sync && self.device.sync_goes_first()
    }

    /// Whether the turn's present run goes on, for at most `bytes` bytes.
    pub(super) fn run_ends_within(&self, bytes: u64) -> bool {
        let Some(file) = &self.open else { return false };
        let state = lock(&file.state);
        let is_dirty = |page| file.pages.index.has_tag(&file.cache.nodes, page, self.tag());
        let end = state.position.cursor() + bytes / PAGE_BYTES;
        is_dirty(state.position.cursor()) && (state.position.cursor() + 1..=end).any(|page| !is_dirty(page))
    }

    /// A slice of `bytes` bytes from the turn's position, or fewer, so that it ends at a multiple of `align`.
    pub(super) fn aligned_slice(&self, bytes: u64, align: u64) -> u64 {
        let Some(file) = self.open.as_ref().filter(|_| (1..=bytes).contains(&align)) else { return bytes };
        let from = lock(&file.state).position.cursor() * PAGE_BYTES % align;
        (from + bytes) / align * align - from
    }

    pub(super) fn state_of_device(&self) -> &DeviceState {
        &self.device
    }

    fn tag(&self) -> Tag {
        if self.reason == FlushReason::Sync { Tag::ToWrite } else { Tag::Dirty }
    }

    /// Claims the file's next run. If the turn goes by passes, an ended pass sets the file's age.
    fn claim(&self, file: &FileInner, state: &mut FileState, now: Nanos, bytes_max: u32) -> Claim {
        let by_passes = self.reason.is_by_passes() && !state.is_held();
        if by_passes {
            let is_old = matches!(self.reason, FlushReason::Oldest { .. });
            state.position.go_on(now, file.size().div_ceil(PAGE_BYTES), is_old);
        }
        let claimed = claim(file, state, self.tag(), bytes_max);
        let ended = match &claimed {
            Claim::Run(run) if by_passes => state.position.went(run.offset / PAGE_BYTES),
            Claim::Nothing if by_passes => state.position.found_nothing(),
            Claim::Run(_) | Claim::Nothing | Claim::Busy => None,
        };
        ended.into_iter().for_each(|began| state.marks.is_not_older_than(began));
        claimed
    }

    /// Whether the file is no longer as old as the turn requires.
    fn is_unexpired(&self, state: &FileState) -> bool {
        matches!(self.reason, FlushReason::Oldest { before, .. } if state.marks.dirtied_at() > before)
    }

    /// Whether the file pauses after a failure: then it is written only for a sync.
    fn pauses(&self, state: &FileState, now: Nanos) -> bool {
        self.reason != FlushReason::Sync && state.failures.backs_off(now).is_some()
    }

    /// Ends the turn at once if the file pauses after a failure.
    pub(super) fn pauses_now(&mut self, now: Nanos) -> bool {
        let Some(file) = self.open.clone() else { return true };
        let pauses = self.pauses(&lock(&file.state), now);
        if pauses {
            self.left = StepOutcome::Paused;
        }
        pauses
    }

    /// Puts the file where its next turn will be looked for.
    fn close(&mut self, now: Nanos, how: PutBack) {
        let Some(file) = self.open.take() else { return };
        self.device.agenda().turn_ends();
        let mut state = lock(&file.state);
        let busy_until = now.after(BUSY_NS);
        if self.reason == FlushReason::Sync {
            match self.left {
                StepOutcome::More => file.queue_sync(&mut state),
                StepOutcome::Busy => file.queue_sync_later(&mut state, busy_until),
                StepOutcome::Nothing | StepOutcome::Paused => {}
            }
            return;
        }
        if self.reason != FlushReason::Retry {
            // The turn took the file off its list; writers that dirtied the file meanwhile relied on that.
            state.marks.turn_ends();
        }
        if let FlushReason::Oldest { before, .. } = self.reason {
            // Behind files that are as old.
            state.marks.is_not_older_than(before);
        }
        match self.left {
            StepOutcome::Busy => file.wake_flusher_at(&mut state, busy_until),
            StepOutcome::More if self.reason == FlushReason::Retry => file.wake_flusher_at(&mut state, now),
            // The remaining pages wait for a completion or a release, which queues the file.
            StepOutcome::Nothing if state.flight.any() || state.is_held() => {}
            StepOutcome::More | StepOutcome::Nothing | StepOutcome::Paused => file.requeue_as(&mut state, now, how),
        }
    }
}

impl Drop for FileTurn {
    fn drop(&mut self) {
        let now = self.taken_at;
        self.close(now, PutBack::More);
    }
}

impl<P: Platform> Writeback<P> {
    /// Gives the next file of the reason's list its turn.
    pub(crate) fn take(&self, device: &Arc<DeviceState>, reason: FlushReason) -> Option<FileTurn> {
        let file = self.next_file(device, reason)?;
        self.base.local().count(Counter::FlusherTurns, 1);
        device.agenda().turn_begins();
        match reason {
            FlushReason::Sync => lock(&file.state).marks.sync_begins(),
            FlushReason::Retry => lock(&file.state).marks.retry_begins(),
            // These keep their mark until the turn ends.
            FlushReason::Background
            | FlushReason::Largest { .. }
            | FlushReason::Expired { .. }
            | FlushReason::Oldest { .. }
            | FlushReason::Idle { .. } => {}
        }
        Some(FileTurn {
            open: Some(file),
            device: Arc::clone(device),
            reason,
            left: StepOutcome::More,
            taken_at: self.base.now(),
            pages: 0,
            batch: Batch::default(),
        })
    }

    /// The next file for a turn. A file that no longer meets the reason is listed again: a sync wrote it since it was
    /// listed, so its dirty pages are younger or fewer, or it was not left alone.
    fn next_file(&self, device: &DeviceState, reason: FlushReason) -> Option<Arc<FileInner>> {
        loop {
            let (file, size) = device.agenda().next(reason)?;
            let mut state = lock(&file.state);
            match reason {
                FlushReason::Expired { before } | FlushReason::Oldest { before, .. }
                    if state.marks.dirtied_at() > before =>
                {
                    state.marks.turn_ends();
                    // `before` is good enough as the instant: a pause that has ended since is found at the next look.
                    file.requeue(&mut state, before);
                }
                FlushReason::Largest { .. } if Size::of(state.waiting_pages()) < size => file.queue_more(&mut state),
                FlushReason::Idle { now } if !self.is_left_alone(&file, &mut state, now) => {
                    file.queue_more(&mut state);
                }
                _ => {
                    drop(state);
                    return Some(file);
                }
            }
        }
    }

    /// Writes the file's next run, at most `bytes_max` but at least a page, as one request.
    pub(crate) async fn write_run(self: &Arc<Self>, taken: &mut FileTurn, bytes_max: u64, patience: Patience) -> Step {
        let Some(file) = taken.open.clone() else { return Step::Ended };
        let (device, for_sync) = (&file.device, taken.reason == FlushReason::Sync);
        let mut waited = false;
        match patience {
            Patience::Wait => {
                waited = self.acquire_request(device, &mut taken.batch, for_sync).await;
                while self.base.cache.rare.is_forced(Rare::SlotTaken) {
                    self.release_request(device);
                    self.base.pass().await;
                    self.acquire_request(device, &mut taken.batch, for_sync).await;
                }
            }
            Patience::Try if device.requests().is_congested() || !self.try_acquire_request(device, for_sync) => {
                return Step::Congested;
            }
            Patience::Try => {}
        }
        let bytes_max = bytes_max.min(device.in_flight().allowed().request_bytes).max(PAGE_BYTES);
        let request_max = u64::from(device.limits().request_bytes_max).min(bytes_max) as u32;
        let now = self.base.now();
        let claimed = {
            let mut state = lock(&file.state);
            // A write of this turn may have failed: the remaining pages wait for the pause, too.
            if taken.pauses(&state, now) {
                None
            } else if taken.is_unexpired(&state) {
                drop(state);
                self.release_request(device);
                return Step::Ended;
            } else {
                Some(taken.claim(&file, &mut state, now, request_max))
            }
        };
        taken.left = match claimed {
            Some(Claim::Run(mut run)) => {
                let first = run.offset / PAGE_BYTES;
                let place = (file.pages.slot, first + run.pages);
                // All requests may have ended together while the turn waited for one: nothing came between.
                run.continues |= device.figures().writes_on(first, place) && waited;
                if matches!(taken.reason, FlushReason::Idle { .. }) {
                    // Each waits for the one before, but the device's head is where that ended.
                    run.continues |= device.figures().idles_on(first, place);
                }
                let (pages, bytes) = (run.pages, u64::from(run.len));
                taken.left = StepOutcome::More;
                taken.pages += pages;
                self.submit_write(&file, run, for_sync);
                self.base.platform.between_requests().await;
                return Step::Wrote { pages, bytes };
            }
            Some(Claim::Nothing) => StepOutcome::Nothing,
            Some(Claim::Busy) => StepOutcome::Busy,
            None => StepOutcome::Paused,
        };
        self.release_request(device);
        Step::Ended
    }

    pub(crate) fn put_back(&self, mut taken: FileTurn, how: PutBack) {
        let now = self.base.now();
        if let Some(file) = &taken.open {
            let (reason, pages, ns) = (reason_of(taken.reason), taken.pages, now.since(taken.taken_at));
            self.base.trace_file(now, file, None, || Event::Turn { reason, pages, ns });
        }
        taken.close(now, how);
    }

    /// Writes up to `pages` pages of the device in a writer's place, waiting for requests; returns how many. Ends early
    /// if no more can be written now.
    pub(crate) async fn write_back(self: &Arc<Self>, device: &Arc<DeviceState>, pages: u64) -> u64 {
        let mut written = 0;
        // A file has another turn only if it gave pages in the last.
        let mut turns_left = device.agenda().unclean_count();
        while written < pages && turns_left > 0 {
            let Some(mut taken) = self.take(device, FlushReason::Background) else {
                break;
            };
            let before = written;
            while written < pages {
                let bytes_max = Pages(pages - written).bytes();
                match self.write_run(&mut taken, bytes_max, Patience::Wait).await {
                    Step::Wrote { pages, .. } => written += pages,
                    _ => break,
                }
            }
            self.put_back(taken, PutBack::More);
            turns_left -= usize::from(written == before);
        }
        written
    }
}
