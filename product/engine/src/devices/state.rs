//! A device of the engine, with its parts.
//!
//! Owns: the parts, what joins them, the hardware, the device's knobs, the policy's memory about the device; whether
//! its dirty pages have space reserved there, once space gets small.
//! Does not own: the files' pages, which work is due when (policies, `writeback`), the pass that reserves space for
//! pages (`writing`).
//! Invariants: a device names no type of files. The lock of a part is taken after a file's, and no two parts' locks are
//! held together. One pass of reservations runs at a time. Its end wakes all waiters, also if it failed.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use afflux_device::FILE_BYTES_MAX;
use afflux_device::error::DeviceError;
use afflux_device::platform::{Device, DeviceReport, Limits, Nanos};
use afflux_device::policy::KnobValues;
use afflux_device::settings::{DeviceSettings, PageKnob, Settings, WhichKnob};
use afflux_pages::units::PageCount;
use afflux_pages::wait::{Permits, Signal, WaitQueue, lock};

use crate::devices::active_policy::LockedMemory;
use crate::devices::admission::AdmissionQueue;
use crate::devices::charges::{Charges, DeviceId, DirtyTotals};
use crate::devices::failures::Failures;
use crate::devices::hang::HangState;
use crate::devices::in_flight::{InFlight, Requests, Terms};
use crate::devices::payer::ClientPayers;
use crate::devices::usage::Ends;
use crate::devices::waits::Waits;
use crate::devices::worklist::{FlusherView, Worklist};
use crate::readahead::Openings;

/// A device with files of the type `F`. On cache lines of its own: writers to one device change it at every page.
#[repr(align(128))]
pub(crate) struct DeviceState<F> {
    id: DeviceId,
    pub(super) name: String,
    /// The device itself. No lock is held at its calls: a request may complete at once.
    pub hardware: Arc<dyn Device>,
    /// The device's own values of knobs.
    pub settings: DeviceSettings,
    /// The knobs as policies see them, since a knob last changed.
    knobs_seen: Mutex<KnobValues>,
    /// The pages charged to the device.
    pub charges: Charges,
    pub(super) requests: Requests,
    /// The requests in flight and their sums, and the policy's limits on them.
    pub in_flight: InFlight,
    pub(super) worklist: Worklist<F>,
    /// What openings of files may read ahead.
    pub openings: Openings,
    /// Its failed requests.
    pub failures: Failures,
    /// Ends of requests that the policy does not know yet.
    pub(super) ends: Ends,
    /// The memory of the policy in force about the device.
    pub memory: LockedMemory,
    /// The refusals that the device has reported, as far as the policy knows them.
    too_many: AtomicU64,
    /// The waiters, and how long such waits take.
    pub waits: Waits,
    /// Debts of clients for new files.
    pub client_payers: ClientPayers,
    /// Whether dirty pages have space reserved on the device when space gets small.
    pub placing: Placing,
}

impl<F> DeviceState<F> {
    pub(super) fn new(
        id: DeviceId,
        name: &str,
        device: Arc<dyn Device>,
        totals: Arc<DirtyTotals>,
        memory: LockedMemory,
        settings: DeviceSettings,
    ) -> Self {
        let (depth, is_store) = (device.limits().depth.max(1), device.limits().is_store());
        let in_flight = InFlight::new(depth, is_store);
        Self {
            id,
            name: name.to_owned(),
            hardware: device,
            settings,
            knobs_seen: Mutex::default(),
            charges: Charges::new(id, totals, in_flight.hang.stalled()),
            requests: Requests::new(depth),
            in_flight,
            worklist: Worklist::new(),
            openings: Openings::new(),
            failures: Failures::default(),
            ends: Ends::new(),
            memory,
            too_many: AtomicU64::new(0),
            waits: Waits::default(),
            client_payers: ClientPayers::default(),
            placing: Placing::default(),
        }
    }

    /// Number of the device in its engine.
    pub(crate) fn id(&self) -> DeviceId {
        self.id
    }

