//! The room for files that cannot be written.
//!
//! Owns: the limit for a file whose writes keep failing, the refusal of its writers.
//! Does not own: the room for pages whose write failed (`limits`), when such pages are tried again (`writeback`), or
//! the answer to a sync.
//! Invariants: pages that cannot be written stay dirty, and take room from others only beyond that room, in memory.
//! Where a memory guard bounds these pages, they take none of a policy's room. They count against the writers of their
//! own files, up to the policy's limit. Beyond that limit a file may have few dirty pages until one of its
//! writes succeeds. So many failing files add little each. A writer of a healthy file is refused only if the device
//! itself counts as failing, or if failed pages hold all of its room.

use std::sync::Arc;

use afflux_device::error::DeviceError;
use afflux_pages::units::PageCount;
use afflux_pages::wait::lock;

use super::limits::{extra_pages, refresh_guard, unwritable_pages_max};
use crate::devices::file::{FileInner, FileState};
use crate::devices::{DeviceState, Devices, Moment};

/// A file whose writes keep failing may have this part of its device's dirty limit dirty
/// ([`unwritable_pages_max`]). Beyond that, or once all failed pages of the device pass the limit, its writers are
/// refused.
const KEEPS_FAILING_PART: u64 = 8;
/// A file may have this part dirty after a write failed. Beyond that its writers wait: the extra room for failed pages
/// is for other files.
const FAILED_PART: u64 = 2;
/// While the device's failed pages are over the limit, a healthy file may have this part dirty of what was written of
/// it since its last failure, and a page. Beyond that its writers wait until the file's dirty pages have been tried.
const WRITTEN_PART: u64 = 8;

/// Recomputes the device's limits if its failed pages have changed.
pub(crate) fn apply_failed(devices: &Devices, device: &DeviceState, moment: Moment) {
    let room_changes = || {
        let pages = extra_pages(devices, device);
        device.failures.replace_extra_pages(pages) != pages
    };
    while room_changes() {
        devices.refresh_bounds(device, moment);
        refresh_guard(devices, device);
    }
}

/// Whether failed pages hold half of the device's limit: other writers get the little room left page by page.
pub(crate) fn is_half_failed(devices: &Devices, device: &DeviceState) -> bool {
    device.failures.pages() > devices.totals.part_pages() / 2
}

/// The decision about a writer that wants to dirty more of a file.
enum Verdict {
    Go,
    /// The file's last write failed, and it has many dirty pages: wait until its retries succeed or give up. Or a write
    /// is set aside: wait until it ends. If the device itself hangs, the file may use its room as all
    /// others.
    Wait,
    /// Other files' failed pages are over the limit, and this file has not shown yet that it can be written: wait until
    /// its dirty pages have been tried.
    WaitForTrial,
    Refuse(DeviceError),
}

/// How the file's last writes ended.
enum FileIs {
    Healthy,
    Failed,
    KeepsFailing,
}

/// The dirty pages of files that failed: those that failed, and others, which wait for the file's next try.
fn failed_pages(device: &DeviceState) -> u64 {
    device.failures.pages().max(device.charges.unwritable.failed_pages())
}

/// The dirty pages that a healthy file may have while the device's failed pages are over the limit.
fn trial_pages(state: &FileState) -> u64 {
    (state.failures.written_pages() / WRITTEN_PART).max(1)
}

fn verdict(devices: &Devices, file: &FileInner, pages: u64, moment: impl FnOnce() -> Moment) -> Verdict {
    let device = &file.device;
    // Read without the lock: writers of healthy files check nothing else.
    if device.failures.pages() == 0 {
        return Verdict::Go;
    }
    // The policy is asked with no lock held.
    let most = unwritable_pages_max(devices, device, moment());
    let is_device_over = failed_pages(device).saturating_add(pages) > most;
    let (error, state_of, dirty, runs, needs_trial) = {
        let state = lock(&file.state);
        let failures = &state.failures;
        if failures.is_aside() && !state.is_discarded() && !device.hang().is_stalled() {
            return Verdict::Wait;
        }
        if state.is_discarded() {
            return Verdict::Go;
        }
        let error = failures.error().filter(|_| failures.in_row() > 0);
        let state_of = match (error, failures.is_failing()) {
            (None, _) => FileIs::Healthy,
            (Some(_), false) => FileIs::Failed,
            (Some(_), true) => FileIs::KeepsFailing,
        };
        let (dirty, runs) = (state.dirty_pages(), state.dirty_runs() as u64);
        // Withheld pages are not tried before their holder lets go.
        let has_most = dirty > 0 && dirty.saturating_add(pages) > trial_pages(&state);
        let needs_trial = has_most && !state.withheld.has_any_in(&(0..u64::MAX)) && !device.hang().is_stalled();
        (error, state_of, PageCount(dirty), runs, needs_trial)
    };
    // The device's line is locked for the prices, after the file.
    let is_over = |part: u64| {
        let worth = device.admission().pages_worth(dirty, runs);
        is_device_over || worth.0.saturating_add(pages) > (most / part).max(1)
    };
    match (state_of, error.or_else(|| device.failures.keeps_failing())) {
        // All files of the device fail one after the other: this one would fail, too.
        (FileIs::Healthy, Some(error)) if is_device_over => Verdict::Refuse(error),
        (FileIs::Healthy, _) if is_device_over && needs_trial => Verdict::WaitForTrial,
        (FileIs::KeepsFailing, Some(error)) if is_over(KEEPS_FAILING_PART) => Verdict::Refuse(error),
        (FileIs::Failed, _) if is_over(FAILED_PART) => Verdict::Wait,
        _ => Verdict::Go,
    }
}

