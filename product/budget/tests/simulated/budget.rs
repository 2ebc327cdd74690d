//! The properties of the flush budget, with the engine, its flusher and its queue in between: a device's debt, the
//! length and the cause of writers' waits.

use afflux_engine::counters::Counter;
use afflux_simulator::{Memory, OWN_POLICY, Setup, WorldOptions};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND};
use crate::streams::{FAST, MIB, SLOW, Writer, disk, lab};

/// The default budget.
const BUDGET_NS: u64 = SECOND;

#[test]
fn a_stream_gets_the_disk_owes_a_budget_and_waits_a_little_at_a_time() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    let (file, done) = Writer::STREAM.begins(&lab);
    lab.passes(5 * SECOND);
    let before = done.bytes();
    let most = lab.most_dirty(20 * SECOND);
    let rate = (done.bytes() - before) / 20;
    assert!(rate >= SLOW / 100 * 98, "{rate} bytes a second");
    assert!(most <= SLOW * BUDGET_NS / SECOND * 9 / 8, "{most} bytes were dirty");
    assert!(done.longest_ns() <= 6 * MILLISECOND, "a write took {} ns", done.longest_ns());
    done.stop();
    let ns = lab.sync_ns(&file);
    assert!(ns <= BUDGET_NS / 5 * 6, "a sync of everything took {ns} ns");
}

#[test]
fn payers_get_equal_bytes_whatever_the_size_of_their_writes() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    let sizes = [4 << 10, 64 << 10, 1 << 20];
    let writers: Vec<_> = sizes.map(|piece| Writer { piece, ..Writer::STREAM }.begins(&lab).1).into();
    lab.passes(5 * SECOND);
    let before: Vec<_> = writers.iter().map(|done| done.bytes()).collect();
    lab.passes(60 * SECOND);
    let bytes: Vec<f64> = writers.iter().zip(before).map(|(done, before)| (done.bytes() - before) as f64).collect();
    let (sum, squares) = (bytes.iter().sum::<f64>(), bytes.iter().map(|bytes| bytes * bytes).sum::<f64>());
    let jain = sum * sum / (3.0 * squares);
    assert!(jain >= 0.99, "{jain}: {bytes:?}");
}

#[test]
fn a_light_writer_does_not_wait_for_heavy_ones() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    let heavy: Vec<_> = (0..4).map(|_| Writer::STREAM.begins(&lab)).collect();
    let (_, light) = Writer { piece: PAGE, apart_ns: 100 * MILLISECOND, ..Writer::STREAM }.begins(&lab);
    lab.passes(30 * SECOND);
    assert!(light.bytes() >= 290 * PAGE as u64 / 100 * 99, "{} bytes", light.bytes());
    assert!(light.longest_ns() <= MILLISECOND, "it waited {} ns", light.longest_ns());
    assert!(heavy.iter().all(|(_, done)| done.bytes() > 0));
}

#[test]
fn what_a_quiet_device_takes_at_once_is_three_quarters_of_its_budget() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    let (file, warm) = Writer { most: 100 * MIB, ..Writer::STREAM }.begins(&lab);
    lab.ends_after(&warm);
    lab.sync_ns(&file);
    let before = lab.count(Counter::ThrottlePauses);
    let (_, burst) = Writer { most: SLOW / 4 * 3 / 100 * 95, unseen_ns: 0, ..Writer::STREAM }.begins(&lab);
    lab.ends_after(&burst);
    assert_eq!(lab.count(Counter::ThrottlePauses), before, "no pause");
}

/// Duration of a burst of 400 MB to a fast disk: beside a slow disk with a writer, beside a hung disk, or alone.
fn burst_ns(slow: Option<bool>) -> u64 {
    let lab = lab(4 << 30, &[disk(SLOW), disk(FAST)]);
    // Makes the fast disk known.
    let (file, warm) = Writer { disk: 1, most: 400 * MIB, ..Writer::STREAM }.begins(&lab);
    lab.ends_after(&warm);
    lab.sync_ns(&file);
    if let Some(hangs) = slow {
        let _ = Writer::STREAM.begins(&lab);
        lab.passes(5 * SECOND);
        if hangs {
            lab.here.disks[0].hang();
            lab.passes(5 * SECOND);
        }
    }
    let (_, burst) = Writer { disk: 1, most: 400_000_000, ..Writer::STREAM }.begins(&lab);
    lab.ends_after(&burst)
}

#[test]
fn a_burst_takes_as_long_beside_a_slow_or_hung_neighbour_as_alone() {
    let alone = burst_ns(None);
    for hangs in [false, true] {
        let beside = burst_ns(Some(hangs));
        assert!(beside <= alone / 20 * 21, "hung {hangs}: {beside} ns, {alone} alone");
    }
}

