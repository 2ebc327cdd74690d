//! The times at which dirty data is written, and the effect of changes meanwhile.

//! rule: a write carries no byte that no client wrote, except up to whole blocks of the device
//! kept in: `product/engine/src/writeback/batch.rs`

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::Platform;
use afflux_engine::counters::Counter;
use afflux_engine::settings::Knob;
use afflux_simulator::{DiskOptions, Memory, OWN_POLICY, Random, Setup, WorldOptions};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, bytes};

#[test]
fn data_below_the_background_threshold_waits_for_its_expiry() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        lab.here.write(&file, 0, 4 * PAGE, 2).await.unwrap();
        lab.here.sleep(29 * SECOND).await;
        assert_eq!(lab.count(Counter::WriteRequests), 0, "30 s have not passed");
        // The age is 30 s, checked every 5 s.
        lab.here.sleep(7 * SECOND).await;
    });
    assert!(file.file.is_clean());
    assert_eq!(file.disk.contents(file.id), bytes(2, 0, 4 * PAGE));
}

#[test]
fn data_above_the_background_threshold_is_written_at_once() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 0, 0);
    // Of 256 frames half may be dirty. At a tenth of that, 13 pages, writeback starts.
    lab.run(async {
        lab.here.write(&file, 0, 40 * PAGE, 2).await.unwrap();
        lab.here.sleep(SECOND).await;
    });
    assert!(lab.count(Counter::PagesWritten) >= 27, "{} pages", lab.count(Counter::PagesWritten));
}

#[test]
fn a_changed_expiry_acts_at_once() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        lab.here.write(&file, 0, PAGE, 2).await.unwrap();
        lab.here.sleep(SECOND).await;
        lab.here.engine.set_knob(Knob::ExpireCentisecs, 50).unwrap();
        lab.here.sleep(SECOND).await;
    });
    assert!(file.file.is_clean());
}

#[test]
fn without_looks_for_expired_data_nothing_is_written_because_of_its_age() {
    let lab = EngineFixture::new(
        1,
        256,
        &[DiskOptions::default()],
        &["dirty_writeback_centisecs=0", "dirty_expire_centisecs=1"],
    );
    let (file, synced) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
    let ended = lab.in_background({
        let (here, file) = (Arc::clone(&lab.here), file.clone());
        async move { here.write(&file, 0, PAGE, 2).await.unwrap() }
    });
    lab.run(async {
        lab.here.sleep(3600 * SECOND).await;
        assert!(ended.load(Ordering::Relaxed) && !file.file.is_clean());
        lab.here.write(&synced, 0, PAGE, 2).await.unwrap();
        lab.here.sync(&synced).await.unwrap();
        lab.here.engine.set_knob(Knob::WritebackCentisecs, 500).unwrap();
        lab.here.sleep(SECOND).await;
    });
    assert!(file.file.is_clean(), "it acts at once when it is set again");
}

#[test]
fn files_that_nobody_syncs_are_flushed_as_soon_as_looks_are_on_again() {
    let knobs = ["dirty_writeback_centisecs=0", "dirty_expire_centisecs=1", "dirty_background_ratio=0"];
    let lab = EngineFixture::new(1, 256, &[DiskOptions::default()], &knobs);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        lab.here.write(&file, 0, 40 * PAGE, 2).await.unwrap();
        lab.here.sleep(3600 * SECOND).await;
        assert_eq!(lab.count(Counter::PagesWritten), 40, "over the background threshold");
        assert_eq!(lab.submitted(2).len(), 0, "but not flushed");
        lab.here.engine.set_knob(Knob::WritebackCentisecs, 500).unwrap();
        lab.here.sleep(SECOND).await;
    });
    assert_eq!(lab.submitted(2).len(), 1);
}

