//! What files that cannot be written may hold.
//!
//! Owns: the room that a device gets on top of its dirty limit for pages whose write failed, and the bound on
//! a file whose writes keep failing.
//! Does not own: when such pages are tried again (`writeback`), or what is told to a sync.
//! Invariants: pages that cannot be written stay dirty, and take room from others only beyond
//! [`room_pages_max`]. A writer is refused for the failures of its own file; those of others never
//! refuse it, unless they are so many that the device itself is taken to fail, or hold all of its room.

use super::{refresh_guard, unwritable_share};
use crate::devices::file::FileInner;
use crate::devices::state::DeviceState;
use crate::devices::{Devices, Moment};
use crate::error::DeviceError;
use crate::wait::lock;

/// The part of its device's dirty limit that a file may have dirty while its writes keep failing: its writers
/// are refused beyond it.
const KEEPS_FAILING_PART: u64 = 8;
/// The part that it may have dirty after a write failed: its writers wait beyond it, so that they do not take
/// the room that others get for what failed.
const FAILED_PART: u64 = 2;

/// Most pages that failed and are made up for by a higher limit.
fn room_pages_max(devices: &Devices) -> u64 {
    devices.totals.part_pages().min(unwritable_share(devices))
}

/// What the device may have dirty on top of its limit, because that much of it failed.
pub(super) fn room_pages(devices: &Devices, device: &DeviceState) -> u64 {
    match device.failed_pages() {
        0 => 0,
        failed => failed.min(room_pages_max(devices)),
    }
}

/// Has the device's limits computed anew if what failed on it has changed.
pub(crate) fn apply_room(devices: &Devices, device: &DeviceState, moment: Moment) {
    while device.set_failed_room(room_pages(devices, device)) {
        devices.refresh_room(device, moment);
        refresh_guard(devices, device);
    }
}

/// Whether half of what the device may have dirty has failed: others get what little is left page by page.
pub(crate) fn leave_little_room(devices: &Devices, device: &DeviceState) -> bool {
    device.failed_pages() > devices.totals.part_pages() / 2
}

/// What becomes of a writer that wants to dirty more of a file.
enum Verdict {
    Go,
    /// The file's last write failed, and it has much dirty: until the tries end one way or the other.
    Wait,
    Refuse(DeviceError),
}

fn verdict(devices: &Devices, file: &FileInner, pages: u64) -> Verdict {
    // Looked at without the lock: writers of files that work ask nothing else.
    if file.device.failed_pages() == 0 {
        return Verdict::Go;
    }
    let state = lock(&file.state);
    let over = |part: u64| state.dirty_pages + pages > (devices.totals.part_pages() / part).max(1);
    match state.error {
        _ if state.discarded || state.failures_in_row == 0 => Verdict::Go,
        Some(error) if state.keeps_failing() && over(KEEPS_FAILING_PART) => Verdict::Refuse(error),
        Some(_) if !state.keeps_failing() && over(FAILED_PART) => Verdict::Wait,
        _ => Verdict::Go,
    }
}

/// Lets a writer go on that wants to dirty `pages` more of the file, or refuses it.
pub(crate) async fn admit(devices: &Devices, file: &FileInner, pages: u64) -> Result<(), DeviceError> {
    let decided = || match verdict(devices, file, pages) {
        Verdict::Go => Some(Ok(())),
        Verdict::Wait => None,
        Verdict::Refuse(error) => Some(Err(error)),
    };
    match decided() {
        Some(decided) => decided,
        None => file.queue.until(decided).await,
    }
}

/// The error for a writer of the file that would have to wait for room: the file's writes keep failing, or the
/// device's, or none of the room will be given back because pages whose writes keep failing hold all of it.
pub(crate) fn refusal(file: &FileInner) -> Option<DeviceError> {
    let device = &file.device;
    file_keeps_failing(file).or_else(|| device.keeps_failing()).or_else(|| all_room_fails(device))
}

fn file_keeps_failing(file: &FileInner) -> Option<DeviceError> {
    if file.device.failed_pages() == 0 {
        return None;
    }
    let state = lock(&file.state);
    state.error.filter(|_| state.keeps_failing())
}

/// The error of the write that failed last, if pages of files whose writes keep failing are all that is charged to the
/// device.
fn all_room_fails(device: &DeviceState) -> Option<DeviceError> {
    let failing = device.failing_pages();
    if failing == 0 || device.admission.pages().0 > failing {
        return None;
    }
    device.last_write_error()
}

/// Tells those who wait for the device's room, if none will be given back. To be called after each write that failed.
pub(crate) fn end_waits(device: &DeviceState) {
    if let Some(error) = all_room_fails(device) {
        device.admission.fail(error);
    }
}
