//! Reclaim can evict every clean page, and does so soon.

//! rule: dirty pages that reclaim meets are written by their own device, and are scanned once
//! kept in: `product/engine/src/reclaim.rs`
//! rule: every clean page without a user can be evicted, after a short scan
//! kept in: `product/engine/src/reclaim.rs`
//! rule: frames are freed before a reader needs them, and a reader without enough recycles for microseconds
//! kept in: `product/engine/src/reclaim.rs`

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::counters::Counter;
use afflux_engine::{DeviceError, Error, Platform, Policies};
use afflux_simulator::{
    CpuOptions, DiskOptions, Fault, FaultTarget, FaultWhat, Memory, Setup, SimMachine, World, WorldOptions,
};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, TestFile, bytes};

#[test]
fn a_page_that_was_completed_while_the_hand_passed_can_be_evicted() {
    let slow = DiskOptions { latency_ns: 100 * MILLISECOND, ..DiskOptions::default() };
    // This policy evicts every page that was used once; others retain some for good.
    let policies = Policies { eviction: afflux_linux_policies::TWO_LISTS, ..Policies::default() };
    let lab =
        EngineFixture::with_policies(1, 64, &[slow, DiskOptions::default()], &["readahead_bytes_max=0"], policies);
    let (partial, other) = (lab.file(0, 8 * PAGE, 1), lab.file(1, 500 * PAGE, 1));
    lab.run(async {
        for page in 0..8 {
            lab.here.write(&partial, page * PAGE as u64, 512, 2).await.unwrap();
        }
        lab.here.sync(&partial).await.unwrap();
    });
    for page in 0..8 {
        let (here, from) = (Arc::clone(&lab.here), partial.clone());
        lab.in_background(async move { drop(here.read(&from, page * PAGE as u64, PAGE).await.unwrap()) });
    }
    let pass_over_all = async || {
        for page in 0..500 {
            lab.here.read(&other, page * PAGE as u64, PAGE).await.unwrap();
        }
    };
    lab.run(async {
        // The rest of each page is being read meanwhile.
        lab.here.sleep(MILLISECOND).await;
        pass_over_all().await;
        lab.here.sleep(SECOND).await;
        pass_over_all().await;
    });
    let mut into = [0; PAGE];
    let here = |page: u64, into: &mut [u8]| lab.here.engine.try_read(&partial.file, page * PAGE as u64, into).is_some();
    let left = (0..8).filter(|page| here(*page, &mut into)).count();
    assert_eq!(left, 0, "pages stay though all others were evicted twice over");
}

#[test]
fn a_reader_does_not_sleep_while_there_are_pages_to_look_at() {
    let lab = EngineFixture::new(1, 8192, &[DiskOptions::default()], &["readahead_bytes_max=0"]);
    let (used, new) = (lab.file(0, 8000 * PAGE, 1), lab.file(0, 300 * PAGE, 1));
    lab.run(async {
        for _ in 0..3 {
            for at in (0..8000).step_by(50) {
                lab.here.read(&used, at * PAGE as u64, 50 * PAGE).await.unwrap();
            }
        }
        let started = lab.here.now_ns();
        for page in 0..300 {
            lab.here.read(&new, page * PAGE as u64, PAGE).await.unwrap();
        }
        let took = lab.here.now_ns() - started;
        assert!(took < 50 * MILLISECOND, "300 pages took {took} ns of a disk that needs 43 ms");
    });
}

/// Reads a file twice the size of the cache, page by page, from a disk that leaves time for others. Returns how often
/// the reader found too few frames, and the number of free frames at the end.
fn stream_through(frames: u64) -> (u64, u64) {
    let lab = EngineFixture::new(1, frames, &[DiskOptions::default()], &["readahead_bytes_max=0"]);
    let pages = 2 * frames as usize;
    let file = lab.file(0, pages * PAGE, 1);
    lab.run(async {
        for page in 0..pages {
            lab.here.read(&file, (page * PAGE) as u64, PAGE).await.unwrap();
        }
        lab.here.sleep(SECOND).await;
        (lab.count(Counter::AllocStall), lab.here.engine.status().free_bytes / PAGE as u64)
    })
}

