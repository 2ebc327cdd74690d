//! A device that completes nothing: the time at which it counts as hung, the reports, the waits and the refusals.

//! rule: 6: a device that hangs refuses its own writers alone, after the time of its knob, and loses nothing
//! kept in: `product/engine/src/devices/hang.rs`

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use afflux_budget::BudgetKnob;
use afflux_engine::policy::PauseCause;
use afflux_engine::trace::EngineEvent;
use afflux_engine::{Client, DeviceError, Error, WaitsFor};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, TestFile, bytes};
use crate::streams::{FAST, SLOW, Writer, disk, lab};

const HUNG: Error = Error::Device(DeviceError::Hung);

impl EngineFixture {
    fn set_hang_error(&self, ms: u64) {
        let device = self.here.devices[0];
        self.here.engine.set_device_knob(device, BudgetKnob::HangErrorMs, ms).unwrap();
    }
}

/// A disk with a stream to it that has hung for this long.
fn hung(ns: u64) -> EngineFixture {
    let lab = lab(1 << 30, &[disk(SLOW), disk(FAST)]);
    let stream = lab.file(0, 0, 0);
    writes_until_refused(&lab, &stream);
    lab.passes(5 * SECOND);
    lab.here.disks[0].hang();
    lab.passes(ns);
    lab
}

/// A writer writes until it is refused. Returns the variable where the instant of the refusal is stored.
fn writes_until_refused(lab: &EngineFixture, file: &TestFile) -> Arc<AtomicU64> {
    let (here, to, at) = (Arc::clone(&lab.here), file.clone(), Arc::new(AtomicU64::new(0)));
    let own = Arc::clone(&at);
    lab.in_background(async move {
        let mut offset = 0;
        let error = loop {
            match here.write(&to, offset, 64 << 10, 1).await {
                Ok(()) => offset += 64 << 10,
                Err(error) => break error,
            }
            here.sleep(20_000).await;
        };
        assert_eq!(error, HUNG);
        own.store(here.now_ns(), Ordering::Relaxed);
    });
    at
}

#[test]
fn a_device_that_completes_nothing_for_two_seconds_is_told_with_its_age_until_it_goes_on() {
    let lab = lab(1 << 30, &[disk(SLOW), disk(FAST)]);
    let mut follower = lab.here.engine.follow();
    let (_, done) = Writer::STREAM.begins(&lab);
    lab.passes(20 * SECOND);
    assert_eq!(lab.status(0).stalled_ns, None, "it is at work");
    lab.here.disks[0].hang();
    lab.passes(1900 * MILLISECOND);
    assert_eq!(lab.status(0).stalled_ns, None, "not yet");
    lab.passes(700 * MILLISECOND);
    let ns = lab.status(0).stalled_ns.expect("2 s and a look");
    assert!((2500 * MILLISECOND..=2700 * MILLISECOND).contains(&ns), "{ns} ns");
    lab.passes(3600 * SECOND);
    assert!(lab.status(0).stalled_ns.unwrap() > 3600 * SECOND && !lab.status(0).refuses, "for ever, and no error");
    assert_eq!(lab.status(1).stalled_ns, None, "a neighbour without work");
    lab.here.disks[0].release();
    lab.passes(SECOND);
    assert_eq!(lab.status(0).stalled_ns, None);
    done.stop();
    lab.passes(60 * SECOND);
    assert_eq!(lab.status(0).stalled_ns, None, "it has nothing to do");
    let (events, _) = follower.take(usize::MAX);
    let hangs: Vec<_> = events
        .iter()
        .filter(|traced| matches!(traced.event, EngineEvent::DeviceHangs { .. } | EngineEvent::DeviceGoesOn { .. }))
        .map(|traced| (traced.device, traced.event))
        .collect();
    let [(first, EngineEvent::DeviceHangs { ns, refuses: false }), (second, EngineEvent::DeviceGoesOn { ns: after })] =
        hangs[..]
    else {
        panic!("{hangs:?}")
    };
    assert_eq!((first, second), (Some(lab.here.devices[0]), Some(lab.here.devices[0])));
    assert!((2 * SECOND..3 * SECOND).contains(&ns) && after > 3600 * SECOND, "{hangs:?}");
}

#[test]
fn what_is_in_flight_has_eight_times_its_time_before_that_counts_as_a_hang() {
    let lab = lab(1 << 30, &[disk(SLOW / 25)]);
    lab.here.engine.set_device_knob(lab.here.devices[0], BudgetKnob::InFlightMs, 500).unwrap();
    let _ = Writer::STREAM.begins(&lab);
    lab.passes(30 * SECOND);
    lab.here.disks[0].hang();
    lab.passes(3 * SECOND);
    assert_eq!(lab.status(0).stalled_ns, None, "half a second and more is in flight");
    lab.passes(28 * SECOND);
    assert!(lab.status(0).stalled_ns.is_some(), "and 30 s are enough for anything");
}

