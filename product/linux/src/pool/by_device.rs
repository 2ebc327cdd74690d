//! A pool for each device, so that one that hangs takes no threads from the others.
//!
//! Owns: which pool is which device's; making a device's pool when it is first asked for.
//! Does not own: threads and queues (each pool its own), which device a call is about.
//! Invariants: pools of two devices share neither threads nor queue. There are as many pools as devices
//! were asked for, which whoever hands out devices bounds; a pool without work has no thread.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use afflux_volume::DeviceKey;

use super::WorkerPool;

/// The pools of the devices, each with the same bounds.
pub(crate) struct DevicePools {
    /// The pattern for the others, and for what is of no device.
    common: WorkerPool,
    pools: Mutex<BTreeMap<DeviceKey, WorkerPool>>,
}

impl DevicePools {
    /// None yet. `common` itself serves no device.
    pub(crate) fn new(common: &WorkerPool) -> Self {
        Self { common: common.clone(), pools: Mutex::default() }
    }

    /// Where calls run that are about one device.
    pub(crate) fn of(&self, device: DeviceKey) -> WorkerPool {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.entry(device).or_insert_with(|| self.common.another()).clone()
    }

    /// Where calls run of which nobody knows the device yet.
    pub(crate) fn common(&self) -> &WorkerPool {
        &self.common
    }
}
