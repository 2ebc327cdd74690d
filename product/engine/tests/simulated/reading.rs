//! Reading: hits, misses, readahead, eviction, guards.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use afflux_engine::counters::Counter;
use afflux_engine::{Advice, Device, Limits, Operation, Request};
use afflux_simulator::{Disk, DiskOptions, Random};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, bytes};

// rule: 1: a hit asks nothing of the device, and costs no more than its budget
// kept in: `product/pages/src/cache/hit.rs`
#[test]
fn a_hit_asks_nothing_of_the_device() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 10_000, 1);
    lab.run(async {
        assert_eq!(lab.here.read(&file, 0, 20_000).await.unwrap(), bytes(1, 0, 10_000));
        lab.here.sleep(SECOND).await;
        let requests = lab.count(Counter::ReadRequests);
        let mut into = [0; 3000];
        assert_eq!(lab.here.engine.try_read(&file.file, 5000, &mut into), Some(3000));
        assert_eq!(into[..], bytes(1, 5000, 3000));
        assert_eq!(lab.here.engine.try_read(&file.file, 9000, &mut into), Some(1000));
        assert_eq!(lab.here.engine.try_read(&file.file, 10_000, &mut into), Some(0));
        assert_eq!(lab.count(Counter::ReadRequests), requests);
    });
}

#[test]
fn a_large_file_goes_through_a_small_cache() {
    let lab = EngineFixture::new(1, 64, &[DiskOptions::default()], &[]);
    let file = lab.file(0, 1000 * PAGE, 1);
    lab.run(async {
        for _ in 0..2 {
            for at in (0..1000).step_by(7) {
                let got = lab.here.read(&file, at * PAGE as u64, 7 * PAGE).await.unwrap();
                assert_eq!(got, bytes(1, at * PAGE as u64, got.len()));
            }
        }
        let status = lab.here.engine.status();
        assert_eq!(status.cache_bytes, 64 * PAGE as u64);
        assert!(lab.count(Counter::PagesEvicted) > 1900);
    });
}

// rule: 2: no page is clean before it is written, and callers get the error until then
#[test]
fn dirty_pages_are_never_evicted() {
    let lab = EngineFixture::new(1, 64, &[DiskOptions::default()], &["dirty_ratio=90", "dirty_background_ratio=100"]);
    let (dirty, clean) = (lab.file(0, 0, 0), lab.file(0, 500 * PAGE, 1));
    lab.run(async {
        lab.here.write(&dirty, 0, 20 * PAGE, 2).await.unwrap();
        for at in 0..500 {
            lab.here.read(&clean, at * PAGE as u64, PAGE).await.unwrap();
        }
        assert_eq!(dirty.file.dirty_bytes(), 20 * PAGE as u64);
        let requests = lab.count(Counter::ReadRequests);
        assert_eq!(lab.here.read(&dirty, 0, 20 * PAGE).await.unwrap(), bytes(2, 0, 20 * PAGE));
        assert_eq!(lab.count(Counter::ReadRequests), requests);
    });
}

#[test]
fn a_sequential_reader_is_read_ahead_of() {
    let requests = |knob: &str| {
        let lab = EngineFixture::new(1, 1024, &[DiskOptions::default()], &[knob]);
        let file = lab.file(0, 512 * PAGE, 1);
        lab.run(async {
            for at in 0..512 {
                lab.here.read(&file, at * PAGE as u64, PAGE).await.unwrap();
            }
        });
        (lab.count(Counter::ReadRequests), lab.here.now_ns())
    };
    let (with, without) = (requests("readahead_bytes_max=1MiB"), requests("readahead_bytes_max=0"));
    assert_eq!(without.0, 512);
    assert!(with.0 < 100 && with.1 < without.1 / 2, "with {with:?}, without {without:?}");
}

#[test]
fn reading_ahead_takes_frames_for_absent_pages_alone() {
    let lab = EngineFixture::new(1, 2048, &[DiskOptions::default()], &[]);
    let file = lab.file(0, 512 * PAGE, 1);
    lab.run(async {
        // The first page is absent, and so is every second page of the readahead after it.
        for at in (2..512).step_by(2) {
            lab.here.write(&file, at * PAGE as u64, PAGE, 1).await.unwrap();
        }
        lab.here.sync(&file).await.unwrap();
        for at in 0..12 {
            lab.here.read(&file, at * PAGE as u64, PAGE).await.unwrap();
        }
    });
    let (ahead, read) = (lab.count(Counter::ReadaheadPages), lab.count(Counter::PageIn) / PAGE as u64);
    assert!(0 < ahead && ahead + 1 == read, "{ahead} pages taken for reading ahead, {read} read in all");
}

