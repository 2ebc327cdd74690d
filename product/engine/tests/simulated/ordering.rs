//! Bytes that stay off a device until their holder lets go, or until other bytes are durable.

//! rule: 2: withheld bytes stay dirty and off the device until their holder lets go
//! rule: ordered bytes go to a device only after the bytes before them are durable, whatever fails
//! kept in: `product/engine/src/devices/withholding/mod.rs`, `product/engine/src/withholding.rs`

use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use afflux_engine::counters::Counter;
use afflux_engine::{DeviceError, Error};
use afflux_simulator::{
    DiskOptions, Fault, FaultTarget, FaultWhat, Memory, OWN_POLICY, Setup, SimMachine, World, WorldOptions,
};

use crate::fixture::{EngineFixture, Inside, MILLISECOND, PAGE, SECOND, TestFile, bytes};

const PAGE_BYTES: u64 = PAGE as u64;

/// A cache of this many frames under the default policy, over ordinary disks.
fn lab(seed: u64, frames: u64, disks: usize) -> EngineFixture {
    lab_on(seed, frames, &vec![DiskOptions::default(); disks])
}

fn lab_on(seed: u64, frames: u64, disks: &[DiskOptions]) -> EngineFixture {
    let world = World::new(WorldOptions { steps_max: u64::MAX, ..WorldOptions::seed(seed) });
    let setup = Setup::of(OWN_POLICY).unwrap();
    let machine = SimMachine::with_disks(&world, Memory::Whole(frames * PAGE_BYTES), setup, disks).unwrap();
    EngineFixture::of(world, machine)
}

fn passes(lab: &EngineFixture, ns: u64) {
    lab.run(lab.here.sleep(ns));
}

fn on_disk(file: &TestFile, page: u64) -> Vec<u8> {
    file.disk.live_bytes(file.id, page * PAGE_BYTES, PAGE)
}

fn page_of(version: u64, page: u64) -> Vec<u8> {
    bytes(version, page * PAGE_BYTES, PAGE)
}

async fn write_page(here: &Inside, file: &TestFile, page: u64, version: u64) -> Result<(), Error> {
    here.write(file, page * PAGE_BYTES, PAGE, version).await
}

/// Writes the first page of a log, and then one of data that waits for it.
async fn write_logged(here: &Inside, log: &TestFile, data: &TestFile) {
    write_page(here, log, 0, 2).await.unwrap();
    here.engine.order_after(&data.file, 0..PAGE_BYTES, &log.file, 0..PAGE_BYTES).await.unwrap();
    write_page(here, data, 0, 2).await.unwrap();
}

#[test]
fn withheld_pages_stay_off_the_device_until_their_holder_lets_go() {
    let lab = lab(1, 256, 1);
    let file = lab.file(0, 4 * PAGE, 1);
    let (here, to) = (&lab.here, &file);
    let held = lab.run(async {
        // Page 0 is dirty before, page 1 gets dirty after.
        write_page(here, to, 0, 2).await.unwrap();
        let held = here.engine.withhold(&to.file, 0..2 * PAGE_BYTES).await.unwrap();
        for page in 0..4 {
            write_page(here, to, page, 3).await.unwrap();
        }
        held
    });
    passes(&lab, 100 * SECOND);
    assert_eq!([0, 1].map(|page| on_disk(&file, page)), [0, 1].map(|page| page_of(1, page)), "neither is written");
    assert_eq!([2, 3].map(|page| on_disk(&file, page)), [2, 3].map(|page| page_of(3, page)), "the others are");
    assert_eq!(file.file.dirty_bytes(), 2 * PAGE_BYTES);
    lab.run(async {
        let all = here.engine.sync(&to.file, 0..u64::MAX).await;
        assert_eq!(all, Err(Error::Withheld));
        assert_eq!(here.engine.sync(&to.file, 2 * PAGE_BYTES..u64::MAX).await, Ok(()), "its bytes are not withheld");
        assert_eq!(here.read(to, 0, PAGE).await.unwrap(), page_of(3, 0), "readers see them");
        let failed = here.engine.drain(here.devices[0]).await;
        assert_eq!(failed.iter().map(|(_, error)| *error).collect::<Vec<_>>(), [Error::Withheld]);
    });
    drop(held);
    passes(&lab, 5 * SECOND);
    assert_eq!([0, 1].map(|page| on_disk(&file, page)), [0, 1].map(|page| page_of(3, page)));
    assert!(file.file.is_clean());
}

