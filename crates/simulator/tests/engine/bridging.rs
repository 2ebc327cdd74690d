//! Clean bytes between dirty ones: when they are written with them, and when never.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::DeviceError;
use engine::counters::Counter;
use engine::policy::Flight;
use simulator::{DiskOptions, Fault, FaultTarget, FaultWhat};

use crate::lab::{Lab, MILLISECOND, PAGE, SECOND, TestFile, bytes};
use crate::timed::{Terms, lab, slow, slow_terms};

/// Gaps of four pages at most are bridged.
fn terms() -> Terms {
    let flight = Flight { bridge_bytes: 4 * PAGE as u64, request_bytes: 1 << 20, ..slow_terms().flight };
    Terms { flight, background_ns: 100 * SECOND, ..slow_terms() }
}

fn bridging(disk: DiskOptions) -> Lab {
    lab(disk, terms(), &[]).0
}

/// A file of so many pages that are all in the cache.
fn resident(lab: &Lab, pages: usize) -> TestFile {
    let file = lab.file(0, pages * PAGE, 1);
    lab.run(lab.here.read(&file, 0, pages * PAGE)).unwrap();
    file
}

/// Dirties pages and syncs the file: the writes, as first page and pages.
fn written(lab: &Lab, file: &TestFile, pages: &[u64]) -> Vec<(u64, u64)> {
    let before = lab.submitted(1).len();
    lab.run(async {
        for page in pages {
            lab.here.write(file, page * PAGE as u64, PAGE, 2).await.unwrap();
        }
        lab.here.sync(file).await.unwrap();
    });
    let page = PAGE as u64;
    lab.submitted(1)[before..].iter().map(|(_, offset, len)| (offset / page, len.div_ceil(page))).collect()
}

/// What the file has to be after these pages were written.
fn right(file_pages: usize, pages: &[u64]) -> Vec<u8> {
    let mut right = bytes(1, 0, file_pages * PAGE);
    for page in pages {
        let at = *page as usize * PAGE;
        right[at..at + PAGE].copy_from_slice(&bytes(2, at as u64, PAGE));
    }
    right
}

#[test]
fn gaps_of_clean_pages_in_the_cache_are_written_where_they_are_short() {
    let lab = bridging(slow());
    let file = resident(&lab, 64);
    // A gap of one, of four, of five; a run of two, and a gap of two.
    let dirty = [3, 5, 10, 16, 17, 20];
    assert_eq!(written(&lab, &file, &dirty), [(3, 8), (16, 5)]);
    assert_eq!(lab.count(Counter::PagesBridged), 1 + 4 + 2);
    assert_eq!((lab.count(Counter::PagesWritten), lab.count(Counter::PagesDirtied)), (6, 6), "not those");
    assert_eq!(file.disk.durable(file.id), right(64, &dirty));
    let status = &lab.here.engine.status().devices[0];
    assert_eq!((status.dirty_bytes, status.dirty_runs, status.writeback_bytes), (0, 0, 0));
    let before = lab.count(Counter::ReadRequests);
    lab.run(lab.here.read(&file, 0, 64 * PAGE)).unwrap();
    assert_eq!(lab.count(Counter::ReadRequests), before, "all of it is still there");
}

#[test]
fn nothing_is_bridged_that_is_not_in_the_cache_nor_on_a_device_that_others_write_to_nor_if_nobody_asks() {
    let absent = bridging(slow());
    let file = absent.file(0, 64 * PAGE, 1);
    absent.run(absent.here.read(&file, 0, 4 * PAGE)).unwrap();
    assert_eq!(written(&absent, &file, &[1, 3, 5, 7]), [(1, 3), (5, 1), (7, 1)]);
    let shared = bridging(DiskOptions { sole_writer: false, ..slow() });
    assert_eq!(written(&shared, &resident(&shared, 64), &[1, 3]), [(1, 1), (3, 1)]);
    let unasked = lab(slow(), slow_terms(), &[]).0;
    assert_eq!(written(&unasked, &resident(&unasked, 64), &[1, 3]), [(1, 1), (3, 1)]);
    // Past the device's end zeros are read, and nothing has to be written.
    let past = bridging(slow());
    let file = resident(&past, 2);
    past.run(async {
        past.here.engine.set_size(&file.file, 64 * PAGE as u64).await.unwrap();
        past.here.write(&file, 8 * PAGE as u64, PAGE, 2).await.unwrap();
    });
    assert_eq!(past.count(Counter::PagesBridged), 0);
}

#[test]
fn a_page_that_bridges_is_stable_and_a_write_to_it_comes_after() {
    for seed in 0..20 {
        let disk = DiskOptions { bytes_per_second: 1_000_000, ..slow() };
        let lab = bridging(disk);
        let file = resident(&lab, 8);
        let (here, to) = (Arc::clone(&lab.here), file.clone());
        let synced = lab.beside(async move {
            here.write(&to, 0, PAGE, 2).await.unwrap();
            here.write(&to, 3 * PAGE as u64, PAGE, 2).await.unwrap();
            here.sync(&to).await.unwrap();
        });
        // The request takes 16 ms.
        lab.run(async {
            lab.here.sleep(seed * MILLISECOND).await;
            lab.here.write(&file, PAGE as u64, PAGE, 2).await.unwrap();
            assert!(lab.here.until(SECOND, || synced.load(Ordering::Relaxed)).await);
            lab.here.sync(&file).await.unwrap();
        });
        assert!(lab.count(Counter::PagesBridged) <= 2);
        assert_eq!(file.disk.durable(file.id), right(8, &[0, 1, 3]), "seed {seed}");
        assert_eq!(lab.here.engine.status().devices[0].dirty_bytes, 0);
    }
}

