//! The snapshot that the policy in force decides from, and asking it.
//!
//! Owns: which counters are read into a view.
//! Does not own: what a view is (`policy`), what follows from an answer.
//! Invariants: each shared counter is read once a snapshot, and only for a policy that needs it. The snapshot is
//! taken before the policy's memory is locked.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::dirty::part_pages;
use crate::engine::Engine;
use crate::platform::Platform;
use crate::policy::{AnyPolicy, Completed, GlobalCounts, Kept, KnobValues, View};
use crate::settings::Knob;
use crate::units::centisecs_ns;
use crate::writeback::device::DeviceState;

/// Least limit in bytes that a policy is told of: two pages, as in the kernel; with one there is no
/// background below it.
const DIRTY_BYTES_MIN: u64 = 8192;

impl<P: Platform> Engine<P> {
    /// A snapshot with the shared counters, if the policy needs them.
    pub(crate) fn view_of(&self, device: Option<&DeviceState>) -> View {
        let needed = self.cache().policy.needs().shared_counters;
        self.view(device, if needed { self.shared_counts() } else { GlobalCounts::default() })
    }

    /// What all devices share: one read of each counter.
    pub(crate) fn shared_counts(&self) -> GlobalCounts {
        let cache = self.cache();
        let free = u64::from(cache.frames.free_count());
        let writeback = cache.dirty.writeback();
        GlobalCounts {
            free,
            reserve: u64::from(cache.frames.low_watermark()),
            inactive_file: u64::from(cache.frames.total()).saturating_sub(free),
            dirty: cache.dirty.held().saturating_sub(writeback),
            writeback,
            ..GlobalCounts::default()
        }
    }

    pub(crate) fn view(&self, device: Option<&DeviceState>, shared: GlobalCounts) -> View {
        let counts = device.map(DeviceState::counts).unwrap_or_default();
        let mut view = View::new(self.platform().now(), shared, counts);
        view.cpus = self.platform().counters().threads().max(1);
        view.memory_pages = u64::from(self.cache().frames.total());
        view.part_pages = part_pages(self.cache());
        view.knobs = self.knob_values(device);
        view
    }

    fn knob_values(&self, device: Option<&DeviceState>) -> KnobValues {
        let settings = &self.cache().settings;
        let knob = |knob| device.map_or_else(|| settings.get(knob), |device| device.knob(settings, knob));
        KnobValues {
            dirty_ratio: settings.get(Knob::DirtyRatio),
            dirty_bytes: match settings.get(Knob::DirtyBytes) {
                0 => 0,
                bytes => bytes.max(DIRTY_BYTES_MIN),
            },
            // A kernel has one for all devices.
            background_ratio: settings.get(Knob::BackgroundRatio),
            background_bytes: settings.get(Knob::BackgroundBytes),
            background_centisecs: knob(Knob::BackgroundCentisecs),
            min_ratio: knob(Knob::MinRatio),
            min_ratio_sum: self.cache().min_ratio_sum.load(Ordering::Relaxed),
            max_ratio: knob(Knob::MaxRatio),
            min_bytes: knob(Knob::MinBytes),
            max_bytes: knob(Knob::MaxBytes),
            strict_limit: knob(Knob::StrictLimit) > 0,
            device_background_ratio: knob(Knob::BackgroundRatio),
            device_background_bytes: knob(Knob::BackgroundBytes),
            slice_bytes: knob(Knob::SliceBytes),
            expire_ns: centisecs_ns(knob(Knob::ExpireCentisecs)),
        }
    }

    /// Asks the policy in force something about a device.
    pub(crate) fn ask_policy<T>(
        &self,
        device: &DeviceState,
        question: impl FnOnce(&dyn AnyPolicy, &View, &mut Kept, &mut Kept) -> T,
    ) -> T {
        let view = self.view_of(Some(device));
        self.cache().policy.ask(&device.memory, |policy, own, shared| question(policy, &view, own, shared))
    }

    /// Whether the device is over its background threshold: for its flusher, for who drives it otherwise.
    pub(crate) fn is_over_background(&self, device: &DeviceState) -> bool {
        self.ask_policy(device, |policy, view, own, shared| policy.over_background(view, &mut **own, &mut **shared))
    }

    /// A write request has ended.
    pub(crate) fn tell_policy(&self, device: &DeviceState, done: &Completed) {
        self.ask_policy(device, |policy, view, own, shared| policy.completed(view, done, &mut **own, &mut **shared));
        self.refresh_room(device);
    }

    /// Asks what may be charged to the device from now on.
    pub(crate) fn refresh_room(&self, device: &DeviceState) {
        let mut view = self.view(Some(device), GlobalCounts::default());
        let guarded = self.cache().policy.needs().memory_guard;
        view.guard_pages = if guarded { device.admission.guard_pages() } else { u64::MAX };
        device.admission.set_room(&self.cache().policy.room(&view, &device.memory));
    }

    /// Knobs or the number of devices have changed.
    pub(crate) fn divide(&self) -> Vec<Arc<DeviceState>> {
        let devices = crate::dirty::divide(self.cache());
        devices.iter().for_each(|device| self.refresh_room(device));
        devices
    }
}
