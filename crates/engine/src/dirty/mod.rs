//! How much may be dirty: what is charged to whom, and how much is left.
//!
//! Owns: each device's admission queue, the memory guard, a writer's charge for the pages it dirties, the sum over
//! all devices.
//! Does not own: the flusher that makes room, the pages, how much room the policy in force gives (`policy`).
//! Invariants: under the memory guard all devices together leave frames to readers, with room kept for a device
//! that comes new, but for a sixteenth that they may take in all before they look at each other again. What is
//! charged is given back when the page is written, cut off, or was not dirtied after all. A charge that fits locks,
//! reads and writes nothing that writers to other devices change.

pub(crate) mod queue;
mod totals;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cache::{Cache, PAGE_BYTES};
use crate::settings::Knob;
use crate::writeback::device::DeviceState;
pub(crate) use queue::AdmissionQueue;

/// Fewest pages a device may have dirty, whatever the knobs say.
const LIMIT_PAGES_MIN: u64 = 4;

/// Most of the cache that may be dirty, whatever the knobs say, in percent.
const DIRTY_PERCENT_MAX: u64 = 90;

/// Of what may be dirty, the part that all devices together may take without looking at each other.
const UNSEEN_PART: u64 = 16;

pub(crate) use totals::DirtyTotals;

/// What the knobs allow all devices together.
fn all_pages(cache: &Cache) -> u64 {
    let total = u64::from(cache.frames.total());
    match cache.settings.get(Knob::DirtyBytes) {
        0 => total * cache.settings.get(Knob::DirtyRatio) / 100,
        bytes => (bytes / PAGE_BYTES).min(total * DIRTY_PERCENT_MAX / 100),
    }
}

/// What may be dirty at all: what the knobs allow, or what the memory guard does, which is halfway between that
/// and all frames.
fn dirty_pages_max(cache: &Cache) -> u64 {
    let all = all_pages(cache);
    if cache.policy.needs().memory_guard { (all + u64::from(cache.frames.total())) / 2 } else { all }
}

/// One device's equal part, in pages, of what the knobs allow.
pub(crate) fn part_pages(cache: &Cache) -> u64 {
    cache.dirty.part_pages.load(Ordering::Relaxed)
}

/// Most pages that the memory guard lets the device have dirty. A device alone may have all that may be
/// dirty; of several each may have two thirds of what the others leave, so that one that hangs with
/// all it could get leaves room to those that come later, and the sum stays below the whole.
pub(crate) fn guard_pages(cache: &Cache, device: &DeviceState) -> u64 {
    let all = dirty_pages_max(cache);
    if cache.dirty.devices() < 2 {
        return all.max(LIMIT_PAGES_MIN);
    }
    let others = cache.dirty.held().saturating_sub(device.admission.pages());
    (all.saturating_sub(others) * 2 / 3).max(LIMIT_PAGES_MIN)
}

/// A device's guard depends on what the others have: it is computed anew for those who wait for it when any of
/// them gives pages back.
pub(crate) fn refresh_guard(cache: &Cache, device: &DeviceState) {
    if cache.policy.needs().memory_guard {
        device.admission.set_guard(guard_pages(cache, device));
    }
}

/// Takes pages that the device has no room for by what it saw of the others last, if it has now.
pub(crate) fn try_take_anew(cache: &Cache, device: &DeviceState, pages: u64) -> bool {
    cache.policy.needs().memory_guard && device.admission.try_take_within(guard_pages(cache, device), pages)
}

/// Most frames that one device's reads in flight may hold: an equal part of half of what may not be
/// dirty, so that readers of a device that hangs leave memory to the others.
fn reading_pages(cache: &Cache) -> u64 {
    let devices = cache.dirty.devices().max(1);
    let clean = u64::from(cache.frames.total()).saturating_sub(dirty_pages_max(cache));
    (clean / 2 / devices).max(LIMIT_PAGES_MIN)
}

/// Computes all that follows from knobs and from the number of devices; after one of them changed.
pub(crate) fn divide(cache: &Cache) -> Vec<Arc<DeviceState>> {
    let devices: Vec<Arc<DeviceState>> = cache.devices().clone();
    let count = devices.len().max(1) as u64;
    cache.dirty.divide(devices.len() as u64, (all_pages(cache) / count).max(LIMIT_PAGES_MIN));
    let min_ratios = devices.iter().map(|device| device.knob(&cache.settings, Knob::MinRatio));
    cache.min_ratio_sum.store(min_ratios.sum(), Ordering::Relaxed);
    let unseen = if count > 1 { dirty_pages_max(cache) / UNSEEN_PART / count } else { u64::MAX };
    for device in &devices {
        if cache.policy.needs().memory_guard {
            device.admission.set_unseen(unseen);
        }
        refresh_guard(cache, device);
        device.reading.set_limit(reading_pages(cache));
    }
    devices
}

/// Pages charged to a device before they are dirtied; what is not used goes back on drop.
pub(crate) struct Charge {
    device: Arc<DeviceState>,
    pages: u64,
    spent: u64,
}

impl Charge {
    /// What the device's admission queue has granted.
    pub(crate) fn granted(device: &Arc<DeviceState>, pages: u64) -> Self {
        device.totals.hold(device.id, pages);
        Self { device: Arc::clone(device), pages, spent: 0 }
    }

    /// What the policy lets in whatever the queue says.
    pub(crate) fn forced(device: &Arc<DeviceState>, pages: u64) -> Self {
        device.admission.force(pages);
        Self::granted(device, pages)
    }

    /// One page was dirtied: it stays charged until [`uncharge`].
    pub(crate) fn spend(&mut self) {
        self.spent += 1;
        match self.pages.checked_sub(1) {
            Some(left) => self.pages = left,
            // More pages than foreseen became dirty (one was written back meanwhile): never refused.
            None => force_charge(&self.device, 1),
        }
    }

    /// How many pages were dirtied.
    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.device.dirtied_pages.fetch_add(self.spent, Ordering::Relaxed);
        if self.pages > 0 {
            give_back(&self.device, self.pages);
        }
    }
}

/// Pages became dirty that were charged without asking for room.
pub(crate) fn force_charge(device: &DeviceState, pages: u64) {
    device.totals.hold(device.id, pages);
    device.admission.force(pages);
}

fn give_back(device: &DeviceState, pages: u64) {
    device.totals.let_go(device.id, pages);
    device.admission.give_back(pages);
}

/// Pages are no longer dirty.
pub(crate) fn uncharge(cache: &Cache, device: &DeviceState, pages: u64) {
    if pages == 0 {
        return;
    }
    give_back(device, pages);
    if cache.policy.needs().memory_guard && cache.dirty.anybody_waits() {
        // What the others may have depends on it.
        let devices: Vec<Arc<DeviceState>> = cache.devices().clone();
        for other in devices.iter().filter(|other| other.admission.waiting() > 0) {
            refresh_guard(cache, other);
        }
    }
}