// rule: 4: bytes under a device's write, or behind a guard, do not change
#[test]
fn a_guard_shows_what_it_showed_whatever_is_written_meanwhile() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 4 * PAGE, 1);
    lab.run(async {
        let pages = lab.here.engine.read_pinned(&file.file, 100, 2 * PAGE).await.unwrap().unwrap();
        assert_eq!(pages.len(), 2 * PAGE);
        lab.here.write(&file, 0, 4 * PAGE, 2).await.unwrap();
        lab.here.sync(&file).await.unwrap();
        lab.here.engine.set_size(&file.file, 0).await.unwrap();
        let shown: Vec<u8> = pages.slices().flatten().copied().collect();
        assert_eq!(shown, bytes(1, 100, 2 * PAGE));
        assert_eq!(pages.as_slice(), None, "three pages are no slice");
        drop(pages);
        assert_eq!(lab.here.engine.status().pinned_bytes, 0);
        lab.here.engine.discard(&file.file);
        lab.here.sleep(MILLISECOND).await;
        let status = lab.here.engine.status();
        assert_eq!(status.free_bytes, status.cache_bytes);
    });
}

#[test]
fn readers_of_one_page_share_one_request() {
    let lab = EngineFixture::new(1, 256, &[DiskOptions::default()], &["readahead_bytes_max=0"]);
    let file = lab.file(0, PAGE, 1);
    for _ in 0..10 {
        let (here, from) = (Arc::clone(&lab.here), file.clone());
        lab.in_background(async move {
            assert_eq!(here.read(&from, 0, PAGE).await.unwrap(), bytes(1, 0, PAGE));
        });
    }
    lab.run(lab.here.sleep(SECOND));
    assert_eq!(lab.count(Counter::ReadRequests), 1);
}

#[test]
fn a_file_changed_behind_is_read_again_after_it_was_told() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 3 * PAGE, 1);
    lab.run(async {
        lab.here.read(&file, 0, 3 * PAGE).await.unwrap();
        file.disk.change_behind(file.id, 5000, 0, &bytes(2, 0, 5000));
        let seen = file.file.change_count();
        assert!(lab.here.engine.try_invalidate(&file.file, 5000, seen).await);
        assert_eq!(lab.here.read(&file, 0, 3 * PAGE).await.unwrap(), bytes(2, 0, 5000));
    });
}

#[test]
fn readers_of_a_hung_device_leave_memory_for_others() {
    for readers in [4, 16, 64] {
        let lab = EngineFixture::new(1, 256, &[DiskOptions::default(), DiskOptions::default()], &[]);
        let good = lab.file(0, 600 * PAGE, 1);
        lab.here.disks[1].hang();
        for reader in 0..readers {
            let (here, stuck) = (Arc::clone(&lab.here), lab.file(1, 100 * PAGE, 2));
            lab.in_background(async move {
                let _ = here.read(&stuck, reader * PAGE as u64, 64 * PAGE).await;
            });
        }
        lab.run(lab.here.sleep(SECOND));
        let (here, from) = (Arc::clone(&lab.here), good.clone());
        let ended = lab.in_background(async move {
            for at in 0..600 {
                here.read(&from, at * PAGE as u64, PAGE).await.unwrap();
            }
        });
        let done = lab.run(lab.here.until(10 * SECOND, || ended.load(Ordering::Relaxed)));
        assert!(done, "{readers} readers of a hung device: {:?}", lab.here.engine.status());
    }
}

#[test]
fn a_size_asked_for_before_a_write_of_ours_cuts_nothing() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, PAGE, 1);
    lab.run(async {
        let (size, seen) = (file.disk.size(file.id), file.file.change_count());
        lab.here.write(&file, 0, 3 * PAGE, 2).await.unwrap();
        lab.here.engine.sync(&file.file, 0..u64::MAX).await.unwrap();
        assert!(!lab.here.engine.try_invalidate(&file.file, size, seen).await);
        assert_eq!(lab.here.read(&file, 0, 4 * PAGE).await.unwrap(), bytes(2, 0, 3 * PAGE));
    });
}

