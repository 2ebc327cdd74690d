//! How much may be dirty: what is charged to whom, and how much is left.
//!
//! Owns: each device's admission queue, the memory guard, a writer's charge for the pages it dirties, the sum over
//! all devices.
//! Does not own: the flusher that makes room, the pages, how much room the policy in force gives (`policy`).
//! Invariants: under the memory guard all devices together leave frames to readers, with room kept for a device
//! that comes new, but for a sixteenth that they may take in all before they look at each other again. What is
//! charged is given back when the page is written, cut off, or was not dirtied after all. A charge that fits locks,
//! reads and writes nothing that writers to other devices change.

pub(crate) mod failing;

use std::sync::Arc;

use crate::devices::state::DeviceState;
use crate::devices::{Devices, Moment};
use crate::policy::Dirtied;
use crate::settings::Knob;
use crate::units::Pages;

/// Fewest pages a device may have dirty, whatever the knobs say.
const LIMIT_PAGES_MIN: Pages = Pages(4);

/// Most of the cache that may be dirty, whatever the knobs say, in percent.
const DIRTY_PERCENT_MAX: u64 = 90;

/// Of what may be dirty, the part that all devices together may take without looking at each other.
const UNSEEN_PART: u64 = 16;

/// What the knobs allow all devices together.
fn all_pages(devices: &Devices) -> Pages {
    let total = Pages(devices.memory_pages());
    match devices.settings.get(Knob::DirtyBytes) {
        0 => total.percent(devices.settings.get(Knob::DirtyRatio)),
        bytes => Pages::whole_in(bytes).min(total.percent(DIRTY_PERCENT_MAX)),
    }
}

/// What may be dirty at all: what the knobs allow, or what the memory guard does, which is halfway between that
/// and all frames.
fn dirty_pages_max(devices: &Devices) -> Pages {
    let all = all_pages(devices);
    if devices.policy.needs().memory_guard { (all + Pages(devices.memory_pages())) / 2 } else { all }
}

/// Most pages that the memory guard lets the device have dirty. A device alone may have all that may be
/// dirty; of several each may have two thirds of what the others leave, so that one that hangs with
/// all it could get leaves room to those that come later, and the sum stays below the whole.
fn guard_pages(devices: &Devices, device: &DeviceState) -> Pages {
    let (all, room) = (dirty_pages_max(devices), Pages(failing::room_pages(devices, device)));
    if devices.totals.devices() < 2 {
        return all.max(LIMIT_PAGES_MIN) + room;
    }
    let others = Pages(devices.totals.held()).saturating_sub(device.admission.pages());
    (all.saturating_sub(others) * 2 / 3).max(LIMIT_PAGES_MIN) + room
}

/// A device's guard depends on what the others have: it is computed anew for those who wait for it when any of
/// them gives pages back.
pub(crate) fn refresh_guard(devices: &Devices, device: &DeviceState) {
    if devices.policy.needs().memory_guard {
        device.admission.set_guard(guard_pages(devices, device));
    }
}

/// Takes pages that the device has no room for by what it saw of the others last, if it has now.
pub(crate) fn try_take_anew(devices: &Devices, device: &DeviceState, pages: Pages) -> bool {
    devices.policy.needs().memory_guard && device.admission.try_take_within(guard_pages(devices, device), pages)
}

/// Takes pages that the policy has let in, as far as the memory guard does.
pub(crate) fn try_enter(devices: &Devices, device: &DeviceState, pages: Pages) -> bool {
    device.admission.try_enter(pages) || {
        refresh_guard(devices, device);
        device.admission.try_enter(pages)
    }
}

/// An equal part of a quarter of what may not be dirty: half of it is for reads in flight.
fn unwritable_share(devices: &Devices) -> u64 {
    let clean = Pages(devices.memory_pages()).saturating_sub(dirty_pages_max(devices));
    (clean / 4 / devices.totals.devices().max(1)).0
}

/// Most frames that one device's reads in flight may hold: an equal part of half of what may not be
/// dirty, so that readers of a device that hangs leave memory to the others.
fn reading_pages(devices: &Devices) -> u64 {
    let count = devices.totals.devices().max(1);
    let clean = Pages(devices.memory_pages()).saturating_sub(dirty_pages_max(devices));
    (clean / 2 / count).max(LIMIT_PAGES_MIN).0
}

/// Computes all that follows from knobs and from the number of devices; after one of them changed.
pub(crate) fn divide(devices: &Devices, moment: Moment) -> Vec<Arc<DeviceState>> {
    let all = devices.all();
    let count = all.len().max(1) as u64;
    devices.totals.divide(all.len() as u64, (all_pages(devices) / count).max(LIMIT_PAGES_MIN).0);
    devices.show_knobs();
    let unseen = if count > 1 { dirty_pages_max(devices) / UNSEEN_PART / count } else { Pages::MAX };
    for device in &all {
        device.set_failed_room(failing::room_pages(devices, device));
        if devices.policy.needs().memory_guard {
            device.admission.set_unseen(unseen);
        }
        refresh_guard(devices, device);
        device.reading.set_limit(reading_pages(devices));
    }
    all.iter().for_each(|device| devices.refresh_room(device, moment));
    all
}

/// Pages charged to a device before they are dirtied; what is not used goes back on drop.
pub(crate) struct Charge {
    device: Arc<DeviceState>,
    pages: u64,
    spent: Dirtied,
}

impl Charge {
    /// What the device's admission queue has granted.
    pub(crate) fn granted(device: &Arc<DeviceState>, pages: u64) -> Self {
        device.hold_pages(pages);
        Self { device: Arc::clone(device), pages, spent: Dirtied::default() }
    }

    /// One page was dirtied, which made so many runs more: it stays charged until [`uncharge`].
    pub(crate) fn spend(&mut self, runs: i64) {
        self.spent.pages += 1;
        self.spent.runs += runs.max(0) as u64;
        match self.pages.checked_sub(1) {
            Some(left) => self.pages = left,
            // More pages than foreseen became dirty (one was written back meanwhile): never refused.
            None => force_charge(&self.device, 1),
        }
    }

    /// What was dirtied.
    pub(crate) fn spent(&self) -> Dirtied {
        self.spent
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.device.note_dirtied_pages(self.spent.pages);
        if self.pages > 0 {
            self.device.give_pages_back(self.pages);
        }
    }
}

/// Pages became dirty that were charged without asking for room.
pub(crate) fn force_charge(device: &DeviceState, pages: u64) {
    device.hold_pages(pages);
    device.admission.force(Pages(pages));
}

/// Pages are no longer dirty.
pub(crate) fn uncharge(devices: &Devices, device: &DeviceState, pages: u64, moment: Moment) {
    if pages > 0 {
        device.give_pages_back(pages);
        room_was_made(devices, device, moment);
    }
}

/// After pages of a device are no longer dirty: what follows for those who wait, here and on other devices.
pub(crate) fn room_was_made(devices: &Devices, device: &DeviceState, moment: Moment) {
    failing::apply_room(devices, device, moment);
    if devices.policy.needs().memory_guard && devices.totals.anybody_waits() {
        // What the others may have depends on it.
        for other in devices.all().iter().filter(|other| other.admission.waiting() > 0) {
            refresh_guard(devices, other);
        }
    }
}
