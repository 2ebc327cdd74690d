//! Misbehaving devices and clocks under the flush budget: no accepted write is lost, the right callers get the errors,
//! and the device's debt stays bounded.

//! rule: 6: a device that hangs refuses its own writers alone, after the time of its knob, and loses nothing

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_budget::BudgetKnob;
use afflux_engine::{DeviceError, Error};
use afflux_simulator::{DiskOptions, Fault, FaultTarget, FaultWhat};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, bytes};
use crate::streams::{FAST, MIB, SLOW, Writer, disk, lab, lab_of};

const IO: DeviceError = DeviceError::Io { errno: 5 };
/// A hundred times the speed of the slowest disk here.
const QUICK: u64 = SLOW * 10;
const SLOWEST: u64 = SLOW / 10;

/// The prices of writes, and their bounds, fit a disk of this many bytes per second.
fn prices_are_right(lab: &EngineFixture, bytes_per_second: u64) -> Result<(), String> {
    let (mib, right) = (lab.number(0, "write_mib_ns"), MIB * SECOND / bytes_per_second);
    if mib.abs_diff(right) <= right / 4 { Ok(()) } else { Err(format!("{mib} ns a MiB, and {right} is right")) }
}

#[test]
fn budgets_of_nothing_and_of_a_year_are_refused_with_the_range() {
    let lab = lab(64 << 20, &[disk(SLOW)]);
    for nonsense in [0, 1, 199, 60_001, 31_536_000_000, u64::MAX] {
        let device = lab.here.devices[0];
        for error in [
            lab.here.engine.set_knob(BudgetKnob::BudgetMs, nonsense).unwrap_err(),
            lab.here.engine.set_device_knob(device, BudgetKnob::BudgetMs, nonsense).unwrap_err(),
        ] {
            let error = error.to_string();
            for said in ["budget_ms", &nonsense.to_string(), "200", "60000"] {
                assert!(error.contains(said), "{error}");
            }
        }
    }
    assert_eq!(lab.number(0, "budget_ns"), SECOND, "as it was");
    for least_and_most in [200, 60_000] {
        lab.here.engine.set_knob(BudgetKnob::BudgetMs, least_and_most).unwrap();
        assert_eq!(lab.number(0, "budget_ns"), least_and_most * MILLISECOND);
    }
}

#[test]
fn a_disk_that_disappears_refuses_its_writers_and_leaves_its_neighbour_alone() {
    let lab = lab(256 << 20, &[disk(SLOW), disk(FAST)]);
    let (gone, well) = (lab.file(0, 0, 0), lab.file(1, 0, 0));
    let mut accepted = 0;
    lab.run(async {
        for _ in 0..50 {
            lab.here.write(&gone, accepted, 64 << 10, 2).await.unwrap();
            accepted += 64 << 10;
        }
        lab.here.disks[0].add_fault(Fault::always(FaultTarget::Any, FaultWhat::Error(IO)));
        let began = lab.here.now_ns();
        let error = loop {
            match lab.here.write(&gone, accepted, 64 << 10, 2).await {
                Ok(()) => accepted += 64 << 10,
                Err(error) => break error,
            }
            lab.here.sleep(100_000).await;
        };
        assert_eq!(error, Error::Device(IO));
        assert!(lab.here.now_ns() - began < 60 * SECOND, "it was told after {} ns", lab.here.now_ns() - began);
        assert_eq!(lab.here.sync(&gone).await, Err(Error::Device(IO)));
        let began = lab.here.now_ns();
        lab.here.write(&well, 0, 32 << 20, 3).await.unwrap();
        lab.here.sync(&well).await.unwrap();
        assert!(lab.here.now_ns() - began < SECOND);
        assert_eq!(lab.status(0).stalled_ns, None, "it answers, with errors");
        // The disk is plugged in again.
        lab.here.disks[0].clear_faults();
        assert!(lab.here.until(120 * SECOND, || gone.file.is_clean()).await, "what was accepted is written");
        lab.here.sync(&gone).await.unwrap();
    });
    assert_eq!(gone.disk.durable_size(gone.id), accepted);
}

