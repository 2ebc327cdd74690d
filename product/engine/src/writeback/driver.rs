//! Background writeback from outside: the primitives for a driver.
//!
//! A driver takes a file of a device, writes runs of it, and puts it back. For each run it waits for a request, or only
//! tries to get one. The engine's own flusher takes the same steps (`turn`).
//!
//! Owns: the seam, and its steps as futures on the heap.
//! Does not own: any driver (a pool of pdflush threads is in `linux-policies`); the lists (`devices`); syncs, retries
//! and drains, which the devices' flushers serve.
//! Invariants: a [`Flush`] keeps the engine alive.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::Writeback;
use super::turn::{FileTurn, Patience, Step};
use crate::devices::{DeviceId, FlushReason, PutBack};
use crate::platform::{Nanos, Platform};
use crate::policy::View;
use crate::settings::Knob;
use crate::units::Pages;
use crate::wait::either;

/// A future on the heap: writeback is not a hot path.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The driver of background writeback.
#[derive(Clone, Default)]
pub enum Driver {
    /// One flusher a device.
    #[default]
    FlusherEach,
    /// An external driver, over the same primitives. The devices' flushers still serve syncs, retries, drains and tasks
    /// that are short of frames.
    Own(Arc<dyn FlushDriver>),
}

/// Drives background writeback of all devices of one engine.
pub trait FlushDriver: Send + Sync + 'static {
    /// Starts the driver, once, before there is a device. `flush` keeps the engine alive: tasks may hold it, the driver
    /// itself must not.
    fn start(&self, flush: Arc<dyn Flush>);

    /// A policy wants background writeback to start. Does not wait.
    fn kick(&self, flush: Arc<dyn Flush>);
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunEnd {
    /// So many pages were submitted.
    Pages(u64),
    /// The device's queue is congested, and the caller would not wait.
    Congested,
    /// Nothing of the file can be written now: it is clean, in flight, being copied to, or pauses after a failure. It
    /// returns to its list by itself.
    Nothing,
}

/// The interface for a driver.
pub trait Flush: Send + Sync + 'static {
    /// The monotonic time.
    fn now(&self) -> Nanos;
    /// Waits for `ns`.
    fn sleep(&self, ns: u64) -> Boxed<'static, ()>;
    /// Waits until a device's queue stops being congested, at most `ns`.
    fn congestion_clears(&self, ns: u64) -> Boxed<'_, ()>;
    /// Starts a task.
    fn spawn(&self, name: &'static str, task: Boxed<'static, ()>);
    /// The devices, always in the same order.
    fn devices(&self) -> Vec<DeviceId>;
    /// The shared counters; those of a device are zero.
    fn view(&self) -> View;
    /// Whether the policy in force wants background writeback of the device to go on.
    fn over_background(&self, device: DeviceId) -> bool;
    /// Whether the device's queue is congested.
    fn congested(&self, device: DeviceId) -> bool;
    /// The value of `dirty_expire_centisecs` in nanoseconds.
    fn expire_ns(&self) -> u64;
    /// The value of `dirty_writeback_centisecs` in nanoseconds; `None` is off.
    fn interval_ns(&self) -> Option<u64>;
    /// The number of files with unwritten data, on all devices.
    fn dirty_files(&self) -> u64;
    /// The device's next file; with `dirtied_before`, the next that has been dirty since before then.
    fn take_file(&self, device: DeviceId, dirtied_before: Option<Nanos>) -> Option<FileTurn>;
    /// Writes the file's next run of dirty pages, at most `pages_max`, as one request. Waits for a request if there is
    /// none, or with `wait` false gives up when the queue is congested.
    fn write_run<'a>(&'a self, taken: &'a mut FileTurn, pages_max: u64, wait: bool) -> Boxed<'a, RunEnd>;
    /// Puts the file back.
    fn put_back(&self, taken: FileTurn, how: PutBack);
}

impl<P: Platform> Flush for FlushOf<P> {
    fn now(&self) -> Nanos {
        self.0.base.now()
    }

    fn sleep(&self, ns: u64) -> Boxed<'static, ()> {
        Box::pin(self.0.base.sleep_until(self.now().after(ns)))
    }

    fn congestion_clears(&self, ns: u64) -> Boxed<'_, ()> {
        Box::pin(either(self.0.base.devices.congestion_clears(), self.sleep(ns)))
    }

    fn spawn(&self, name: &'static str, task: Boxed<'static, ()>) {
        self.0.base.platform.spawn(name, task);
    }

    fn devices(&self) -> Vec<DeviceId> {
        self.0.base.devices.all().iter().map(|device| device.id()).collect()
    }

    fn view(&self) -> View {
        self.0.base.devices.view_of_none(self.0.base.moment())
    }

    fn over_background(&self, device: DeviceId) -> bool {
        self.0.base.devices.get(device).is_some_and(|device| self.0.is_over_background(&device))
    }

    fn congested(&self, device: DeviceId) -> bool {
        self.0.base.devices.get(device).is_some_and(|device| device.requests().is_congested())
    }

    fn expire_ns(&self) -> u64 {
        self.0.base.settings().ns(Knob::ExpireCentisecs)
    }

    fn interval_ns(&self) -> Option<u64> {
        self.0.base.devices.look_ns()
    }

    fn dirty_files(&self) -> u64 {
        self.0.base.devices.all().iter().map(|device| device.agenda().unclean_count() as u64).sum()
    }

    fn take_file(&self, device: DeviceId, dirtied_before: Option<Nanos>) -> Option<FileTurn> {
        let expired = |before| FlushReason::Expired { before };
        let reason = dirtied_before.map_or(FlushReason::Background, expired);
        self.0.take(&self.0.base.devices.get(device)?, reason)
    }

    fn write_run<'a>(&'a self, taken: &'a mut FileTurn, pages_max: u64, wait: bool) -> Boxed<'a, RunEnd> {
        let patience = if wait { Patience::Wait } else { Patience::Try };
        Box::pin(async move {
            match self.0.write_run(taken, Pages(pages_max).bytes(), patience).await {
                Step::Wrote { pages, .. } => RunEnd::Pages(pages),
                Step::Congested => RunEnd::Congested,
                Step::Ended => RunEnd::Nothing,
            }
        })
    }

    fn put_back(&self, taken: FileTurn, how: PutBack) {
        self.0.put_back(taken, how);
    }
}

/// Writeback as its driver sees it.
pub(super) struct FlushOf<P: Platform>(pub(super) Arc<Writeback<P>>);