/// How many pages a file may dirty at a time, if the device's failed pages are over the limit and the file has yet to
/// show that it can be written.
pub(crate) fn trial_piece_pages(devices: &Devices, file: &FileInner, moment: impl FnOnce() -> Moment) -> Option<u64> {
    let device = &file.device;
    if device.failures.pages() == 0 {
        return None;
    }
    let pages = trial_pages(&lock(&file.state));
    let is_over = failed_pages(device).saturating_add(pages) > unwritable_pages_max(devices, device, moment());
    is_over.then_some(pages)
}

/// Whether a writer that wants to dirty `pages` more pages of the file neither waits for it nor is refused because of
/// it.
pub(crate) fn may_admit(devices: &Devices, file: &FileInner, pages: u64, moment: impl FnOnce() -> Moment) -> bool {
    matches!(verdict(devices, file, pages, moment), Verdict::Go)
}

/// Admits a writer that wants to dirty `pages` more pages of the file, or refuses it. `waits` is called before it
/// waits; its answer is dropped afterwards.
pub(crate) async fn admit<N>(
    devices: &Devices,
    file: &Arc<FileInner>,
    pages: u64,
    moment: impl Fn() -> Moment,
    waits: impl FnOnce() -> N,
) -> Result<(), DeviceError> {
    let decided = || match verdict(devices, file, pages, &moment) {
        Verdict::Go => Some(Ok(())),
        Verdict::Wait => None,
        Verdict::WaitForTrial => {
            // Its few pages would stay below all thresholds of the flusher. A waiter looks again after each write.
            file.wake_flusher_at(&mut lock(&file.state), moment().now);
            None
        }
        Verdict::Refuse(error) => Some(Err(error)),
    };
    match decided() {
        Some(decided) => decided,
        None => {
            let _noted = waits();
            file.queue.until(decided).await
        }
    }
}

/// The error for a writer of the file that would wait for room. The file's writes keep failing, or the device's. Or no
/// room will be given back, because pages whose writes keep failing hold all of it.
pub(crate) fn refusal(file: &FileInner) -> Option<DeviceError> {
    let device = &file.device;
    file_keeps_failing(file).or_else(|| device.failures.keeps_failing()).or_else(|| all_charged_fail(device))
}

fn file_keeps_failing(file: &FileInner) -> Option<DeviceError> {
    if file.device.failures.pages() == 0 {
        return None;
    }
    let state = lock(&file.state);
    state.failures.error().filter(|_| state.failures.is_failing())
}

/// Whether the writer's file may get a write that finds out whether the device hangs.
pub(crate) fn may_try(file: &FileInner) -> bool {
    let device = &file.device;
    device.hang().is_stalled() && device.charges.unwritable.has_any() && !lock(&file.state).failures.is_unwritable()
}

/// The last write error, if all pages charged to the device belong to files whose writes keep failing.
fn all_charged_fail(device: &DeviceState) -> Option<DeviceError> {
    let failing = device.failures.failing_pages();
    if failing == 0 || device.admission().pages().0 > failing {
        return None;
    }
    device.failures.last_error()
}

/// Has the waiters for the device's room look whether they are refused, if none will be given back. To be called after
/// each failed write.
pub(crate) fn end_waits(device: &DeviceState) {
    if all_charged_fail(device).is_some() {
        device.admission().device_changed();
    }
}