    /// The requests in flight.
    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// The work of the flusher.
    pub(crate) fn worklist(&self) -> &Worklist<F> {
        &self.worklist
    }

    /// The queue of writers for dirty pages.
    pub(crate) fn admission(&self) -> &AdmissionQueue {
        &self.charges.admission
    }

    /// The slots for requests.
    pub(crate) fn slots(&self) -> &Permits {
        &self.requests.slots
    }

    /// Frames held by reads in flight, or about to be: a hung device must not take all frames. Separate from the slots:
    /// a read takes and gives back both.
    pub(crate) fn read_frames(&self) -> &Permits {
        &self.requests.read_frames
    }

    /// Whether it hangs.
    pub(crate) fn hang(&self) -> &HangState {
        &self.in_flight.hang
    }

    /// The signal that wakes its flusher.
    pub(crate) fn flusher(&self) -> &Signal {
        &self.worklist.flusher
    }

    /// The limits of the hardware.
    pub(crate) fn limits(&self) -> &Limits {
        self.hardware.limits()
    }

    /// The most pages that one request may carry.
    pub(crate) fn request_pages(&self) -> u64 {
        PageCount::whole_in(u64::from(self.limits().request_bytes_max)).0
    }

    /// The most cached pages between absent ones that a request reads again. Only a store gains by that: its requests
    /// are dear. A disk takes the same time for a short gap as for a leap, and its bytes would be more.
    pub(crate) fn read_through_pages(&self) -> u64 {
        if self.limits().is_store() { self.in_flight.read_windows().gap } else { 0 }
    }

    /// Bytes that can still be allocated on the device, as far as it knows.
    pub(crate) fn free_bytes_hint(&self) -> u64 {
        self.hardware.free_bytes_hint()
    }

    /// The device's own word on its state.
    pub(super) fn report(&self) -> DeviceReport {
        self.hardware.report()
    }

    /// Whether a limit may refuse accepted bytes when they are written.
    pub(crate) fn may_refuse_late(&self) -> bool {
        self.report().refuses_late
    }

    /// Whether the device has been refused a request since the last call, because its store gets too many.
    pub(crate) fn take_too_many(&self) -> bool {
        let reported = self.hardware.too_many();
        self.too_many.swap(reported, Ordering::Relaxed) < reported
    }

    /// The value of a knob that is in force for the device: its own, or the engine's.
    pub(crate) fn knob(&self, engine: &Settings, knob: impl WhichKnob) -> u64 {
        self.settings.get(engine, knob)
    }

