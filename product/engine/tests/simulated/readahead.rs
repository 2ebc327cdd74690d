//! Readahead on the disks of the catalogue and beside other streams: rates, wasted pages, bad sectors, advice.

//! rule: readahead reads few pages for nothing, its pages stay until they are read, and a bad sector costs its
//! neighbours nothing
//! kept in: `product/engine/src/readahead/afflux.rs`, `product/engine/src/reading/ahead.rs`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_engine::counters::Counter;
use afflux_engine::{Advice, DeviceError, Error, Policies, Readahead};
use afflux_simulator::{CpuOptions, DiskOptions, Fault, FaultTarget, FaultWhat, Memory, Random, Setup, WorldOptions};

use crate::fixture::{EngineFixture, PAGE, SECOND, TestFile, bytes};

const MIB: u64 = 1 << 20;
const IO: DeviceError = DeviceError::Io { errno: 5 };

/// A disk of the catalogue under an engine with this many frames.
fn on_disk(disk: &str, frames: u64, readahead: Readahead) -> EngineFixture {
    let world = WorldOptions { steps_max: u64::MAX, cpus: Some(CpuOptions::count(8)), ..WorldOptions::seed(7) };
    let setup = Setup { policies: Policies { readahead, ..Policies::default() }, ..Setup::default() };
    EngineFixture::on_disk(disk, world, Memory::Stamped(frames * PAGE as u64), setup)
}

/// The figures of streams.
#[derive(Debug)]
struct Streams {
    mb_per_s: u64,
    requests: u64,
    /// Pages read for each thousand requested.
    read_per_mille: u64,
    waste: u64,
}

/// Runs this many streams, each through its own file in calls of `block` pages, with a pause before each call. The
/// figures cover the time of the slowest stream.
fn streams(lab: &EngineFixture, streams: u64, pages: u64, block: u64, think_ns: u64) -> Streams {
    let started = lab.here.now_ns();
    let ended = Arc::new(AtomicU64::new(0));
    for _ in 0..streams {
        let (here, file, ended) = (Arc::clone(&lab.here), lab.laid_out(pages * PAGE as u64), Arc::clone(&ended));
        lab.in_background(async move {
            let mut into = vec![0; block as usize * PAGE];
            for at in 0..pages / block {
                if think_ns > 0 {
                    here.sleep(think_ns).await;
                }
                here.engine.read(&file.file, at * block * PAGE as u64, &mut into).await.unwrap();
            }
            ended.fetch_add(1, Ordering::Relaxed);
        });
    }
    lab.run(async {
        assert!(lab.here.until(4000 * SECOND, || ended.load(Ordering::Relaxed) == streams).await);
    });
    let (asked, took_ns) = (streams * pages, lab.here.now_ns() - started);
    Streams {
        mb_per_s: asked * PAGE as u64 * 1000 / took_ns,
        requests: lab.count(Counter::ReadRequests),
        read_per_mille: lab.count(Counter::PageIn) / PAGE as u64 * 1000 / asked,
        waste: lab.count(Counter::ReadaheadWaste),
    }
}

#[test]
fn streams_run_at_the_rate_of_the_disk() {
    // Disk, frames, streams, pages of each, and the least MB/s. A disk's rate is that of one stream of direct 1 MiB
    // calls, or the rate in its file.
    for (disk, frames, count, pages, least) in [
        ("disk", 1 << 18, 1, 1 << 16, 132),
        ("disk", 1 << 18, 8, 1 << 15, 117),
        ("usb2-disk", 1 << 16, 1, 1 << 14, 23),
        ("usb2-disk", 1 << 16, 8, 1 << 13, 22),
        ("sata-ssd", 1 << 16, 1, 1 << 16, 520),
        ("sata-ssd", 1 << 16, 8, 1 << 14, 530),
        ("nvme-ssd", 1 << 17, 1, 1 << 17, 3000),
        ("nvme-ssd", 1 << 17, 64, 1 << 12, 3200),
        // Windows double every 150 ms, which takes up most of a GiB.
        ("object-store", 1 << 19, 1, 1 << 18, 45),
    ] {
        let got = streams(&on_disk(disk, frames, Readahead::Afflux), count, pages, 16, 0);
        assert!(got.mb_per_s >= least, "{disk}, {count} streams: {got:?}, less than {least} MB/s");
        assert!(got.waste * 50 <= count * pages && got.read_per_mille <= 1020, "{disk}, {count} streams: {got:?}");
    }
}

