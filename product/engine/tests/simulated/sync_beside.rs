//! Callers that wait for syncs of one file write and flush beside each other.

//! rule: a sync by its caller waits for no other sync's flush before its own write; a failed flush fails all beside it
//! kept in: `product/engine/src/writeback/direct_sync.rs`, `product/engine/src/writeback/sync.rs`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_engine::counters::Counter;
use afflux_engine::rare::Rare;
use afflux_engine::{DeviceError, Error};
use afflux_simulator::{DiskOptions, Fault, FaultTarget, FaultWhat, Memory, Setup, WorldOptions};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, TestFile, bytes};

const IO: DeviceError = DeviceError::Io { errno: 5 };
/// A page's write takes so long.
const STEP_NS: u64 = 5 * MILLISECOND;

/// A disk on which each caller of a sync runs it. The file has had its first sync.
fn synced_file(seed: u64) -> (EngineFixture, TestFile) {
    let disk = DiskOptions {
        volatile_cache: true,
        latency_ns: MILLISECOND,
        bytes_per_second: 1_000_000,
        ..DiskOptions::default()
    };
    let lab = EngineFixture::new(seed, 256, &[disk], &[]);
    assert!(lab.here.engine.try_force_rare(Rare::SyncInCall, 1000));
    let file = lab.file(0, 8 * PAGE, 1);
    lab.run(lab.here.sync(&file)).unwrap();
    (lab, file)
}

/// The same on a disk that goes on to write while it flushes, for 50 ms.
fn synced_file_on_a_disk_that_goes_on(seed: u64) -> (EngineFixture, TestFile) {
    let disk = "throttled,rate=100MiB,volatile=1,flush_ns=50ms";
    let lab =
        EngineFixture::on_disk(disk, WorldOptions::seed(seed), Memory::Whole(256 * PAGE as u64), Setup::default());
    assert!(lab.here.engine.try_force_rare(Rare::SyncInCall, 1000));
    let file = lab.file(0, 8 * PAGE, 1);
    lab.run(lab.here.sync(&file)).unwrap();
    (lab, file)
}

/// Writes a page, and has a caller sync the file. Returns whether the sync has ended.
fn begin_sync(lab: &EngineFixture, file: &TestFile, page: usize, expected: Result<(), Error>) -> Arc<AtomicBool> {
    lab.run(lab.here.write(file, (page * PAGE) as u64, PAGE, 2)).unwrap();
    let (here, own) = (Arc::clone(&lab.here), file.clone());
    lab.in_background(async move { assert_eq!(here.sync(&own).await, expected, "page {page}") })
}

fn is_on_disk(file: &TestFile, page: usize) -> bool {
    let place = page * PAGE..(page + 1) * PAGE;
    file.disk.contents(file.id)[place] == bytes(2, (page * PAGE) as u64, PAGE)
}

fn is_durable(file: &TestFile, page: usize) -> bool {
    let place = page * PAGE..(page + 1) * PAGE;
    file.disk.durable(file.id)[place] == bytes(2, (page * PAGE) as u64, PAGE)
}

#[test]
fn the_write_of_a_sync_does_not_wait_for_another_syncs_flush() {
    let (lab, file) = synced_file(1);
    let first = begin_sync(&lab, &file, 0, Ok(()));
    assert!(lab.run(lab.here.until(SECOND, || is_on_disk(&file, 0))));
    let second = begin_sync(&lab, &file, 3, Ok(()));
    assert!(lab.run(lab.here.until(SECOND, || lab.submitted(1).len() == 2)));
    assert!(!first.load(Ordering::Relaxed), "the disk has the second write before the first flush has ended");
    assert!(lab.run(lab.here.until(SECOND, || second.load(Ordering::Relaxed))));
    assert!(is_durable(&file, 0) && is_durable(&file, 3) && file.file.is_clean());
    assert_eq!(lab.count(Counter::SyncRequests), 3);
}

#[test]
fn a_sync_without_dirty_pages_waits_for_those_that_have_them() {
    let (lab, file) = synced_file(1);
    let first = begin_sync(&lab, &file, 0, Ok(()));
    assert!(lab.run(lab.here.until(SECOND, || is_on_disk(&file, 0))));
    assert!(!first.load(Ordering::Relaxed));
    lab.run(lab.here.sync(&file)).unwrap();
    assert!(is_durable(&file, 0));
    assert_eq!(lab.count(Counter::SyncRequests), 2, "it makes no flush of its own");
}

