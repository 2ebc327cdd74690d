//! How much may be dirty, and who waits when it is too much.
//!
//! Owns: the division of the dirty limit among devices, a writer's charge for the pages it dirties.
//! Does not own: the flusher that makes room, the pages.
//! Invariants: a writer waits for its own device only. The devices' limits add up to the share of
//! the cache that the knob allows, so readers always find frames. What is charged is given back
//! when the page is written, cut off, or was not dirtied after all.

use std::sync::Arc;

use crate::cache::Cache;
use crate::cache::wait::lock;
use crate::settings::Knob;
use crate::writeback::device::DeviceState;

/// Fewest pages a device may have dirty, whatever the knobs say.
const LIMIT_PAGES_MIN: u64 = 4;

/// One device's dirty limit in pages: an equal part of the cache's.
pub(crate) fn limit_pages(cache: &Cache) -> u64 {
    let devices = lock(&cache.devices).len().max(1) as u64;
    let all = u64::from(cache.frames.total()) * cache.settings.get(Knob::DirtyRatio) / 100;
    (all / devices).max(LIMIT_PAGES_MIN)
}

/// Most frames that one device's reads in flight may hold: an equal part of half of what may not be
/// dirty, so that readers of a device that hangs leave memory to the others.
fn reading_pages(cache: &Cache) -> u64 {
    let devices = lock(&cache.devices).len().max(1) as u64;
    let clean = u64::from(cache.frames.total()) * (100 - cache.settings.get(Knob::DirtyRatio)) / 100;
    (clean / 2 / devices).max(LIMIT_PAGES_MIN)
}

/// Tells every device its limit; after a knob or the number of devices changed.
pub(crate) fn apply_limits(cache: &Cache) {
    let limit = limit_pages(cache);
    let devices: Vec<Arc<DeviceState>> = lock(&cache.devices).clone();
    for device in devices {
        device.budget.set_limit(limit);
        device.reading.set_limit(reading_pages(cache));
    }
}

/// Pages charged to a device before they are dirtied; what is not used goes back on drop.
pub(crate) struct Charge {
    device: Arc<DeviceState>,
    pages: u64,
}

impl Charge {
    /// What was granted by the device's budget.
    pub(crate) fn granted(device: &Arc<DeviceState>, pages: u64) -> Self {
        Self { device: Arc::clone(device), pages }
    }

    /// One page was dirtied: it stays charged until [`uncharge`].
    pub(crate) fn spend(&mut self) {
        match self.pages.checked_sub(1) {
            Some(left) => self.pages = left,
            // More pages than foreseen became dirty (one was written back meanwhile): never refused.
            None => self.device.budget.force(1),
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.pages > 0 {
            self.device.budget.give_back(self.pages);
        }
    }
}

/// Pages are no longer dirty.
pub(crate) fn uncharge(device: &DeviceState, pages: u64) {
    if pages > 0 {
        device.budget.give_back(pages);
    }
}
