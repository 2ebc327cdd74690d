//! The pages charged to a device, their path to the device, and the dirty data of all devices together.
//!
//! Owns: the admission queue, the pages under writeback; the sums over all devices, in as many parts as cache lines;
//! the number of devices, and the equal part of each; the number of writers in admission queues.
//! Does not own: the limits' formulas (`dirty`, policies), the pages.
//! Invariants: each change of a count here that is also part of a sum changes both. A device changes its own part only,
//! so that writers to different devices do not meet. A sum reads each part once; parts may change meanwhile. If a wait
//! begins during a release, at least one of the two observes the other: each writes the word that the other reads, and
//! a fence stands in between. A device's number is never reused.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use afflux_pages::rare::Number;
use afflux_pages::sync::OwnLines;
use afflux_pages::sync::atomic::{AtomicU64, Ordering, fence};
use afflux_pages::units::PageCount;

use crate::devices::admission::AdmissionQueue;
use crate::devices::failures::Unwritable;

pub(crate) struct Charges {
    device: DeviceId,
    /// Dirty pages, including pages under writeback.
    pub(super) admission: AdmissionQueue,
    /// Of the dirty pages, those that cannot be written now.
    pub unwritable: Arc<Unwritable>,
    totals: Arc<DirtyTotals>,
    writeback_pages: AtomicU64,
    dirtied_pages: AtomicU64,
    written_pages: AtomicU64,
}

impl Charges {
    /// `stalled`: whether the device hangs, now and later.
    pub(super) fn new(device: DeviceId, totals: Arc<DirtyTotals>, stalled: Arc<AtomicBool>) -> Self {
        let unwritable = Arc::new(Unwritable::new(stalled));
        Self {
            device,
            admission: AdmissionQueue::new(Arc::clone(&unwritable)),
            unwritable,
            totals,
            writeback_pages: AtomicU64::new(0),
            dirtied_pages: AtomicU64::new(0),
            written_pages: AtomicU64::new(0),
        }
    }

    /// Charges pages: dirty, in flight, or about to become dirty.
    pub(crate) fn hold(&self, pages: u64) {
        self.totals.hold(self.device, pages);
    }

    /// Gives charged pages back; writers that wait for them go on.
    pub(crate) fn give_back(&self, pages: u64) {
        self.totals.release(self.device, pages);
        self.admission.give_back(PageCount(pages));
    }

    /// Gives charged pages back; writers that wait for them go on once the policy has given its bounds anew.
    pub(crate) fn release_deferred(&self, pages: u64) {
        self.totals.release(self.device, pages);
        self.admission.release_deferred(PageCount(pages));
    }

    pub(crate) fn note_dirtied(&self, pages: u64) {
        self.dirtied_pages.fetch_add(pages, Ordering::Relaxed);
    }

    pub(crate) fn note_written(&self, pages: u64) {
        self.written_pages.fetch_add(pages, Ordering::Relaxed);
    }

    pub(crate) fn writeback_begins(&self, pages: u64) {
        self.writeback_pages.fetch_add(pages, Ordering::Relaxed);
        self.totals.writeback_begins(self.device, pages);
    }

    pub(crate) fn writeback_ends(&self, pages: u64) {
        let before = self.writeback_pages.fetch_sub(pages, Ordering::Relaxed);
        debug_assert!(before >= pages, "more pages came back than were under writeback");
        self.totals.writeback_ends(self.device, pages);
    }

    /// Pages under writeback.
    pub(super) fn writeback(&self) -> u64 {
        self.writeback_pages.load(Ordering::Relaxed)
    }

    /// Pages dirtied since the engine started.
    pub(super) fn dirtied(&self) -> u64 {
        self.dirtied_pages.load(Ordering::Relaxed)
    }

    /// Pages written since the engine started.
    pub(super) fn written(&self) -> u64 {
        self.written_pages.load(Ordering::Relaxed)
    }

    /// Whether the dirty pages not in flight have passed the policy's threshold for waking the flusher.
    pub(super) fn needs_wake(&self) -> bool {
        self.admission.may_wake() && self.admission.needs_wake(self.reclaimable())
    }