#[test]
fn a_page_in_two_withheld_ranges_waits_for_both() {
    let lab = lab(2, 256, 1);
    let file = lab.file(0, 3 * PAGE, 1);
    let (here, to) = (&lab.here, &file);
    let (first, second) = lab.run(async {
        let first = here.engine.withhold(&to.file, 0..2 * PAGE_BYTES).await.unwrap();
        let second = here.engine.withhold(&to.file, PAGE_BYTES..3 * PAGE_BYTES).await.unwrap();
        for page in 0..3 {
            write_page(here, to, page, 2).await.unwrap();
        }
        (first, second)
    });
    drop(first);
    passes(&lab, 5 * SECOND);
    assert_eq!(on_disk(&file, 0), page_of(2, 0));
    assert_eq!([1, 2].map(|page| on_disk(&file, page)), [1, 2].map(|page| page_of(1, page)));
    drop(second);
    passes(&lab, 5 * SECOND);
    assert_eq!([1, 2].map(|page| on_disk(&file, page)), [1, 2].map(|page| page_of(2, page)));
}

#[test]
fn a_sync_that_began_before_still_has_its_pages_written_and_later_bytes_are_not_among_them() {
    // The disk takes one page at a time, so most pages wait for their requests.
    let disk = DiskOptions { request_bytes_max: PAGE as u32, depth: 1, ..DiskOptions::default() };
    let lab = lab_on(3, 256, &[disk]);
    let file = lab.file(0, 16 * PAGE, 1);
    file.disk.slow_down(50);
    let (here, to) = (&lab.here, &file);
    lab.run(async {
        here.write(to, 0, 16 * PAGE, 2).await.unwrap();
    });
    let (inside, synced) = (Arc::clone(here), file.clone());
    let ended = lab.in_background(async move { inside.sync(&synced).await.unwrap() });
    let held = lab.run(async {
        here.sleep(MILLISECOND).await;
        assert_ne!(on_disk(to, 15), page_of(2, 15), "the sync has just begun");
        let held = here.engine.withhold(&to.file, 0..u64::MAX).await.unwrap();
        here.write(to, 0, 16 * PAGE, 3).await.unwrap();
        held
    });
    passes(&lab, 10 * SECOND);
    assert!(ended.load(Ordering::Relaxed), "the sync has ended");
    assert_eq!(file.disk.live_bytes(file.id, 0, 16 * PAGE), bytes(2, 0, 16 * PAGE));
    drop(held);
}

/// The round has not marked them yet when they are withheld.
#[test]
fn bytes_of_a_sync_that_was_requested_before_are_durable_for_it() {
    for held_before in [false, true] {
        let lab = lab(12, 256, 1);
        let file = lab.file(0, 4 * PAGE, 1);
        let here = &lab.here;
        lab.run(async {
            if held_before {
                drop(here.engine.withhold(&file.file, 0..PAGE_BYTES).await.unwrap());
            }
            write_page(here, &file, 1, 2).await.unwrap();
            let mut sync = pin!(here.sync(&file));
            assert!(poll_fn(|cx| Poll::Ready(sync.as_mut().poll(cx).is_pending())).await);
            let held = here.engine.withhold(&file.file, 0..u64::MAX).await.unwrap();
            write_page(here, &file, 1, 3).await.unwrap();
            sync.await.unwrap();
            assert_eq!(file.disk.durable_bytes(file.id, PAGE_BYTES, PAGE), page_of(2, 1), "{held_before}");
            assert_eq!(here.sync(&file).await, Err(Error::Withheld));
            drop(held);
        });
    }
}