#[test]
fn what_was_synced_and_dirtied_anew_is_as_old_as_it_is() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        // The page expires after 30 s.
        lab.here.write(&file, 0, PAGE, 1).await.unwrap();
        lab.here.sleep(SECOND).await;
        lab.here.sync(&file).await.unwrap();
        lab.here.sleep(26 * SECOND).await;
        lab.here.write(&file, 0, PAGE, 2).await.unwrap();
        lab.here.sleep(25 * SECOND).await;
        assert!(!file.file.is_clean(), "27 s before there was something dirty, and it is long written");
        lab.here.sleep(10 * SECOND).await;
        assert!(file.file.is_clean());
    });
}

// rule: 4: bytes under a device's write, or behind a guard, do not change
// kept in: `product/engine/src/writing/page.rs`
#[test]
fn a_page_under_writeback_is_stable() {
    for seed in 0..20 {
        let options = DiskOptions { bytes_per_second: 1_000_000, ..DiskOptions::default() };
        let lab = EngineFixture::new(seed, 256, &[options], &["dirty_background_ratio=0"]);
        let file = lab.file(0, 0, 0);
        let (here, to) = (Arc::clone(&lab.here), file.clone());
        let ended = lab.in_background(async move {
            for version in 1..400 {
                here.write(&to, 0, PAGE, version).await.unwrap();
                here.sleep(50_000).await;
            }
        });
        // The disk fetches the page in pieces over 4 ms, in which it is rewritten many times. Each final image is one
        // version.
        let mut images = 0;
        lab.run(async {
            while !ended.load(Ordering::Relaxed) {
                let image = file.disk.contents(file.id);
                if !image.is_empty() {
                    assert!((1..400).any(|version| bytes(version, 0, PAGE) == image), "seed {seed}: mixed versions");
                    images += 1;
                }
                lab.here.sleep(MILLISECOND).await;
            }
        });
        assert!(images > 5);
        assert!(lab.count(Counter::PagesCopiedStable) > 0, "rewrites went to new frames");
    }
}

#[test]
fn a_truncation_in_the_middle_of_writeback_leaves_nothing_behind() {
    for seed in 0..30 {
        let options = DiskOptions { bytes_per_second: 4_000_000, request_bytes_max: 8192, ..DiskOptions::default() };
        let lab = EngineFixture::new(seed, 256, &[options], &[]);
        let file = lab.file(0, 0, 0);
        let (here, of) = (Arc::clone(&lab.here), file.clone());
        lab.run(async {
            lab.here.write(&file, 0, 60 * PAGE + 77, 2).await.unwrap();
            let ended = lab.in_background(async move {
                let _ = here.sync(&of).await;
            });
            lab.here.sleep(seed * 2 * MILLISECOND).await;
            lab.here.engine.set_size(&file.file, 20_001).await.unwrap();
            assert_eq!(file.disk.size(file.id), 20_001, "on the device too before it returns");
            lab.here.engine.set_size(&file.file, 200_000).await.unwrap();
            assert!(lab.here.until(10 * SECOND, || ended.load(Ordering::Relaxed)).await);
            lab.here.sync(&file).await.unwrap();
        });
        let mut right = bytes(2, 0, 200_000);
        right[20_001..].fill(0);
        assert_eq!(file.disk.durable(file.id), right, "seed {seed}");
        assert_eq!(lab.run(lab.here.read(&file, 0, 300_000)).unwrap(), right, "seed {seed}");
    }
}

