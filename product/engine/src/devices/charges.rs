//! The pages charged to a device, and their way to the device.
//!
//! Owns: the admission queue, the pages under writeback, the device's part in the sums over all devices.
//! Does not own: the limits' formulas (`dirty`, `policy`), the pages.
//! Invariants: each change of a count here that is also part of a sum changes both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use afflux_pages::units::PageCount;

use super::admission::AdmissionQueue;
use super::id::DeviceId;
use super::totals::DirtyTotals;
use super::unwritable::Unwritable;

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

    /// Gives charged pages back; writers that wait for them go on once the policy has given its room anew.
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
