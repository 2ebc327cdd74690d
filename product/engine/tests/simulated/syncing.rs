//! The promises of a sync.

//! rule: no rewriter outruns a sync, and a sync waits for no other file
//! kept in: `product/engine/src/writeback/sync.rs`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use afflux_engine::counters::Counter;
use afflux_engine::rare::Rare;
use afflux_engine::{Advice, Device, DeviceError, Error, Limits, Operation, Platform, Request};
use afflux_simulator::{Disk, DiskOptions, Fault, FaultTarget, FaultWhat};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, bytes};

#[test]
fn a_sync_returns_only_when_the_bytes_and_the_size_are_durable() {
    for volatile_cache in [false, true] {
        let lab = EngineFixture::new(1, 256, &[DiskOptions { volatile_cache, ..DiskOptions::default() }], &[]);
        let file = lab.file(0, 3000, 1);
        lab.run(async {
            lab.here.write(&file, 5000, 10_000, 2).await.unwrap();
            assert_eq!(file.file.size(), 15_000);
            assert_eq!(file.disk.durable_size(file.id), 3000, "nothing is written before anybody asks");
            lab.here.sync(&file).await.unwrap();
        });
        let mut right = bytes(1, 0, 15_000);
        right[3000..5000].fill(0);
        right[5000..].copy_from_slice(&bytes(2, 5000, 10_000));
        assert_eq!(file.disk.durable(file.id), right);
        assert!(file.file.is_clean());
    }
}

#[test]
fn a_sync_of_what_the_flusher_wrote_before_still_flushes_the_device() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        lab.here.write(&file, 0, PAGE, 2).await.unwrap();
        assert!(lab.here.until(60 * SECOND, || file.disk.size(file.id) > 0).await, "expired data is written");
        lab.here.sleep(SECOND).await;
        lab.here.sync(&file).await.unwrap();
    });
    assert_eq!(file.disk.durable(file.id), bytes(2, 0, PAGE));
}

#[test]
fn a_sync_is_not_outrun_by_a_rewriter() {
    for seed in 0..10 {
        let lab = EngineFixture::new(
            seed,
            256,
            &[DiskOptions { bytes_per_second: 2_000_000, ..DiskOptions::default() }],
            &[],
        );
        let file = lab.file(0, 0, 0);
        let (here, to, stop) = (Arc::clone(&lab.here), file.clone(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        lab.in_background(async move {
            let mut version = 2;
            while !stopped.load(Ordering::Relaxed) {
                for page in 0..16 {
                    here.write(&to, page * PAGE as u64, PAGE, version).await.unwrap();
                    here.sleep(20_000).await;
                }
                version += 1;
            }
        });
        lab.run(lab.here.sleep(SECOND / 5));
        let started = lab.here.now_ns();
        lab.run(lab.here.sync(&file)).unwrap();
        let took = lab.here.now_ns() - started;
        stop.store(true, Ordering::Relaxed);
        // 16 pages are 33 ms of this disk; the requests in flight before take as much again.
        assert!(took < SECOND / 2, "seed {seed}: the sync took {took} ns beside a rewriter");
    }
}

#[test]
fn a_sync_of_one_file_does_not_wait_for_all_of_another() {
    let lab =
        EngineFixture::new(1, 1024, &[DiskOptions { bytes_per_second: 4_000_000, ..DiskOptions::default() }], &[]);
    let (large, small) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
    lab.run(async {
        lab.here.write(&large, 0, 100 * PAGE, 1).await.unwrap();
        lab.here.write(&small, 0, 100, 2).await.unwrap();
        lab.here.sync(&small).await.unwrap();
    });
    assert_eq!(small.disk.durable(small.id), bytes(2, 0, 100));
}

#[test]
fn a_sync_has_its_turn_among_the_requests_of_another_sync() {
    let disk = DiskOptions { request_bytes_max: 64 << 10, bytes_per_second: 20_000_000, ..DiskOptions::default() };
    let knobs = ["writeback_slice_bytes=1MiB", "dirty_ratio=90", "dirty_background_ratio=100"];
    let lab = EngineFixture::new(2, 8192, &[disk], &knobs);
    let (large, small) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
    lab.run(async { lab.here.write(&large, 0, 16 << 20, 1).await.unwrap() });
    let (here, file) = (Arc::clone(&lab.here), large.clone());
    lab.in_background(async move { here.sync(&file).await.unwrap() });
    lab.run(async {
        assert!(lab.here.until(SECOND, || large.file.dirty_bytes() < 12 << 20).await);
        lab.here.write(&small, 0, 100, 2).await.unwrap();
        lab.here.sync(&small).await.unwrap();
    });
    let left = large.file.dirty_bytes();
    assert!(left > 6 << 20, "the other file had many turns first: {left} bytes of it are left");
}

#[test]
fn a_range_sync_covers_its_range() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 100 * PAGE, 1);
    lab.run(async {
        lab.here.write(&file, 0, PAGE, 2).await.unwrap();
        lab.here.write(&file, 50 * PAGE as u64, PAGE, 3).await.unwrap();
        lab.here.engine.sync(&file.file, 0..PAGE as u64).await.unwrap();
    });
    assert_eq!(file.disk.durable_bytes(file.id, 0, PAGE), bytes(2, 0, PAGE));
    lab.run(async { lab.here.engine.sync(&file.file, 50 * PAGE as u64 + 5..50 * PAGE as u64 + 6).await.unwrap() });
    assert_eq!(file.disk.durable_bytes(file.id, 50 * PAGE as u64, PAGE), bytes(3, 50 * PAGE as u64, PAGE));
}

