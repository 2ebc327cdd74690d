//! The flusher: one task a device, that writes.
//!
//! Owns: the start of the task; the order of reasons to write: syncs first, as long as they have not used more than
//! their lead, then retries, then drains and shortages of frames, then the policy's choice; giving slices; the search
//! for files with a flush owed for long.
//! Does not own: the steps of a slice (`slice`), the outcome (`complete`), which amounts are too much or too old
//! (policies).
//! Invariants: the choice is pure, and while nothing else is due a sync never waits. A slice writes of one file at most
//! its bytes and a run's short rest, then the next file has its slice. Where requests have to be full, a slice does not
//! write a rest that fills none, unless a sync waits for it.

use std::sync::Arc;

use afflux_device::platform::{Nanos, Platform};
use afflux_device::policy::{FlushSlice, HangLimits, Next};
use afflux_device::settings::Knob;
use afflux_pages::rare::Rare;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use crate::devices::DeviceState;
use crate::devices::worklist::FlusherView;
use crate::writeback::Writeback;
use crate::writeback::hang_watch::watch;
use crate::writeback::slice::FileSlice;

/// Time before another search for files with a flush owed for long, if there were many.
const FORGOTTEN_NS: u64 = 100 * Nanos::MILLISECOND;

/// The most unsynced files that are flushed at the same time.
const FORGOTTEN_TOGETHER: usize = 64;

/// Writes the device's dirty pages, for ever.
async fn flush_device<P: Platform>(writeback: Arc<Writeback<P>>, device: Arc<DeviceState>) {
    // When the flusher last looked for files with a flush owed, and whether there were more.
    let mut looked: Option<(Nanos, bool)> = None;
    // Whether the flusher has waited a moment since its last write.
    let mut rested = false;
    loop {
        let base = &writeback.base;
        let now = base.now();
        let view = device.flusher_view(now, base.devices.look_ns().unwrap_or(u64::MAX));
        let look_at = |(at, more): (Nanos, bool)| at.after(if more { FORGOTTEN_NS } else { view.interval_ns });
        let next = writeback.choose(&device, &view);
        device.worklist().note_choice(next, view.sync_ahead);
        match next {
            Next::WaitUntil(deadline) => {
                // Written pages that cannot be read back before a flush hold their frames until then.
                if device.worklist().take_reclaim_writes() && !device.limits().readable_before_flush {
                    writeback.flush_unflushed(&device, now);
                }
                if looked.is_none_or(|looked| now >= look_at(looked)) {
                    let expire_ns = device.knob_ns(base.settings(), Knob::ExpireCentisecs);
                    let more = writeback.flush_unflushed(&device, Nanos(now.0.saturating_sub(expire_ns)));
                    looked = Some((now, more));
                }
                let mut deadline = looked.map_or(deadline, |looked| deadline.min(look_at(looked)));
                if let Some(idle) = device.in_flight.allowed().idle {
                    device.charges.wake_flusher_if_more();
                    if !std::mem::replace(&mut rested, true) {
                        // The next dirty file is seen without a wake-up by its writer.
                        deadline = deadline.min(now.after(idle.look_ns));
                    }
                    if !device.worklist().may_sleep(deadline, view.listed) {
                        continue;
                    }
                }
                match deadline {
                    Nanos::NEVER => device.flusher().wait_or(std::future::pending()).await,
                    deadline => device.flusher().wait_or(base.sleep_until(deadline)).await,
                }
            }
            Next::FlushSlice(FlushSlice::Idle { now }) => writeback.write_behind(&device, now).await,
            Next::FlushSlice(slice) => {
                rested = false;
                writeback.look_at_one(&device, now);
                if slice == FlushSlice::Sync && view.sync_ahead {
                    device.in_flight.nothing_but_syncs();
                }
                let Some(mut taken) = writeback.take(&device, slice) else {
                    continue;
                };
                writeback.write_slice(&mut taken).await;
                writeback.put_back(taken);
                base.pass().await;
            }
        }
    }
}

