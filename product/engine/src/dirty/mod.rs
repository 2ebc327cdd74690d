//! The dirty limits: charges, and the room left.
//!
//! Owns: each device's admission queue, the memory guard, a writer's charge for the pages it dirties, the sum over all
//! devices.
//! Does not own: the flusher that makes room, the pages, the room that the policy in force gives (`policy`).
//! Invariants: under the memory guard all devices together leave frames to readers, and keep room for a device added
//! later. They may take a sixteenth in all before they look at each other again. A charge is given back when the page
//! is written or cut off, or was not dirtied after all. A charge that fits neither locks, reads nor writes anything
//! that writers to other devices change.

pub(crate) mod failing;
mod limits;

use std::sync::Arc;

use afflux_pages::units::PageCount;

use crate::devices::payer::Dirtied;
use crate::devices::{DeviceState, Devices, Moment};
use limits::{
    LIMIT_PAGES_MIN, UNSEEN_PART, all_pages, dirty_pages_max, extra_pages, guard_pages, reading_pages,
    roomless_pages_max,
};
pub(crate) use limits::{refresh_guard, unwritable_pages_max};

/// Takes pages that did not fit the last known state of the other devices, if they fit now.
pub(crate) fn try_take_anew(devices: &Devices, device: &DeviceState, pages: PageCount) -> bool {
    devices.policy.needs().memory_guard && device.admission().try_take_within(guard_pages(devices, device), pages)
}

/// Takes pages that the policy has admitted, as far as the memory guard admits them.
pub(crate) fn try_enter(devices: &Devices, device: &DeviceState, pages: PageCount) -> bool {
    device.admission().try_enter(pages) || {
        refresh_guard(devices, device);
        device.admission().try_enter(pages)
    }
}

/// Recomputes everything that follows from knobs and the number of devices, after one of them changed.
pub(crate) fn divide(devices: &Devices, moment: Moment) -> Vec<Arc<DeviceState>> {
    let all = devices.all();
    let count = all.len().max(1) as u64;
    devices.totals.divide(all.len() as u64, (all_pages(devices) / count).max(LIMIT_PAGES_MIN).0);
    devices.show_knobs();
    let unseen = if count > 1 { dirty_pages_max(devices) / UNSEEN_PART / count } else { PageCount::MAX };
    for device in &all {
        device.failures.replace_extra_pages(extra_pages(devices, device));
        device.charges.unwritable.set_most(roomless_pages_max(devices));
        if devices.policy.needs().memory_guard {
            device.admission().set_unseen(unseen);
        }
        refresh_guard(devices, device);
        device.read_frames().set_limit(reading_pages(devices));
    }
    all.iter().for_each(|device| devices.refresh_bounds(device, moment));
    all
}

/// Pages charged to a device before they are dirtied; unused ones go back on drop.
pub(crate) struct Charge {
    device: Arc<DeviceState>,
    pages: u64,
    spent: Dirtied,
}

impl Charge {
    /// A charge that the device's admission queue has granted.
    pub(crate) fn granted(device: &Arc<DeviceState>, pages: u64) -> Self {
        device.charges.hold(pages);
        Self { device: Arc::clone(device), pages, spent: Dirtied::default() }
    }

    /// A charge so small that its payer was not asked about.
    pub(crate) fn unasked(device: &Arc<DeviceState>, pages: u64) -> Self {
        let mut charge = Self::granted(device, pages);
        charge.spent.unasked = true;
        charge
    }

    /// One page was dirtied, which added `runs` runs: it stays charged until [`uncharge`].
    pub(crate) fn spend(&mut self, runs: i64) {
        self.spent.pages += 1;
        self.spent.runs += runs.max(0) as u64;
        match self.pages.checked_sub(1) {
            Some(left) => self.pages = left,
            // More pages than foreseen became dirty (one was written back meanwhile): never refused.
            None => force_charge(&self.device, 1),
        }
    }

    /// The pages and runs dirtied so far.
    pub(crate) fn spent(&self) -> Dirtied {
        self.spent
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.device.charges.note_dirtied(self.spent.pages);
        // The pages dirtied may be unwritable: they then make room again, for the next writer in the queue.
        if self.pages > 0 || self.device.charges.unwritable.has_any() {
            self.device.charges.give_back(self.pages);
        }
    }
}

/// Charges pages that became dirty without asking for room.
pub(crate) fn force_charge(device: &DeviceState, pages: u64) {
    device.charges.hold(pages);
    device.admission().force(PageCount(pages));
}

/// Pages are no longer dirty.
pub(crate) fn uncharge(devices: &Devices, device: &DeviceState, pages: u64, moment: Moment) {
    if pages > 0 {
        device.charges.give_back(pages);
        after_cleaning(devices, device, moment);
    }
}

/// After pages of a device became clean: updates waiters, here and on other devices.
pub(crate) fn after_cleaning(devices: &Devices, device: &DeviceState, moment: Moment) {
    failing::apply_failed(devices, device, moment);
    if devices.policy.needs().memory_guard && devices.totals.has_waiters() {
        // The other devices' limits depend on it.
        for other in devices.all().iter().filter(|other| other.admission().waiting() > 0) {
            refresh_guard(devices, other);
        }
    }
}