#[test]
fn who_waits_for_a_hung_device_is_told_that_it_hangs() {
    let lab = hung(5 * SECOND);
    let (here, to, client) = (Arc::clone(&lab.here), lab.file(0, 0, 0), Client::named("10.0.0.9"));
    lab.in_background(async move {
        let _ = here.engine.write_for(Some(&client), &to.file, 0, &bytes(1, 0, 4 << 20)).await;
    });
    lab.passes(SECOND);
    let told = lab.here.engine.waits(lab.here.devices[0]).unwrap();
    let hung = WaitsFor::Pause(PauseCause::Hung);
    assert_eq!(told.waiting.len(), 2);
    assert!(told.waiting.iter().all(|one| one.waits_for == hung), "also who came before it hung");
    assert_eq!(told.waiting[1].client.as_ref().map(Client::name), Some("10.0.0.9"));
    assert!(told.waiting[0].ns > 3 * SECOND);
    let pauses = lab.status(0).pauses;
    assert!(pauses.iter().any(|pause| pause.cause == PauseCause::Hung && pause.waiting == 2), "{pauses:?}");
}

#[test]
fn after_the_knob_s_time_those_who_wait_and_those_who_come_are_refused_and_nothing_is_lost() {
    let lab = lab(1 << 30, &[disk(SLOW), disk(FAST)]);
    lab.set_hang_error(10_000);
    let files = [lab.file(0, 0, 0), lab.file(0, 0, 0), lab.file(1, 0, 0), lab.file(0, 0, 0)];
    lab.run(async {
        lab.here.write(&files[3], 0, PAGE, 1).await.unwrap();
        lab.here.sync(&files[3]).await.unwrap();
    });
    let refused_at = writes_until_refused(&lab, &files[0]);
    lab.passes(5 * SECOND);
    lab.here.disks[0].hang();
    let hung_at = lab.here.now_ns();
    let (here, to) = (Arc::clone(&lab.here), files[0].clone());
    let synced = lab.in_background(async move { assert_eq!(here.sync(&to).await, Err(HUNG)) });
    lab.passes(9 * SECOND);
    assert_eq!(refused_at.load(Ordering::Relaxed), 0, "not before its time");
    assert!(!synced.load(Ordering::Relaxed));
    lab.passes(2 * SECOND);
    let after = refused_at.load(Ordering::Relaxed) - hung_at;
    assert!((9900 * MILLISECOND..=11 * SECOND).contains(&after), "{after} ns");
    assert!(synced.load(Ordering::Relaxed) && lab.status(0).refuses);
    let dirty = files[0].file.dirty_bytes();
    assert!(dirty > 0);
    lab.run(async {
        let began = lab.here.now_ns();
        assert_eq!(lab.here.write(&files[1], 0, PAGE, 1).await, Err(HUNG));
        assert_eq!(lab.here.sync(&files[0]).await, Err(HUNG));
        assert_eq!(lab.here.engine.drain(lab.here.devices[0]).await.len(), 1);
        lab.here.sync(&files[3]).await.expect("nothing of it is to be written");
        assert_eq!(lab.here.now_ns() - began, 0, "at once");
        lab.here.write(&files[2], 0, PAGE, 1).await.unwrap();
        lab.here.sync(&files[2]).await.expect("the neighbour");
    });
    assert_eq!(files[0].file.dirty_bytes(), dirty, "what was accepted is there");
    lab.here.disks[0].release();
    lab.run(async {
        lab.here.sleep(MILLISECOND * 100).await;
        lab.here.write(&files[1], 0, PAGE, 1).await.expect("it goes on");
        lab.here.sync(&files[0]).await.unwrap();
        lab.here.sync(&files[1]).await.unwrap();
    });
    assert!(!lab.status(0).refuses && files[0].file.is_clean());
    assert_eq!(files[0].disk.durable_size(files[0].id), files[0].file.size());
}

