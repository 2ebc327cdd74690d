//! The flusher: one task a device, that writes.
//!
//! Owns: the loop of choosing, claiming and submitting; holds that stop it for one file.
//! Does not own: the choice (`schedule`), the run (`batch`), the outcome (`complete`).
//! Invariants: it waits for a free request before it claims pages, so claimed pages are on their way;
//! a turn gives one file at most a slice, then the next file has its turn. Where somebody else drives
//! background writeback it serves syncs, second tries, drains and who is short of frames.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::batch::{Claim, Run, claim};
use super::complete::{WriteEnds, requeue};
use super::device::DeviceState;
use super::driver::Driver;
use super::schedule::{FlushChoice, FlushReason, choose};
use crate::cache::PAGE_BYTES;
use crate::cache::file::{FileInner, FileState};
use crate::cache::nodes::Tag;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::platform::{Nanos, Platform};
use crate::policy::Next;
use crate::rare::Rare;
use crate::request::{Operation, Request};
use crate::settings::Knob;
use crate::units::centisecs_ns;
use crate::wait::lock;

/// When to come back to pages that somebody was copying to.
pub(crate) const BUSY_NS: u64 = 50_000;

/// When to look for files again to which a flush has long been owed, if there were many.
const FORGOTTEN_NS: u64 = 100 * Nanos::MILLISECOND;

/// How a turn ended.
enum Turn {
    /// The slice is used up.
    Slice,
    Nothing,
    Busy,
    /// The file failed lately and is left alone for now.
    Paused,
}

/// Writes the device's dirty pages, for ever.
pub(crate) async fn flush_device<P: Platform>(engine: Arc<Engine<P>>, device: Arc<DeviceState>) {
    let mut look_for_forgotten_at = Nanos(0);
    loop {
        let platform = engine.platform();
        let now = platform.now();
        let view = device.flusher_view(engine.settings(), now);
        let forced = view.files_ready && engine.cache().rare.strikes(Rare::EarlyFlush);
        let choice =
            if forced { FlushChoice::Write(FlushReason::Background) } else { choose(&view, || engine.next(&device)) };
        match choice {
            FlushChoice::WaitUntil(deadline) => {
                device.memory_short.store(false, Ordering::Relaxed);
                if now >= look_for_forgotten_at {
                    let expire_ns = centisecs_ns(device.knob(engine.settings(), Knob::ExpireCentisecs));
                    let more = engine.flush_forgotten(&device, Nanos(now.0.saturating_sub(expire_ns)));
                    look_for_forgotten_at = now.after(if more { FORGOTTEN_NS } else { view.interval_ns });
                }
                let deadline = deadline.min(look_for_forgotten_at);
                device.flusher.wait_or(platform.sleep_until(deadline)).await;
            }
            FlushChoice::Write(reason) => {
                let Some(file) = device.next_file(reason) else {
                    continue;
                };
                engine.local().count(Counter::FlusherTurns, 1);
                device.flushing.fetch_add(1, Ordering::Relaxed);
                let turn = engine.turn(&device, &file, reason).await;
                device.flushing.fetch_sub(1, Ordering::Relaxed);
                engine.end_turn(&device, &file, reason, &turn);
                platform.preemption_point().await;
            }
        }
    }
}

impl<P: Platform> Engine<P> {
    async fn turn(self: &Arc<Self>, device: &Arc<DeviceState>, file: &Arc<FileInner>, reason: FlushReason) -> Turn {
        let mut left = self.slice_bytes(device);
        let mut batch = Batch::default();
        let request_max = device.device.limits().request_bytes_max;
        let tag = if reason == FlushReason::Sync { Tag::ToWrite } else { Tag::Dirty };
        if self.begin_turn(file, reason) {
            return Turn::Paused;
        }
        while left > 0 {
            self.acquire_request(device, &mut batch).await;
            if self.cache().rare.strikes(Rare::SlotTaken) {
                self.release_request(device);
                self.platform().preemption_point().await;
                continue;
            }
            let claimed = {
                let mut state = lock(&file.state);
                // A write of this turn may have failed: what is left waits for the pause, too.
                if tag == Tag::Dirty && state.backs_off(self.platform().now()) {
                    drop(state);
                    self.release_request(device);
                    return Turn::Paused;
                }
                claim(file, &mut state, tag, request_max)
            };
            match claimed {
                Claim::Run(run) => {
                    left = left.saturating_sub(u64::from(run.len));
                    self.submit_write(device, file, run);
                    self.platform().between_requests().await;
                    if tag == Tag::Dirty && device.sync_waiting() {
                        return Turn::Slice;
                    }
                }
                Claim::Nothing | Claim::Busy => {
                    self.release_request(device);
                    return if matches!(claimed, Claim::Busy) { Turn::Busy } else { Turn::Nothing };
                }
            }
        }
        Turn::Slice
    }

    /// Notes that the file is off the reason's list; `end_turn` does so for the others. Whether it
    /// pauses after a failure: then it is written for a sync only.
    fn begin_turn(&self, file: &FileInner, reason: FlushReason) -> bool {
        let mut state = lock(&file.state);
        match reason {
            FlushReason::Sync => state.sync_queued = false,
            FlushReason::Retry => state.retry_queued = false,
            FlushReason::Background | FlushReason::Expired { .. } => {}
        }
        reason != FlushReason::Sync && state.backs_off(self.platform().now())
    }

    /// What the policy wants written next; nothing where somebody else drives background writeback.
    fn next(&self, device: &DeviceState) -> Next {
        match &self.driver {
            Driver::FlusherEach => self
                .ask_policy(device, |policy, view, own, shared| policy.next(view, device, &mut **own, &mut **shared)),
            Driver::Own(_) => Next::WaitUntil(Nanos::NEVER),
        }
    }