#[test]
fn a_bridge_under_which_the_file_is_cut_off_is_gone() {
    let lab = bridging(DiskOptions { bytes_per_second: 1_000_000, ..slow() });
    let file = resident(&lab, 8);
    let (here, to) = (Arc::clone(&lab.here), file.clone());
    lab.beside(async move {
        here.write(&to, 0, PAGE, 2).await.unwrap();
        here.write(&to, 5 * PAGE as u64, PAGE, 2).await.unwrap();
        let _ = here.sync(&to).await;
    });
    lab.run(async {
        lab.here.sleep(5 * MILLISECOND).await;
        assert!(lab.count(Counter::PagesBridged) > 0);
        lab.here.engine.set_size(&file.file, 2 * PAGE as u64).await.unwrap();
        lab.here.sync(&file).await.unwrap();
        lab.here.engine.discard(&file.file);
        lab.here.sleep(SECOND).await;
    });
    assert_eq!(file.disk.durable(file.id), right(2, &[0]));
    let status = lab.here.engine.status();
    assert_eq!((status.dirty_bytes, status.free_bytes), (0, status.cache_bytes), "each frame came back");
}

#[test]
fn a_gap_that_cannot_be_written_keeps_nobody_from_writing_around_it() {
    let lab = bridging(slow());
    let file = resident(&lab, 64);
    let (write, error) = (FaultTarget::Write, FaultWhat::Error(DeviceError::Io { errno: 5 }));
    let bad_page = Fault::always(write, error).on(file.id).range(2 * PAGE as u64, PAGE as u64);
    lab.here.disks[0].add_fault(bad_page);
    lab.run(async {
        lab.here.write(&file, PAGE as u64, PAGE, 2).await.unwrap();
        lab.here.write(&file, 3 * PAGE as u64, PAGE, 2).await.unwrap();
        lab.here.sync(&file).await.expect("the others are written without it");
        assert_eq!((lab.count(Counter::PagesBridged), lab.count(Counter::WriteErrors)), (1, 1));
        lab.here.write(&file, PAGE as u64, PAGE, 2).await.unwrap();
        lab.here.write(&file, 3 * PAGE as u64, PAGE, 2).await.unwrap();
        lab.here.sync(&file).await.unwrap();
        assert_eq!((lab.count(Counter::PagesBridged), lab.count(Counter::WriteErrors)), (1, 1), "not tried again");
    });
    assert_eq!(file.file.write_error(), None);
    assert_eq!(file.disk.durable(file.id), right(64, &[1, 3]));
    assert_eq!(lab.here.engine.status().devices[0].dirty_bytes, 0);
}

/// The writes of a file of one page in the cache, of which the first and the last sector are dirtied.
fn ends_of_a_page(sole_writer: bool, block_bytes: u32) -> Vec<(u64, u64)> {
    let lab = bridging(DiskOptions { sole_writer, block_bytes, ..slow() });
    let file = resident(&lab, 2);
    lab.run(async {
        lab.here.write(&file, 0, 512, 2).await.unwrap();
        lab.here.write(&file, 3584, 512, 2).await.unwrap();
        // Somebody else writes in between, on the disk.
        file.disk.change_behind(file.id, 2 * PAGE as u64, 1024, &bytes(3, 1024, 512));
        lab.here.sync(&file).await.unwrap();
    });
    let mut right = bytes(1, 0, 2 * PAGE);
    right[..512].copy_from_slice(&bytes(2, 0, 512));
    right[3584..4096].copy_from_slice(&bytes(2, 3584, 512));
    if !sole_writer && block_bytes == 512 {
        right[1024..1536].copy_from_slice(&bytes(3, 1024, 512));
    }
    assert_eq!(file.disk.durable(file.id), right);
    lab.submitted(1).iter().map(|(_, offset, len)| (*offset, *len)).collect()
}

#[test]
fn a_page_with_a_gap_between_dirty_sectors_is_one_request_unless_others_may_have_changed_what_is_between() {
    assert_eq!(ends_of_a_page(true, 512), [(0, 4096)]);
    assert_eq!(ends_of_a_page(false, 512), [(0, 512), (3584, 512)]);
    assert_eq!(ends_of_a_page(false, 4096), [(0, 4096)], "the unit is the block");
}

#[test]
fn where_others_write_a_run_goes_on_over_a_pages_end_only_through_what_is_dirty() {
    let lab = bridging(DiskOptions { sole_writer: false, ..slow() });
    let file = resident(&lab, 4);
    lab.run(async {
        // Up to the end of a page, all of one, and the next from its second sector on.
        lab.here.write(&file, 1024, 3072 + PAGE, 2).await.unwrap();
        lab.here.write(&file, 2 * PAGE as u64 + 512, 512, 2).await.unwrap();
        lab.here.sync(&file).await.unwrap();
    });
    let writes: Vec<_> = lab.submitted(1).iter().map(|(_, offset, len)| (*offset, *len)).collect();
    assert_eq!(writes, [(1024, 3072 + PAGE as u64), (2 * PAGE as u64 + 512, 512)]);
}