#[test]
fn a_failed_device_flush_fails_the_sync_until_one_succeeds() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 0, 0);
    let io = DeviceError::Io { errno: 5 };
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Sync, FaultWhat::Error(io)).times(3));
    lab.run(async {
        lab.here.write(&file, 0, PAGE, 2).await.unwrap();
        let mut failed = 0;
        while let Err(error) = lab.here.sync(&file).await {
            assert_eq!(error, Error::Device(io));
            failed += 1;
            assert!(failed < 20, "the flush works again, and the sync still fails");
            lab.here.sleep(SECOND).await;
        }
        assert!(failed >= 1);
    });
    assert_eq!(file.disk.durable(file.id), bytes(2, 0, PAGE));
}

/// The pages become dirty again piece by piece. In between, a reader may find what the device still has of the lost
/// one.
#[test]
fn a_loss_is_told_before_all_other_pages_are_dirty_again() {
    const PAGES: u64 = 256;
    let lab = EngineFixture::new(1, 4 * PAGES, &[DiskOptions::default()], &["dirty_background_bytes=65536"]);
    let file = lab.file(0, 0, 0);
    let io = DeviceError::Io { errno: 5 };
    lab.run(async {
        lab.here.write(&file, 0, PAGES as usize * PAGE, 2).await.unwrap();
        assert!(lab.here.until(SECOND, || lab.here.dirty_bytes() < 1 << 18).await, "the rest are clean, not durable");
        lab.here.engine.advise(&file.file, 0..PAGE as u64, Advice::DontNeed);
        lab.here.disks[0].add_fault(Fault::always(FaultTarget::Sync, FaultWhat::Error(io)).times(1));
        assert!(lab.here.engine.try_force_rare(Rare::ShortHold, 1000));
        let (here, its) = (Arc::clone(&lab.here), file.clone());
        lab.in_background(async move { assert_eq!(here.sync(&its).await, Err(Error::Device(io))) });
        while lab.count(Counter::PagesDirtied) == PAGES {
            lab.here.platform.preemption_point().await;
        }
        assert_eq!(lab.here.engine.lost_epoch(), 1);
        let again = lab.count(Counter::PagesDirtied) - PAGES;
        assert!(again < PAGES - 1, "{again} pages are dirty again: the test looked too late");
    });
}

