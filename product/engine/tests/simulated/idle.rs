//! Writeback in a device's idle time: which pages are written, in files left alone and in files rewritten over and
//! over.

//! rule: the flusher writes resting pages while the device would idle, and rewritten pages not early; readers and syncs
//! come first
//! kept in: `product/engine/src/writeback/idle.rs`

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::counters::Counter;
use afflux_engine::settings::Knob;
use afflux_simulator::{DiskOptions, Memory, OWN_POLICY, Setup, SimMachine, World, WorldOptions};

use crate::fixture::{EngineFixture, Inside, MILLISECOND, PAGE, SECOND, TestFile};

const MIB: u64 = 1 << 20;

fn setup(knobs: &[&str]) -> (WorldOptions, Setup) {
    let world = WorldOptions { steps_max: u64::MAX, keep_lines: true, ..WorldOptions::seed(5) };
    (world, Setup::of(OWN_POLICY).unwrap().with_knobs(knobs).unwrap())
}

/// 256 MiB of memory over a disk of the catalogue, under the budget.
fn lab_with(disk: &str, knobs: &[&str]) -> EngineFixture {
    let (world, setup) = setup(knobs);
    EngineFixture::on_disk(disk, world, Memory::Stamped(256 * MIB), setup)
}

/// The same over a disk of 50 MB/s.
fn lab(knobs: &[&str]) -> EngineFixture {
    let (world, setup) = setup(knobs);
    let world = World::new(world);
    let disk = DiskOptions { bytes_per_second: 50_000_000, request_bytes_max: 1 << 20, ..DiskOptions::default() };
    let machine = SimMachine::with_disks(&world, Memory::Stamped(256 * MIB), setup, &[disk]).unwrap();
    EngineFixture::of(world, machine)
}

/// Writes this many bytes to a file at half the disk's speed, so that the disk is known and busy.
async fn upload(here: &Inside, to: &TestFile, bytes: u64) {
    for at in (0..bytes).step_by(64 << 10) {
        here.write(to, at, 64 << 10, 1).await.unwrap();
        here.sleep((64 << 10) * SECOND / 25_000_000).await;
    }
}

impl EngineFixture {
    /// Makes the disk known.
    fn warm(&self) {
        let file = self.file(0, 0, 0);
        self.run(async {
            upload(&self.here, &file, 32 * MIB).await;
            self.here.sync(&file).await.unwrap();
            self.here.sleep(SECOND).await;
        });
    }

    /// Time in ms until the file has no dirty page.
    fn clean_after_ms(&self, file: &TestFile) -> u64 {
        let began = self.here.now_ns();
        assert!(self.run(self.here.until(100 * SECOND, || file.file.is_clean())));
        (self.here.now_ns() - began) / MILLISECOND
    }
}

#[test]
fn what_was_uploaded_is_on_disk_soon_after() {
    let lab = lab(&[]);
    lab.warm();
    for bytes in [64 << 10, MIB, 40 * MIB] {
        let file = lab.file(0, 0, 0);
        lab.run(upload(&lab.here, &file, bytes));
        let left_ms = lab.here.dirty_bytes() * 1000 / 50_000_000;
        let took_ms = lab.clean_after_ms(&file);
        eprintln!("{bytes} bytes: clean after {took_ms} ms, {left_ms} ms of it to write");
        assert!((150..=260 + left_ms * 5 / 4).contains(&took_ms), "{bytes} bytes: {took_ms} ms, {left_ms} ms to write");
    }
    assert!(lab.count(Counter::IdlePages) > 256 && lab.count(Counter::PagesRedirtied) == 0);
}

#[test]
fn one_page_of_a_file_that_is_else_left_alone_does_not_keep_the_rest_from_the_disk() {
    let lab = lab(&[]);
    lab.warm();
    let file = lab.file(0, 0, 0);
    lab.run(upload(&lab.here, &file, 4 * MIB));
    let (here, to) = (Arc::clone(&lab.here), file.clone());
    lab.in_background(async move {
        for version in 0.. {
            here.write(&to, 0, PAGE, version).await.unwrap();
            here.sleep(30 * MILLISECOND).await;
        }
    });
    lab.run(lab.here.sleep(SECOND / 2));
    let left = file.file.dirty_bytes();
    assert!(left <= 2 * PAGE as u64, "{left} bytes are left");
    let before = lab.count(Counter::PageOut);
    lab.run(lab.here.sleep(25 * SECOND));
    let written = lab.count(Counter::PageOut) - before;
    assert!(written <= 10 * PAGE as u64, "{written} bytes of a page that is overwritten all the time");
}