#[test]
fn a_size_asked_for_in_the_middle_of_a_write_of_ours_cuts_nothing() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, PAGE, 1);
    let (here, of) = (Arc::clone(&lab.here), file.clone());
    let ended = lab.in_background(async move {
        here.write(&of, 0, 3 * PAGE, 2).await.unwrap();
        here.engine.sync(&of.file, 0..u64::MAX).await.unwrap();
    });
    lab.run(async {
        while lab.submitted(1).is_empty() {
            lab.here.sleep(1_000).await;
        }
        let (size, seen) = (file.disk.size(file.id), file.file.change_count());
        assert_eq!(size, PAGE as u64, "not there yet");
        while !ended.load(Ordering::Relaxed) {
            lab.here.sleep(SECOND).await;
        }
        assert!(!lab.here.engine.try_invalidate(&file.file, size, seen).await);
        assert_eq!(lab.here.read(&file, 0, 4 * PAGE).await.unwrap(), bytes(2, 0, 3 * PAGE));
    });
}

#[test]
fn a_size_asked_for_before_one_was_set_changes_nothing() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, PAGE, 1);
    lab.run(async {
        for size in [3 * PAGE as u64, 100] {
            let (old, seen) = (file.disk.size(file.id), file.file.change_count());
            lab.here.engine.set_size(&file.file, size).await.unwrap();
            assert!(!lab.here.engine.try_invalidate(&file.file, old, seen).await);
            assert_eq!(file.file.size(), size);
        }
    });
}

/// Pages found and pages not found by all reads so far.
fn found(lab: &EngineFixture) -> (u64, u64) {
    (lab.count(Counter::ReadHitPages), lab.count(Counter::ReadMissPages))
}

// rule: 1: a page counts as a hit if it was there when its call came, and each page of a read counts once
#[test]
fn random_reads_find_what_part_of_the_file_is_in_the_cache() {
    let (cached, all, block, calls) = (512, 8192, 4, 6_000);
    for shown in [false, true] {
        let lab = EngineFixture::new(1, cached, &[DiskOptions::default()], &[]);
        let file = lab.laid_out(all * PAGE as u64);
        lab.run(async {
            let (engine, mut random) = (&lab.here.engine, Random::new(5));
            engine.advise(&file.file, 0..u64::MAX, Advice::Random);
            let mut into = vec![0; block as usize * PAGE];
            for _ in 0..calls {
                let offset = random.below(all / block) * block * PAGE as u64;
                if shown {
                    engine.read_pinned(&file.file, offset, into.len()).await.unwrap().unwrap();
                } else if engine.try_read(&file.file, offset, &mut into).is_none() {
                    engine.read(&file.file, offset, &mut into).await.unwrap();
                }
            }
        });
        let (hits, misses) = found(&lab);
        assert_eq!(hits + misses, calls * block, "each page of each call is counted once");
        let per_mille = hits * 1000 / (hits + misses);
        // 1/16 of the file is in the cache.
        assert!((40..=80).contains(&per_mille), "shown {shown}: {per_mille} of 1,000 pages were there");
    }
}

// rule: 1: a page counts as a hit if it was there when its call came, and each page of a read counts once
// kept in: `product/engine/src/reading/mod.rs`
#[test]
fn a_page_is_found_if_it_was_there_when_the_call_came() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 64 * PAGE, 1);
    lab.run(async {
        let engine = &lab.here.engine;
        engine.advise(&file.file, 0..u64::MAX, Advice::Random);
        // The read is not aligned and covers two pages.
        lab.here.read(&file, 10 * PAGE as u64 + 100, PAGE).await.unwrap();
        assert_eq!(found(&lab), (0, 2));
        // The two pages are in the middle of eight.
        lab.here.read(&file, 6 * PAGE as u64, 8 * PAGE).await.unwrap();
        assert_eq!(found(&lab), (2, 8));
        engine.read_pinned(&file.file, 13 * PAGE as u64, 2 * PAGE).await.unwrap().unwrap();
        assert_eq!(found(&lab), (3, 9));
        assert!(engine.try_read_pinned(&file.file, 13 * PAGE as u64 + 100, PAGE).is_some());
        assert_eq!(found(&lab), (5, 9));
        // A call that finds too few pages and does not wait is no read.
        assert!(engine.try_read(&file.file, 14 * PAGE as u64, &mut [0; 2 * PAGE]).is_none());
        assert_eq!(found(&lab), (5, 9));
        // A write that needs the rest of a page is no read either.
        lab.here.write(&file, 40 * PAGE as u64 + 1, 10, 2).await.unwrap();
        assert_eq!(found(&lab), (5, 9));
    });
}

