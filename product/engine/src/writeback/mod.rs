//! Writeback: dirty pages become durable.
//!
//! Owns: one flusher a device, the choice and size of its next write, the effect of a finished write on its pages,
//! syncs; the seam for other drivers of background writeback.
//! Does not own: how pages get dirty (`writing`), how long writers wait (`throttle`), which amounts are too much
//! (`policy`).
//! Invariants: a task that submits writes has a free request in hand before it claims pages. A page that failed to
//! write stays dirty and its file says so until it has been written.

mod batch;
mod complete;
pub(crate) mod driver;
mod flusher;
mod hang_watch;
mod idle;
mod recycled;
mod requests;
mod round_tasks;
mod schedule;
mod sync;
mod turn;

use std::sync::Arc;

use crate::base::Base;
use crate::devices::DeviceState;
use crate::platform::Platform;
use crate::policy::HangLimits;
use driver::{Driver, FlushOf};
use recycled::RecycledMemory;
use round_tasks::IdleTasks;
pub use turn::FileTurn;

pub(crate) struct Writeback<P: Platform> {
    base: Base<P>,
    driver: Driver,
    spare: RecycledMemory<P>,
    idle_tasks: IdleTasks,
}

impl<P: Platform> Writeback<P> {
    pub(crate) fn new(base: Base<P>, driver: Driver) -> Arc<Self> {
        let (spare, idle_tasks) = (RecycledMemory::default(), IdleTasks::default());
        let writeback = Arc::new(Self { base, driver, spare, idle_tasks });
        if let Driver::Own(driver) = &writeback.driver {
            driver.start(Arc::new(FlushOf(Arc::clone(&writeback))));
        }
        writeback
    }

    /// Starts the device's flusher, and the watch for a hang if the policy wants one.
    pub(crate) fn start(self: &Arc<Self>, device: Arc<DeviceState>) {
        if self.base.ask(&device, |policy, view, own, _| policy.hang_limits(view, own)) != HangLimits::UNNOTICED {
            self.base.platform.spawn("watch", hang_watch::watch(self.base.clone(), Arc::clone(&device)));
        }
        self.base.platform.spawn("flusher", flusher::flush_device(Arc::clone(self), device));
    }

    /// Starts background writeback of the device, or of all.
    pub(crate) fn start_background(self: &Arc<Self>, device: &DeviceState) {
        match &self.driver {
            Driver::FlusherEach => device.flusher().raise(),
            Driver::Own(driver) => driver.kick(Arc::new(FlushOf(Arc::clone(self)))),
        }
    }

    /// Whether the device is over its background threshold: the policy's answer, for its flusher and for drivers.
    fn is_over_background(&self, device: &DeviceState) -> bool {
        self.base.ask(device, |policy, view, own, shared| policy.over_background(view, own, shared))
    }
}