#[test]
fn a_file_has_so_many_withheld_ranges_at_most() {
    let lab = lab(13, 256, 2);
    let (held, ordered, log) = (lab.file(0, 0, 1), lab.file(0, 0, 1), lab.file(1, 0, 1));
    let here = &lab.here;
    let range = |number: u64| number * PAGE_BYTES..(number + 1) * PAGE_BYTES;
    lab.run(async {
        let mut holders = Vec::new();
        let refused = loop {
            match here.engine.withhold(&held.file, range(holders.len() as u64)).await {
                Ok(holder) => holders.push(holder),
                Err(error) => break error,
            }
            assert!(holders.len() < 10_000, "no bound");
        };
        let Error::TooManyWithheld { max } = refused else { panic!("{refused:?}") };
        assert_eq!(holders.len(), max);
        holders.pop();
        assert!(here.engine.withhold(&held.file, range(0)).await.is_ok());
        // For one order more, the log is synced.
        write_page(here, &log, 0, 2).await.unwrap();
        for number in 0..=max as u64 {
            here.engine.order_after(&ordered.file, range(number), &log.file, 0..PAGE_BYTES).await.unwrap();
        }
        assert_eq!(log.disk.durable(log.id), page_of(2, 0));
    });
}

#[test]
fn cut_pages_are_no_longer_withheld_and_the_range_stays() {
    let lab = lab(4, 256, 1);
    let file = lab.file(0, 4 * PAGE, 1);
    let (here, to) = (&lab.here, &file);
    let held = lab.run(async {
        let held = here.engine.withhold(&to.file, 0..u64::MAX).await.unwrap();
        here.write(to, 0, 4 * PAGE, 2).await.unwrap();
        here.engine.set_size(&to.file, 0).await.unwrap();
        assert!(to.file.is_clean());
        here.sync(to).await.unwrap();
        write_page(here, to, 0, 3).await.unwrap();
        assert_eq!(here.sync(to).await, Err(Error::Withheld));
        held
    });
    drop(held);
    lab.run(here.sync(to)).unwrap();
    assert_eq!(file.disk.durable(file.id), page_of(3, 0));
}

