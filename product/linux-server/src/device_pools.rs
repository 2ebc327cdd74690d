//! A pool for each device, so that a hanging device takes no threads from the others.
//!
//! Owns: the pool of each device; making it on first use.
//! Does not own: threads and queues (each pool its own), which device a call is about.
//! Invariants: pools of two devices share neither threads nor queue. Each device that was asked for has a pool, so the
//! source of the devices bounds their number; a pool without work has no thread.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use afflux_volume::DeviceKey;

use afflux_linux_device::WorkerPool;

/// The pools of the devices, each with the same bounds.
pub(crate) struct DevicePools {
    /// The pattern for the others; it also runs calls about no device.
    common: WorkerPool,
    pools: Mutex<BTreeMap<DeviceKey, WorkerPool>>,
}

impl DevicePools {
    /// No pools yet. `common` itself serves no device.
    pub(crate) fn new(common: &WorkerPool) -> Self {
        Self { common: common.clone(), pools: Mutex::default() }
    }

    /// The pool for calls about a device.
    pub(crate) fn of(&self, device: DeviceKey) -> WorkerPool {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.entry(device).or_insert_with(|| self.common.another()).clone()
    }

    /// The pool for calls whose device is not known yet.
    pub(crate) fn common(&self) -> &WorkerPool {
        &self.common
    }
}

#[cfg(test)]
mod tests;
