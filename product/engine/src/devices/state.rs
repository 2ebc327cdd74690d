//! A device of the engine: its lists of dirty files, its requests in flight, its figures.
//!
//! Owns: the lists and their lock, the slots for requests, the admission queue, usage, learned facts.
//! Does not own: the files' pages, the hardware (`Device`), which work is due when (`policy`, `writeback`).
//! Invariants: every file with dirty pages is kept until they are written. This lock comes after a file's. A caller
//! that needs a file's lock for a change here shows the state that the lock guards.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::admission::AdmissionQueue;
use super::agenda::{Agenda, FlusherView};
use super::busy::Kind;
use super::congestion::Congestion;
use super::file::FailedPages;
use super::id::DeviceId;
use super::in_flight::InFlight;
use super::placing::Placing;
use super::purses::Purses;
use super::silence::Silent;
use super::totals::DirtyTotals;
use super::usage::{Place, Usage};
use super::waits::Waits;
use crate::FILE_BYTES_MAX;
use crate::error::DeviceError;
use crate::platform::{Device, Limits, Nanos};
use crate::policy::pauses::PauseTally;
use crate::policy::{DeviceCounts, DeviceMemory, DirtyFiles, Figure, KnobValues, LimitPages, PauseStatus};
use crate::readahead::law::SharedLaw;
use crate::request::Request;
use crate::settings::{DeviceSettings, Knob, Settings, WhichKnob};
use crate::sync::OwnLines;
use crate::units::Pages;
use crate::wait::{Permits, Signal, WaitQueue, lock};

/// A device as the engine keeps it. On cache lines of its own: writers to one device change it at every page.
#[repr(align(128))]
pub(crate) struct DeviceState<F> {
    /// Requests in flight.
    pub(crate) slots: Permits,
    /// Frames held by reads in flight, or about to be: a hung device must not take all frames. Separate from the slots:
    /// a read takes and gives back both.
    pub(crate) reading: Permits,
    pub(crate) id: DeviceId,
    name: String,
    device: Arc<dyn Device>,
    pub(crate) settings: DeviceSettings,
    /// The knobs as policies see them, since a knob last changed.
    knobs_seen: Mutex<KnobValues>,
    /// Dirty pages, including pages under writeback. Changed through `dirty`, which keeps the sum.
    pub(crate) admission: AdmissionQueue,
    pub(crate) in_flight: InFlight,
    totals: Arc<DirtyTotals>,
    pub(super) agenda: Agenda<F>,
    writeback_pages: AtomicU64,
    dirtied_pages: AtomicU64,
    written_pages: AtomicU64,
    /// Requests of writes in flight, or about to be submitted.
    writes_in_flight: AtomicU32,
    congestion: Congestion,
    /// The memory of the policy in force about the device.
    pub(crate) memory: DeviceMemory,
    /// Whether the policy says that the device is over its limit.
    exceeded: AtomicBool,
    pub(crate) pauses: PauseTally,
    /// The waiters, and how long such waits take.
    pub(crate) waits: Waits<F>,
    /// Debts of clients for new files.
    pub(crate) purses: Purses,
    /// Whether the device hangs.
    pub(crate) silence: Silent,
    /// Tasks that wait for a write to end, to take over its request.
    pub(crate) write_ended: WaitQueue,
    /// Whether dirty pages have their place on the device when space gets small.
    pub(crate) placing: Placing,
    files_failed: AtomicU64,
    /// Pages whose last write failed.
    failed_pages: AtomicU64,
    /// Failed pages of files whose writes keep failing.
    failing_pages: AtomicU64,
    /// The room added to the limit for failed pages (`dirty::failing`).
    failed_room: AtomicU64,
    usage: OwnLines<Mutex<Usage>>,
    /// How far to read ahead, given the cost of reads.
    pub(crate) read_law: SharedLaw,
}