#[test]
fn a_disk_with_streams_is_faster_than_under_the_kernels_windows() {
    let of = |readahead| streams(&on_disk("disk", 1 << 18, readahead), 8, 1 << 13, 16, 0).mb_per_s;
    let (ours, linux) = (of(Readahead::Afflux), of(afflux_linux_policies::LINUX_READAHEAD));
    assert!(ours >= 2 * linux, "{ours} MB/s, {linux} by the kernel's windows");
}

#[test]
fn many_streams_share_what_may_be_unread_and_next_to_none_of_it_is_evicted() {
    for (frames, count, pages) in [(4096, 256, 256), (16_384, 1000, 256)] {
        let got = streams(&on_disk("sata-ssd", frames, Readahead::Afflux), count, pages, 1, 1_000_000);
        // Above a quarter of the frames the oldest unread page is evicted, which may be a slow reader's.
        assert!(got.waste * 120 <= count * pages, "{count} streams in {frames} frames: {got:?}");
        // A page that is not read ahead takes a request by itself.
        assert!(got.requests * 2 < count * pages, "{count} streams in {frames} frames: {got:?}");
    }
}

#[test]
fn what_is_read_ahead_and_not_asked_for_is_counted_when_it_leaves() {
    // The two lists evict unread pages like any page that was used once.
    let policies = Policies { eviction: afflux_linux_policies::TWO_LISTS, ..Policies::default() };
    let lab = EngineFixture::with_policies(1, 512, &[DiskOptions::default()], &[], policies);
    let (read, other) = (lab.file(0, 64 * PAGE, 1), lab.file(0, 2048 * PAGE, 2));
    lab.run(async {
        for page in 0..4 {
            lab.here.read(&read, page * PAGE as u64, PAGE).await.unwrap();
        }
        lab.here.sleep(SECOND).await;
        assert_eq!(lab.count(Counter::ReadaheadWaste), 0);
        let ahead = lab.count(Counter::ReadaheadPages);
        lab.here.engine.advise(&other.file, 0..u64::MAX, Advice::Random);
        lab.here.read(&other, 0, 1024 * PAGE).await.unwrap();
        // All but the three pages that were read later.
        assert_eq!(lab.count(Counter::ReadaheadWaste), ahead - 3);
    });
}

#[test]
fn what_is_read_ahead_and_stays_unread_in_the_cache_is_counted_after_a_minute() {
    let lab = EngineFixture::new(1, 4096, &[DiskOptions::default()], &[]);
    let (read, late) = (lab.file(0, 512 * PAGE, 1), lab.file(0, 512 * PAGE, 2));
    let waste = || {
        lab.here.engine.status();
        lab.count(Counter::ReadaheadWaste)
    };
    lab.run(async {
        let (pages, engine) = (|count: u64| 0..count * PAGE as u64, &lab.here.engine);
        engine.advise(&read.file, pages(100), Advice::WillNeed);
        lab.here.sleep(29 * SECOND).await;
        assert_eq!(waste(), 0);
        lab.here.read(&read, 0, 40 * PAGE).await.unwrap();
        lab.here.sleep(32 * SECOND).await;
        assert_eq!(waste(), 60, "as many as nobody has asked for in a minute");
        lab.here.sleep(200 * SECOND).await;
        assert_eq!(waste(), 60, "each once");
        // Evicted ones have been counted; younger ones have not.
        engine.advise(&late.file, pages(100), Advice::WillNeed);
        lab.here.sleep(SECOND).await;
        engine.advise(&read.file, 0..u64::MAX, Advice::DontNeed);
        assert_eq!(waste(), 60);
        engine.advise(&late.file, 0..u64::MAX, Advice::DontNeed);
        assert_eq!(waste(), 160);
    });
    assert_eq!(lab.count(Counter::ReadaheadPages), 200);
}