#[test]
fn bad_sectors_fail_their_file_alone_and_move_no_price() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    let (stream, done) = Writer::STREAM.begins(&lab);
    let bad = lab.file(0, 0, 0);
    let mut fault = Fault::always(FaultTarget::Data, FaultWhat::Error(IO)).on(bad.id);
    (fault.offset, fault.len) = (PAGE as u64, PAGE as u64);
    lab.here.disks[0].add_fault(fault);
    lab.passes(5 * SECOND);
    lab.run(async { lab.here.write(&bad, 0, 4 * PAGE, 2).await.unwrap() });
    for _ in 0..20 {
        lab.run(async { assert_eq!(lab.here.sync(&bad).await, Err(Error::Device(IO))) });
        lab.passes(SECOND);
    }
    prices_are_right(&lab, SLOW).unwrap();
    let before = done.bytes();
    lab.passes(10 * SECOND);
    assert!(done.bytes() - before >= SLOW * 10 / 100 * 95, "the other file goes on: {}", done.bytes() - before);
    assert!(lab.sync_ns(&stream) < 2 * SECOND);
    lab.here.disks[0].clear_faults();
    lab.run(async {
        assert!(lab.here.until(60 * SECOND, || bad.file.is_clean()).await);
        lab.here.sync(&bad).await.unwrap();
    });
    assert_eq!(bad.disk.durable_size(bad.id), 4 * PAGE as u64);
    for at in (0..4 * PAGE as u64).step_by(PAGE) {
        // Frames here back the first bytes of each sector.
        assert_eq!(bad.disk.durable_bytes(bad.id, at, 16), bytes(2, at, 16));
    }
}

/// Writes a new file on a disk, 64 KiB a call, and goes on after an error a millisecond later.
/// Returns the bytes accepted so far.
fn writes_whatever_is_said(lab: &EngineFixture, disk: usize) -> Arc<AtomicU64> {
    let (here, file) = (Arc::clone(&lab.here), lab.file(disk, 0, 0));
    let accepted = Arc::new(AtomicU64::new(0));
    let own = Arc::clone(&accepted);
    lab.world.spawn("writer", async move {
        loop {
            match here.write(&file, own.load(Ordering::Relaxed), 64 << 10, 2).await {
                Ok(()) => drop(own.fetch_add(64 << 10, Ordering::Relaxed)),
                Err(_) => here.sleep(MILLISECOND).await,
            }
            here.sleep(16_000).await;
        }
    });
    accepted
}

/// Failed pages take no part of the limit from other files, and give none to the writers of their own.
#[test]
fn while_writes_fail_no_more_is_dirty_than_the_budget_and_the_neighbour_is_left_alone() {
    for error in [IO, DeviceError::NoSpace, DeviceError::Quota] {
        for streams in [1, 4] {
            let case = format!("{error:?}, {streams} writers");
            let lab = lab(1 << 30, &[disk(SLOW), disk(SLOW)]);
            (0..streams).for_each(|_| drop(writes_whatever_is_said(&lab, 0)));
            let (_, neighbour) = Writer { disk: 1, ..Writer::STREAM }.begins(&lab);
            lab.passes(5 * SECOND);
            let (beside, before) = (lab.most_dirty(SECOND), neighbour.bytes());
            let fault = Fault::always(FaultTarget::Write, FaultWhat::Error(error)).times(u64::MAX);
            lab.here.disks[0].add_fault(fault);
            let most = lab.most_dirty(5 * SECOND);
            // Failed pages may be as many as the budget lets be dirty. Until a file has failed, its writer is as any
            // other.
            assert!(most <= beside + 2 * SLOW, "{case}: {most} bytes are dirty, and {beside} before");
            let written = neighbour.bytes() - before;
            assert!(written >= SLOW * 5 / 100 * 95, "{case}: the neighbour goes on: {written}");
            lab.here.disks[0].clear_faults();
            lab.passes(60 * SECOND);
            prices_are_right(&lab, SLOW).unwrap();
        }
    }
}

/// Writes one new file after the other. Each gets this many bytes, or as many as are accepted before it is refused.
/// Its writes fail from this byte on.
#[derive(Clone, Copy, Debug)]
struct NewFiles {
    files: u64,
    each: u64,
    fail_from: u64,
}

impl NewFiles {
    fn begins(self, lab: &EngineFixture, apart_ns: u64) {
        let here = Arc::clone(&lab.here);
        let files: Vec<_> = (0..self.files).map(|_| lab.file(0, 0, 0)).collect();
        for file in &files {
            let fault = Fault::always(FaultTarget::Write, FaultWhat::Error(IO)).on(file.id);
            lab.here.disks[0].add_fault(fault.range(self.fail_from, u64::MAX));
        }
        lab.world.spawn("writer", async move {
            for file in files {
                let mut accepted = 0;
                while accepted < self.each && here.write(&file, accepted, 64 << 10, 2).await.is_ok() {
                    accepted += 64 << 10;
                    here.sleep(16_000).await;
                }
                here.sleep(apart_ns).await;
            }
        });
    }
}

/// The worlds of each case with many failing files: the order of tasks differs. Of the first twelve, these leave a
/// healthy file the least of the disk.
const SEEDS: [u64; 3] = [0, 4, 7];