/// Another program may have changed the other sectors of the page in the meantime.
#[test]
fn after_a_failed_flush_only_the_sectors_that_it_covered_are_written_again() {
    for read_first in [false, true] {
        let lab = EngineFixture::plain(1);
        let file = lab.file(0, PAGE, 1);
        let io = DeviceError::Io { errno: 5 };
        lab.run(async {
            if read_first {
                lab.here.read(&file, 0, PAGE).await.unwrap();
            } else {
                lab.here.write(&file, 0, PAGE, 1).await.unwrap();
            }
            lab.here.write(&file, 1536, 512, 2).await.unwrap();
            lab.here.sync(&file).await.unwrap();
            lab.here.write(&file, 0, 512, 3).await.unwrap();
            lab.here.disks[0].add_fault(Fault::always(FaultTarget::Sync, FaultWhat::Error(io)).times(1));
            assert_eq!(lab.here.sync(&file).await, Err(Error::Device(io)));
            lab.here.sync(&file).await.unwrap();
        });
        let (_, offset, len) = lab.submitted(1).pop().unwrap();
        assert_eq!((offset, len), (0, 512), "read first: {read_first}");
        assert_eq!(file.disk.durable_bytes(file.id, 0, 512), bytes(3, 0, 512));
    }
}

#[test]
fn a_file_dropped_while_dirty_is_still_written() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 0, 0);
    let (disk, id) = (Arc::clone(&file.disk), file.id);
    lab.run(async {
        lab.here.write(&file, 0, PAGE, 2).await.unwrap();
        drop(file);
        assert_eq!(lab.here.engine.drain(lab.here.devices[0]).await.len(), 0);
    });
    assert_eq!(disk.durable(id), bytes(2, 0, PAGE));
}

#[test]
fn a_drain_makes_durable_what_the_flusher_wrote_before() {
    let lab = EngineFixture::plain(1);
    let (written, resized) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
    lab.run(async {
        lab.here.write(&written, 0, PAGE, 2).await.unwrap();
        lab.here.engine.set_size(&resized.file, 100).await.unwrap();
        assert!(lab.here.until(60 * SECOND, || written.file.is_clean()).await, "expired data is written");
        assert_eq!(lab.here.engine.drain(lab.here.devices[0]).await.len(), 0);
    });
    assert_eq!(written.disk.durable(written.id), bytes(2, 0, PAGE));
    assert_eq!(resized.disk.durable_size(resized.id), 100);
}

#[test]
fn a_drain_waits_for_the_flush_that_the_flusher_began() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 0, 0);
    let slow = FaultWhat::Delay { ns: 100 * SECOND };
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Sync, slow).times(1));
    lab.run(async {
        lab.here.write(&file, 0, PAGE, 2).await.unwrap();
        let flushes = || lab.here.engine.status().devices[0].in_flight == 1 && file.file.is_clean();
        assert!(lab.here.until(100 * SECOND, || file.disk.size(file.id) > 0 && flushes()).await);
        assert!(file.file.has_unflushed(), "the flush may fail");
        assert_eq!(lab.here.engine.drain(lab.here.devices[0]).await.len(), 0);
    });
    assert_eq!(file.disk.durable(file.id), bytes(2, 0, PAGE));
    assert!(!file.file.has_unflushed());
}

#[test]
fn a_page_written_in_two_runs_is_synced_only_with_both() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, PAGE, 1);
    lab.run(async {
        // Sectors 0 and 4 of a page that was never read. The sectors between them are not in the cache.
        lab.here.write(&file, 0, 512, 2).await.unwrap();
        lab.here.write(&file, 2048, 512, 3).await.unwrap();
        lab.here.sync(&file).await.unwrap();
    });
    let mut right = bytes(1, 0, PAGE);
    right[..512].copy_from_slice(&bytes(2, 0, 512));
    right[2048..2560].copy_from_slice(&bytes(3, 2048, 512));
    assert_eq!(file.disk.durable(file.id), right);
}