#[test]
fn pages_that_were_shown_are_evicted_once_nobody_looks() {
    let lab = EngineFixture::new(1, 512, &[DiskOptions::default()], &[]);
    let file = lab.laid_out(2048 * PAGE as u64);
    lab.run(async {
        let engine = &lab.here.engine;
        engine.advise(&file.file, 0..u64::MAX, Advice::Random);
        let kept = engine.read_pinned(&file.file, 0, PAGE).await.unwrap().unwrap();
        for page in 0..2048 {
            // The second and third time the guard is lent.
            for _ in 0..3 {
                assert!(engine.read_pinned(&file.file, page * PAGE as u64, PAGE).await.unwrap().is_some());
            }
        }
        assert!(engine.try_read_pinned(&file.file, 0, PAGE).is_some(), "a guard keeps its page");
        drop(kept);
    });
    assert!(lab.count(Counter::PagesEvicted) >= 2048 - 512);
}

#[test]
fn a_page_that_another_call_is_reading_is_not_found() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 64 * PAGE, 1);
    lab.here.engine.advise(&file.file, 0..u64::MAX, Advice::Random);
    let (here, to) = (Arc::clone(&lab.here), file.clone());
    let first = lab.in_background(async move {
        here.read(&to, 0, 4 * PAGE).await.unwrap();
    });
    lab.run(async {
        assert!(lab.here.until(SECOND, || lab.count(Counter::ReadRequests) == 1).await);
        assert!(!first.load(Ordering::Relaxed));
        lab.here.read(&file, 2 * PAGE as u64, 4 * PAGE).await.unwrap();
        assert!(lab.here.until(SECOND, || first.load(Ordering::Relaxed)).await);
    });
    assert_eq!(found(&lab), (0, 8));
    assert_eq!(lab.count(Counter::ReadJoinedPages), 2);
}

/// Notes of each read whether it is ahead of its readers.
struct NotesReads {
    disk: Arc<Disk>,
    ahead: Mutex<Vec<bool>>,
}

impl Device for NotesReads {
    fn limits(&self) -> &Limits {
        self.disk.limits()
    }

    fn submit(&self, request: Request) {
        if matches!(request.operation(), Operation::Read { .. }) {
            self.ahead.lock().unwrap().push(request.is_ahead());
        }
        self.disk.submit(request);
    }

    fn free_bytes_hint(&self) -> u64 {
        self.disk.free_bytes_hint()
    }
}

// rule: a device knows of each read whether a caller waits for it
// kept in: `product/engine/src/reading/in_flight.rs`
#[test]
fn a_read_that_completes_a_page_is_awaited_as_a_miss_is() {
    const PAGES: usize = 256;
    let lab = EngineFixture::new(1, 1024, &[DiskOptions::default()], &[]);
    let disk = Arc::clone(&lab.here.disks[0]);
    let device = Arc::new(NotesReads { disk: Arc::clone(&disk), ahead: Mutex::default() });
    let id = lab.here.engine.add_device("notes reads", Arc::clone(&device) as Arc<dyn Device>);
    let file = lab.here.engine.open(id, disk.backing(disk.create_file()), (PAGES * PAGE) as u64);
    let read = |page: usize| {
        assert_eq!(lab.run(lab.here.engine.read(&file, (page * PAGE) as u64, &mut [0; PAGE])), Ok(PAGE));
        std::mem::take(&mut *device.ahead.lock().unwrap())
    };
    lab.run(async { lab.here.engine.write(&file, 200 * PAGE as u64, &[1; 512]).await.unwrap() });
    assert_eq!(read(200), [false], "the rest of the page");
    assert_eq!(read(100), [false], "a miss");
    let in_order: Vec<bool> = (0..100).flat_map(read).collect();
    assert!(in_order.contains(&true) && !in_order[0], "{in_order:?}");
}