#[test]
fn frames_are_freed_before_a_reader_needs_them_except_in_a_small_cache() {
    let (stalls, free) = stream_through(1024);
    assert_eq!(stalls, 0, "it never found too few");
    assert!((16..=24 + 32).contains(&free), "{free} are free, and the marks are 16 and 24");
    let (stalls, free) = stream_through(1020);
    // The frames that were recycled last, and those of their nodes.
    assert!(stalls > 0 && free < 32 + 3, "{stalls} stalls, {free} free");
}

#[test]
fn a_reader_that_finds_too_little_recycles_for_microseconds_and_goes_on() {
    let world = World::new(WorldOptions::machine(1, CpuOptions::count(1)));
    let memory = Memory::Whole(4096 * PAGE as u64);
    let setup = Setup::default().with_knobs(&["readahead_bytes_max=0"]).unwrap();
    let machine = SimMachine::with_disks(&world, memory, setup, &[DiskOptions::default()]).unwrap();
    let (engine, disk) = (Arc::clone(&machine.engine), &machine.disks[0]);
    let id = disk.create_file();
    let size = 8192 * PAGE;
    disk.change_behind(id, size as u64, 0, &vec![1; size]);
    let file = engine.open(machine.devices[0], disk.backing(id), size as u64);
    world
        .run(async {
            let mut into = vec![0; 256 * PAGE];
            for at in (0..size).step_by(into.len()) {
                assert_eq!(engine.read(&file, at as u64, &mut into).await.unwrap(), into.len());
            }
        })
        .unwrap();
    let waits = engine.reclaim_waits();
    assert!(waits.count > 0 && waits.max_ns >= 20_000, "256 pages at a time are more than is kept free: {waits:?}");
    assert!(waits.max_ns < 40_000, "{waits:?}");
    assert_eq!(machine.platform.counters().get(Counter::DemandAllocFail), 0);
}

async fn reads_within_a_second(lab: &EngineFixture, file: &TestFile, pages: usize) {
    let started = lab.here.now_ns();
    for page in 0..pages {
        let got = lab.here.read(file, (page * PAGE) as u64, PAGE).await.unwrap();
        assert_eq!(got, bytes(1, (page * PAGE) as u64, PAGE));
    }
    let took = lab.here.now_ns() - started;
    assert!(took < SECOND, "{pages} pages took {took} ns");
}

#[test]
fn readers_go_on_beside_a_dead_device_whose_pages_are_all_dirty() {
    let dead = DiskOptions { latency_ns: 10_000 * SECOND, ..DiskOptions::default() };
    let knobs = ["dirty_ratio=90", "dirty_background_ratio=50", "readahead_bytes_max=0"];
    let lab = EngineFixture::new(1, 4096, &[dead, DiskOptions::default()], &knobs);
    let (stuck, clean) = (lab.file(0, 0, 0), lab.file(1, 3000 * PAGE, 1));
    let (here, to) = (Arc::clone(&lab.here), stuck.clone());
    lab.in_background(async move {
        for page in 0..8192 {
            let _ = here.write(&to, page * PAGE as u64, PAGE, 2).await;
        }
    });
    lab.run(async {
        lab.here.sleep(SECOND).await;
        let dirty = lab.here.dirty_bytes();
        assert!(dirty > 1500 * PAGE as u64, "{dirty}");
        reads_within_a_second(&lab, &clean, 3000).await;
        assert_eq!(lab.here.dirty_bytes(), dirty, "dirty pages stay");
    });
    let looked_at = lab.count(Counter::PagesScanned);
    assert!(looked_at < 40_000, "{looked_at} pages were looked at to read 3,000");
}

