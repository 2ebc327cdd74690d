//! Dirty data of all devices together, counted so that writers to different devices do not meet.
//!
//! Owns: the sums, in as many parts as cache lines; the number of devices, and the equal part of each; the number of
//! writers in admission queues.
//! Does not own: the counts of a device (`charges`), the limits' formulas.
//! Invariants: a device changes its own part only. A sum reads each part once; parts may change meanwhile. If a wait
//! begins during a release, at least one of the two observes the other: each writes the word that the other reads, and
//! a fence stands in between.

use afflux_pages::rare::Number;
use afflux_pages::sync::OwnLines;
use afflux_pages::sync::atomic::{AtomicU64, Ordering, fence};

use super::id::DeviceId;

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
    /// Looks at state that all devices share.
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

    /// After a release of pages: whether a writer may wait for them, and has to be told.
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
    /// The writer is now in its device's queue. The writer sees earlier releases at the next look, and later releases
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

#[cfg(all(test, loom))]
mod loom_models;