#[test]
fn with_the_knob_off_nothing_is_written_before_it_is_old_and_on_again_it_is_at_once() {
    let lab = lab(&["idle_writeback=0"]);
    lab.warm();
    let file = lab.file(0, 0, 0);
    lab.run(lab.here.write(&file, 0, 16 * PAGE, 2)).unwrap();
    lab.run(lab.here.sleep(25 * SECOND));
    assert_eq!(file.file.dirty_bytes(), 16 * PAGE as u64);
    lab.here.engine.set_device_knob(lab.here.devices[0], afflux_budget::BudgetKnob::IdleWriteback, 1).unwrap();
    assert!(lab.clean_after_ms(&file) <= 260);
    // The background threshold in time replaces it.
    lab.here.engine.set_device_knob(lab.here.devices[0], Knob::BackgroundCentisecs, 50).unwrap();
    lab.run(lab.here.write(&file, 0, 16 * PAGE, 3)).unwrap();
    lab.run(lab.here.sleep(25 * SECOND));
    assert_eq!(file.file.dirty_bytes(), 16 * PAGE as u64);
    assert!(lab.clean_after_ms(&file) <= 6_000, "it is old");
    assert!(lab.count(Counter::IdlePages) == 16);
}

#[test]
fn nothing_is_written_behind_where_nothing_gets_old() {
    let lab = lab(&["dirty_writeback_centisecs=0"]);
    lab.warm();
    let file = lab.file(0, 0, 0);
    lab.run(lab.here.write(&file, 0, 16 * PAGE, 2)).unwrap();
    lab.run(lab.here.sleep(1000 * SECOND));
    assert_eq!(file.file.dirty_bytes(), 16 * PAGE as u64);
    lab.here.engine.set_knob(Knob::WritebackCentisecs, 500).unwrap();
    assert!(lab.clean_after_ms(&file) <= 260);
}

/// Rewrites random pages of a file of `pages` for `seconds`, each page about every `each_ns`; returns the bytes
/// written.
fn rewritten(lab: &EngineFixture, pages: u64, each_ns: u64, seconds: u64) -> u64 {
    lab.warm();
    let before = lab.count(Counter::PageOut);
    let file = lab.file(0, (pages * PAGE as u64) as usize, 0);
    lab.run(async {
        let (end, mut random) = (lab.here.now_ns() + seconds * SECOND, 88_172_645_463_325_252_u64);
        while lab.here.now_ns() < end {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            lab.here.write(&file, random % pages * PAGE as u64, PAGE, 1).await.unwrap();
            lab.here.sleep(each_ns / pages).await;
        }
    });
    lab.count(Counter::PageOut) - before
}

#[test]
fn what_is_rewritten_over_and_over_is_not_written_much_more_often_than_when_it_is_old() {
    for disk in ["sata-ssd", "nvme-ssd"] {
        for (pages, each_ns, seconds) in
            [(1024, 800 * MILLISECOND, 60), (4096, 8 * SECOND, 120), (4096, 80 * SECOND, 240)]
        {
            let [off, on] = ["idle_writeback=0", "idle_writeback=1"]
                .map(|knob| rewritten(&lab_with(disk, &[knob]), pages, each_ns, seconds));
            eprintln!("{disk}, each {} ms: {off} bytes without, {on} with", each_ns / MILLISECOND);
            assert!(on <= off / 100 * 109, "{disk}, each {} ms: {off} bytes without, {on} with", each_ns / MILLISECOND);
        }
    }
}