#[test]
fn more_readers_than_frames_all_get_on() {
    let lab = EngineFixture::new(1, 64, &[DiskOptions::default()], &[]);
    let file = lab.file(0, 300 * PAGE, 1);
    let readers: Vec<_> = (0..200_u64)
        .map(|reader| {
            let (here, from) = (Arc::clone(&lab.here), file.clone());
            lab.in_background(async move {
                for turn in 0..20 {
                    let at = (reader * 7 + turn * 13) % 300 * PAGE as u64;
                    assert_eq!(here.read(&from, at, PAGE).await.unwrap(), bytes(1, at, PAGE));
                }
            })
        })
        .collect();
    let ended = || readers.iter().all(|ended| ended.load(Ordering::Relaxed));
    assert!(lab.run(lab.here.until(60 * SECOND, ended)), "some wait for ever");
}

/// Reads pages of a file and overwrites all of them: reclaim comes to them first and cannot evict them.
async fn read_and_overwrite(lab: &EngineFixture, file: &TestFile, pages: usize) {
    for page in 0..pages {
        lab.here.read(file, (page * PAGE) as u64, PAGE).await.unwrap();
    }
    for page in 0..pages {
        lab.here.write(file, (page * PAGE) as u64, PAGE, 2).await.unwrap();
    }
}

#[test]
fn dirty_pages_at_the_tail_have_their_own_device_write_and_are_looked_at_once() {
    // There is no other reason to write: more may be dirty, and no page gets old.
    let quiet = ["dirty_ratio=90", "dirty_background_ratio=90", "dirty_expire_centisecs=360000"];
    let knobs = [&quiet[..], &["dirty_writeback_centisecs=360000", "readahead_bytes_max=0"]].concat();
    for kind in afflux_linux_policies::EVICTIONS {
        let policies = Policies { eviction: kind, ..Policies::default() };
        let lab = EngineFixture::with_policies(
            1,
            1024,
            &std::array::from_fn::<_, 3, _>(|_| DiskOptions::default()),
            &knobs,
            policies,
        );
        let (many, few, clean) = (lab.file(0, 200 * PAGE, 1), lab.file(1, 8 * PAGE, 1), lab.file(2, 4000 * PAGE, 1));
        let stream = async |pages: std::ops::Range<usize>| {
            for page in pages {
                lab.here.read(&clean, (page * PAGE) as u64, PAGE).await.unwrap();
            }
        };
        let (dirty, looks) = lab.run(async {
            read_and_overwrite(&lab, &many, 200).await;
            stream(0..300).await;
            read_and_overwrite(&lab, &few, 8).await;
            lab.here.sleep(10 * SECOND).await;
            let dirty = |disk: usize| lab.here.engine.status().devices[disk].dirty_bytes / PAGE as u64;
            assert_eq!((dirty(0), dirty(1)), (200, 8), "nothing else is due");
            lab.here.disks[0].hang();
            let looked = lab.count(Counter::PagesScanned) - lab.count(Counter::PagesEvicted);
            stream(300..4000).await;
            let in_flight = [0, 1].map(|disk| lab.here.engine.status().devices[disk].in_flight);
            assert!(in_flight[0] > 0 && in_flight[1] == 0, "{}: {in_flight:?} requests", kind.name);
            let looked_now = lab.count(Counter::PagesScanned) - lab.count(Counter::PagesEvicted);
            ((dirty(0), dirty(1)), looked_now - looked)
        });
        assert_eq!(dirty, (200, 8), "{}", kind.name);
        assert!(looks <= 208 + 32, "{}: {looks} looks for nothing, and 208 pages could not go", kind.name);
    }
}

#[test]
fn a_cache_full_of_what_a_dead_device_cannot_take_fails_its_writers_alone() {
    let knobs = ["dirty_ratio=90", "dirty_background_ratio=50", "readahead_bytes_max=0"];
    let lab = EngineFixture::new(1, 1024, &[DiskOptions::default(), DiskOptions::default()], &knobs);
    let gone = DeviceError::Io { errno: 5 };
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Any, FaultWhat::Error(gone)));
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let (here, to) = (Arc::clone(&lab.here), lab.file(0, 0, 0));
            lab.in_background(async move {
                let mut page = 0;
                let error = loop {
                    match here.write(&to, page * PAGE as u64, PAGE, 2).await {
                        Ok(()) => page += 1,
                        Err(error) => break error,
                    }
                    // All write at the same time, so that several files fail. The failure of a single file would count
                    // as the file's own.
                    here.sleep(20_000).await;
                };
                assert_eq!(error, Error::Device(gone));
            })
        })
        .collect();
    let clean = lab.file(1, 2000 * PAGE, 1);
    let ended = || writers.iter().all(|ended| ended.load(Ordering::Relaxed));
    assert!(lab.run(lab.here.until(60 * SECOND, ended)), "a writer waits for ever");
    lab.run(async {
        let dirty = lab.here.dirty_bytes();
        assert!(dirty > 400 * PAGE as u64, "{dirty}");
        reads_within_a_second(&lab, &clean, 2000).await;
        assert_eq!(lab.here.dirty_bytes(), dirty, "dirty pages stay");
    });
}

