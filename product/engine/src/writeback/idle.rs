//! Writing behind: while a device would idle, a file that has been left alone for long enough is written, one small
//! request at a time.
//!
//! Owns: checks which files' pages are overwritten, also while the device writes; the slice of one request.
//! Does not own: when a device is idle, how long is long enough (`policy`); what is recorded of a file
//! (`devices::idle_write_rule`).
//! Invariants: before each request everything else comes first. No request is submitted while another of the device's
//! writes is in flight. A check takes as long for a large file as for one of a few pages.

use std::sync::Arc;

use afflux_device::counters::Counter;
use afflux_device::platform::{Nanos, Platform};
use afflux_device::policy::FlushSlice;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use super::Writeback;
use super::slice::FileSlice;
use crate::devices::DeviceState;
use crate::devices::file::{FileInner, FileState};

/// Positions in a file at which dirty pages are sampled, spread over it.
const SPOTS: u64 = 16;
/// Dirty pages that are sampled from such a position on.
const SPOT_PAGES: u64 = 8;

impl<P: Platform> Writeback<P> {
    /// Gives the first file that has been left alone a slice of one request, and waits until that has ended or the
    /// flusher is woken.
    pub(super) async fn write_behind(self: &Arc<Self>, device: &Arc<DeviceState>, now: Nanos) {
        if device.requests().writes() == 0 {
            let Some(mut taken) = self.take(device, FlushSlice::Idle { now }) else { return };
            self.write_one(&mut taken, now).await;
            self.put_back(taken);
        }
        let ended = device.requests().write_ended().until(|| (device.requests().writes() == 0).then_some(()));
        device.flusher().wait_or(ended).await;
    }

    async fn write_one(self: &Arc<Self>, taken: &mut FileSlice, now: Nanos) {
        let bytes_max = taken.state_of_device().in_flight.allowed().idle.map_or(PAGE_BYTES, |idle| idle.request_bytes);
        if taken.try_pause(now) {
            return;
        }
        if let Some(wrote) = self.write_run(taken, bytes_max).await {
            self.base.local().count(Counter::IdlePages, wrote.pages);
        }
    }

    /// Checks one file whose check is due, if there is one. So the flusher of a device that never idles finds hot
    /// files, too. No check is ever due under a policy that writes nothing behind.
    pub(super) fn look_at_one(&self, device: &DeviceState, now: Nanos) {
        let Some((file, _)) = device.worklist().next(FlushSlice::Idle { now }) else { return };
        let mut state = lock(&file.state);
        if self.check_idle(&file, &mut state, now) {
            state.watch.looks_again(now);
        }
        file.queue_more(&mut state);
    }

    /// Checks the file; returns whether it has been left alone for long enough.
    pub(super) fn check_idle(&self, file: &FileInner, state: &mut FileState, now: Nanos) -> bool {
        let (dirty, (looked_at, overwritten)) = (state.waiting_pages(), overwritten_pages(file));
        let seen = state.watch.look(now, dirty, dirty * overwritten / looked_at.max(1));
        let view = self.base.devices.view_of(&file.device, self.base.moment_at(now));
        if let Some(quiet) = self.base.devices.policy.idle_write_rule(&view, state.watch.idle_write_rule(), &seen) {
            state.watch.judge(now, quiet);
        }
        state.watch.check_idle(now)
    }
}

/// Samples the file's dirty pages; returns how many, and how many of them were overwritten since the last check.
fn overwritten_pages(file: &FileInner) -> (u64, u64) {
    let (pages, mut from) = (file.size().div_ceil(PAGE_BYTES), 0);
    let (mut looked_at, mut overwritten) = (0, 0);
    for spot in 0..SPOTS {
        from = from.max(pages * spot / SPOTS);
        for _ in 0..SPOT_PAGES {
            let Some(page) = file.pages.index.next_tagged(&file.cache.nodes, from, Tag::Dirty) else {
                return (looked_at, overwritten);
            };
            from = page + 1;
            if let Some(frame) = file.cache.frame_at(&file.pages, page) {
                looked_at += 1;
                overwritten += u64::from(file.cache.pages.take_overwritten(frame));
            }
        }
    }
    (looked_at, overwritten)
}