    /// The flusher leaves dirty pages above that threshold for later, if there are any: more of them will wake it.
    pub(crate) fn wake_flusher_if_more(&self) {
        if self.needs_wake() {
            self.admission.wake_later(self.reclaimable());
        }
    }

    /// Pages that are dirty and not under writeback, and can be written.
    fn reclaimable(&self) -> PageCount {
        let unwritable = PageCount(self.unwritable.roomless().pages);
        self.admission.pages().saturating_sub(PageCount(self.writeback())).saturating_sub(unwritable)
    }
}

/// Devices with their own part; further devices share these parts.
const PARTS: usize = 16;

/// Pages of all devices together.
#[derive(Default)]
pub(crate) struct DirtyTotals {
    parts: [Part; PARTS],
    devices: AtomicU64,
    /// One device's equal part of the limit.
    part_pages: AtomicU64,
    /// Writers that wait in an admission queue.
    waiting: OwnLines<AtomicU64>,
    /// Counts accesses to state that all devices share.
    pub(crate) looks: Number,
}

/// Two lines, because the CPU fetches the second with the first.
#[derive(Default)]
#[repr(align(128))]
struct Part {
    /// Pages dirty or under writeback, or charged to become so.
    held: AtomicU64,
    /// Pages under writeback.
    writeback: AtomicU64,
}

impl DirtyTotals {
    fn part(&self, device: DeviceId) -> &Part {
        &self.parts[device.0 as usize % PARTS]
    }

    pub(crate) fn hold(&self, device: DeviceId, pages: u64) {
        self.part(device).held.fetch_add(pages, Ordering::Relaxed);
    }

    pub(crate) fn release(&self, device: DeviceId, pages: u64) {
        self.part(device).held.fetch_sub(pages, Ordering::Relaxed);
    }

    pub(crate) fn writeback_begins(&self, device: DeviceId, pages: u64) {
        self.part(device).writeback.fetch_add(pages, Ordering::Relaxed);
    }

    pub(crate) fn writeback_ends(&self, device: DeviceId, pages: u64) {
        self.part(device).writeback.fetch_sub(pages, Ordering::Relaxed);
    }

    fn sum(&self, of: impl Fn(&Part) -> &AtomicU64) -> u64 {
        self.looks.count_one();
        let used = (self.devices() as usize).min(PARTS);
        self.parts[..used].iter().map(|part| of(part).load(Ordering::Relaxed)).sum()
    }

    /// Pages dirty or under writeback, or charged to become so.
    pub(crate) fn held(&self) -> u64 {
        self.sum(|part| &part.held)
    }

    /// Pages under writeback.
    pub(crate) fn writeback(&self) -> u64 {
        self.sum(|part| &part.writeback)
    }

    /// One device's equal part, in pages, of the knobs' limit.
    pub(crate) fn part_pages(&self) -> u64 {
        self.part_pages.load(Ordering::Relaxed)
    }

    /// The number of devices.
    pub(crate) fn devices(&self) -> u64 {
        self.devices.load(Ordering::Relaxed)
    }

    /// The number of devices has changed, and with it each one's equal part of the limit.
    pub(crate) fn divide(&self, devices: u64, part_pages: u64) {
        self.devices.store(devices, Ordering::Relaxed);
        self.part_pages.store(part_pages, Ordering::Relaxed);
    }

    /// After a release of pages: whether a writer may wait for them, and has to be woken.
    pub(crate) fn has_waiters(&self) -> bool {
        fence(Ordering::SeqCst);
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// A writer begins to wait.
    pub(crate) fn waits(&self) -> WriterWait<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        WriterWait(self)
    }
}

/// A writer's wait.
pub(crate) struct WriterWait<'a>(&'a DirtyTotals);

impl WriterWait<'_> {
    /// The writer is now in its device's queue. The writer sees earlier releases at the next check, and later releases
    /// wake the queue.
    pub(crate) fn fence_queued(&self) {
        fence(Ordering::SeqCst);
    }
}

impl Drop for WriterWait<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A device of an engine, by number from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub struct DeviceId(pub u32);

#[cfg(all(test, loom))]
mod loom_models;