/// However many files fail, one beside or after the other: what is dirty is bounded, and a file that can be written
/// goes on.
#[test]
fn many_new_files_that_fail_leave_the_budget_whole_and_a_healthy_file_alone() {
    for (each, fail_from) in [(MIB, 0), (32 * MIB, 0), (4 * MIB, MIB)] {
        for (streams, apart_ns) in [(1, 100 * MILLISECOND), (8, 0)] {
            let files = NewFiles { files: 200 / streams, each, fail_from };
            SEEDS.into_iter().for_each(|seed| keep_to_the_budget(files, streams, apart_ns, seed));
        }
    }
}

fn keep_to_the_budget(files: NewFiles, streams: u64, apart_ns: u64, seed: u64) {
    let case = format!("{streams} times {files:?}, {apart_ns} ns apart, seed {seed}");
    let lab = lab_of(seed, 1 << 30, &[disk(SLOW)]);
    let healthy = writes_whatever_is_said(&lab, 0);
    lab.passes(3 * SECOND);
    let (beside, before) = (lab.most_dirty(SECOND), healthy.load(Ordering::Relaxed));
    (0..streams).for_each(|_| files.begins(&lab, apart_ns));
    let most = lab.most_dirty(25 * SECOND);
    // The budget bounds the failed bytes, and once more the bytes that will fail.
    assert!(most <= beside + 2 * SLOW, "{case}: {most} bytes are dirty, and {beside} before");
    let written = healthy.load(Ordering::Relaxed) - before;
    // What fails takes the disk's time at most once: in the first case 200 MiB of the 625 MB that it can write.
    assert!(written >= SLOW * 25 / 3 * 2, "{case}: the healthy file goes on: {written}");
}

#[test]
fn a_hundred_times_slower_is_found_out_in_a_second_and_what_is_owed_worked_off() {
    let lab = lab(1 << 30, &[disk(QUICK)]);
    let (_, done) = Writer::STREAM.begins(&lab);
    lab.passes(10 * SECOND);
    prices_are_right(&lab, QUICK).unwrap();
    lab.here.disks[0].slow_down(100);
    // The old debt now costs a hundred times as much, and new writes may add only a sixteenth of the completed bytes.
    let owed_then = lab.here.dirty_bytes();
    lab.passes(1500 * MILLISECOND);
    prices_are_right(&lab, SLOWEST).unwrap();
    let most = lab.most_dirty(10 * SECOND);
    assert!(most <= QUICK / 8 * 9, "{most} bytes, and {owed_then} when it got slow");
    // The debt shrinks at fifteen sixteenths of the disk's speed.
    let ns = most * SECOND / SLOWEST * 16 / 15 + 2 * SECOND;
    lab.passes(ns);
    let most = lab.most_dirty(SECOND);
    assert!(most <= SLOWEST * 5 / 4, "{most} bytes are owed after {ns} ns: {}", lab.figures(0));
    let before = done.bytes();
    lab.passes(10 * SECOND);
    assert!(done.bytes() - before >= SLOWEST * 10 / 100 * 95, "it is at work");
}

#[test]
fn a_hundred_times_faster_is_found_out_in_a_second_and_used() {
    let lab = lab(1 << 30, &[disk(QUICK)]);
    lab.here.disks[0].slow_down(100);
    let (_, done) = Writer::STREAM.begins(&lab);
    lab.passes(10 * SECOND);
    prices_are_right(&lab, SLOWEST).unwrap();
    lab.here.disks[0].slow_down(1);
    lab.passes(SECOND);
    prices_are_right(&lab, QUICK).unwrap();
    let before = done.bytes();
    let most = lab.most_dirty(2 * SECOND);
    assert!(done.bytes() - before >= QUICK * 2 / 100 * 95, "{} bytes", done.bytes() - before);
    assert!(most <= QUICK * 5 / 4, "{most} bytes are owed");
}

#[test]
fn a_disk_that_freezes_for_a_minute_thaws_with_its_prices_and_everything_written() {
    let lab = lab(1 << 30, &[disk(SLOW), disk(FAST)]);
    let (file, done) = Writer::STREAM.begins(&lab);
    lab.passes(10 * SECOND);
    let (mib, run) = (lab.number(0, "write_mib_ns"), lab.number(0, "run_ns"));
    lab.here.disks[0].hang();
    lab.passes(60 * SECOND);
    assert!(lab.status(0).stalled_ns.is_some_and(|ns| ns > 59 * SECOND));
    let most = lab.here.dirty_bytes();
    assert!(most <= SLOW * 5 / 4, "{most} bytes");
    lab.here.disks[0].release();
    lab.passes(200 * MILLISECOND);
    assert_eq!(lab.status(0).stalled_ns, None);
    let after = (lab.number(0, "write_mib_ns"), lab.number(0, "run_ns"));
    assert!(
        after.0.abs_diff(mib) <= mib / 20 && after.1.abs_diff(run) <= run / 20,
        "{after:?}, {mib} and {run} before"
    );
    let before = done.bytes();
    lab.passes(10 * SECOND);
    assert!(done.bytes() - before >= SLOW * 10 / 100 * 95, "{} bytes", done.bytes() - before);
    assert!(lab.most_dirty(SECOND) <= SLOW * 9 / 8);
    done.stop();
    lab.ends_after(&done);
    lab.sync_ns(&file);
    assert_eq!(file.disk.durable_size(file.id), file.file.size());
}

