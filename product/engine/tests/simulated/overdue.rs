//! Files that cannot be written, or whose requests do not end: other files get their slots and their charges.

//! rule: 6: files whose requests do not end keep no other file of their device waiting
//! kept in: `product/engine/src/writeback/hang_watch.rs`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_budget::BudgetKnob;
use afflux_engine::trace::{EngineEvent, Follower};
use afflux_engine::{DeviceError, WriteObstacle};
use afflux_simulator::{
    DiskOptions, Fault, FaultTarget, FaultWhat, Memory, OWN_POLICY, Setup, SimMachine, World, WorldOptions,
};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, TestFile, bytes};
use crate::streams::{FAST, MIB, SLOW, Writer, disk, lab};

/// A fast disk under the policy, with a memory that stores all bytes.
fn with_bytes() -> EngineFixture {
    let world = World::new(WorldOptions { steps_max: u64::MAX, ..WorldOptions::seed(3) });
    let setup = Setup::of(OWN_POLICY).unwrap();
    let machine = SimMachine::with_disks(&world, Memory::Whole(64 * MIB), setup, &[disk(FAST)]).unwrap();
    EngineFixture::of(world, machine)
}

/// Files of the first disk whose requests of this kind do not end, each with `size` durable bytes.
fn stuck_files(lab: &EngineFixture, count: usize, target: FaultTarget, size: usize) -> Vec<TestFile> {
    let stuck: Vec<_> = (0..count).map(|_| lab.file(0, size, 1)).collect();
    for file in &stuck {
        file.disk.add_fault(Fault::always(target, FaultWhat::Hang).on(file.id));
    }
    stuck
}

/// Writes pages of each file and asks for their sync; returns the end of all syncs.
fn synced_in_background(lab: &EngineFixture, files: &[TestFile]) -> Vec<Arc<AtomicBool>> {
    let sync = |file: &TestFile| {
        let (here, file) = (Arc::clone(&lab.here), file.clone());
        lab.in_background(async move {
            here.write(&file, 0, 8 * PAGE, 2).await.unwrap();
            here.sync(&file).await.unwrap();
        })
    };
    files.iter().map(sync).collect()
}

/// How many requests were set aside since the last question.
fn set_aside(follower: &mut Follower) -> usize {
    let (events, _) = follower.take(usize::MAX);
    events.iter().filter(|traced| matches!(traced.event, EngineEvent::SetAside { .. })).count()
}

/// A writer that writes a file on and on and ignores errors.
fn writes_on_and_on(lab: &EngineFixture, file: &TestFile) {
    let (here, to) = (Arc::clone(&lab.here), file.clone());
    lab.in_background(async move {
        let mut offset = 0;
        loop {
            match here.write(&to, offset, 256 << 10, 2).await {
                Ok(()) => offset += 256 << 10,
                Err(_) => here.sleep(100 * MILLISECOND).await,
            }
            here.sleep(MILLISECOND).await;
        }
    });
}

/// Time in which a page of the file becomes durable.
fn page_ns(lab: &EngineFixture, file: &TestFile) -> u64 {
    let began = lab.here.now_ns();
    lab.run(async {
        lab.here.write(file, 0, PAGE, 3).await.unwrap();
        lab.here.sync(file).await.unwrap();
    });
    lab.here.now_ns() - began
}

fn all(ended: &[Arc<AtomicBool>], value: bool) -> bool {
    ended.iter().all(|ended| ended.load(Ordering::Relaxed) == value)
}

#[test]
fn writes_that_do_not_end_give_their_places_to_other_files_and_nothing_is_lost() {
    let lab = with_bytes();
    let mut follower = lab.here.engine.follow();
    let stuck = stuck_files(&lab, 24, FaultTarget::Write, 0);
    let ended = synced_in_background(&lab, &stuck);
    lab.passes(SECOND);
    let other = lab.file(0, 0, 0);
    let waited = page_ns(&lab, &other);
    assert!(waited < 8 * SECOND, "{waited} ns: a look after 2 s, and one for each four of the files");
    lab.passes(20 * SECOND);
    let waited = page_ns(&lab, &other);
    assert!(waited < SECOND, "{waited} ns: a look, since the last of them came into the device meanwhile");
    let waited = page_ns(&lab, &other);
    assert!(waited < 100 * MILLISECOND, "{waited} ns: all of them are out of the way");
    assert!(set_aside(&mut follower) >= 20);
    let aside = stuck.iter().filter(|file| file.file.write_obstacle() == Some(WriteObstacle::Aside)).count();
    assert!(aside >= 20, "{aside} files say so");
    assert!(all(&ended, false), "their own syncs wait");
    lab.here.disks[0].clear_faults();
    lab.here.disks[0].release();
    lab.passes(SECOND);
    assert!(all(&ended, true));
    for file in &stuck {
        assert!(file.file.is_clean());
        assert_eq!(file.disk.durable(file.id), bytes(2, 0, 8 * PAGE));
    }
}

