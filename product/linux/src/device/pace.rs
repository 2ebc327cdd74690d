//! Whether a device is quick enough for a reactor's thread to submit its reads and writes.
//!
//! A host's file system may hold a read or write in the system call that submits it, even one that must not wait. ext4
//! updates the file's times first, and waits for its journal if a commit is writing the same inodes. Such a commit takes
//! as long as the device: milliseconds on a slow one, for ever on one that hangs. The thread's other connections and
//! devices would wait, too.
//!
//! Owns: the number of requests and syncs in flight, the time of the device's last sign of life.
//! Does not own: requests (`flight`), the threads that may wait (`pool`).
//! Invariants: the answer needs no lock. A request that nobody completes, since its platform has stopped, stays counted.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use afflux_engine::Nanos;

use crate::clock;

/// A quick device completes some request within this time. Two hand-overs between threads are short beside it.
const QUICK_NS: u64 = 2 * Nanos::MILLISECOND;

/// The pace of one device.
#[derive(Default)]
pub(super) struct Pace {
    in_flight: AtomicU32,
    syncs: AtomicU32,
    /// When the device last completed a request, or got one while it had none; in nanoseconds.
    moved: AtomicU64,
}

impl Pace {
    /// A request comes.
    pub(super) fn begin(&self, is_sync: bool) {
        self.begin_at(is_sync, clock::monotonic());
    }

    /// A request is completed, with or without an error.
    pub(super) fn end(&self, is_sync: bool) {
        self.end_at(is_sync, clock::monotonic());
    }

    /// Whether a system call that submits a read or write may wait for the device: a sync is in flight, or the device has
    /// completed nothing for a while.
    pub(super) fn holds_submitters(&self) -> bool {
        self.holds_submitters_at(clock::monotonic())
    }

    fn begin_at(&self, is_sync: bool, now: Nanos) {
        self.syncs.fetch_add(u32::from(is_sync), Ordering::Relaxed);
        if self.in_flight.fetch_add(1, Ordering::Relaxed) == 0 {
            self.moved.store(now.0, Ordering::Relaxed);
        }
    }

    fn end_at(&self, is_sync: bool, now: Nanos) {
        self.syncs.fetch_sub(u32::from(is_sync), Ordering::Relaxed);
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.moved.store(now.0, Ordering::Relaxed);
    }

    fn holds_submitters_at(&self, now: Nanos) -> bool {
        let moved = Nanos(self.moved.load(Ordering::Relaxed));
        self.syncs.load(Ordering::Relaxed) > 0 || now.since(moved) > QUICK_NS
    }
}

#[cfg(test)]
mod tests;