impl<F> DeviceState<F> {
    pub(super) fn new(
        id: DeviceId,
        name: &str,
        device: Arc<dyn Device>,
        totals: Arc<DirtyTotals>,
        memory: DeviceMemory,
        settings: DeviceSettings,
    ) -> Self {
        let depth = u64::from(device.limits().depth.max(1));
        Self {
            id,
            name: name.to_owned(),
            device,
            settings,
            knobs_seen: Mutex::default(),
            admission: AdmissionQueue::new(),
            in_flight: InFlight::new(),
            totals,
            slots: Permits::new(depth),
            reading: Permits::new(0),
            agenda: Agenda::new(),
            writeback_pages: AtomicU64::new(0),
            dirtied_pages: AtomicU64::new(0),
            written_pages: AtomicU64::new(0),
            writes_in_flight: AtomicU32::new(0),
            congestion: Congestion::default(),
            memory,
            exceeded: AtomicBool::new(false),
            pauses: PauseTally::default(),
            waits: Waits::default(),
            purses: Purses::default(),
            silence: Silent::new(),
            write_ended: WaitQueue::new(),
            placing: Placing::default(),
            files_failed: AtomicU64::new(0),
            failed_pages: AtomicU64::new(0),
            failing_pages: AtomicU64::new(0),
            failed_room: AtomicU64::new(0),
            read_law: SharedLaw::new(Usage::default().law()),
            usage: OwnLines::default(),
        }
    }

    /// The work of the flusher.
    pub(crate) fn agenda(&self) -> &Agenda<F> {
        &self.agenda
    }

    /// The signal that wakes the flusher.
    pub(crate) fn flusher(&self) -> &Signal {
        &self.agenda.flusher
    }

    /// The limits of the hardware.
    pub(crate) fn limits(&self) -> &Limits {
        self.device.limits()
    }

    /// The most pages that one request may carry.
    pub(crate) fn request_pages(&self) -> u64 {
        Pages::whole_in(u64::from(self.limits().request_bytes_max)).0
    }

    /// Bytes that can still be allocated on the device, as far as it knows.
    pub(crate) fn free_bytes_hint(&self) -> u64 {
        self.device.free_bytes_hint()
    }

    /// Hands a request over. No lock is held: it may complete at once.
    pub(crate) fn submit(&self, request: Request) {
        self.device.submit(request);
    }

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

    /// The most writes in flight: the policy's limit, or the knob's; a quarter of the device's slots is left to
    /// readers.
    pub(crate) fn write_depth(&self, engine: &Settings) -> u32 {
        let depth = self.limits().depth.max(1);
        let most = self.in_flight.allowed().requests_max.unwrap_or(self.knob(engine, Knob::WriteDepth) as u32);
        most.max(1).min((depth - depth / 4).max(1))
    }

    /// Counts one more write in flight, if another is allowed now. Fewer are allowed while the cost in flight is at its
    /// limit, and only syncs' writes while one of these was passed.
    pub(crate) fn try_count_another(&self, engine: &Settings, for_sync: bool) -> bool {
        let depth = self.write_depth(engine);
        let most = self.in_flight.requests_now(depth, self.writeback_pages.load(Ordering::Relaxed));
        (for_sync || !self.in_flight.sync_was_passed()) && self.try_count_write(most, depth)
    }

    pub(crate) fn writes_in_flight(&self) -> u64 {
        u64::from(self.writes_in_flight.load(Ordering::Relaxed))
    }

    /// Pages that are dirty and not under writeback.
    fn reclaimable_pages(&self) -> Pages {
        self.admission.pages().saturating_sub(Pages(self.writeback_pages.load(Ordering::Relaxed)))
    }

    /// Charges pages: dirty, in flight, or about to become dirty.
    pub(crate) fn hold_pages(&self, pages: u64) {
        self.totals.hold(self.id, pages);
    }

    /// Gives charged pages back; writers that wait for them go on.
    pub(crate) fn give_pages_back(&self, pages: u64) {
        self.totals.let_go(self.id, pages);
        self.admission.give_back(Pages(pages));
    }

    /// Gives charged pages back; writers that wait for them go on once the policy has given its room anew.
    pub(crate) fn give_pages_back_unserved(&self, pages: u64) {
        self.totals.let_go(self.id, pages);
        self.admission.give_back_unserved(Pages(pages));
    }

    pub(crate) fn note_dirtied_pages(&self, pages: u64) {
        self.dirtied_pages.fetch_add(pages, Ordering::Relaxed);
    }

    pub(crate) fn note_written_pages(&self, pages: u64) {
        self.written_pages.fetch_add(pages, Ordering::Relaxed);
    }

    pub(crate) fn writeback_begins(&self, pages: u64) {
        self.writeback_pages.fetch_add(pages, Ordering::Relaxed);
        self.totals.writeback_begins(self.id, pages);
    }

