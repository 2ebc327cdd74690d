//! The room for files that cannot be written.
//!
//! Owns: the limit for a file whose writes keep failing, the refusal of its writers.
//! Does not own: the room for pages whose write failed (`limits`), when such pages are tried again (`writeback`), or
//! the answer to a sync.
//! Invariants: pages that cannot be written stay dirty, and take room from others only beyond that room, in
//! memory; where a memory guard bounds them, they take none of a policy's room, but count against the writers of the
//! files that they belong to, up to the policy's own limit. A writer of a healthy file is refused only if the device
//! itself counts as failing, or if failed pages hold all of its room.

use afflux_device::devices::file::FileInner;
use afflux_device::devices::{DeviceState, Devices, Moment};
use afflux_device::error::DeviceError;
use afflux_pages::units::PageCount;
use afflux_pages::wait::lock;

use super::limits::{refresh_guard, room_pages, unwritable_pages_max};

/// A file whose writes keep failing may have this part of its device's dirty limit dirty
/// ([`unwritable_pages_max`]). Beyond that, or once all failed pages of the device pass the limit, its writers are
/// refused.
const KEEPS_FAILING_PART: u64 = 8;
/// A file may have this part dirty after a write failed. Beyond that its writers wait: the extra room for failed pages
/// is for other files.
const FAILED_PART: u64 = 2;

/// Recomputes the device's limits if its failed pages have changed.
pub(crate) fn apply_room(devices: &Devices, device: &DeviceState, moment: Moment) {
    let room_changes = || {
        let pages = room_pages(devices, device);
        device.failures.replace_room(pages) != pages
    };
    while room_changes() {
        devices.refresh_room(device, moment);
        refresh_guard(devices, device);
    }
}

/// Whether failed pages hold half of the device's limit: other writers get the little room left page by page.
pub(crate) fn has_little_room(devices: &Devices, device: &DeviceState) -> bool {
    device.failures.pages() > devices.totals.part_pages() / 2
}

/// The decision about a writer that wants to dirty more of a file.
enum Verdict {
    Go,
    /// The file's last write failed, and it has many dirty pages: wait until its retries succeed or give up. Or a write
    /// is set aside: wait until it ends. If the device itself hangs, the file may use its room as all
    /// others.
    Wait,
    Refuse(DeviceError),
}

/// How the file's last writes ended.
enum FileIs {
    Healthy,
    Failed,
    KeepsFailing,
}

fn verdict(devices: &Devices, file: &FileInner, pages: u64, moment: impl FnOnce() -> Moment) -> Verdict {
    let device = &file.device;
    // Read without the lock: writers of healthy files check nothing else.
    if device.failures.pages() == 0 {
        return Verdict::Go;
    }
    let (error, state_of, worth) = {
        let state = lock(&file.state);
        let failures = &state.failures;
        if failures.is_aside() && !state.is_discarded() && !device.hang().is_stalled() {
            return Verdict::Wait;
        }
        if state.is_discarded() {
            return Verdict::Go;
        }
        let error = failures.error().filter(|_| failures.in_row() > 0);
        let (dirty, runs) = (PageCount(state.dirty_pages()), state.dirty_runs() as u64);
        let state_of = match (error, failures.is_failing()) {
            (None, _) => FileIs::Healthy,
            (Some(_), false) => FileIs::Failed,
            (Some(_), true) => FileIs::KeepsFailing,
        };
        (error, state_of, device.admission().pages_worth(dirty, runs))
    };
    // A healthy file goes on, unless all files of the device fail one after the other: each new one would fail, too.
    let Some(error) = error.or_else(|| device.failures.keeps_failing()) else { return Verdict::Go };
    // The policy is asked with no lock held.
    let most = unwritable_pages_max(devices, device, moment());
    let is_device_over = device.failures.pages().saturating_add(pages) > most;
    let is_over = |part: u64| is_device_over || worth.0.saturating_add(pages) > (most / part).max(1);
    match state_of {
        FileIs::Healthy if is_device_over => Verdict::Refuse(error),
        FileIs::KeepsFailing if is_over(KEEPS_FAILING_PART) => Verdict::Refuse(error),
        FileIs::Failed if is_over(FAILED_PART) => Verdict::Wait,
        _ => Verdict::Go,
    }
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
    file: &FileInner,
    pages: u64,
    moment: impl Fn() -> Moment,
    waits: impl FnOnce() -> N,
) -> Result<(), DeviceError> {
    let decided = || match verdict(devices, file, pages, &moment) {
        Verdict::Go => Some(Ok(())),
        Verdict::Wait => None,
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
    file_keeps_failing(file).or_else(|| device.failures.keeps_failing()).or_else(|| all_room_fails(device))
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
fn all_room_fails(device: &DeviceState) -> Option<DeviceError> {
    let failing = device.failures.failing_pages();
    if failing == 0 || device.admission().pages().0 > failing {
        return None;
    }
    device.failures.last_error()
}

/// Has the waiters for the device's room look whether they are refused, if none will be given back. To be called after
/// each failed write.
pub(crate) fn end_waits(device: &DeviceState) {
    if all_room_fails(device).is_some() {
        device.admission().device_changed();
    }
}