#[test]
fn a_flush_that_fails_beside_others_leaves_the_pages_of_all_dirty() {
    for what in [FaultWhat::Error(IO), FaultWhat::Lost] {
        let (lab, file) = synced_file(1);
        let error = if what == FaultWhat::Lost { DeviceError::Lost } else { IO };
        lab.here.disks[0].add_fault(Fault::always(FaultTarget::Sync, what).times(1));
        let first = begin_sync(&lab, &file, 0, Err(Error::Device(error)));
        assert!(lab.run(lab.here.until(SECOND, || is_on_disk(&file, 0))));
        let second = begin_sync(&lab, &file, 3, Err(Error::Device(error)));
        let both = || first.load(Ordering::Relaxed) && second.load(Ordering::Relaxed);
        assert!(lab.run(lab.here.until(SECOND, both)));
        assert!(!file.file.is_clean());
        lab.run(lab.here.sync(&file)).unwrap();
        assert!(is_durable(&file, 0) && is_durable(&file, 3) && file.file.is_clean());
    }
}

/// The second write ends before the first flush fails, and the disk may lose both. The second flush reports no error.
#[test]
fn a_flush_that_fails_is_about_writes_that_ended_meanwhile() {
    for seed in 1..9 {
        let (lab, file) = synced_file_on_a_disk_that_goes_on(seed);
        lab.here.disks[0].add_fault(Fault::always(FaultTarget::Sync, FaultWhat::ErrorLosing(IO)).times(1));
        let first = begin_sync(&lab, &file, 0, Err(Error::Device(IO)));
        assert!(lab.run(lab.here.until(SECOND, || is_on_disk(&file, 0))));
        let second = begin_sync(&lab, &file, 3, Err(Error::Device(IO)));
        assert!(lab.run(lab.here.until(SECOND, || is_on_disk(&file, 3))));
        assert!(!first.load(Ordering::Relaxed));
        let both = || first.load(Ordering::Relaxed) && second.load(Ordering::Relaxed);
        assert!(lab.run(lab.here.until(SECOND, both)));
        lab.run(lab.here.sync(&file)).unwrap();
        assert!(is_durable(&file, 0) && is_durable(&file, 3));
    }
}

#[test]
fn a_write_that_fails_beside_others_is_written_again_before_the_answer() {
    let (lab, file) = synced_file(1);
    let first = begin_sync(&lab, &file, 0, Ok(()));
    assert!(lab.run(lab.here.until(SECOND, || is_on_disk(&file, 0))));
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Write, FaultWhat::Error(IO)).times(1));
    let second = begin_sync(&lab, &file, 3, Ok(()));
    let both = || first.load(Ordering::Relaxed) && second.load(Ordering::Relaxed);
    assert!(lab.run(lab.here.until(SECOND, both)));
    assert_eq!(lab.count(Counter::WriteErrors), 1);
    assert!(is_durable(&file, 0) && is_durable(&file, 3) && file.file.is_clean());
}

/// Whatever their distances, each sync covers what was written before it, and somebody who waits for an ordinary round
/// gets it.
#[test]
fn many_syncs_beside_each_other_leave_all_durable() {
    for step in 0..24 {
        let (lab, file) = synced_file(step + 1);
        let mut synced = Vec::new();
        for page in 0..8 {
            synced.push(begin_sync(&lab, &file, page, Ok(())));
            lab.run(lab.here.sleep((step * page as u64) % 7 * STEP_NS / 3));
            for (before, ended) in synced.iter().enumerate() {
                assert!(!ended.load(Ordering::Relaxed) || is_durable(&file, before), "step {step}, page {before}");
            }
        }
        assert!(lab.run(lab.here.until(SECOND, || synced.iter().all(|ended| ended.load(Ordering::Relaxed)))));
        assert!((0..8).all(|page| is_durable(&file, page)), "step {step}");
        assert!(file.file.is_clean(), "step {step}");
    }
}