#[test]
fn a_cache_of_eight_frames_is_refused_with_the_least_there_may_be() {
    let world = World::new(WorldOptions::seed(1));
    let refused = SimMachine::with_disks(&world, Memory::Whole(8 * PAGE as u64), Setup::default(), &[]).err().unwrap();
    let text = refused.to_string();
    assert!(text.contains("32768 bytes") && text.contains("between 262144 and"), "{text}");
}

#[test]
fn every_clean_page_goes_if_all_are_asked_to() {
    for kind in afflux_linux_policies::EVICTIONS {
        let policies = Policies { eviction: kind, ..Policies::default() };
        let lab = EngineFixture::with_policies(1, 1024, &[DiskOptions::default()], &[], policies);
        let (used, dirty) = (lab.file(0, 600 * PAGE, 1), lab.file(0, 100 * PAGE, 1));
        lab.run(async {
            for _ in 0..4 {
                lab.here.read(&used, 0, 600 * PAGE).await.unwrap();
            }
            lab.here.write(&dirty, 0, 100 * PAGE, 2).await.unwrap();
        });
        let guard = lab.run(lab.here.engine.read_pinned(&used.file, 0, PAGE)).unwrap();
        let gone = lab.here.engine.drop_clean_pages();
        let census = lab.here.engine.census();
        assert_eq!(census.free + census.index, 1024 - 101, "{}: {gone:?}", kind.name);
        assert!(census.index <= 2, "{}: {census:?}", kind.name);
        assert!(gone.pages >= 599 && gone.looks <= 5 * 1024, "{}: {gone:?}", kind.name);
        drop(guard);
        assert_eq!(lab.here.engine.drop_clean_pages().pages, 1, "{}", kind.name);
    }
}

#[test]
fn the_end_of_a_write_tells_the_eviction_nothing_of_pages_that_left_the_cache_meanwhile() {
    for kind in afflux_linux_policies::EVICTIONS {
        let policies = Policies { eviction: kind, ..Policies::default() };
        let slow = DiskOptions { latency_ns: 100 * MILLISECOND, ..DiskOptions::default() };
        let lab = EngineFixture::with_policies(1, 256, &[slow], &[], policies);
        let (rewritten, discarded) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
        for file in [&rewritten, &discarded] {
            lab.run(lab.here.write(file, 0, 8 * PAGE, 2)).unwrap();
            let (here, file) = (Arc::clone(&lab.here), file.clone());
            lab.in_background(async move {
                let _ = here.sync(&file).await;
            });
        }
        lab.run(async {
            lab.here.sleep(10 * MILLISECOND).await;
            assert!(lab.here.engine.status().devices[0].in_flight > 0, "{}: nothing is being written", kind.name);
            lab.here.write(&rewritten, 2 * PAGE as u64, 3 * PAGE, 3).await.unwrap();
            lab.here.engine.discard(&discarded.file);
            lab.here.sleep(SECOND).await;
            lab.here.sync(&rewritten).await.unwrap();
        });
        let counts = [Counter::PagesCopiedStable, Counter::PagesWritten].map(|counter| lab.count(counter));
        assert_eq!(counts, [3, 8 + 3 + 8], "{}: pages replaced, pages written", kind.name);
        assert_eq!(lab.here.engine.drop_clean_pages().pages, 8, "{}", kind.name);
        assert_eq!(lab.here.engine.census().free, 256, "{}", kind.name);
    }
}