impl<P: Platform> Writeback<P> {
    /// Starts the device's flusher, and the watch for a hang if the policy wants one.
    pub(crate) fn start(self: &Arc<Self>, device: Arc<DeviceState>) {
        if self.base.ask(&device, |policy, view, own, _| policy.hang_limits(view, own)) != HangLimits::UNNOTICED {
            self.base.platform.spawn("watch", watch(self.base.clone(), Arc::clone(&device)));
        }
        self.base.platform.spawn_for_device("flusher", flush_device(Arc::clone(self), device));
    }

    fn choose(&self, device: &DeviceState, view: &FlusherView) -> Next {
        if view.files_ready && self.base.cache.rare.is_forced(Rare::EarlyFlush) {
            return Next::FlushSlice(FlushSlice::InOrder);
        }
        choose(view, |pressed| self.next(device, pressed))
    }

    /// The policy's next choice; if `pressed`, among all dirty files.
    fn next(&self, device: &DeviceState, pressed: bool) -> Next {
        self.base.ask(device, |policy, view, own, shared| match pressed {
            false => policy.next(view, device.worklist(), own, shared),
            true => policy.next_if_pressed(view, device.worklist(), own, shared),
        })
    }

    /// Writes a slice of the file and a short rest of the run. Less if there is no more, or a sync waits.
    pub(super) async fn write_slice(self: &Arc<Self>, taken: &mut FileSlice) {
        let device = taken.state_of_device();
        let slice = self.base.ask(device, |policy, view, own, shared| policy.slice_bytes(view, own, shared));
        let allowed = device.in_flight.allowed();
        let mut left = taken.aligned_slice(slice.max(PAGE_BYTES), allowed.slice_align_bytes);
        let mut tail = allowed.run_tail_bytes;
        if taken.try_pause(self.base.now()) {
            return;
        }
        loop {
            let Some(wrote) = self.write_run(taken, u64::MAX).await else { return };
            let written = wrote.bytes;
            if taken.must_yield_to_sync() || taken.ends_if_written() {
                return;
            }
            if allowed.fills_requests && !taken.is_for_sync() && taken.does_run_end_within(allowed.request_bytes) {
                return;
            }
            if written < left {
                left -= written;
            } else {
                tail = tail.saturating_sub(written - left);
                left = 0;
                if tail == 0 || !taken.does_run_end_within(tail) {
                    return;
                }
            }
        }
    }

    /// Flushes clean files that nobody has synced since `before` or longer. So written data becomes durable by itself,
    /// and the engine need not hold the files; nor, on some devices, their pages. Returns whether there may be more.
    fn flush_unflushed(self: &Arc<Self>, device: &DeviceState, before: Nanos) -> bool {
        let (files, more) = device.worklist().take_unflushed(before, FORGOTTEN_TOGETHER);
        for file in &files {
            // The outcome is the file's error, for the next sync.
            let range = lock(&file.state).withheld.later().awaited();
            drop(self.join_round(file, range));
        }
        more
    }
}

/// The next step. Asks `policy` if no other reason comes first, and passes it whether any dirty file has to be written.
pub(super) fn choose(view: &FlusherView, policy: impl FnOnce(bool) -> Next) -> Next {
    if view.sync_waiting && !view.sync_ahead {
        return Next::FlushSlice(FlushSlice::Sync);
    }
    match other_than_sync(view, policy) {
        Next::WaitUntil(_) if view.sync_waiting => Next::FlushSlice(FlushSlice::Sync),
        choice => choice,
    }
}

fn other_than_sync(view: &FlusherView, policy: impl FnOnce(bool) -> Next) -> Next {
    if view.retry_due {
        return Next::FlushSlice(FlushSlice::Retry);
    }
    let pressed = view.files_ready && (view.draining || view.memory_short);
    let due = match policy(pressed) {
        Next::FlushSlice(slice) => return Next::FlushSlice(slice),
        Next::WaitUntil(_) if pressed => return Next::FlushSlice(FlushSlice::InOrder),
        Next::WaitUntil(due) => due,
    };
    let look_again = view.now.after(view.interval_ns);
    let next = view.next_retry.map_or(due, |retry| retry.min(due)).min(look_again);
    Next::WaitUntil(next.max(view.now.after(1)))
}

#[cfg(test)]
mod tests;