/// A device may give a file its accepted size before the bytes are written.
#[test]
fn after_a_power_loss_a_size_that_was_ahead_is_one_that_was_accepted() {
    let (mut ahead, mut shorter) = (0, 0);
    for seed in 0..120 {
        let disk = DiskOptions {
            longer_ahead: true,
            longer_alone: seed % 2 == 0,
            request_bytes_max: 16 << 10,
            bytes_per_second: 20_000_000,
            ..DiskOptions::default()
        };
        let lab = EngineFixture::new(seed, 1024, &[disk], &["dirty_background_ratio=0"]);
        let file = lab.file(0, 0, 0);
        let (asked, synced) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (here, to, told) = (Arc::clone(&lab.here), file.clone(), (Arc::clone(&asked), Arc::clone(&synced)));
        lab.in_background(async move {
            let mut end = 0;
            for step in 1..200 {
                // Pages, parts of pages, streams.
                let len = [PAGE, 40 * PAGE, 1234, 7 * PAGE + 100][(seed + step * step) as usize % 4];
                told.0.store(end + len as u64, Ordering::Relaxed);
                here.write(&to, end, len, 2).await.unwrap();
                end += len as u64;
                if (seed + step) % 9 == 0 {
                    here.sync(&to).await.unwrap();
                    told.1.store(end, Ordering::Relaxed);
                }
            }
        });
        lab.run(lab.here.sleep((1 + seed) * MILLISECOND / 2));
        let (asked, synced) = (asked.load(Ordering::Relaxed), synced.load(Ordering::Relaxed));
        file.disk.crash();
        let size = file.disk.size(file.id);
        assert!((synced..=asked).contains(&size), "seed {seed}: {size}, of {asked}, {synced} of them synced");
        let (found, wanted) = (file.disk.live_bytes(file.id, 0, size as usize), bytes(2, 0, size as usize));
        for (at, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            let unwritten = *found == 0 && at as u64 >= synced;
            assert!(found == wanted || unwritten, "seed {seed}: byte {at} is {found}, {synced} were synced");
        }
        ahead += u64::from(found.last().is_some_and(|last| *last == 0));
        shorter += u64::from(size < asked);
    }
    assert!(ahead > 0 && shorter > 0, "{ahead} sizes were ahead, {shorter} had not come as far");
}

/// Counts the syncs that its disk was given.
struct CountsSyncs {
    disk: Arc<Disk>,
    syncs: AtomicU64,
}

impl Device for CountsSyncs {
    fn limits(&self) -> &Limits {
        self.disk.limits()
    }

    fn submit(&self, request: Request) {
        if request.operation() == Operation::Sync {
            self.syncs.fetch_add(1, Ordering::Relaxed);
        }
        self.disk.submit(request);
    }

    fn free_bytes_hint(&self) -> u64 {
        self.disk.free_bytes_hint()
    }
}

// rule: a device has no more syncs and changes of shape in flight than slots
// kept in: `product/engine/src/devices/in_flight.rs`
#[test]
fn a_device_gets_as_many_syncs_at_once_as_it_has_slots() {
    const FILES: u64 = 20;
    let options = DiskOptions { depth: 4, ..DiskOptions::default() };
    let lab = EngineFixture::new(1, 256, &[options], &[]);
    let disk = Arc::clone(&lab.here.disks[0]);
    let device = Arc::new(CountsSyncs { disk: Arc::clone(&disk), syncs: AtomicU64::new(0) });
    let id = lab.here.engine.add_device("counts syncs", Arc::clone(&device) as Arc<dyn Device>);
    disk.hang();
    let synced: Vec<_> = (0..FILES)
        .map(|_| {
            let (here, file) = (Arc::clone(&lab.here), lab.here.engine.open(id, disk.backing(disk.create_file()), 0));
            lab.in_background(async move { here.engine.sync(&file, 0..u64::MAX).await.unwrap() })
        })
        .collect();
    lab.run(lab.here.sleep(SECOND));
    assert_eq!(device.syncs.load(Ordering::Relaxed), 4);
    disk.release();
    let all = || synced.iter().all(|ended| ended.load(Ordering::Relaxed));
    assert!(lab.run(lab.here.until(10 * SECOND, all)));
    assert_eq!(device.syncs.load(Ordering::Relaxed), FILES);
}