#[test]
fn too_many_withheld_bytes_are_refused_and_others_write_on() {
    let lab = lab(5, 512, 1);
    let (file, other) = (lab.file(0, 0, 1), lab.file(0, 0, 1));
    let (here, to) = (&lab.here, &file);
    let held = lab.run(async {
        let held = here.engine.withhold(&to.file, 0..u64::MAX).await.unwrap();
        let mut written = 0;
        let refused = loop {
            match write_page(here, to, written, 2).await {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
        };
        let Error::TooMuchWithheld { max_bytes } = refused else { panic!("{refused:?}") };
        assert_eq!(written * PAGE_BYTES, max_bytes);
        write_page(here, to, 0, 3).await.unwrap();
        // Twice the memory passes through.
        for page in 0..1024 {
            write_page(here, &other, page, 2).await.unwrap();
        }
        here.sync(&other).await.unwrap();
        held
    });
    drop(held);
    lab.run(here.sync(to)).unwrap();
    assert_eq!(on_disk(&file, 0), page_of(3, 0));
}

#[test]
fn a_sync_of_ordered_bytes_syncs_the_bytes_before_them_and_fails_with_them() {
    let lab = lab(6, 256, 2);
    let (log, data) = (lab.file(0, 0, 1), lab.file(1, PAGE, 1));
    let here = &lab.here;
    log.disk.add_fault(Fault::always(FaultTarget::Write, FaultWhat::Error(DeviceError::Io { errno: 5 })).on(log.id));
    lab.run(async {
        write_logged(here, &log, &data).await;
        assert_eq!(here.sync(&data).await, Err(Error::Device(DeviceError::Io { errno: 5 })));
    });
    passes(&lab, 100 * SECOND);
    assert_eq!(on_disk(&data, 0), page_of(1, 0), "it was not written");
    log.disk.clear_faults();
    lab.run(here.sync(&data)).unwrap();
    assert_eq!((log.disk.durable(log.id), data.disk.durable(data.id)), (page_of(2, 0), page_of(2, 0)));
}

#[test]
fn without_a_sync_ordered_bytes_are_written_once_the_others_expired() {
    let lab = lab(7, 256, 2);
    let (log, data) = (lab.file(0, 0, 1), lab.file(1, PAGE, 1));
    let here = &lab.here;
    lab.run(async {
        write_logged(here, &log, &data).await;
        here.sleep(2 * SECOND).await;
        assert_eq!(on_disk(&data, 0), page_of(1, 0), "the log is on its disk, and not durable");
    });
    passes(&lab, 100 * SECOND);
    assert_eq!((log.disk.durable(log.id), data.disk.durable(data.id)), (page_of(2, 0), page_of(2, 0)));
    assert_eq!(lab.count(Counter::SyncRequests), 2, "one flush for the log, one for the data");
}

#[test]
fn a_log_that_is_never_clean_keeps_no_ordered_bytes_waiting_for_ever() {
    let lab = lab(11, 256, 2);
    let (log, data) = (lab.file(0, 0, 1), lab.file(1, PAGE, 1));
    let here = &lab.here;
    lab.run(async {
        write_logged(here, &log, &data).await;
    });
    let (inside, busy) = (Arc::clone(here), log.clone());
    lab.in_background(async move {
        for page in 1.. {
            write_page(&inside, &busy, page % 100 + 1, page).await.unwrap();
            inside.sleep(MILLISECOND).await;
        }
    });
    passes(&lab, 70 * SECOND);
    assert!(!log.file.is_clean());
    assert_eq!(on_disk(&data, 0), page_of(2, 0));
}

#[test]
fn bytes_that_are_durable_already_keep_nothing_waiting() {
    let lab = lab(8, 256, 2);
    let (log, data) = (lab.file(0, 0, 1), lab.file(1, PAGE, 1));
    let here = &lab.here;
    lab.run(async {
        write_page(here, &log, 0, 2).await.unwrap();
        here.sync(&log).await.unwrap();
        here.engine.order_after(&data.file, 0..PAGE_BYTES, &log.file, 0..PAGE_BYTES).await.unwrap();
        write_page(here, &data, 0, 2).await.unwrap();
    });
    passes(&lab, 3 * SECOND);
    assert_eq!(on_disk(&data, 0), page_of(2, 0));
}

#[test]
fn a_range_never_waits_for_itself() {
    let lab = lab(9, 256, 1);
    let files = [(); 3].map(|()| lab.file(0, 4 * PAGE, 1));
    let here = &lab.here;
    let order = |later: usize, pages: std::ops::Range<u64>, first: usize, earlier: std::ops::Range<u64>| {
        let bytes = |pages: std::ops::Range<u64>| pages.start * PAGE_BYTES..pages.end * PAGE_BYTES;
        lab.run(here.engine.order_after(&files[later].file, bytes(pages), &files[first].file, bytes(earlier)))
    };
    assert_eq!(order(0, 0..2, 0, 1..3), Err(Error::OrderCycle), "the page would wait for itself");
    assert_eq!(order(0, 0..1, 0, 1..4), Ok(()), "a file's header after its body");
    assert_eq!(order(0, 2..3, 0, 0..1), Err(Error::OrderCycle), "the body after the header");
    assert_eq!(order(1, 0..4, 0, 0..4), Ok(()));
    assert_eq!(order(2, 0..4, 1, 0..4), Ok(()));
    assert_eq!(order(0, 3..4, 2, 0..1), Err(Error::OrderCycle), "through two others");
    lab.run(async {
        for file in &files {
            here.write(file, 0, 4 * PAGE, 2).await.unwrap();
        }
        here.sync(&files[2]).await.unwrap();
    });
    let durable = files.each_ref().map(|file| file.disk.durable(file.id) == bytes(2, 0, 4 * PAGE));
    assert_eq!(durable, [true; 3]);
}

#[test]
fn a_removed_file_keeps_no_ordered_bytes_waiting() {
    let lab = lab(10, 256, 1);
    let (log, data) = (lab.file(0, 0, 1), lab.file(0, PAGE, 1));
    let here = &lab.here;
    lab.run(async {
        write_logged(here, &log, &data).await;
        here.engine.discard(&log.file);
    });
    passes(&lab, 3 * SECOND);
    assert_eq!(on_disk(&data, 0), page_of(2, 0));
}

/// Versions by page that a log describes. The log's record of version v is its page v.
struct Store {
    log: TestFile,
    data: TestFile,
    versions: Mutex<Vec<Vec<u64>>>,
    next: AtomicU64,
    stops: AtomicBool,
}

impl Store {
    /// Writes a record, and a page that may be on its disk only after the record is durable.
    async fn change(&self, here: &Inside, page: u64) -> Result<(), Error> {
        let version = self.next.fetch_add(1, Ordering::Relaxed);
        let record = version * PAGE_BYTES..(version + 1) * PAGE_BYTES;
        write_page(here, &self.log, version, version).await?;
        let at = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
        here.engine.order_after(&self.data.file, at, &self.log.file, record).await?;
        self.versions.lock().unwrap()[page as usize].push(version);
        write_page(here, &self.data, page, version).await
    }

    /// The number of pages on the disk whose record is not durable.
    fn early_pages(&self) -> usize {
        let versions = self.versions.lock().unwrap();
        let early = |(page, versions): (usize, &Vec<u64>)| {
            let now = on_disk(&self.data, page as u64);
            let version = versions.iter().rev().find(|version| now == page_of(**version, page as u64));
            let is_durable = |version: u64| {
                self.log.disk.durable_bytes(self.log.id, version * PAGE_BYTES, PAGE) == page_of(version, version)
            };
            version.is_some_and(|version| !is_durable(*version))
        };
        versions.iter().enumerate().filter(|each| early(*each)).count()
    }
}

/// Changes by four tasks, with syncs of either file, and faults of the log's disk. Returns the most pages that were on
/// the disk too early, and the number of changes.
fn changes(seed: u64) -> (usize, u64) {
    const PAGES: u64 = 12;
    let lab = lab(seed, 256, 1 + (seed % 2) as usize);
    let data = lab.file((seed % 2) as usize, PAGES as usize * PAGE, 1);
    let store = Arc::new(Store {
        log: lab.file(0, 0, 0),
        data,
        versions: Mutex::new(vec![Vec::new(); PAGES as usize]),
        next: AtomicU64::new(2),
        stops: AtomicBool::new(false),
    });
    for task in 0..4_u64 {
        let (here, store) = (Arc::clone(&lab.here), Arc::clone(&store));
        lab.in_background(async move {
            let mut number = seed * 4 + task;
            let mut draw = |below: u64| {
                number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (number >> 33) % below
            };
            while !store.stops.load(Ordering::Relaxed) {
                // Errors are the log's faults, or the limit of withheld bytes.
                let _ = match draw(12) {
                    0 => here.sync(&store.data).await,
                    1 => here.sync(&store.log).await,
                    _ => store.change(&here, draw(PAGES)).await,
                };
                here.sleep(draw(20) * MILLISECOND).await;
            }
        });
    }
    let mut most = 0;
    lab.run(async {
        for look in 0..4000_u64 {
            if look % 1000 == 500 {
                let target = if look == 1500 { FaultTarget::Sync } else { FaultTarget::Write };
                let fails = FaultWhat::Error(DeviceError::Io { errno: 5 });
                store.log.disk.add_fault(Fault::always(target, fails).on(store.log.id).times(3));
            }
            lab.here.sleep(MILLISECOND).await;
            most = most.max(store.early_pages());
        }
        store.stops.store(true, Ordering::Relaxed);
        store.log.disk.clear_faults();
        lab.here.sleep(SECOND).await;
        lab.here.sync(&store.data).await.unwrap();
        let last = store.versions.lock().unwrap().clone();
        for (page, versions) in last.iter().enumerate() {
            let now = store.data.disk.durable_bytes(store.data.id, page as u64 * PAGE_BYTES, PAGE);
            assert!(
                versions.iter().rev().take(4).any(|version| now == page_of(*version, page as u64))
                    || versions.is_empty()
            );
        }
    });
    (most, store.next.load(Ordering::Relaxed))
}

#[test]
fn no_page_is_ever_on_its_disk_before_the_record_that_describes_it() {
    records_come_before_pages(0..4);
}

#[test]
#[ignore = "other seeds: some twenty seconds"]
fn no_page_is_on_its_disk_before_its_record_with_other_seeds() {
    records_come_before_pages(4..16);
}

fn records_come_before_pages(seeds: Range<u64>) {
    for seed in seeds {
        let (early, changes) = changes(seed);
        assert_eq!(early, 0, "seed {seed}");
        assert!(changes > 300, "seed {seed}: {changes} changes");
    }
}

/// The sync of the last page asks for rounds of all files. A round of the middle one has nothing to write.
#[test]
fn bytes_after_bytes_that_wait_themselves_stay_off_the_device() {
    let lab = lab(15, 256, 1);
    let files = [lab.file(0, PAGE, 1), lab.file(0, PAGE, 1), lab.file(0, PAGE, 1)];
    let disk = &lab.here.disks[0];
    disk.add_fault(Fault::always(FaultTarget::Write, FaultWhat::Hang).on(files[0].id).times(1));
    lab.run(async {
        for file in &files {
            write_page(&lab.here, file, 0, 2).await.unwrap();
        }
        for pair in files.windows(2) {
            lab.here.engine.order_after(&pair[1].file, 0..PAGE_BYTES, &pair[0].file, 0..PAGE_BYTES).await.unwrap();
        }
    });
    let (here, last) = (Arc::clone(&lab.here), files[2].clone());
    let ended = lab.in_background(async move { here.sync(&last).await.unwrap() });
    passes(&lab, SECOND);
    for file in &files {
        assert!(on_disk(file, 0) == page_of(1, 0), "the first write has not ended");
    }
    disk.clear_faults();
    disk.release();
    passes(&lab, 10 * SECOND);
    assert!(ended.load(Ordering::Relaxed));
    assert!(files.iter().all(|file| file.disk.durable(file.id) == page_of(2, 0)));
}

/// Each link twice, over ranges that overlap: the number of paths along the chain doubles with each file.
#[test]
fn equal_orders_along_a_chain_are_searched_once() {
    let lab = lab(13, 4096, 1);
    let here = &lab.here;
    let chain: Vec<TestFile> = (0..60).map(|_| lab.file(0, 2 * PAGE, 1)).collect();
    lab.run(async {
        here.write(&chain[0], 0, 2 * PAGE, 2).await.unwrap();
        for pair in chain.windows(2) {
            for range in [0..PAGE_BYTES, 0..2 * PAGE_BYTES] {
                here.engine.order_after(&pair[1].file, range, &pair[0].file, 0..2 * PAGE_BYTES).await.unwrap();
            }
            here.write(&pair[1], 0, 2 * PAGE, 2).await.unwrap();
        }
        let (first, last) = (&chain[0].file, &chain[59].file);
        let circle = here.engine.order_after(first, 0..PAGE_BYTES, last, 0..PAGE_BYTES).await;
        assert_eq!(circle, Err(Error::OrderCycle));
        assert_eq!(here.engine.sync(last, 0..u64::MAX).await, Ok(()));
    });
    for (number, file) in chain.iter().enumerate() {
        assert!(file.disk.durable(file.id) == bytes(2, 0, 2 * PAGE), "file {number}");
    }
}

/// The pages of two files wait for each other alternately, as many as there may be.
#[test]
fn a_chain_of_orders_as_long_as_two_files_may_have_is_synced_and_dropped() {
    const LINKS: u64 = 8190;
    let lab = lab(14, 1 << 18, 1);
    let here = &lab.here;
    let files = [lab.file(0, 0, 0), lab.file(0, 0, 0)];
    let link = |at: u64| (&files[(at % 2) as usize], at / 2);
    let bytes_of = |page: u64| page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
    lab.run(async {
        write_page(here, link(0).0, 0, 2).await.unwrap();
        for at in 1..=LINKS {
            let ((file, page), (first, earlier)) = (link(at), link(at - 1));
            here.engine.order_after(&file.file, bytes_of(page), &first.file, bytes_of(earlier)).await.unwrap();
            write_page(here, file, page, 2).await.unwrap();
        }
        let (file, page) = link(LINKS);
        let mut asked = Box::pin(here.engine.sync(&file.file, bytes_of(page)));
        // It has followed the whole chain by now.
        poll_fn(|cx| {
            assert!(asked.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        drop(asked);
        let before = lab.count(Counter::SyncRequests);
        here.engine.sync(&file.file, bytes_of(page)).await.unwrap();
        let flushes = lab.count(Counter::SyncRequests) - before;
        assert!(flushes <= 2 * LINKS, "{flushes} flushes for {LINKS} links");
    });
    for at in 0..=LINKS {
        let (file, page) = link(at);
        assert_eq!(on_disk(file, page), page_of(2, page), "link {at}");
    }
}