#[test]
fn whole_sectors_are_written_without_reading_and_parts_are_read_first() {
    let lab = EngineFixture::new(1, 256, &[DiskOptions::default()], &["readahead_bytes_max=0"]);
    let file = lab.file(0, 8 * PAGE, 1);
    lab.run(async {
        lab.here.write(&file, PAGE as u64 + 512, 1024, 2).await.unwrap();
        lab.here.sync(&file).await.unwrap();
        assert_eq!(lab.count(Counter::ReadRequests), 0);
        lab.here.write(&file, 2 * PAGE as u64 + 100, 1000, 3).await.unwrap();
        lab.here.sync(&file).await.unwrap();
        assert!(lab.count(Counter::ReadRequests) >= 1);
    });
    let mut right = bytes(1, 0, 8 * PAGE);
    right[PAGE + 512..PAGE + 1536].copy_from_slice(&bytes(2, PAGE as u64 + 512, 1024));
    right[2 * PAGE + 100..2 * PAGE + 1100].copy_from_slice(&bytes(3, 2 * PAGE as u64 + 100, 1000));
    assert_eq!(file.disk.durable(file.id), right);
    assert_eq!(lab.run(lab.here.read(&file, 0, 8 * PAGE)).unwrap(), right);
}

#[test]
fn a_sequential_write_goes_out_in_large_requests_and_in_order() {
    let lab = EngineFixture::new(1, 2048, &[DiskOptions { depth: 1, ..DiskOptions::default() }], &[]);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        lab.here.write(&file, 0, 512 * PAGE, 2).await.unwrap();
        lab.here.sync(&file).await.unwrap();
    });
    let writes = lab.submitted(1);
    assert!(writes.len() <= 8, "{writes:?}");
    assert!(writes.is_sorted_by_key(|(_, offset, _)| *offset), "{writes:?}");
}

#[test]
fn a_discarded_file_is_not_written() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        lab.here.write(&file, 0, 10 * PAGE, 2).await.unwrap();
        lab.here.engine.discard(&file.file);
        lab.here.sleep(60 * SECOND).await;
        assert!(lab.here.read(&file, 0, 10).await.is_err());
        let status = lab.here.engine.status();
        assert_eq!((status.dirty_bytes, status.free_bytes), (0, status.cache_bytes));
    });
    assert_eq!(lab.count(Counter::WriteRequests), 0);
    assert_eq!(lab.count(Counter::PagesTruncated), 10);
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let hash = |seed| {
        let lab = EngineFixture::new(seed, 64, &[DiskOptions::default(), DiskOptions::default()], &["dirty_ratio=20"]);
        for task in 0..6 {
            let (here, file) = (Arc::clone(&lab.here), lab.file(task % 2, 20_000, 1));
            lab.in_background(async move {
                for turn in 0..20_u64 {
                    here.write(&file, turn * 1777, 3000, turn + 2).await.unwrap();
                    here.read(&file, turn * 900, 5000).await.unwrap();
                    here.platform.preemption_point().await;
                }
                here.sync(&file).await.unwrap();
            });
        }
        lab.run(lab.here.sleep(100 * SECOND));
        assert_eq!(lab.here.dirty_bytes(), 0);
        lab.world.trace_hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

/// A quarter of a device's slots is reserved for readers.
// rule: 8: requests in flight, retries and readahead are bounded
// kept in: `product/engine/src/writeback/requests.rs`
#[test]
fn the_flusher_never_passes_the_depth_of_its_device_or_its_knob() {
    for (depth, knob, most) in [(4, 16, 3), (32, 3, 3), (1, 16, 1)] {
        let options = DiskOptions { depth, request_bytes_max: 4096, ..DiskOptions::default() };
        let lab = EngineFixture::new(1, 256, &[options], &[&format!("writeback_depth={knob}")]);
        let file = lab.file(0, 0, 0);
        lab.run(async {
            lab.here.write(&file, 0, 100 * PAGE, 2).await.unwrap();
            lab.here.sync(&file).await.unwrap();
        });
        assert_eq!(lab.here.disks[0].data_in_flight_max(), most);
    }
}

#[test]
fn pages_that_are_always_written_to_are_written_back_once_an_age() {
    let knobs = ["dirty_expire_centisecs=100", "dirty_writeback_centisecs=10", "dirty_background_ratio=100"];
    let lab =
        EngineFixture::new(1, 1024, &[DiskOptions { latency_ns: 5 * MILLISECOND, ..DiskOptions::default() }], &knobs);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        for at in 0..20_000 {
            lab.here.write(&file, at % 16 * PAGE as u64, PAGE, at).await.unwrap();
            lab.here.sleep(MILLISECOND).await;
        }
    });
    let pages = lab.count(Counter::PagesWritten);
    assert!((16 * 15..16 * 30).contains(&pages), "{pages} pages written in 20 s of 16 that may wait for 1 s");
}

