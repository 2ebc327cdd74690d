//! The base of every mechanism: the world, the cache, the devices, the trace.
//!
//! Owns: the four, together. Does not own: any mechanism.
//! Invariants: every mechanism has the base. A mechanism has another only downward: reclaim, writeback, throttle,
//! reading, writing, reshape.

use std::any::Any;
use std::sync::Arc;

use afflux_device::client::Client;
use afflux_device::counters::Local;
use afflux_device::platform::{Nanos, Platform};
use afflux_device::policy::{AnyPolicy, View};
use afflux_device::settings::Settings;
use afflux_pages::cache::PageCache;
use afflux_pages::rare::Rare;

use crate::devices::file::FileInner;
use crate::devices::{DeviceId, DeviceState, Devices, Moment};
use crate::trace::{EngineEvent, Traced, TracedFile, Tracer};

pub(crate) struct Base<P: Platform> {
    pub(crate) platform: Arc<P>,
    pub(crate) cache: Arc<PageCache>,
    pub(crate) devices: Arc<Devices>,
    pub(crate) tracer: Arc<Tracer>,
}

impl<P: Platform> Clone for Base<P> {
    fn clone(&self) -> Self {
        Self {
            platform: Arc::clone(&self.platform),
            cache: Arc::clone(&self.cache),
            devices: Arc::clone(&self.devices),
            tracer: Arc::clone(&self.tracer),
        }
    }
}

impl<P: Platform> Base<P> {
    pub(crate) fn now(&self) -> Nanos {
        self.platform.now()
    }

    pub(crate) fn local(&self) -> &Local {
        self.platform.local()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.devices.settings
    }

    pub(crate) fn moment(&self) -> Moment {
        self.moment_at(self.now())
    }

    /// The moment of an instant that was read from the clock already.
    pub(crate) fn moment_at(&self, now: Nanos) -> Moment {
        Moment { now, cpus: self.platform.counters().threads() }
    }

    /// Traces an event of a file at this instant, if anybody follows the trace.
    #[inline]
    pub(crate) fn trace_file(
        &self,
        at: Nanos,
        file: &Arc<FileInner>,
        client: Option<&Client>,
        event: impl FnOnce() -> EngineEvent,
    ) {
        self.tracer.note(|| Traced {
            at,
            device: Some(file.device.id()),
            file: Some(TracedFile::of(file)),
            client: client.cloned(),
            event: event(),
        });
    }

    pub(crate) fn trace_device(&self, device: Option<DeviceId>, event: impl FnOnce() -> EngineEvent) {
        self.tracer.note(|| Traced { at: self.now(), device, file: None, client: None, event: event() });
    }

    /// Asks the policy in force something about a device.
    pub(crate) fn ask<T>(
        &self,
        device: &DeviceState,
        question: impl FnOnce(&dyn AnyPolicy, &View, &mut dyn Any, &mut dyn Any) -> T,
    ) -> T {
        self.devices.ask(device, self.moment(), question)
    }

    /// Waits until this instant.
    pub(crate) fn sleep_until(&self, deadline: Nanos) -> impl Future<Output = ()> + Send + 'static {
        self.platform.sleep_until(deadline)
    }

    /// Lets other tasks run.
    pub(crate) async fn pass(&self) {
        self.platform.preemption_point().await;
    }

    /// Lets other tasks run, if that is forced.
    pub(crate) async fn rare_yield(&self) {
        if self.cache.rare.is_forced(Rare::Yield) {
            self.pass().await;
        }
    }
}
