//! How much may be dirty, and who waits when it is too much.
//!
//! Owns: the division of the dirty limit among devices, or under a law the guard above it; a writer's
//! charge for the pages it dirties; the sum over all devices.
//! Does not own: the flusher that makes room, the pages, the law (`throttle`).
//! Invariants: with equal parts a writer waits for its own device only, and the parts add up to the
//! share of the cache that the knob allows, so readers always find frames. Under a law all devices
//! together stay below the guard, with room kept for a device that comes new, but for a sixteenth that
//! they may take in all before they look at each other again. What is charged is given back when the
//! page is written, cut off, or was not dirtied after all. Who is charged and finds room locks, reads and
//! writes nothing that writers to other devices change.

pub(crate) mod failing;
mod totals;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cache::{Cache, PAGE_BYTES};
use crate::settings::Knob;
use crate::writeback::device::DeviceState;

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

/// What may be dirty at all: under a law halfway between what it aims at and all frames.
fn dirty_pages_max(cache: &Cache) -> u64 {
    match cache.ruling {
        None => all_pages(cache),
        Some(_) => (all_pages(cache) + u64::from(cache.frames.total())) / 2,
    }
}

/// One device's dirty limit in pages: an equal part of the cache's.
pub(crate) fn limit_pages(cache: &Cache) -> u64 {
    cache.dirty.part_pages.load(Ordering::Relaxed)
}

/// Most pages that the device may have dirty under a law. A device alone may have all that may be
/// dirty; of several each may have two thirds of what the others leave, so that one that hangs with
/// all it could get leaves room to those that come later, and the sum stays below the whole.
fn guard_pages(cache: &Cache, device: &DeviceState) -> u64 {
    let (all, room) = (dirty_pages_max(cache), failing::room_pages(cache, device));
    if cache.dirty.devices() < 2 {
        return all.max(LIMIT_PAGES_MIN) + room;
    }
    let others = cache.dirty.held().saturating_sub(device.budget.used());
    (all.saturating_sub(others) * 2 / 3).max(LIMIT_PAGES_MIN) + room
}

/// Under a law the device's guard depends on what the others have. Who waits for it has it looked at when
/// any of them gives pages back.
pub(crate) fn refresh_guard(cache: &Cache, device: &DeviceState) {
    if cache.ruling.is_some() {
        device.budget.set_limit(guard_pages(cache, device));
    }
}

/// Takes pages that the device has no room for by what it saw of the others last, if it has now.
pub(crate) fn try_take_anew(cache: &Cache, device: &DeviceState, pages: u64) -> bool {
    cache.ruling.is_some() && device.budget.try_take_within(guard_pages(cache, device), pages)
}

/// An equal part of a quarter of what may not be dirty: half of it is for reads in flight.
fn unwritable_share(cache: &Cache) -> u64 {
    let clean = u64::from(cache.frames.total()).saturating_sub(dirty_pages_max(cache));
    clean / 4 / cache.dirty.devices().max(1)
}

/// Most frames that one device's reads in flight may hold: an equal part of half of what may not be
/// dirty, so that readers of a device that hangs leave memory to the others.
fn reading_pages(cache: &Cache) -> u64 {
    let devices = cache.dirty.devices().max(1);
    let clean = u64::from(cache.frames.total()).saturating_sub(dirty_pages_max(cache));
    (clean / 2 / devices).max(LIMIT_PAGES_MIN)
}

/// Tells every device its limit; after a knob or the number of devices changed.
pub(crate) fn apply_limits(cache: &Cache) {
    let devices: Vec<Arc<DeviceState>> = cache.devices().clone();
    let count = devices.len().max(1) as u64;
    let limit = (all_pages(cache) / count).max(LIMIT_PAGES_MIN);
    cache.dirty.divide(devices.len() as u64, limit);
    let min_ratios = devices.iter().map(|device| device.knob(&cache.settings, Knob::MinRatio));
    cache.min_ratio_sum.store(min_ratios.sum(), Ordering::Relaxed);
    let unseen = if count > 1 { dirty_pages_max(cache) / UNSEEN_PART / count } else { u64::MAX };
    for device in devices {
        match cache.ruling {
            None => device.budget.set_limit(limit + failing::room_pages(cache, &device)),
            Some(_) => {
                device.budget.set_room(unseen);
                refresh_guard(cache, &device);
            }
        }
        device.reading.set_limit(reading_pages(cache));
    }
}

/// Pages charged to a device before they are dirtied; what is not used goes back on drop.
pub(crate) struct Charge {
    device: Arc<DeviceState>,
    pages: u64,
    spent: u64,
}

impl Charge {
    /// What was granted by the device's budget.
    pub(crate) fn granted(device: &Arc<DeviceState>, pages: u64) -> Self {
        device.totals.hold(device.id, pages);
        Self { device: Arc::clone(device), pages, spent: 0 }
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

/// Pages became dirty that nobody was asked about.
pub(crate) fn force_charge(device: &DeviceState, pages: u64) {
    device.totals.hold(device.id, pages);
    device.budget.force(pages);
}

fn give_back(device: &DeviceState, pages: u64) {
    device.totals.let_go(device.id, pages);
    device.budget.give_back(pages);
}

/// Pages are no longer dirty.
pub(crate) fn uncharge(cache: &Cache, device: &DeviceState, pages: u64) {
    if pages == 0 {
        return;
    }
    give_back(device, pages);
    failing::apply_room(cache, device);
    if cache.ruling.is_some() && cache.dirty.anybody_waits() {
        // What the others may have depends on it.
        let devices: Vec<Arc<DeviceState>> = cache.devices().clone();
        for other in devices.iter().filter(|other| other.budget.waiting() > 0) {
            refresh_guard(cache, other);
        }
    }
}