/// The writes for a cached page whose first and last sectors are dirtied, while another program changes a third sector
/// on the disk.
fn ends_of_a_page(block_bytes: u32) -> Vec<(u64, u64)> {
    let lab = EngineFixture::new(1, 256, &[DiskOptions { block_bytes, ..DiskOptions::default() }], &[]);
    let file = lab.file(0, 2 * PAGE, 1);
    lab.run(async {
        lab.here.read(&file, 0, 2 * PAGE).await.unwrap();
        lab.here.write(&file, 0, 512, 2).await.unwrap();
        lab.here.write(&file, 3584, 512, 2).await.unwrap();
        file.disk.change_behind(file.id, 2 * PAGE as u64, 1024, &bytes(3, 1024, 512));
        lab.here.sync(&file).await.unwrap();
    });
    let mut right = bytes(1, 0, 2 * PAGE);
    right[..512].copy_from_slice(&bytes(2, 0, 512));
    right[3584..4096].copy_from_slice(&bytes(2, 3584, 512));
    if block_bytes == 512 {
        right[1024..1536].copy_from_slice(&bytes(3, 1024, 512));
    }
    assert_eq!(file.disk.durable(file.id), right);
    lab.submitted(1).iter().map(|(_, offset, len)| (*offset, *len)).collect()
}

#[test]
fn what_somebody_else_wrote_between_two_dirty_sectors_is_not_undone() {
    assert_eq!(ends_of_a_page(512), [(0, 512), (3584, 512)]);
    assert_eq!(ends_of_a_page(4096), [(0, 4096)], "the unit is the block");
}

#[test]
fn a_run_goes_on_over_a_pages_end_only_through_what_is_dirty() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 4 * PAGE, 1);
    lab.run(async {
        lab.here.read(&file, 0, 4 * PAGE).await.unwrap();
        // Dirties the end of a page, a whole page, and the next from its second sector on.
        lab.here.write(&file, 1024, 3072 + PAGE, 2).await.unwrap();
        lab.here.write(&file, 2 * PAGE as u64 + 512, 512, 2).await.unwrap();
        lab.here.sync(&file).await.unwrap();
    });
    let writes: Vec<_> = lab.submitted(1).iter().map(|(_, offset, len)| (*offset, *len)).collect();
    assert_eq!(writes, [(1024, 3072 + PAGE as u64), (2 * PAGE as u64 + 512, 512)]);
}

#[test]
fn scattered_rewrites_write_what_was_written_alone() {
    // Each run costs this disk a second: nowhere is it dearer to leave out clean sectors.
    let setup = Setup::of(OWN_POLICY).unwrap();
    let lab = EngineFixture::on_disk("usb-stick", WorldOptions::seed(1), Memory::Stamped(64 << 20), setup);
    let (pages, file) = (2048, lab.laid_out(2048 * PAGE as u64));
    lab.run(async {
        let (engine, mut random, mut bytes) = (&lab.here.engine, Random::new(3), vec![0; pages * PAGE]);
        engine.read(&file.file, 0, &mut bytes).await.unwrap();
        for _ in 0..2 * pages {
            engine.write(&file.file, random.below(pages as u64) * PAGE as u64, &bytes[..PAGE]).await.unwrap();
        }
        lab.here.sync(&file).await.unwrap();
    });
    assert_eq!(lab.count(Counter::PageOut), lab.count(Counter::PagesWritten) * PAGE as u64);
}