/// The clock jumps by an hour: the process or the machine was stopped.
#[test]
fn a_clock_that_jumps_makes_no_hang_no_debt_no_credit_and_no_price() {
    for waits_at_the_end in [false, true] {
        let lab = lab(1 << 30, &[disk(SLOW), disk(FAST)]);
        let writers: Vec<_> = (0..4).map(|_| Writer::STREAM.begins(&lab)).collect();
        let (_, light) = Writer { piece: PAGE, apart_ns: 100 * MILLISECOND, ..Writer::STREAM }.begins(&lab);
        lab.passes(10 * SECOND);
        if waits_at_the_end {
            // The disk is silent for a second before the jump.
            lab.here.disks[0].hang();
            lab.passes(SECOND);
        }
        let mib = lab.number(0, "write_mib_ns");
        let mut follower = lab.here.engine.follow();
        lab.world.jump(3600 * SECOND);
        if waits_at_the_end {
            lab.passes(MILLISECOND);
            lab.here.disks[0].release();
        }
        let most = lab.most_dirty(5 * SECOND);
        assert!(most <= SLOW * 5 / 4, "{most} bytes: credit of an hour");
        let after = lab.number(0, "write_mib_ns");
        assert!(after.abs_diff(mib) <= mib / 10, "{after} ns a MiB, {mib} before");
        let hangs = follower.take(usize::MAX).0.iter().filter(|traced| is_hang(&traced.event)).count();
        assert_eq!(hangs, 0, "nothing hung that anybody watched");
        let before: Vec<_> = writers.iter().map(|(_, done)| done.bytes()).collect();
        let light_before = light.bytes();
        lab.passes(20 * SECOND);
        let bytes: Vec<u64> = writers.iter().zip(&before).map(|((_, done), before)| done.bytes() - before).collect();
        assert!(bytes.iter().sum::<u64>() >= SLOW * 20 / 100 * 97, "{bytes:?}");
        let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
        assert!(most - least <= most / 10, "as evenly as before: {bytes:?}");
        assert!(light.bytes() - light_before >= 190 * PAGE as u64);
    }
}

fn is_hang(event: &afflux_engine::trace::EngineEvent) -> bool {
    matches!(event, afflux_engine::trace::EngineEvent::DeviceHangs { .. })
}

/// The disk was idle at the jump.
#[test]
fn an_idle_disk_after_a_jump_is_as_it_was_before() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    let (file, warm) = Writer { most: 100 * MIB, ..Writer::STREAM }.begins(&lab);
    lab.ends_after(&warm);
    lab.sync_ns(&file);
    let mib = lab.number(0, "write_mib_ns");
    lab.world.jump(3600 * SECOND);
    let (_, done) = Writer { unseen_ns: 0, ..Writer::STREAM }.begins(&lab);
    let most = lab.most_dirty(3 * SECOND);
    assert!(most <= SLOW * 9 / 8, "{most} bytes");
    assert!(lab.number(0, "write_mib_ns").abs_diff(mib) <= mib / 20);
    assert!(done.bytes() >= SLOW * 3);
    assert_eq!(lab.status(0).stalled_ns, None);
}

/// One request in flight at a time, on a disk whose every flush takes as long as many a hang.
#[test]
fn a_slow_flush_is_told_as_a_hang_while_it_lasts_and_refuses_nobody() {
    let lab = lab(256 << 20, &[DiskOptions { depth: 1, ..disk(SLOW) }]);
    let file = lab.file(0, 0, 0);
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Sync, FaultWhat::Delay { ns: 5 * SECOND }));
    let (here, to) = (Arc::clone(&lab.here), file.clone());
    let synced = lab.in_background(async move {
        here.write(&to, 0, PAGE, 1).await.unwrap();
        here.sync(&to).await.unwrap();
    });
    lab.passes(4 * SECOND);
    assert!(lab.status(0).stalled_ns.is_some());
    lab.passes(2 * SECOND);
    assert!(synced.load(Ordering::Relaxed));
    assert_eq!(lab.status(0).stalled_ns, None);
}
