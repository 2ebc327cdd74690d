//! Background writeback from outside: the primitives, and who drives them.
//!
//! A driver takes a file of a device, writes runs of it, waiting for requests or only trying for them,
//! and puts it back; the engine's own flusher is made of the same steps.
//!
//! Owns: the seam, and the steps as the seam shows them.
//! Does not own: any driver (a pool of pdflush threads is in `linux-policies`); the lists (`device`);
//! syncs, second tries and drains, which the devices' flushers keep.
//! Invariants: a file that was taken is put back, or it is not written again before the next sync:
//! dropping a [`Taken`] puts it back. Whoever writes, a run is claimed only with a request in hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::batch::{Claim, claim};
use super::complete::requeue_as;
use super::device::{DeviceId, DeviceState};
use super::flusher::{BUSY_NS, Batch, come_back};
use super::schedule::FlushReason;
use crate::cache::file::FileInner;
use crate::cache::nodes::Tag;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::platform::{Nanos, Platform};
use crate::policy::View;
use crate::settings::Knob;
use crate::units::centisecs_ns;
use crate::wait::lock;

/// A future on the heap: writeback is no hot path.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Who does background writeback.
#[derive(Clone, Default)]
pub enum Driver {
    /// One flusher a device.
    #[default]
    FlusherEach,
    /// Somebody else, over the same primitives. The devices' flushers still serve syncs, second
    /// tries, drains and those who are short of frames.
    Own(Arc<dyn FlushDriver>),
}

/// Drives background writeback of all devices of one engine.
pub trait FlushDriver: Send + Sync + 'static {
    /// Starts, once, before there is a device. What keeps `flush` keeps the engine: tasks may, the
    /// driver itself may not.
    fn start(&self, flush: Arc<dyn Flush>);

    /// A policy wants background writeback to start. Does not wait.
    fn kick(&self, flush: Arc<dyn Flush>);
}

/// Where a file goes that has more to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PutBack {
    /// Behind the others that had a turn; its age stays (the kernel's `requeue_io`).
    More,
    /// Among the files that have had no turn, as the youngest. If the youngest there has been dirty for less
    /// long, it waits for its age anew; if there is none its age stays (the kernel's `redirty_tail`).
    Redirty,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunEnd {
    /// So many pages are on their way.
    Pages(u64),
    /// The device's queue is congested, and the caller would not wait.
    Congested,
    /// Nothing of the file can be written now: it is clean, in flight, being copied to, or pauses
    /// after a failure. It comes back by itself.
    Nothing,
}

/// What a driver is given.
pub trait Flush: Send + Sync + 'static {
    /// The monotonic time.
    fn now(&self) -> Nanos;
    /// Waits so long.
    fn sleep(&self, ns: u64) -> Boxed<'static, ()>;
    /// Waits until a device's queue stops being congested, at most so long.
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
    /// The value of `dirty_writeback_centisecs` in nanoseconds.
    fn interval_ns(&self) -> u64;
    /// Files of all devices that have something unwritten.
    fn dirty_files(&self) -> u64;
    /// The device's next file; with `dirtied_before`, the next that has been dirty since before then.
    fn take_file(&self, device: DeviceId, dirtied_before: Option<Nanos>) -> Option<Taken>;
    /// Writes the file's next run of dirty pages, at most so many, as one request. Waits for a
    /// request if there is none, or with `wait` false gives up when the queue is congested.
    fn write_run<'a>(&'a self, taken: &'a mut Taken, pages_max: u64, wait: bool) -> Boxed<'a, RunEnd>;
    /// Puts the file back.
    fn put_back(&self, taken: Taken, how: PutBack);
}

/// A file that somebody is writing.
pub struct Taken {
    open: Option<Arc<FileInner>>,
    device: Arc<DeviceState>,
    busy: bool,
    nothing: bool,
    platform_now: Nanos,
    batch: Batch,
}

impl Taken {
    pub(crate) fn next<P: Platform>(
        engine: &Engine<P>,
        device: &Arc<DeviceState>,
        reason: FlushReason,
    ) -> Option<Self> {
        let file = device.next_file(reason)?;
        engine.local().count(Counter::FlusherTurns, 1);
        device.flushing.fetch_add(1, Ordering::Relaxed);
        let platform_now = engine.platform().now();
        let device = Arc::clone(device);
        let batch = Batch::default();
        Some(Self { open: Some(file), device, busy: false, nothing: false, platform_now, batch })
    }

    /// The device it is on.
    pub fn device(&self) -> DeviceId {
        self.device.id
    }