#[test]
fn light_writers_of_a_hung_device_go_on_below_an_eighth_above_its_budget() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    let (_, heavy) = Writer::STREAM.begins(&lab);
    let (_, light) = Writer { piece: PAGE, apart_ns: 100 * MILLISECOND, ..Writer::STREAM }.begins(&lab);
    lab.passes(5 * SECOND);
    lab.here.disks[0].hang();
    lab.passes(SECOND);
    let before = (heavy.bytes(), light.bytes());
    lab.passes(10 * SECOND);
    assert!(heavy.bytes() - before.0 <= 2 * MIB, "the heavy one wrote {}", heavy.bytes() - before.0);
    assert!(light.bytes() - before.1 >= 95 * PAGE as u64, "the light one wrote {}", light.bytes() - before.1);
    lab.here.disks[0].release();
    lab.passes(5 * SECOND);
    assert!(heavy.bytes() - before.0 > 50 * MIB, "it goes on");
}

#[test]
fn a_disk_that_nobody_knows_owes_three_seconds_at_most_and_a_fast_one_is_found_out_at_once() {
    for bytes_per_second in [1_000_000, 5_000_000, SLOW] {
        let lab = lab(1 << 30, &[disk(bytes_per_second)]);
        let _ = Writer::STREAM.begins(&lab);
        let most = lab.most_dirty(10 * SECOND);
        // An unknown disk may owe 4 MiB, from which everything is learned.
        assert!(most <= (3 * bytes_per_second).max(4 * MIB), "{most} bytes at {bytes_per_second} a second");
    }
    let lab = lab(1 << 30, &[disk(8 * FAST)]);
    let (_, burst) = Writer { most: 400_000_000, ..Writer::STREAM }.begins(&lab);
    let ns = lab.ends_after(&burst);
    // The copies alone take 98 ms of that.
    assert!(ns <= 180 * MILLISECOND, "{ns} ns");
}

#[test]
fn a_disk_that_gets_ten_times_slower_works_off_what_it_owes_while_writers_go_on() {
    let lab = lab(1 << 30, &[disk(SLOW * 10)]);
    let writers: Vec<_> = (0..4).map(|_| Writer::STREAM.begins(&lab).1).collect();
    lab.passes(5 * SECOND);
    lab.here.disks[0].slow_down(10);
    lab.passes(SECOND);
    let before: Vec<_> = writers.iter().map(|done| done.bytes()).collect();
    lab.passes(12 * SECOND);
    let most = lab.most_dirty(SECOND);
    assert!(most <= SLOW * 5 / 4, "{most} bytes are owed");
    for (done, before) in writers.iter().zip(before) {
        assert!(done.bytes() > before, "nobody starves");
    }
}

/// A disk of the catalogue under the policy, with these knobs.
fn of_catalogue(name: &str, knobs: &[&str]) -> EngineFixture {
    let world = WorldOptions { steps_max: u64::MAX, ..WorldOptions::seed(3) };
    EngineFixture::on_disk(
        name,
        world,
        Memory::Stamped(2 << 30),
        Setup::of(OWN_POLICY).unwrap().with_knobs(knobs).unwrap(),
    )
}

/// Runs this many streams. Returns the bytes per second that the disk writes once it is known, and the most dirty
/// bytes.
fn streams(lab: &EngineFixture, count: usize, known_ns: u64, ns: u64) -> (u64, u64) {
    let writers: Vec<_> = (0..count).map(|_| Writer::STREAM.begins(lab)).collect();
    lab.passes(known_ns);
    let before = lab.here.disks[0].figures().bytes.1;
    let most = lab.most_dirty(ns);
    let rate = (lab.here.disks[0].figures().bytes.1 - before) / (ns / SECOND);
    writers.iter().for_each(|(_, done)| done.stop());
    (rate, most)
}

#[test]
fn many_writers_keep_a_disk_with_a_cache_busy_with_little_that_is_owed() {
    let (rate, most) = streams(&of_catalogue("disk", &[]), 100, 8 * SECOND, 10 * SECOND);
    // The disk writes 138 MB per second in one run.
    assert!(rate > 138_000_000 / 100 * 85, "{rate} bytes a second");
    assert!(most < 138_000_000 / 2 * 3, "{most} bytes were dirty");
    let (evenly, _) = streams(&of_catalogue("disk", &["writer_portion_bytes=0"]), 100, 8 * SECOND, 10 * SECOND);
    assert!(evenly < rate / 10 * 9, "{evenly} bytes a second where they enter evenly");
}

#[test]
fn writers_to_a_stick_write_its_blocks_whole_and_it_owes_a_bounded_time() {
    let (rate, most) = streams(&of_catalogue("usb-stick", &[]), 4, 20 * SECOND, 30 * SECOND);
    assert!(rate > 8_000_000, "{rate} bytes a second, of 12 million at most");
    assert!(most < 6 * 12_000_000 * 9 / 8, "{most} bytes were dirty");
}

#[test]
fn nobody_starves_where_writers_have_portions() {
    let lab = of_catalogue("usb-stick", &[]);
    let writers: Vec<_> = (0..8).map(|_| Writer::STREAM.begins(&lab).1).collect();
    let (_, light) = Writer { piece: PAGE, apart_ns: SECOND, ..Writer::STREAM }.begins(&lab);
    lab.passes(60 * SECOND);
    let bytes: Vec<u64> = writers.iter().map(|done| done.bytes()).collect();
    assert!(bytes.iter().all(|bytes| *bytes > 16 * MIB), "{bytes:?}");
    assert!(light.bytes() > 5 * PAGE as u64, "the light one wrote {}", light.bytes());
}
