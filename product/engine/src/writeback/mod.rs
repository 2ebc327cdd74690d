//! Writeback: dirty pages become durable.
//!
//! Owns: one flusher a device, the choice and size of its next write, the effect of a finished write on its pages,
//! syncs.
//! Does not own: how pages get dirty (`writing`), how long writers wait (`throttle`), which amounts are too much
//! (`policy`).
//! Invariants: a task that submits writes has a free request in hand before it claims pages. A page that failed to
//! write stays dirty and its file says so until it has been written.

mod at_once;
mod batch;
mod beside;
mod complete;
mod flusher;
mod hang_watch;
mod idle;
mod in_call;
mod overdue;
mod recycled;
mod requests;
mod round_tasks;
mod schedule;
mod sync;
mod turn;
mod unwritten;

use std::sync::{Arc, Mutex};

use afflux_device::devices::DeviceState;
use afflux_device::platform::Platform;
use afflux_device::policy::HangLimits;

use crate::base::Base;
use crate::recycler::Recycler;
use recycled::RecycledMemory;

pub(crate) struct Writeback<P: Platform> {
    pub(crate) base: Base<P>,
    spare: RecycledMemory<P>,
    idle_tasks: Recycler<Arc<round_tasks::IdleTask>>,
    /// Held while a range gets its place in the order, so that no two make a circle.
    pub(crate) ordering: Mutex<()>,
}

impl<P: Platform> Writeback<P> {
    pub(crate) fn new(base: Base<P>) -> Arc<Self> {
        let (spare, idle_tasks) = (RecycledMemory::default(), Recycler::new(round_tasks::IDLE_MAX));
        Arc::new(Self { base, spare, idle_tasks, ordering: Mutex::default() })
    }

    /// Starts the device's flusher, and the watch for a hang if the policy wants one.
    pub(crate) fn start(self: &Arc<Self>, device: Arc<DeviceState>) {
        if self.base.ask(&device, |policy, view, own, _| policy.hang_limits(view, own)) != HangLimits::UNNOTICED {
            self.base.platform.spawn("watch", hang_watch::watch(self.base.clone(), Arc::clone(&device)));
        }
        self.base.platform.spawn_for_device("flusher", flusher::flush_device(Arc::clone(self), device));
    }
}
