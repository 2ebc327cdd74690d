//! How many pages of a device may be dirty.
//!
//! Owns: the limits that follow from knobs, memory, the number of devices and pages that failed.
//! Does not own: the room that the policy in force gives, charges (`dirty`), failed files (`failing`).
//! Invariants: the limits of all devices together leave frames to readers, and to a device added later.

use afflux_device::settings::Knob;
use afflux_pages::units::PageCount;

use crate::devices::{DeviceState, Devices, Moment};

/// The fewest pages that a device may have dirty, regardless of the knobs.
pub(super) const LIMIT_PAGES_MIN: PageCount = PageCount(4);

/// The most of the cache that may be dirty, regardless of the knobs, in percent.
const DIRTY_PERCENT_MAX: u64 = 90;

/// The part of the dirty limit that all devices together may take without looking at each other.
pub(super) const UNSEEN_PART: u64 = 16;

/// The knobs' limit for all devices together.
pub(super) fn all_pages(devices: &Devices) -> PageCount {
    let total = PageCount(devices.memory_pages());
    match devices.settings.get(Knob::DirtyBytes) {
        0 => total.percent(devices.settings.get(Knob::DirtyRatio)),
        bytes => PageCount::whole_in(bytes).min(total.percent(DIRTY_PERCENT_MAX)),
    }
}

/// The dirty limit: the knobs' limit, or the memory guard's, which is halfway between that and all frames.
pub(super) fn dirty_pages_max(devices: &Devices) -> PageCount {
    let all = all_pages(devices);
    if devices.policy.needs().memory_guard { (all + PageCount(devices.memory_pages())) / 2 } else { all }
}

/// The most pages that the memory guard lets the device have dirty. A device alone may have the whole limit. Each of
/// several may have two thirds of the others' remainder. So a hung device at its limit leaves room to devices added
/// later, and the sum stays below the whole.
pub(super) fn guard_pages(devices: &Devices, device: &DeviceState) -> PageCount {
    let (all, extra) = (dirty_pages_max(devices), PageCount(extra_pages(devices, device)));
    if devices.totals.devices() < 2 {
        return all.max(LIMIT_PAGES_MIN) + extra;
    }
    let others = PageCount(devices.totals.held()).saturating_sub(device.admission().pages());
    (all.saturating_sub(others) * 2 / 3).max(LIMIT_PAGES_MIN) + extra
}

/// Recomputes a device's guard, which depends on the dirty pages of the others. Called for a device with waiters when
/// another one gives pages back.
pub(crate) fn refresh_guard(devices: &Devices, device: &DeviceState) {
    if devices.policy.needs().memory_guard {
        device.admission().set_guard(guard_pages(devices, device));
    }
}

/// An equal part of a quarter of the frames that may not be dirty: half of those are for reads in flight.
fn unwritable_part(devices: &Devices) -> u64 {
    let clean = PageCount(devices.memory_pages()).saturating_sub(dirty_pages_max(devices));
    (clean / 4 / devices.totals.devices().max(1)).0
}

/// The most frames that one device's reads in flight may hold: an equal part of half of the frames that may not be
/// dirty. So readers of a hung device leave memory to the others.
pub(super) fn reading_pages(devices: &Devices) -> u64 {
    let count = devices.totals.devices().max(1);
    let clean = PageCount(devices.memory_pages()).saturating_sub(dirty_pages_max(devices));
    (clean / 2 / count).max(LIMIT_PAGES_MIN).0
}

/// The most dirty pages that may stand on the device for one cause that keeps them from being written: a part of the
/// device's limit in bytes, or the policy's own limit if that is lower. Where the memory guard bounds them alone, the
/// policy's limit is what its user asked for, and a writer may not pass it because its own pages take no room.
pub(crate) fn unwritable_pages_max(devices: &Devices, device: &DeviceState, moment: Moment) -> u64 {
    let part_pages = devices.totals.part_pages();
    if !devices.policy.needs().memory_guard {
        return part_pages;
    }
    let limits = devices.ask(device, moment, |policy, view, own, shared| policy.limits(view, own, shared));
    part_pages.min(limits.dirty.max(LIMIT_PAGES_MIN.0))
}

/// The most failed pages that a higher limit makes up for.
fn extra_pages_max(devices: &Devices) -> u64 {
    devices.totals.part_pages().min(unwritable_part(devices))
}

/// The most pages that take none of the policy's room because they cannot be written. The memory guard, if there is
/// one, is the bound.
pub(super) fn roomless_pages_max(devices: &Devices) -> u64 {
    if devices.policy.needs().memory_guard { u64::MAX } else { extra_pages_max(devices) }
}

/// Dirty pages allowed beyond the device's limit, because as many failed.
pub(super) fn extra_pages(devices: &Devices, device: &DeviceState) -> u64 {
    match device.failures.pages() {
        0 => 0,
        failed => failed.min(extra_pages_max(devices)),
    }
}