#[test]
fn a_log_that_is_synced_is_written_once_and_one_that_is_not_now_and_then() {
    for (synced, most) in [(true, 1000), (false, 30)] {
        let lab = lab(&[]);
        lab.warm();
        let (log, before) = (lab.file(0, 0, 0), lab.count(Counter::PagesWritten));
        lab.run(async {
            // Lines of 80 bytes fill 20 pages.
            for line in 0..1000_u64 {
                lab.here.write(&log, line * 80, 80, 1).await.unwrap();
                if synced {
                    lab.here.sync(&log).await.unwrap();
                }
                lab.here.sleep(250 * MILLISECOND).await;
            }
        });
        let pages = lab.count(Counter::PagesWritten) - before;
        eprintln!("synced {synced}: {pages} pages");
        assert!(pages <= most + 40, "synced {synced}: {pages} pages");
    }
}

#[test]
fn a_reader_has_one_small_request_before_it_at_most_and_the_disk_for_itself_then() {
    // This disk seeks.
    let lab = lab_with("disk", &[]);
    lab.warm();
    let read = lab.file(0, 64 << 20, 0);
    let reads = |lab: &EngineFixture| {
        lab.run(async {
            let mut all_ns = Vec::new();
            for at in 0..100_u64 {
                let began = lab.here.now_ns();
                lab.here.read(&read, at * 37 % 100 * 160 * PAGE as u64, PAGE).await.unwrap();
                all_ns.push(lab.here.now_ns() - began);
                lab.here.sleep(5 * MILLISECOND).await;
            }
            lab.here.engine.try_invalidate(&read.file, 64 << 20, read.file.change_count()).await;
            all_ns
        })
    };
    let alone = reads(&lab);
    let (file, before) = (lab.file(0, 0, 0), lab.count(Counter::IdlePages));
    lab.run(async {
        lab.here.write(&file, 0, 8 << 20, 1).await.unwrap();
        assert!(lab.here.until(SECOND, || lab.count(Counter::IdlePages) > before).await, "it is being written");
    });
    assert!(!file.file.is_clean());
    let beside = reads(&lab);
    let (longest_alone, longest) = (alone.iter().max().unwrap(), beside.iter().max().unwrap());
    let (sum_alone, sum) = (alone.iter().sum::<u64>(), beside.iter().sum::<u64>());
    assert!(!file.file.is_clean(), "not while somebody reads");
    eprintln!("longest {longest} ns beside {longest_alone}, all {sum} beside {sum_alone}");
    assert!(*longest <= longest_alone + 40 * MILLISECOND);
    assert!(sum <= sum_alone + sum_alone / 20, "{sum} ns, alone {sum_alone}");
    assert!(lab.clean_after_ms(&file) < 2000);
    assert_eq!(lab.count(Counter::WriteErrors), 0);
}

#[test]
fn a_loop_of_syncs_is_as_fast_beside_a_file_that_waits_to_be_written_behind() {
    let rounds = |waits: bool| {
        let lab = lab_with("disk", &[]);
        lab.warm();
        let (file, synced) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
        lab.run(async {
            if waits {
                for run in 0..8_u64 {
                    lab.here.write(&file, run * MIB, PAGE, 1).await.unwrap();
                }
            }
            let (end, mut rounds) = (lab.here.now_ns() + 5 * SECOND, 0);
            while lab.here.now_ns() < end {
                lab.here.write(&synced, rounds % 64 * PAGE as u64, PAGE, 1).await.unwrap();
                lab.here.sync(&synced).await.unwrap();
                rounds += 1;
            }
            rounds
        })
    };
    let (alone, beside) = (rounds(false), rounds(true));
    eprintln!("{beside} rounds, {alone} alone");
    assert!(beside >= alone / 100 * 97, "{beside} rounds, {alone} alone");
}

#[test]
fn an_idle_disk_is_left_asleep_when_nothing_is_dirty() {
    let lab = lab(&[]);
    lab.warm();
    let file = lab.file(0, 0, 0);
    lab.run(lab.here.write(&file, 0, PAGE, 1)).unwrap();
    assert!(lab.clean_after_ms(&file) <= 260);
    let (turns, writes) = (lab.count(Counter::FlusherTurns), lab.here.disks[0].data_in_flight_max());
    let ended = lab.in_background({
        let here = Arc::clone(&lab.here);
        async move { here.sleep(3600 * SECOND).await }
    });
    lab.run(lab.here.sleep(3601 * SECOND));
    assert!(ended.load(Ordering::Relaxed));
    assert_eq!((lab.count(Counter::FlusherTurns), lab.here.disks[0].data_in_flight_max()), (turns, writes));
}
