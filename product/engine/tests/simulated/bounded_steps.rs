//! Steps that hold a lock do not get longer with a file's pages in the cache, nor with the files of a device.

//! rule: no step holds a lock for longer because there are more pages or files
//! kept in: `product/engine/src/writeback/sync.rs`, `product/engine/src/reshape.rs`,
//! `product/engine/src/devices/worklist.rs`

use std::sync::Arc;

use afflux_engine::counters::Counter;
use afflux_engine::settings::Knob;
use afflux_engine::{Error, File, Platform};
use afflux_simulator::{DiskOptions, Fault, FaultTarget, FaultWhat, Memory, Setup, SimMachine, World, WorldOptions};

use crate::fixture::{EngineFixture, PAGE, SECOND, TestFile};

const IO: afflux_engine::DeviceError = afflux_engine::DeviceError::Io { errno: 5 };
const MIB: usize = 1 << 20;

/// Nothing is written before a caller asks for it.
const QUIET: [&str; 4] = [
    "dirty_ratio=90",
    "dirty_background_ratio=90",
    "dirty_expire_centisecs=360000",
    "dirty_writeback_centisecs=360000",
];

/// Frames that back only their first bytes, so that a test can afford very many.
fn lab(frames: u64, disk: DiskOptions, more: &[&str]) -> EngineFixture {
    let world = World::new(WorldOptions::seed(1));
    let setup = Setup::default().with_knobs(&QUIET).unwrap().with_knobs(more).unwrap();
    let machine = SimMachine::with_disks(&world, Memory::Stamped(frames * PAGE as u64), setup, &[disk]).unwrap();
    EngineFixture::of(world, machine)
}

async fn write_all(lab: &EngineFixture, file: &TestFile, pages: u64) {
    let bytes = vec![7; MIB];
    for at in (0..pages * PAGE as u64).step_by(MIB) {
        lab.here.engine.write(&file.file, at, &bytes).await.unwrap();
    }
}

/// Does all the work that visits each page of a file: a sync marks pages, one flush succeeds, another fails, and dirty
/// ranges are searched. Then clean pages are dropped, and in the end all pages.
fn longest_hold(pages: u64) -> u64 {
    let lab = lab(2 * pages, DiskOptions::default(), &["reserve_below_bytes=64MiB"]);
    let (file, other) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
    lab.run(async {
        write_all(&lab, &file, pages).await;
        lab.here.sync(&file).await.unwrap();
        write_all(&lab, &file, pages).await;
        lab.here.disks[0].add_fault(Fault::always(FaultTarget::Sync, FaultWhat::Error(IO)).times(1));
        assert_eq!(lab.here.sync(&file).await, Err(Error::Device(IO)));
        assert_eq!(lab.count(Counter::PagesDirtied), 3 * pages, "a flush that failed makes them dirty again");
        lab.here.disks[0].set_capacity(2 * pages * PAGE as u64);
        lab.here.engine.set_knob(Knob::ReserveBytes, 1 << 39).unwrap();
        lab.here.write(&other, 0, PAGE, 2).await.unwrap();
        lab.here.sync(&file).await.unwrap();
        assert!(lab.here.engine.try_invalidate(&file.file, file.file.size(), file.file.change_count()).await);
        assert!(lab.here.engine.status().free_bytes > (2 * pages - 100) * PAGE as u64, "nothing of it is left");
        write_all(&lab, &file, pages).await;
        lab.here.engine.set_size(&file.file, 100).await.unwrap();
        write_all(&lab, &file, pages).await;
        lab.here.engine.discard(&file.file);
    });
    lab.here.engine.longest_hold()
}

#[test]
fn a_files_lock_is_held_for_as_many_pages_however_many_are_cached() {
    let holds = [16_384, 262_144].map(longest_hold);
    assert_eq!(holds[0], holds[1], "pages at once, of 64 MiB and of a GiB");
    assert!(holds[1] <= 4096, "{} pages at once", holds[1]);
}

/// The most pages that become free while this task waits for its next poll, until all of these are.
async fn longest_step(lab: &EngineFixture, pages: u64) -> u64 {
    let free = || lab.here.engine.status().free_bytes / PAGE as u64;
    let (begin, mut last, mut longest) = (free(), free(), 0);
    while last < begin + pages {
        lab.here.platform.preemption_point().await;
        longest = longest.max(free().saturating_sub(last));
        last = free();
    }
    longest
}

