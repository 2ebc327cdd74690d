//! Writeback: dirty pages become durable.
//!
//! Owns: one flusher a device, what it writes next and how much, what a finished write means for its
//! pages, syncs; the seam for those who drive background writeback otherwise.
//! Does not own: how dirty pages come to be (`writing`), how long writers wait (`throttle`), what there is too much
//! of (`policy`).
//! Invariants: whoever submits writes has a free request in hand before it claims pages. A page
//! that failed to write stays dirty and its file says so until it has been written.

mod batch;
mod complete;
pub(crate) mod driver;
mod flusher;
mod idle;
mod requests;
mod round_tasks;
mod schedule;
mod silence;
mod spare;
mod sync;
mod turn;

use std::sync::Arc;

use crate::base::Base;
use crate::devices::state::DeviceState;
use crate::platform::Platform;
use crate::policy::Silence;
use driver::{Driver, FlushOf};
use round_tasks::IdleTasks;
use spare::Spare;
pub use turn::Taken;

/// The mechanism.
pub(crate) struct Writeback<P: Platform> {
    base: Base<P>,
    driver: Driver,
    spare: Spare<P>,
    idle_tasks: IdleTasks,
}

impl<P: Platform> Writeback<P> {
    pub(crate) fn new(base: Base<P>, driver: Driver) -> Arc<Self> {
        let (spare, idle_tasks) = (Spare::default(), IdleTasks::default());
        let writeback = Arc::new(Self { base, driver, spare, idle_tasks });
        if let Driver::Own(driver) = &writeback.driver {
            driver.start(Arc::new(FlushOf(Arc::clone(&writeback))));
        }
        writeback
    }

    /// Starts the device's flusher, and the look whether it hangs where the policy wants that.
    pub(crate) fn start(self: &Arc<Self>, device: Arc<DeviceState>) {
        if self.base.ask(&device, |policy, view, own, _| policy.silence(view, own)) != Silence::UNNOTICED {
            self.base.platform.spawn("watch", silence::watch(self.base.clone(), Arc::clone(&device)));
        }
        self.base.platform.spawn("flusher", flusher::flush_device(Arc::clone(self), device));
    }

    /// Has background writeback of the device, or of all, start.
    pub(crate) fn start_background(self: &Arc<Self>, device: &DeviceState) {
        match &self.driver {
            Driver::FlusherEach => device.flusher.raise(),
            Driver::Own(driver) => driver.kick(Arc::new(FlushOf(Arc::clone(self)))),
        }
    }

    /// Whether the device is over its background threshold: the policy's answer, for its flusher and for drivers.
    fn is_over_background(&self, device: &DeviceState) -> bool {
        self.base.ask(device, |policy, view, own, shared| policy.over_background(view, own, shared))
    }
}