#[test]
fn random_reads_waste_one_page_in_twenty_at_most() {
    for disk in ["disk", "nvme-ssd"] {
        let lab = on_disk(disk, 8192, Readahead::Afflux);
        let files: Vec<TestFile> = (0..100).map(|_| lab.laid_out(512 * PAGE as u64)).collect();
        let asked = 25_600;
        lab.run(async {
            let (mut random, mut into) = (Random::new(7), vec![0; PAGE]);
            for _ in 0..asked {
                let file = &files[random.below(100) as usize];
                lab.here.engine.read(&file.file, random.below(512) * PAGE as u64, &mut into).await.unwrap();
            }
        });
        let (waste, read) = (lab.count(Counter::ReadaheadWaste), lab.count(Counter::PageIn) / PAGE as u64);
        assert!(waste * 20 <= read, "{disk}: {waste} of {read} pages");
        assert!(read * 20 <= asked * 21, "{disk}: {read} pages for {asked}");
    }
}

#[test]
fn pages_around_a_bad_sector_are_served() {
    let lab = EngineFixture::new(1, 4096, &[DiskOptions::default()], &[]);
    let file = lab.file(0, 2048 * PAGE, 1);
    let bad = 700;
    let fault = Fault::always(FaultTarget::Read, FaultWhat::Error(IO)).range(bad * PAGE as u64, PAGE as u64);
    lab.here.disks[0].add_fault(fault);
    lab.run(async {
        for page in 0..2048 {
            let read = lab.here.read(&file, page * PAGE as u64, PAGE).await;
            if page == bad {
                assert_eq!(read, Err(Error::Device(IO)));
            } else {
                let right = bytes(1, page * PAGE as u64, PAGE);
                assert!(read.as_deref() == Ok(&right[..]), "page {page}: {:?}", read.err());
            }
        }
        // A call over the bad page and others fails; the pages that it did not return are there for the next call.
        assert_eq!(lab.here.read(&file, (bad - 2) * PAGE as u64, 5 * PAGE).await, Err(Error::Device(IO)));
    });
    assert!(lab.count(Counter::ReadErrors) <= 8, "{} requests failed", lab.count(Counter::ReadErrors));
}

#[test]
fn advice_reads_ahead_or_lets_go() {
    let lab = EngineFixture::new(1, 4096, &[DiskOptions::default()], &[]);
    let file = lab.file(0, 512 * PAGE, 1);
    let requests = || lab.count(Counter::ReadRequests);
    lab.run(async {
        let engine = &lab.here.engine;
        engine.advise(&file.file, 100 * PAGE as u64..200 * PAGE as u64, Advice::WillNeed);
        lab.here.sleep(SECOND).await;
        let before = requests();
        assert_eq!(before, 1);
        let mut into = vec![0; 100 * PAGE];
        assert_eq!(engine.try_read(&file.file, 100 * PAGE as u64, &mut into), Some(100 * PAGE));
        // Whole clean pages within the range are dropped; dirty ones stay.
        lab.here.write(&file, 150 * PAGE as u64, PAGE, 2).await.unwrap();
        engine.advise(&file.file, 100 * PAGE as u64 + 1..200 * PAGE as u64, Advice::DontNeed);
        let there = |page: u64| engine.try_read(&file.file, page * PAGE as u64, &mut [0; 8]).is_some();
        assert_eq!([100, 101, 149, 150, 151, 199].map(there), [true, false, false, true, false, false]);
        // The reads are in order, but the advice forbids readahead.
        engine.advise(&file.file, 0..u64::MAX, Advice::Random);
        let before = requests();
        for page in 0..20 {
            lab.here.read(&file, page * PAGE as u64, PAGE).await.unwrap();
        }
        assert_eq!(requests() - before, 20);
    });
}

#[test]
fn what_is_not_used_again_leaves_behind_its_reader() {
    let lab = EngineFixture::new(1, 8192, &[DiskOptions::default()], &[]);
    let file = lab.file(0, 4096 * PAGE, 1);
    lab.run(async {
        lab.here.engine.advise(&file.file, 0..u64::MAX, Advice::NoReuse);
        for page in 0..4096 {
            lab.here.read(&file, page * PAGE as u64, PAGE).await.unwrap();
        }
        let status = lab.here.engine.status();
        assert!(status.cache_bytes - status.free_bytes < 8 * MIB, "{} used", status.cache_bytes - status.free_bytes);
    });
}