// rule: other tasks run while the pages of a large file go
// kept in: `product/engine/src/reshape.rs`
#[test]
fn pages_of_a_large_file_go_in_pieces_between_which_other_tasks_run() {
    const PAGES: u64 = 65_536;
    const PIECES_MAX: u64 = PAGES / 4;
    let lab = lab(2 * PAGES, DiskOptions::default(), &["reserve_below_bytes=64MiB"]);
    lab.run(async {
        let file = lab.file(0, 0, 0);
        write_all(&lab, &file, PAGES).await;
        let (engine, its) = (Arc::clone(&lab.here.engine), file.file.clone());
        lab.here.platform.spawn("cut", async move { engine.set_size(&its, 0).await.unwrap() });
        let longest = longest_step(&lab, PAGES).await;
        assert!(longest <= PIECES_MAX, "cut off: {longest} pages at once");
        write_all(&lab, &file, PAGES).await;
        let (engine, its) = (Arc::clone(&lab.here.engine), file.file.clone());
        lab.here.platform.spawn("punch", async move { engine.punch(&its, 0..PAGES * PAGE as u64).await.unwrap() });
        let longest = longest_step(&lab, PAGES).await;
        assert!(longest <= PIECES_MAX, "a hole: {longest} pages at once");
        for is_clean in [false, true] {
            let file = lab.file(0, 0, 0);
            write_all(&lab, &file, PAGES).await;
            if is_clean {
                lab.here.sync(&file).await.unwrap();
            }
            let (before, written) = (lab.here.engine.status().free_bytes, lab.here.disks[0].figures().bytes.1);
            lab.here.engine.discard(&file.file);
            let at_once = (lab.here.engine.status().free_bytes - before) / PAGE as u64;
            assert!(at_once <= PIECES_MAX, "discarded: {at_once} pages in the call");
            let longest = longest_step(&lab, PAGES - at_once).await;
            assert!(longest <= PIECES_MAX, "discarded: {longest} pages at once");
            assert_eq!(lab.here.disks[0].figures().bytes.1, written, "nothing of it is written any more");
        }
        let file = lab.file(0, 0, 0);
        write_all(&lab, &file, PAGES).await;
        lab.here.sync(&file).await.unwrap();
        let before = lab.here.engine.status().free_bytes;
        lab.here.engine.release(file.file);
        let at_once = (lab.here.engine.status().free_bytes - before) / PAGE as u64;
        assert!(at_once <= PIECES_MAX, "released: {at_once} pages in the call");
        let longest = longest_step(&lab, PAGES - at_once).await;
        assert!(longest <= PIECES_MAX, "released: {longest} pages at once");
    });
}

/// All files fail, wait for their pauses, and are tried again; then all are written.
#[test]
fn a_hundred_thousand_files_that_fail_are_tried_again_in_their_turn() {
    const FILES: u64 = 100_000;
    let lab = lab(2 * FILES, DiskOptions { depth: 64, ..DiskOptions::default() }, &[]);
    let disk = &lab.here.disks[0];
    let open = |_| lab.here.engine.open(lab.here.devices[0], disk.backing(disk.create_file()), 0);
    let files: Vec<File> = (0..FILES).map(open).collect();
    lab.run(async {
        for file in &files {
            lab.here.engine.write(file, 0, &[1; 100]).await.unwrap();
        }
    });
    disk.add_fault(Fault::always(FaultTarget::Write, FaultWhat::Error(IO)));
    lab.run(async {
        assert_eq!(lab.here.engine.drain(lab.here.devices[0]).await.len() as u64, FILES);
        assert_eq!(u64::from(lab.here.engine.status().devices[0].files_failed), FILES);
        disk.clear_faults();
        let clean = || lab.here.engine.status().devices[0].files_dirty == 0;
        let before = lab.here.now_ns();
        while !clean() {
            assert!(lab.here.now_ns() - before < 600 * SECOND, "some file is not tried again");
            lab.here.sleep(SECOND).await;
        }
    });
    let turns = lab.count(Counter::FlusherTurns);
    assert!(turns <= 8 * FILES, "{turns} turns for {FILES} files");
}