#[test]
fn reads_of_one_file_that_do_not_end_keep_no_other_file_waiting() {
    let lab = with_bytes();
    let stuck = stuck_files(&lab, 1, FaultTarget::Read, 200 * 64 * PAGE).remove(0);
    let read = |place: usize| {
        let (here, file) = (Arc::clone(&lab.here), stuck.clone());
        // Far from each other, so that each is a request of its own.
        lab.in_background(async move {
            let at = (place * 64 * PAGE) as u64;
            assert_eq!(here.read(&file, at, PAGE).await.unwrap(), bytes(1, at, PAGE));
        })
    };
    let ended: Vec<_> = (0..200).map(read).collect();
    lab.passes(SECOND);
    let other = lab.file(0, PAGE, 3);
    let began = lab.here.now_ns();
    lab.run(async { assert_eq!(lab.here.read(&other, 0, PAGE).await.unwrap(), bytes(3, 0, PAGE)) });
    let waited = lab.here.now_ns() - began;
    assert!(waited < 4 * SECOND, "{waited} ns: the first look after 2 s");
    assert!(page_ns(&lab, &other) < 4 * SECOND);
    assert!(all(&ended, false));
    lab.here.disks[0].clear_faults();
    lab.here.disks[0].release();
    lab.passes(SECOND);
    assert!(all(&ended, true));
}

#[test]
fn a_file_whose_write_was_set_aside_gets_no_other_request_and_a_part_of_the_room() {
    let lab = lab(256 * MIB, &[disk(SLOW)]);
    let stuck = stuck_files(&lab, 12, FaultTarget::Write, 0);
    stuck.iter().for_each(|file| writes_on_and_on(&lab, file));
    let (other, done) = Writer::STREAM.begins(&lab);
    lab.passes(60 * SECOND);
    let before = done.bytes();
    lab.passes(60 * SECOND);
    let rate = (done.bytes() - before) / 60;
    assert!(rate > SLOW * 8 / 10, "{rate} bytes/s: the stream has the disk for itself");
    done.stop();
    lab.passes(60 * SECOND);
    let submitted = lab.here.disks[0].in_flight();
    assert!(submitted <= 24, "{submitted} requests in flight: one or two of each file");
    drop(other);
}

#[test]
fn a_hung_device_gets_no_more_requests_than_twice_its_slots_and_still_counts_as_hung() {
    let lab = lab(256 * MIB, &[disk(SLOW)]);
    let mut follower = lab.here.engine.follow();
    let files: Vec<_> = (0..200).map(|_| lab.file(0, 0, 0)).collect();
    lab.here.disks[0].hang();
    let ended = synced_in_background(&lab, &files);
    lab.passes(2100 * MILLISECOND);
    assert_eq!(set_aside(&mut follower), 0, "not before its time");
    lab.passes(3600 * SECOND);
    let slots = u64::from(DiskOptions::default().depth);
    assert_eq!(set_aside(&mut follower) as u64, slots);
    assert!(lab.here.disks[0].in_flight() <= 2 * slots);
    assert!(lab.status(0).stalled_ns > Some(3600 * SECOND), "{:?}", lab.status(0).stalled_ns);
    lab.here.disks[0].release();
    lab.passes(60 * SECOND);
    assert!(all(&ended, true));
    assert_eq!((lab.status(0).stalled_ns, lab.here.disks[0].in_flight()), (None, 0));
}

#[test]
fn others_are_not_refused_for_a_file_whose_write_does_not_end() {
    let lab = lab(256 * MIB, &[disk(FAST)]);
    lab.here.engine.set_device_knob(lab.here.devices[0], BudgetKnob::HangErrorMs, 10_000).unwrap();
    let stuck = stuck_files(&lab, 12, FaultTarget::Write, 0);
    let ended = synced_in_background(&lab, &stuck);
    let other = lab.file(0, 0, 0);
    for second in 0..60 {
        page_ns(&lab, &other);
        lab.passes(SECOND);
        assert!(!lab.status(0).refuses, "{second}");
    }
    assert!(all(&ended, false));
}

#[test]
fn files_that_cannot_be_written_take_no_device_time_from_others() {
    for (files, error) in [(1, DeviceError::Quota), (1, DeviceError::Io { errno: 5 }), (8, DeviceError::Quota)] {
        let lab = lab(256 * MIB, &[disk(SLOW)]);
        let (_, done) = Writer::STREAM.begins(&lab);
        lab.passes(5 * SECOND);
        for _ in 0..files {
            let file = lab.file(0, 0, 0);
            file.disk.add_fault(Fault::always(FaultTarget::Write, FaultWhat::Error(error)).on(file.id));
            writes_on_and_on(&lab, &file);
        }
        lab.passes(5 * SECOND);
        let before = done.bytes();
        lab.passes(60 * SECOND);
        let rate = (done.bytes() - before) / 60;
        assert!(rate > SLOW * 8 / 10, "{rate} bytes/s beside {files} files with {error}: {}", lab.figures(0));
        assert!(done.longest_ns() < SECOND, "{} ns", done.longest_ns());
        done.stop();
    }
}
