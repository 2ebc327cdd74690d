//! What all devices together have dirty, kept so that writers to different devices do not meet.
//!
//! Owns: the sums, in as many parts as cache lines; how many devices there are, and what that makes an equal
//! part; how many writers wait in admission queues.
//! Does not own: what a device has (`state`), the limits' formulas.
//! Invariants: a device changes its own part only. A sum reads each part once; parts may change meanwhile.
//! Of a release and a wait that begins meanwhile, at least one observes the other: each writes what the other
//! reads, and there is a fence in between.

use super::state::DeviceId;
use crate::rare::Looks;
use crate::sync::OwnLines;
use crate::sync::atomic::{AtomicU64, Ordering, fence};

/// Devices with a part of their own; more share them.
const PARTS: usize = 16;

/// Pages that all devices together have.
#[derive(Default)]
pub(crate) struct DirtyTotals {
    parts: [Part; PARTS],
    devices: AtomicU64,
    /// One device's equal part of the limit.
    part_pages: AtomicU64,
    /// Writers that wait in an admission queue.
    waiting: OwnLines<AtomicU64>,
    pub(crate) looks: Looks,
}

/// Two lines: the CPU fetches the second with the first.
#[derive(Default)]
#[repr(align(128))]
struct Part {
    /// Dirty or under writeback, or charged to become so.
    held: AtomicU64,
    /// Under writeback.
    writeback: AtomicU64,
}

impl DirtyTotals {
    fn part(&self, device: DeviceId) -> &Part {
        &self.parts[device.0 as usize % PARTS]
    }

    pub(crate) fn hold(&self, device: DeviceId, pages: u64) {
        self.part(device).held.fetch_add(pages, Ordering::Relaxed);
    }

    pub(crate) fn let_go(&self, device: DeviceId, pages: u64) {
        self.part(device).held.fetch_sub(pages, Ordering::Relaxed);
    }

    pub(crate) fn writeback_begins(&self, device: DeviceId, pages: u64) {
        self.part(device).writeback.fetch_add(pages, Ordering::Relaxed);
    }

    pub(crate) fn writeback_ends(&self, device: DeviceId, pages: u64) {
        self.part(device).writeback.fetch_sub(pages, Ordering::Relaxed);
    }

    fn sum(&self, of: impl Fn(&Part) -> &AtomicU64) -> u64 {
        self.looks.note();
        let used = (self.devices() as usize).min(PARTS);
        self.parts[..used].iter().map(|part| of(part).load(Ordering::Relaxed)).sum()
    }

    /// Dirty or under writeback, or charged to become so.
    pub(crate) fn held(&self) -> u64 {
        self.sum(|part| &part.held)
    }

    /// Under writeback.
    pub(crate) fn writeback(&self) -> u64 {
        self.sum(|part| &part.writeback)
    }

    /// One device's equal part, in pages, of what the knobs allow.
    pub(crate) fn part_pages(&self) -> u64 {
        self.part_pages.load(Ordering::Relaxed)
    }

    pub(crate) fn devices(&self) -> u64 {
        self.devices.load(Ordering::Relaxed)
    }

    /// There are so many devices now, each with this equal part of the limit.
    pub(crate) fn divide(&self, devices: u64, part_pages: u64) {
        self.devices.store(devices, Ordering::Relaxed);
        self.part_pages.store(part_pages, Ordering::Relaxed);
    }

    /// After pages were given back: whether anybody may wait for them, and has to be told.
    pub(crate) fn anybody_waits(&self) -> bool {
        fence(Ordering::SeqCst);
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// A writer begins to wait.
    pub(crate) fn waits(&self) -> Waits<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waits(self)
    }
}

/// A writer waits while this lives.
pub(crate) struct Waits<'a>(&'a DirtyTotals);

impl Waits<'_> {
    /// It is in its device's queue now. What was given back before this is seen by who looks after it; of what
    /// is given back later it is told.
    pub(crate) fn is_queued(&self) {
        fence(Ordering::SeqCst);
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod loom_models;