    pub(crate) fn writeback_ends(&self, pages: u64) {
        let before = self.writeback_pages.fetch_sub(pages, Ordering::Relaxed);
        debug_assert!(before >= pages, "more pages came back than were under writeback");
        self.totals.writeback_ends(self.id, pages);
    }

    /// Wakes the flusher if the dirty pages not in flight have passed the policy's threshold.
    pub(crate) fn wake_flusher_if_over(&self) {
        if self.admission.may_wake() && self.admission.wakes(self.reclaimable_pages()) {
            self.agenda.flusher.raise();
        }
    }

    /// The flusher leaves dirty pages above that threshold for later, if there are any: more of them will wake it.
    pub(crate) fn wake_flusher_if_more(&self) {
        if self.admission.may_wake() && self.admission.wakes(self.reclaimable_pages()) {
            self.admission.wake_later(self.reclaimable_pages());
        }
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    /// Returns whether the state changes.
    pub(crate) fn set_exceeded(&self, exceeded: bool) -> bool {
        let changes = exceeded != self.is_exceeded();
        if changes {
            self.exceeded.store(exceeded, Ordering::Relaxed);
        }
        changes
    }

    /// Counts one more write in flight unless there are `most`, in a queue of `depth`.
    pub(crate) fn try_count_write(&self, most: u32, depth: u32) -> bool {
        let counted = self
            .writes_in_flight
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < most).then_some(count + 1));
        counted.inspect(|before| self.congestion.grown(before + 1, depth)).is_ok()
    }

    /// Counts one write less in flight, in a queue of `depth`; returns whether that ended a congestion.
    pub(crate) fn uncount_write(&self, depth: u32) -> bool {
        let before = self.writes_in_flight.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "a write ends that was not counted");
        self.congestion.shrunk(before - 1, depth)
    }

    pub(crate) fn is_congested(&self) -> bool {
        self.congestion.is_on()
    }

    /// A write or flush failed, of a file that had no error.
    pub(crate) fn file_fails(&self) {
        self.files_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// A file has no error any more.
    pub(crate) fn file_recovers(&self) {
        self.files_failed.fetch_sub(1, Ordering::Relaxed);
    }

    /// Pages whose last write failed.
    pub(crate) fn failed_pages(&self) -> u64 {
        self.failed_pages.load(Ordering::Relaxed)
    }

    /// Failed pages of files whose writes keep failing.
    pub(crate) fn failing_pages(&self) -> u64 {
        self.failing_pages.load(Ordering::Relaxed)
    }

    /// The failed pages of a file have changed since the last report.
    pub(super) fn note_failed_pages(&self, before: FailedPages, now: FailedPages) {
        // Differences may be below zero: they wrap, and so does the sum.
        self.failed_pages.fetch_add(now.all.wrapping_sub(before.all), Ordering::Relaxed);
        self.failing_pages.fetch_add(now.failing.wrapping_sub(before.failing), Ordering::Relaxed);
    }

    /// Pages that may be dirty on top of the device's limit, because as many failed.
    pub(super) fn failed_room_pages(&self) -> u64 {
        self.failed_room.load(Ordering::Relaxed)
    }

    /// Returns whether the room changes.
    pub(crate) fn set_failed_room(&self, pages: u64) -> bool {
        self.failed_room.swap(pages, Ordering::Relaxed) != pages
    }

    /// The largest size that a file on the device can have.
    pub(crate) fn file_bytes_max(&self) -> u64 {
        self.limits().file_bytes_max.min(FILE_BYTES_MAX)
    }

    /// Whether a sync waits for a turn that goes ahead of all other work.
    pub(crate) fn sync_goes_first(&self) -> bool {
        self.agenda.has_sync() && !self.in_flight.is_sync_ahead()
    }

    /// The view for the flusher's next choice. Files whose pause is over return to their lists first.
    pub(crate) fn flusher_view(&self, now: Nanos, interval_ns: u64) -> FlusherView {
        let (sync_ahead, writers_waiting) = (self.in_flight.is_sync_ahead(), self.admission.waiting() > 0);
        self.agenda.view(now, interval_ns, sync_ahead, writers_waiting)
    }

    pub(crate) fn request_begins(&self, kind: Kind, bytes: u64, now: Nanos) {
        lock(&self.usage).begins(kind, bytes, now);
        self.silence.begins();
    }

    /// A call that moves no bytes has ended.
    pub(crate) fn request_ends(&self, kind: Kind, bytes: u64, moved: bool, now: Nanos) {
        self.transfer_ends(kind, bytes, moved, (now, now));
    }

    /// A transfer that was submitted at an instant has ended at another.
    pub(crate) fn transfer_ends(&self, kind: Kind, bytes: u64, moved: bool, from_to: (Nanos, Nanos)) {
        lock(&self.usage).ends(kind, bytes, moved, from_to);
        self.silence.ends();
    }

    /// Since when the device has completed nothing; `None` if nothing is in flight.
    pub(crate) fn silent_since(&self) -> Option<Nanos> {
        lock(&self.usage).clocks.silent_since()
    }

    /// Stops the watch until a request is in flight; false if one is.
    pub(crate) fn unwatch(&self) -> bool {
        self.silence.set_watched(false);
        let idle = self.silent_since().is_none();
        if !idle {
            self.silence.set_watched(true);
        }
        idle
    }

    /// The device hangs since `since`, and refuses its writers or does not; false if it has gone on.
    pub(crate) fn hangs(&self, since: Nanos, refuses: bool) -> bool {
        let hangs = {
            // A request that ends meanwhile resets this afterwards.
            let usage = lock(&self.usage);
            let hangs = usage.clocks.silent_since() == Some(since);
            if hangs {
                self.silence.set(true, refuses);
            }
            hangs
        };
        if hangs && refuses {
            self.silence.tell();
        }
        hangs
    }

    /// A read from `first` up to a place is about to be submitted. Returns its number of runs: 0 if the device's last
    /// read ended there.
    pub(crate) fn read_begins(&self, first: u64, end: Place, now: Nanos) -> u64 {
        let runs = lock(&self.usage).read_begins(first, end, now);
        self.silence.begins();
        runs
    }

    /// A read of `runs` runs has ended, between these two instants, and moved `bytes` bytes; 0 if it failed.
    pub(crate) fn read_ends(&self, runs: u64, bytes: u64, from_to: (Nanos, Nanos)) {
        let law = lock(&self.usage).read_ends((runs, bytes), from_to);
        if let Some(law) = law {
            self.read_law.set(law);
        }
        self.silence.ends();
    }

    /// A write up to a place is about to be submitted; returns whether the write before it ended at `first`.
    pub(crate) fn writes_on(&self, first: u64, (file, end): Place) -> bool {
        lock(&self.usage).writes_on(file, first, end)
    }

    /// An idle write up to a place is about to be submitted; returns whether the one before it ended at `first`.
    pub(crate) fn idles_on(&self, first: u64, (file, end): Place) -> bool {
        lock(&self.usage).idles_on(file, first, end)
    }

    /// Notes how a write or flush ended. Once several in a row have failed, waiters for the device's room get the error
    /// instead of waiting for room that may never come. `known`: the file's write before failed too, which says nothing
    /// new about the device. Returns whether that began or ended [`DeviceState::keeps_failing`].
    pub(crate) fn note_write(&self, result: Result<u64, DeviceError>, known: bool) -> bool {
        let changes = {
            let mut usage = lock(&self.usage);
            let before = usage.keeps_failing().is_some();
            usage.note_write(result, known);
            usage.keeps_failing().is_some() != before
        };
        if let (Err(error), false) = (result, known) {
            // The waiters check whether their file fails, or the device.
            self.admission.fail(error);
        }
        changes
    }

    /// The error for writers that would wait for room, if the device keeps failing.
    pub(crate) fn keeps_failing(&self) -> Option<DeviceError> {
        lock(&self.usage).keeps_failing()
    }

    /// The error of the last write or flush that failed.
    pub(crate) fn last_write_error(&self) -> Option<DeviceError> {
        lock(&self.usage).last_error
    }

    /// A policy's view of the device, with `pages` pages charged to it.
    pub(super) fn counts(&self, now: Nanos, pages: Pages) -> DeviceCounts {
        let writeback = self.writeback_pages.load(Ordering::Relaxed);
        let mut usage = lock(&self.usage);
        DeviceCounts {
            reclaimable: pages.0.saturating_sub(writeback),
            writeback,
            dirtied: self.dirtied_pages.load(Ordering::Relaxed),
            written: self.written_pages.load(Ordering::Relaxed),
            bandwidth: usage.bandwidth.bytes_per_second().map_or(0, |bytes| Pages::whole_in(bytes).0),
            flushing: self.agenda.has_turns(),
            runs: self.admission.runs(),
            bytes_in_flight: usage.write_bytes_in_flight,
            writes_in_flight: self.writes_in_flight(),
            runs_in_flight: self.in_flight.runs(),
            reads_in_flight: u64::from(usage.clocks.reads_in_flight()),
            calls_in_flight: u64::from(usage.clocks.calls_in_flight()),
            waited_for_at: usage.waited_for_at,
            read_bytes: usage.read_bytes,
            busy: usage.clocks.times(now),
            oldest_in_flight: usage.clocks.oldest(),
            payers_waiting: self.waits.payers_waiting(),
        }
    }

    /// The device's status; `limits` and `figures` are the policy's.
    pub(crate) fn status(&self, limits: LimitPages, figures: Vec<Figure>, now: Nanos) -> DeviceStatus {
        let (dirty_pages, files_dirty) = (self.admission.pages(), self.agenda.unclean_count() as u32);
        let mut usage = lock(&self.usage);
        DeviceStatus {
            id: self.id,
            name: self.name.clone(),
            dirty_bytes: dirty_pages.bytes(),
            dirty_runs: self.admission.runs(),
            writeback_bytes: Pages(self.writeback_pages.load(Ordering::Relaxed)).bytes(),
            dirty_limit_bytes: Pages(limits.dirty).bytes(),
            dirtied_bytes: Pages(self.dirtied_pages.load(Ordering::Relaxed)).bytes(),
            written_bytes: usage.written_bytes,
            read_bytes: usage.read_bytes,
            busy_ns: usage.clocks.any_ns(now),
            in_flight: usage.clocks.in_flight(),
            writers_waiting: self.pauses.waiting() as u32,
            files_dirty,
            files_failed: self.files_failed.load(Ordering::Relaxed) as u32,
            last_error: usage.last_error,
            background_threshold_bytes: Pages(limits.background).bytes(),
            write_bandwidth_bytes_per_s: limits
                .bandwidth
                .map(|pages| Pages(pages).bytes())
                .or(usage.bandwidth.bytes_per_second()),
            pauses: self.pauses.status(),
            figures,
            stalled_ns: usage.clocks.silent_since().filter(|_| self.silence.is_stalled()).map(|since| now.since(since)),
            refuses: self.silence.refuses(),
        }
    }
}