    fn close(&mut self, now: Nanos, how: PutBack) {
        let Some(file) = self.open.take() else { return };
        self.device.flushing.fetch_sub(1, Ordering::Relaxed);
        let mut state = lock(&file.state);
        // Taken off its list; somebody who dirtied it meanwhile relied on that.
        state.queued = false;
        if self.busy {
            come_back(&self.device, &file, &mut state, now.after(BUSY_NS));
            return;
        }
        // What is left waits for a completion or a release, which queue the file.
        if !(self.nothing && (state.in_flight() || state.holds > 0)) {
            requeue_as(&file, &mut state, now, how);
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let now = self.platform_now;
        self.close(now, PutBack::More);
    }
}

impl<P: Platform> Engine<P> {
    /// [`Flush::write_run`].
    pub(crate) async fn write_run(self: &Arc<Self>, taken: &mut Taken, pages_max: u64, wait: bool) -> RunEnd {
        let (Some(file), device) = (taken.open.clone(), Arc::clone(&taken.device)) else {
            return RunEnd::Nothing;
        };
        if wait {
            self.acquire_request(&device, &mut taken.batch).await;
        } else if device.congestion.is_on() || !self.try_acquire_request(&device) {
            return RunEnd::Congested;
        }
        let bytes_max = pages_max.saturating_mul(crate::cache::PAGE_BYTES).max(crate::cache::PAGE_BYTES);
        let request_max = u64::from(device.device.limits().request_bytes_max).min(bytes_max) as u32;
        let claimed = {
            let mut state = lock(&file.state);
            if state.backs_off(self.platform().now()) {
                Claim::Nothing
            } else {
                claim(&file, &mut state, Tag::Dirty, request_max)
            }
        };
        match claimed {
            Claim::Run(run) => {
                let pages = run.pages;
                self.submit_write(&device, &file, run);
                self.platform().between_requests().await;
                RunEnd::Pages(pages)
            }
            Claim::Nothing | Claim::Busy => {
                taken.busy = matches!(claimed, Claim::Busy);
                taken.nothing = true;
                self.release_request(&device);
                RunEnd::Nothing
            }
        }
    }

    /// [`Flush::put_back`].
    pub(crate) fn put_back(&self, mut taken: Taken, how: PutBack) {
        taken.close(self.platform().now(), how);
    }
}

impl<P: Platform> Flush for FlushOf<P> {
    fn now(&self) -> Nanos {
        self.0.platform().now()
    }

    fn sleep(&self, ns: u64) -> Boxed<'static, ()> {
        Box::pin(self.0.platform().sleep_until(self.now().after(ns)))
    }

    fn congestion_clears(&self, ns: u64) -> Boxed<'_, ()> {
        Box::pin(crate::engine::either(self.0.cache().congestion_clears(), self.sleep(ns)))
    }

    fn spawn(&self, name: &'static str, task: Boxed<'static, ()>) {
        self.0.platform().spawn(name, task);
    }

    fn devices(&self) -> Vec<DeviceId> {
        self.0.devices().iter().map(|device| device.id).collect()
    }

    fn view(&self) -> View {
        self.0.view(None, self.0.shared_counts())
    }

    fn over_background(&self, device: DeviceId) -> bool {
        self.0.device(device).is_some_and(|device| self.0.is_over_background(&device))
    }

    fn congested(&self, device: DeviceId) -> bool {
        self.0.device(device).is_some_and(|device| device.congestion.is_on())
    }

    fn expire_ns(&self) -> u64 {
        centisecs_ns(self.0.settings().get(Knob::ExpireCentisecs))
    }

    fn interval_ns(&self) -> u64 {
        centisecs_ns(self.0.settings().get(Knob::WritebackCentisecs))
    }

    fn dirty_files(&self) -> u64 {
        self.0.devices().iter().map(|device| device.unclean_count() as u64).sum()
    }

    fn take_file(&self, device: DeviceId, dirtied_before: Option<Nanos>) -> Option<Taken> {
        let expired = |before| FlushReason::Expired { before };
        let reason = dirtied_before.map_or(FlushReason::Background, expired);
        Taken::next(&self.0, &self.0.device(device)?, reason)
    }

    fn write_run<'a>(&'a self, taken: &'a mut Taken, pages_max: u64, wait: bool) -> Boxed<'a, RunEnd> {
        Box::pin(self.0.write_run(taken, pages_max, wait))
    }

    fn put_back(&self, taken: Taken, how: PutBack) {
        self.0.put_back(taken, how);
    }
}

/// An engine as its driver sees it.
pub(crate) struct FlushOf<P: Platform>(pub(crate) Arc<Engine<P>>);
