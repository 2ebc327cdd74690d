//! Background writeback by a kernel's own threads, and by writers: the primitives, and what uses them.
//!
//! A thread takes a file of a device, writes runs of it, and puts it back. For each run it waits for a request, or only
//! tries to get one. The engine's own flusher takes the same steps (`writeback`).
//!
//! Owns: the seam, its steps as futures on the heap, a writer's writeback.
//! Does not own: any threads (a pool of pdflush threads is in `linux-policies`); the lists (`devices`); syncs, retries
//! and drains, which the devices' flushers serve.
//! Invariants: a [`Flush`] keeps the engine alive.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::OldKernel;
use crate::devices::{DeviceId, DeviceState};
use crate::platform::{Nanos, Platform};
use crate::policy::{Next, Turn, View};
use crate::settings::Knob;
use crate::units::Pages;
use crate::wait::either;
use crate::writeback::{FileTurn, Writeback, Wrote};

/// A future on the heap: writeback is not a hot path.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where a file with more to write goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PutBack {
    /// Behind the other files that had a turn; the file's age stays (the kernel's `requeue_io`).
    More,
    /// Among the files that have had no turn, as the youngest. The file's age starts anew if the youngest file there
    /// became dirty later; if no file is there, its age stays (the kernel's `redirty_tail`).
    Redirty,
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

/// The interface for a kernel's threads.
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
        Box::pin(either(self.0.base.devices.old_kernel.congestion_clears(), self.sleep(ns)))
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
        let turn = dirtied_before.map_or(Turn::InTurn, |before| Turn::Old { before });
        self.0.take(&self.0.base.devices.get(device)?, turn)
    }

    fn write_run<'a>(&'a self, taken: &'a mut FileTurn, pages_max: u64, wait: bool) -> Boxed<'a, RunEnd> {
        let bytes_max = Pages(pages_max).bytes();
        Box::pin(async move {
            let wrote = if wait {
                self.0.write_run(taken, bytes_max).await
            } else {
                let Ok(wrote) = self.0.try_write_run(taken, bytes_max).await else { return RunEnd::Congested };
                wrote
            };
            wrote.map_or(RunEnd::Nothing, |wrote| RunEnd::Pages(wrote.pages))
        })
    }

    fn put_back(&self, mut taken: FileTurn, how: PutBack) {
        taken.redirties(how == PutBack::Redirty);
        self.0.put_back(taken);
    }
}

/// The queue is congested.
struct Congested;

/// Writeback as a kernel's threads see it.
pub(crate) struct FlushOf<P: Platform>(pub(crate) Arc<Writeback<P>>);

impl<P: Platform> Writeback<P> {
    fn threads(&self) -> Option<&Arc<dyn OldKernel>> {
        self.old_kernel.as_ref().filter(|kernel| kernel.has_own_threads())
    }

    /// The next step of a device's flusher beside a kernel's threads: only mandatory work.
    pub(crate) fn next_beside_threads(&self, pressed: bool) -> Option<Next> {
        let next = if pressed { Next::Turn(Turn::InTurn) } else { Next::WaitUntil(Nanos::NEVER) };
        self.threads().map(|_| next)
    }

    /// Starts background writeback of the device, or of all.
    pub(super) fn start_background(self: &Arc<Self>, device: &DeviceState) {
        match self.threads() {
            None => device.flusher().raise(),
            Some(kernel) => kernel.kick(Arc::new(FlushOf(Arc::clone(self)))),
        }
    }

    /// Whether the device is over its background threshold: the law's answer, for its flusher and for threads.
    fn is_over_background(&self, device: &DeviceState) -> bool {
        self.base.ask(device, |policy, view, own, shared| policy.over_background(view, own, shared))
    }

    /// Writes the file's next run if a request is free; an error if the queue is congested.
    async fn try_write_run(self: &Arc<Self>, taken: &mut FileTurn, bytes_max: u64) -> Result<Option<Wrote>, Congested> {
        let Some(file) = taken.file() else { return Ok(None) };
        let for_sync = taken.is_for_sync();
        if file.device.requests().is_congested() || !self.try_acquire_request(&file.device, for_sync) {
            return Err(Congested);
        }
        Ok(self.write_run_of(&file, taken, bytes_max, false).await)
    }

    /// Takes a write request if one is free.
    fn try_acquire_request(&self, device: &DeviceState, for_sync: bool) -> bool {
        // The slot first: a counted write without a slot would look like congestion that clears.
        if !device.slots().try_take(1) {
            return false;
        }
        let counted = device.try_count_another(self.base.settings(), for_sync);
        if !counted {
            device.slots().give_back(1);
        }
        counted
    }

    /// Writes up to `pages` pages of the device in a writer's place, waiting for requests; returns how many. Ends early
    /// if no more can be written now.
    pub(super) async fn write_back(self: &Arc<Self>, device: &Arc<DeviceState>, pages: u64) -> u64 {
        let mut written = 0;
        // A file has another turn only if it gave pages in the last.
        let mut turns_left = device.agenda().unclean_count();
        while written < pages && turns_left > 0 {
            let Some(mut taken) = self.take(device, Turn::InTurn) else {
                break;
            };
            let before = written;
            while written < pages {
                let wrote = self.write_run(&mut taken, Pages(pages - written).bytes()).await;
                let Some(wrote) = wrote else { break };
                written += wrote.pages;
            }
            self.put_back(taken);
            turns_left -= usize::from(written == before);
        }
        written
    }
}