/// The status of a device.
#[derive(Clone, Debug)]
pub struct DeviceStatus {
    /// Its number.
    pub id: DeviceId,
    /// Its name.
    pub name: String,
    /// Bytes not yet written, including bytes being written.
    pub dirty_bytes: u64,
    /// Their runs: consecutive dirty pages of a file, and requests in flight that continue no other.
    pub dirty_runs: u64,
    /// Bytes being written.
    pub writeback_bytes: u64,
    /// Dirty bytes above which writers to this device wait.
    pub dirty_limit_bytes: u64,
    /// Bytes dirtied since the engine started. (The kernel's BdiDirtied.)
    pub dirtied_bytes: u64,
    /// Bytes written since the engine started.
    pub written_bytes: u64,
    /// Bytes read since the engine started.
    pub read_bytes: u64,
    /// Time during which at least one request was in flight.
    pub busy_ns: u64,
    /// Requests in flight.
    pub in_flight: u32,
    /// Writers waiting for the dirty limit.
    pub writers_waiting: u32,
    /// Files with unwritten data.
    pub files_dirty: u32,
    /// Files whose last write or flush failed and has not succeeded since.
    pub files_failed: u32,
    /// The last error of a write or flush.
    pub last_error: Option<DeviceError>,
    /// Dirty bytes above which its flusher starts to write: the lowest of the thresholds in force, so
    /// that it moves with the bandwidth while one is a time. (The kernel's BackgroundThresh.)
    pub background_threshold_bytes: u64,
    /// Bytes a second that the device writes, as the policy in force estimates it. If the policy makes no estimate, as
    /// measured while the device has work. Unknown at first. (The kernel's BdiWriteBandwidth.)
    pub write_bandwidth_bytes_per_s: Option<u64>,
    /// Writers' pauses by cause, as far as there were any.
    pub pauses: Vec<PauseStatus>,
    /// Figures of the policy in force about the device.
    pub figures: Vec<Figure>,
    /// How long the device has completed nothing, if it counts as hung.
    pub stalled_ns: Option<u64>,
    /// Its writers and syncs are refused until it completes something.
    pub refuses: bool,
}
