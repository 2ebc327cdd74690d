//! Decides whether a device's error has a cause, and whether wrong bytes are a loss of the disk that nobody learns of.
//!
//! Owns: the counts of failed requests at the begin and the end of an operation, the rule for the failures that explain
//! its error, and the rule for lost bytes of a file that is discarded.
//! Does not own: the operations (`ops`); the counts themselves (the disk).
//! Invariants: a failed request of the same file explains an error if it failed since the operation began or while the
//! file has been dirty. Failures of other files explain only a writer's error, since the writer may find no free space,
//! and only while they go on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::{Nanos, Platform};
use afflux_simulator::WriteFailures;

use crate::bench::{ScenarioBench, Shared};
use crate::locking::lock;

/// For this time after the last failure of a disk, its writers may get errors. The engine may learn of a request's end
/// later than the disk completes the request.
const LATELY_NS: u64 = Nanos::SECOND;
/// Time between two checks whether a loss is reported.
const LOOK_NS: u64 = 50_000;

/// The kind of operation that got an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ErrorSource {
    /// A read, or a change of size: a request of its own failed.
    Own,
    /// A sync: a write before it may have failed.
    Sync,
    /// A write, which may find no free space; a punch, which may write zeros.
    Write,
}

/// Failures on the disk that may explain an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Causes {
    /// A request of the file failed since the operation began.
    since_begun: bool,
    /// A request failed since the file was last clean or synced.
    while_dirty: bool,
    /// Writes of the disk fail, or requests failed of another file on it that is still dirty.
    no_space: bool,
}

impl Causes {
    /// Whether these causes explain an error of the device.
    pub(crate) fn explain(self, source: ErrorSource) -> bool {
        match source {
            ErrorSource::Own => self.since_begun,
            ErrorSource::Sync => self.since_begun || self.while_dirty,
            ErrorSource::Write => self.since_begun || self.while_dirty || self.no_space,
        }
    }
}

/// Failed requests of a file so far.
#[derive(Clone, Copy)]
pub(crate) struct FileFailures {
    all: u64,
    syncs: u64,
}

impl FileFailures {
    fn of(bench: &ScenarioBench, shared: &Shared) -> Self {
        let disk = &bench.disks[shared.device];
        Self { all: disk.failures(shared.disk_file), syncs: disk.sync_failures(shared.disk_file) }
    }

    /// Records that these failures explain no error any more: the file is clean, or a successful sync of the whole file
    /// began after them.
    pub(crate) fn settle(self, shared: &Shared) {
        shared.failures_settled.fetch_max(self.all, Ordering::Relaxed);
        shared.sync_failures_settled.fetch_max(self.syncs, Ordering::Relaxed);
    }
}

/// The number of failed requests that no longer explain an error: the file has been clean since, or was synced as a
/// whole. A failed flush makes a clean file dirty again, so such a failure counts until a flush succeeds.
fn settled(bench: &ScenarioBench, shared: &Shared) -> u64 {
    let failures = FileFailures::of(bench, shared);
    let flush_failed = failures.syncs > shared.sync_failures_settled.load(Ordering::Relaxed);
    if shared.file.is_clean() && !(flush_failed && shared.file.has_unflushed()) {
        failures.settle(shared);
    }
    shared.failures_settled.load(Ordering::Relaxed)
}

/// The failures of a file and its disk when an operation began.
pub(crate) struct FailureCounts {
    /// Failed requests of the file.
    pub(crate) failures: FileFailures,
    /// The part of these failures that no longer explains an error.
    settled: u64,
    disk: WriteFailures,
    lately: bool,
}

impl FailureCounts {
    /// The failures at this moment.
    pub(crate) fn now(bench: &ScenarioBench, shared: &Shared) -> Self {
        let disk = bench.disks[shared.device].write_failures();
        let lately = disk.last_ns.is_some_and(|last| bench.platform.now().0.saturating_sub(last) < LATELY_NS);
        Self { failures: FileFailures::of(bench, shared), settled: settled(bench, shared), disk, lately }
    }

    /// The failures on the file's disk that may explain an error.
    pub(crate) fn causes(&self, bench: &ScenarioBench, shared: &Arc<Shared>) -> Causes {
        let (now, disk) = (FileFailures::of(bench, shared).all, bench.disks[shared.device].write_failures());
        let disk_fails = self.disk.in_row > 0 || self.lately || disk.all > self.disk.all;
        let other_fails = || {
            bench.slots.iter().map(|slot| Arc::clone(&lock(slot))).any(|other| {
                let is_other = other.device == shared.device && !Arc::ptr_eq(&other, shared);
                is_other && FileFailures::of(bench, &other).all > settled(bench, &other)
            })
        };
        Causes {
            since_begun: now > self.failures.all,
            while_dirty: now > self.settled,
            no_space: disk_fails || other_fails(),
        }
    }
}

/// Waits until the engine tells of a loss, after a read has found wrong bytes. True if the disk has lost some and the
/// file is discarded before: a reader may see a loss before the engine learns of the failed flush. Once the file is
/// discarded, no caller is left who could write the bytes again.
pub(crate) async fn wait_for_untold_loss(bench: &ScenarioBench, shared: &Shared) -> bool {
    if bench.disks[shared.device].sectors_lost(shared.disk_file) == 0 {
        return false;
    }
    let until = bench.platform.now().after(LATELY_NS);
    while bench.engine.lost_epoch() == 0 && bench.platform.now() < until {
        if shared.discarded.load(Ordering::Relaxed) {
            return true;
        }
        bench.sleep_ns(LOOK_NS).await;
    }
    false
}

#[cfg(test)]
mod tests;