#[test]
fn the_knob_acts_at_once_on_those_who_wait_and_back() {
    let lab = hung(60 * SECOND);
    let file = lab.file(0, 0, 0);
    let (here, to) = (Arc::clone(&lab.here), file.clone());
    let refused = lab.in_background(async move { assert_eq!(here.write(&to, 0, 4 << 20, 1).await, Err(HUNG)) });
    lab.passes(SECOND);
    assert!(!refused.load(Ordering::Relaxed));
    lab.set_hang_error(30_000);
    lab.passes(MILLISECOND);
    assert!(refused.load(Ordering::Relaxed), "it has hung for longer");
    lab.set_hang_error(0);
    lab.passes(MILLISECOND);
    let (here, to) = (Arc::clone(&lab.here), file.clone());
    let ended = lab.in_background(async move {
        let _ = here.write(&to, 0, 4 << 20, 1).await;
    });
    lab.passes(SECOND);
    assert!(!ended.load(Ordering::Relaxed), "it waits again");
    for nonsense in [1, 9_999, 86_400_001] {
        let device = lab.here.devices[0];
        let error = lab.here.engine.set_device_knob(device, BudgetKnob::HangErrorMs, nonsense).unwrap_err().to_string();
        assert!(error.contains("10000") && error.contains("86400000"), "{error}");
    }
}

/// The hung disk writes nothing, and writers of its neighbour notice nothing.
#[test]
fn nobody_else_waits_for_a_hung_device() {
    let lab = hung(30 * SECOND);
    let (_, done) = Writer { disk: 1, unseen_ns: 0, most: 400_000_000, ..Writer::STREAM }.begins(&lab);
    let ns = lab.ends_after(&done);
    assert!(ns < SECOND, "{ns} ns");
}

#[test]
fn changes_of_shape_are_refused_as_writes_are_and_one_that_was_not_begun_is_never_made() {
    const BYTES: u64 = PAGE as u64;
    let lab = lab(1 << 30, &[disk(SLOW), disk(FAST)]);
    lab.set_hang_error(10_000);
    let files = [lab.file(0, 0, 0), lab.file(0, 0, 0), lab.file(0, 0, 0)];
    lab.run(async {
        for file in &files {
            lab.here.write(file, 0, 8 * PAGE, 1).await.unwrap();
            lab.here.sync(file).await.unwrap();
        }
    });
    lab.here.disks[0].hang();
    let (here, to) = (Arc::clone(&lab.here), files[0].clone());
    let first =
        lab.in_background(async move { assert_eq!(here.engine.set_size(&to.file, 2 * BYTES).await, Err(HUNG)) });
    lab.passes(MILLISECOND);
    let (here, to) = (Arc::clone(&lab.here), files[0].clone());
    let second = lab.in_background(async move { assert_eq!(here.engine.set_size(&to.file, 0).await, Err(HUNG)) });
    let (here, to) = (Arc::clone(&lab.here), files[1].clone());
    let hole =
        lab.in_background(async move { assert_eq!(here.engine.punch(&to.file, BYTES..3 * BYTES).await, Err(HUNG)) });
    lab.passes(9 * SECOND);
    let told = || [&first, &second, &hole].map(|told| told.load(Ordering::Relaxed));
    assert_eq!(told(), [false; 3], "not before its time");
    lab.passes(2 * SECOND);
    assert_eq!(told(), [true; 3]);
    lab.run(async {
        let began = lab.here.now_ns();
        assert_eq!(lab.here.engine.set_size(&files[2].file, 0).await, Err(HUNG));
        assert_eq!(lab.here.engine.punch(&files[2].file, 0..BYTES).await, Err(HUNG));
        lab.here.engine.set_size(&files[2].file, 8 * BYTES).await.expect("it has that size");
        assert_eq!(lab.here.now_ns() - began, 0, "at once");
    });
    lab.here.disks[0].release();
    lab.run(async {
        lab.here.sleep(SECOND).await;
        assert_eq!(files[0].file.size(), 2 * BYTES, "the device was asked for the first, and never for the second");
        lab.here.write(&files[0], 0, 4 * PAGE, 2).await.expect("it goes on");
        lab.here.sync(&files[0]).await.unwrap();
        lab.here.engine.set_size(&files[2].file, 0).await.unwrap();
    });
    assert_eq!((files[0].file.size(), files[2].file.size()), (4 * BYTES, 0));
}

/// A change goes on although its caller was refused, or has gone. It owes a flush after that.
#[test]
fn a_drain_waits_for_a_change_of_shape_whose_caller_has_left() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        lab.here.write(&file, 0, 8 * PAGE, 1).await.unwrap();
        lab.here.sync(&file).await.unwrap();
        let mut change = Box::pin(lab.here.engine.set_size(&file.file, 0));
        assert!(poll_fn(|cx| Poll::Ready(change.as_mut().poll(cx).is_pending())).await, "it takes a while");
        drop(change);
        assert!(lab.here.engine.drain(file.file.device()).await.is_empty());
        assert_eq!((file.file.size(), file.file.has_unflushed()), (0, false));
    });
}
