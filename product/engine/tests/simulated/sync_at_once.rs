//! A caller that waits for its sync of few pages writes them, flushes, and changes the pages once.

//! rule: a sync by its caller cleans its pages after the flush, and a failure leaves them dirty; no bytes of later
//! writes count kept in: `product/engine/src/writeback/direct_sync.rs`

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::counters::Counter;
use afflux_engine::rare::Rare;
use afflux_engine::{DeviceError, Error};
use afflux_simulator::{DiskOptions, Fault, FaultTarget, FaultWhat};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, TestFile, bytes};

const IO: DeviceError = DeviceError::Io { errno: 5 };

/// A disk on which a page's write takes a millisecond, and its flush four; each caller of a sync runs it. The file's
/// first sync has been.
fn synced_file(seed: u64) -> (EngineFixture, TestFile) {
    let disk = DiskOptions {
        volatile_cache: true,
        latency_ns: MILLISECOND,
        bytes_per_second: 1_000_000,
        ..DiskOptions::default()
    };
    let lab = EngineFixture::new(seed, 256, &[disk], &[]);
    assert!(lab.here.engine.try_force_rare(Rare::SyncInCall, 1000));
    let file = lab.file(0, 4 * PAGE, 1);
    lab.run(lab.here.sync(&file)).unwrap();
    (lab, file)
}

#[test]
fn pages_stay_under_writeback_until_the_flush() {
    let (lab, file) = synced_file(1);
    let (here, own) = (Arc::clone(&lab.here), file.clone());
    lab.run(lab.here.write(&file, 0, 2 * PAGE, 2)).unwrap();
    let synced = lab.in_background(async move { here.sync(&own).await.unwrap() });
    let mut between = 0;
    lab.run(async {
        while !synced.load(Ordering::Relaxed) {
            let has_bytes = file.disk.contents(file.id)[..2 * PAGE] == bytes(2, 0, 2 * PAGE);
            let is_durable = file.disk.durable(file.id)[..2 * PAGE] == bytes(2, 0, 2 * PAGE);
            between += u64::from(has_bytes && !is_durable);
            assert!(is_durable || !file.file.is_clean(), "clean before the flush");
            lab.here.sleep(MILLISECOND / 10).await;
        }
    });
    assert!(between > 0, "the test saw the disk between the write and the flush");
    assert!(file.file.is_clean());
    let counts =
        [Counter::WriteRequests, Counter::SyncRequests, Counter::PagesWritten].map(|counter| lab.count(counter));
    assert_eq!(counts, [1, 2, 2], "one write and one flush; the first sync flushed, too");
}

#[test]
fn a_page_that_is_written_to_during_the_flush_is_dirty_afterwards() {
    for step in 1..12 {
        let (lab, file) = synced_file(step);
        let (here, own) = (Arc::clone(&lab.here), file.clone());
        lab.run(lab.here.write(&file, 0, PAGE, 2)).unwrap();
        let synced = lab.in_background(async move { here.sync(&own).await.unwrap() });
        lab.run(async {
            lab.here.sleep(step * MILLISECOND / 2).await;
            let was_synced = synced.load(Ordering::Relaxed);
            lab.here.write(&file, 0, PAGE, 3).await.unwrap();
            assert!(lab.here.until(SECOND, || synced.load(Ordering::Relaxed)).await, "step {step}");
            assert!(!file.file.is_clean(), "step {step}");
            if !was_synced {
                assert!(file.disk.durable(file.id)[..PAGE] == bytes(2, 0, PAGE)[..], "step {step}");
            }
            lab.here.sync(&file).await.unwrap();
        });
        assert!(file.file.is_clean() && file.disk.durable(file.id)[..PAGE] == bytes(3, 0, PAGE)[..], "step {step}");
    }
}

#[test]
fn a_failed_flush_at_once_leaves_its_pages_dirty() {
    for what in [FaultWhat::Error(IO), FaultWhat::Lost] {
        let (lab, file) = synced_file(1);
        lab.here.disks[0].add_fault(Fault::always(FaultTarget::Sync, what).times(1));
        lab.run(async {
            lab.here.write(&file, 0, PAGE, 2).await.unwrap();
            let error = if what == FaultWhat::Lost { DeviceError::Lost } else { IO };
            assert_eq!(lab.here.sync(&file).await, Err(Error::Device(error)));
            assert!(!file.file.is_clean(), "its bytes may not be on the disk");
            lab.here.sync(&file).await.unwrap();
        });
        assert_eq!(file.disk.durable(file.id)[..PAGE], bytes(2, 0, PAGE)[..]);
        assert!(file.file.is_clean());
    }
}

#[test]
fn a_failed_write_at_once_is_written_again_by_an_ordinary_round() {
    let (lab, file) = synced_file(1);
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Write, FaultWhat::Error(IO)).times(3));
    lab.run(async {
        lab.here.write(&file, 0, PAGE, 2).await.unwrap();
        while lab.here.sync(&file).await.is_err() {
            assert!(!file.file.is_clean());
        }
    });
    assert_eq!(lab.count(Counter::WriteErrors), 3);
    assert_eq!(file.disk.durable(file.id)[..PAGE], bytes(2, 0, PAGE)[..]);
}

#[test]
fn a_flush_that_was_owed_before_is_paid_by_a_sync_at_once() {
    let (lab, file) = synced_file(1);
    lab.run(async {
        lab.here.write(&file, 0, PAGE, 2).await.unwrap();
        assert!(lab.here.until(60 * SECOND, || file.file.is_clean()).await, "the flusher writes it");
        lab.here.write(&file, PAGE as u64, PAGE, 2).await.unwrap();
        lab.here.sync(&file).await.unwrap();
        let before = lab.count(Counter::SyncRequests);
        lab.here.sync(&file).await.unwrap();
        assert_eq!(lab.count(Counter::SyncRequests), before, "nothing is owed");
    });
    assert_eq!(file.disk.durable(file.id)[..2 * PAGE], bytes(2, 0, 2 * PAGE)[..]);
}

/// While the disk hangs, the request is set aside; then the pages end with its write, and an ordinary round goes on.
#[test]
fn a_sync_at_once_goes_on_after_a_hang() {
    let (lab, file) = synced_file(1);
    let (here, own) = (Arc::clone(&lab.here), file.clone());
    lab.run(lab.here.write(&file, 0, PAGE, 2)).unwrap();
    lab.here.disks[0].hang();
    let synced = lab.in_background(async move { here.sync(&own).await.unwrap() });
    lab.run(lab.here.sleep(100 * SECOND));
    assert!(!synced.load(Ordering::Relaxed));
    lab.here.disks[0].release();
    assert!(lab.run(lab.here.until(10 * SECOND, || synced.load(Ordering::Relaxed))));
    assert_eq!(file.disk.durable(file.id)[..PAGE], bytes(2, 0, PAGE)[..]);
}