    /// The knobs as policies see them.
    pub(super) fn knobs_seen(&self) -> MutexGuard<'_, KnobValues> {
        lock(&self.knobs_seen)
    }

    /// A knob may have changed.
    pub(super) fn show_knobs(&self, values: KnobValues) {
        *lock(&self.knobs_seen) = values;
    }

    /// The value of a knob that is a time, in nanoseconds.
    pub(crate) fn knob_ns(&self, engine: &Settings, knob: impl WhichKnob) -> u64 {
        let knob = knob.id(engine);
        engine.info(knob).ns(self.knob(engine, knob))
    }

    /// The most writes in flight: the policy's limit, or the knob's; a quarter of the device's slots is reserved for
    /// readers.
    pub(crate) fn write_depth(&self, engine: &Settings) -> u32 {
        self.write_depth_by(&self.in_flight.terms(), engine)
    }

    fn write_depth_by(&self, terms: &Terms, engine: &Settings) -> u32 {
        let depth = self.limits().depth.max(1);
        let by_knob = || self.knob(engine, PageKnob::WriteDepth) as u32;
        let most = terms.flight.requests_max.unwrap_or_else(by_knob);
        most.max(1).min((depth - depth / 4).max(1))
    }

    /// Whether one more write may be in flight now, for another reason than a sync.
    pub(crate) fn may_send_write(&self, engine: &Settings) -> bool {
        let terms = self.in_flight.terms();
        let depth = self.write_depth_by(&terms, engine);
        let most = self.in_flight.requests_now(&terms, depth, self.charges.writeback());
        !self.in_flight.was_sync_passed() && self.requests.writes() < u64::from(most)
    }

    /// Whether a task waits to submit a request, or a writer to be admitted.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.in_flight.is_waited_for() || self.slots().are_waited_for() || self.admission().waiting() > 0
    }

    /// Counts one more write in flight, if another is allowed now. Fewer are allowed while the cost in flight is at its
    /// limit, and only syncs' writes while one of these was passed.
    pub(crate) fn try_count_another(&self, terms: &Terms, engine: &Settings, for_sync: bool) -> bool {
        let depth = self.write_depth_by(terms, engine);
        let most = self.in_flight.requests_now(terms, depth, self.charges.writeback());
        let passes = for_sync && terms.flight.syncs_pass;
        let most = if passes { (most * 2).min(depth) } else { most };
        (for_sync || !self.in_flight.was_sync_passed()) && self.requests.try_count_write(most)
    }

    /// Wakes the flusher if the dirty pages not in flight have passed the policy's threshold.
    pub(crate) fn wake_flusher_if_over(&self) {
        if self.charges.needs_wake() {
            self.worklist.flusher.raise();
        }
    }

    /// The largest size that a file on the device can have.
    pub(crate) fn file_bytes_max(&self) -> u64 {
        self.limits().file_bytes_max.min(FILE_BYTES_MAX)
    }

    /// The view for the flusher's next choice. Files whose pause is over return to their lists first.
    pub(crate) fn flusher_view(&self, now: Nanos, interval_ns: u64) -> FlusherView {
        let (sync_ahead, writers_waiting) = (self.in_flight.is_sync_ahead(), self.admission().waiting() > 0);
        self.worklist.view(now, interval_ns, sync_ahead, writers_waiting)
    }

    /// Whether a sync waits for a slice that goes ahead of all other work.
    pub(crate) fn should_sync_go_first(&self) -> bool {
        self.worklist.has_sync() && !self.in_flight.is_sync_ahead()
    }

    /// Notes how a write or flush ended. Once several in a row have failed, waiters in the device's line are refused
    /// instead of waiting for releases that may never come. `known`: the file's write or flush before failed too, which
    /// says nothing new about the device. Returns whether that began or ended [`Failures::keeps_failing`].
    pub(crate) fn note_write(&self, result: Result<(), DeviceError>, known: bool) -> bool {
        let changes = self.failures.note(result, known);
        if changes && result.is_err() {
            self.admission().device_changed();
        }
        changes
    }
}

/// There is plenty of space: no writer reserves.
const PLENTY: u8 = 0;
/// A pass reserves space for dirty pages.
const RUNNING: u8 = 1;
/// The pass has ended.
const ENDED: u8 = 2;

/// The stage of one device.
#[derive(Default)]
pub(crate) struct Placing {
    stage: AtomicU8,
    ended: WaitQueue,
}

impl Placing {
    /// Whether a pass has begun since there was plenty of space.
    pub(crate) fn has_begun(&self) -> bool {
        self.stage.load(Ordering::Acquire) != PLENTY
    }

    /// There is plenty of space again. When it gets small the next time, a new pass runs.
    pub(crate) fn forget(&self) {
        let _ = self.stage.compare_exchange(ENDED, PLENTY, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether the caller has to run the pass.
    pub(crate) fn try_begin(&self) -> bool {
        self.stage.compare_exchange(PLENTY, RUNNING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The pass has ended.
    pub(crate) fn ends(&self) {
        self.stage.store(ENDED, Ordering::Release);
        self.ended.wake_all();
    }

    /// Waits while a pass runs.
    pub(crate) async fn wait(&self) {
        self.ended.until(|| (self.stage.load(Ordering::Acquire) != RUNNING).then_some(())).await;
    }
}