    fn slice_bytes(&self, device: &DeviceState) -> u64 {
        let bytes =
            self.ask_policy(device, |policy, view, own, shared| policy.slice_bytes(view, &mut **own, &mut **shared));
        bytes.max(PAGE_BYTES)
    }

    /// Waits for a request to write with; who had to may take some more without.
    pub(crate) async fn acquire_request(&self, device: &DeviceState, batch: &mut Batch) {
        let depth = device.write_depth(self.settings());
        let extra = batch.0 > 0 && device.try_count_write(depth + depth / 2, depth);
        batch.0 = batch.0.saturating_sub(1);
        if !extra && !device.try_count_write(depth, depth) {
            let free = || {
                let depth = device.write_depth(self.settings());
                device.try_count_write(depth, depth).then_some(())
            };
            device.write_ended.until(free).await;
            batch.0 = device.knob(self.settings(), Knob::RequestBatch) as u32 - 1;
        }
        let counted = CountedWrite { device, engine: self };
        device.slots.take(1).await;
        std::mem::forget(counted);
    }

    /// Takes a request to write with if there is one.
    pub(crate) fn try_acquire_request(&self, device: &DeviceState) -> bool {
        // The slot first: a write that was counted and gets none would look like congestion that clears.
        if !device.slots.try_take(1) {
            return false;
        }
        let depth = device.write_depth(self.settings());
        let counted = device.try_count_write(depth, depth);
        if !counted {
            device.slots.give_back(1);
        }
        counted
    }

    /// The request has ended, or was not needed.
    pub(crate) fn release_request(&self, device: &DeviceState) {
        device.slots.give_back(1);
        self.uncount_write(device);
    }

    fn uncount_write(&self, device: &DeviceState) {
        let left = device.writes_in_flight.fetch_sub(1, Ordering::Relaxed) - 1;
        if device.congestion.shrunk(left, device.write_depth(self.settings())) {
            self.cache().congestion_cleared();
        }
        device.write_ended.wake_all();
    }

    pub(crate) fn submit_write(self: &Arc<Self>, device: &Arc<DeviceState>, file: &Arc<FileInner>, run: Run) {
        let Run { offset, len, memory, sequence, pages } = run;
        device.writeback_pages.fetch_add(pages, Ordering::Relaxed);
        device.totals.writeback_begins(device.id, pages);
        let now = self.platform().now();
        device.request_begins(now);
        device.write_begins(now);
        self.local().count(Counter::WriteRequests, 1);
        self.local().count(Counter::PageOut, u64::from(len));
        let ends = WriteEnds { engine: Arc::clone(self), file: Arc::clone(file), sequence };
        let operation = Operation::Write { offset, len };
        device.device.submit(Request::new(Box::new(ends), file.backing.clone(), operation, Some(memory)));
    }

    /// Puts the file where its next turn will be looked for.
    fn end_turn(&self, device: &DeviceState, file: &Arc<FileInner>, reason: FlushReason, turn: &Turn) {
        let mut state = lock(&file.state);
        let now = self.platform().now();
        let busy_until = now.after(BUSY_NS);
        if reason == FlushReason::Sync {
            match turn {
                Turn::Slice => device.queue_sync(file, &mut state),
                Turn::Busy => device.queue_sync_later(file, &mut state, busy_until),
                Turn::Nothing | Turn::Paused => {}
            }
            return;
        }
        if reason != FlushReason::Retry {
            // Taken off its list by this turn; somebody who dirtied it meanwhile relied on that.
            state.queued = false;
        }
        match turn {
            Turn::Busy => come_back(device, file, &mut state, busy_until),
            Turn::Slice if reason == FlushReason::Retry => come_back(device, file, &mut state, now),
            // What is left waits for a completion or a release, which queue the file.
            Turn::Nothing if state.in_flight() || state.holds > 0 => {}
            Turn::Slice | Turn::Nothing | Turn::Paused => requeue(file, &mut state, now),
        }
    }

    /// Stops submission for a file and waits until nothing of it is in flight.
    pub(crate) async fn hold(&self, file: &Arc<FileInner>) -> Hold<P>
    where
        Self: Sized,
    {
        lock(&file.state).holds += 1;
        let hold = Hold { file: Arc::clone(file), platform: Arc::clone(self.platform()) };
        file.queue.until(|| (!lock(&file.state).in_flight()).then_some(())).await;
        hold
    }
}

/// Has the flusher come back at `at`, unless it will come back anyway.
pub(crate) fn come_back(device: &DeviceState, file: &Arc<FileInner>, state: &mut FileState, at: Nanos) {
    if !state.retry_queued {
        state.retry_queued = true;
        device.queue_later(file, at);
    }
}

/// How many requests somebody may still take as one who has waited.
#[derive(Default)]
pub(crate) struct Batch(u32);

/// A request counted and not yet got: its waiter may go away.
struct CountedWrite<'a, P: Platform> {
    device: &'a DeviceState,
    engine: &'a Engine<P>,
}

impl<P: Platform> Drop for CountedWrite<'_, P> {
    fn drop(&mut self) {
        self.engine.uncount_write(self.device);
    }
}

/// While it lives nothing of the file is submitted.
pub(crate) struct Hold<P: Platform> {
    file: Arc<FileInner>,
    platform: Arc<P>,
}

impl<P: Platform> Drop for Hold<P> {
    fn drop(&mut self) {
        {
            let mut state = lock(&self.file.state);
            state.holds -= 1;
            requeue(&self.file, &mut state, self.platform.now());
        }
        self.file.queue.wake_all();
    }
}
