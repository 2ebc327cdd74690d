//! Every wait is reported with its client, cause, start and duration; followers get the events.

use std::collections::BTreeMap;
use std::sync::Arc;

use afflux_engine::counters::Counter;
use afflux_engine::policy::PauseCause;
use afflux_engine::settings::Knob;
use afflux_engine::trace::{EngineEvent, Traced};
use afflux_engine::{AccountOwner, Client, Delay, DeviceWaits, Operation, WaitsFor};
use afflux_simulator::DiskOptions;

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, TestFile, bytes};

fn slow() -> DiskOptions {
    DiskOptions { bytes_per_second: 10_000_000, ..DiskOptions::default() }
}

/// A client writes this many pages to the file, a page a call.
fn writes(lab: &EngineFixture, file: &TestFile, client: &str, pages: u64) -> Arc<std::sync::atomic::AtomicBool> {
    let (here, to, client) = (Arc::clone(&lab.here), file.clone(), Client::named(client));
    lab.in_background(async move {
        for at in 0..pages {
            let offset = at * PAGE as u64;
            here.engine.write_for(Some(&client), &to.file, offset, &bytes(1, offset, PAGE)).await.unwrap();
        }
    })
}

fn waits(lab: &EngineFixture, disk: usize) -> DeviceWaits {
    lab.here.engine.waits(lab.here.devices[disk]).unwrap()
}

#[test]
fn who_waits_is_told_with_file_client_cause_and_time_longest_first() {
    let lab = EngineFixture::new(1, 256, &[slow(), slow()], &["dirty_ratio=5"]);
    lab.here.disks[0].hang();
    let (first, second) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
    writes(&lab, &first, "10.0.0.1", 100);
    lab.run(lab.here.sleep(SECOND));
    writes(&lab, &second, "10.0.0.2", 100);
    lab.run(lab.here.sleep(SECOND));
    let (here, to) = (Arc::clone(&lab.here), second.clone());
    lab.in_background(async move {
        let _ = here.sync(&to).await;
    });
    lab.run(lab.here.sleep(SECOND));
    let told = waits(&lab, 0);
    let pause = WaitsFor::Pause(PauseCause::DevicePart);
    let rows: Vec<_> = told.waiting.iter().map(|one| (one.client.as_ref().map(Client::name), one.waits_for)).collect();
    assert_eq!(rows, [(Some("10.0.0.1"), pause), (Some("10.0.0.2"), pause), (None, WaitsFor::Sync)]);
    for (one, (file, seconds)) in told.waiting.iter().zip([(&first, 3), (&second, 2), (&second, 1)]) {
        assert!((seconds * SECOND - MILLISECOND * 100..=seconds * SECOND).contains(&one.ns), "{} ns", one.ns);
        assert_eq!(file.disk.file_of(&one.file), Some(file.id));
    }
    assert_eq!((told.times.calls.throttle.count, told.waiting_more), (0, 0), "none has ended");
    assert!(told.delays.accounts.is_empty(), "what is not over is not counted");
    assert!(waits(&lab, 1).waiting.is_empty(), "another device has nothing to do with it");
}

#[test]
fn a_sync_under_way_is_told() {
    let lab = EngineFixture::new(1, 256, &[slow()], &[]);
    let file = lab.file(0, 0, 0);
    lab.run(async { lab.here.write(&file, 0, PAGE, 1).await.unwrap() });
    lab.here.disks[0].hang();
    let (here, to) = (Arc::clone(&lab.here), file.clone());
    lab.in_background(async move {
        let client = Client::named("10.0.0.3");
        let _ = here.engine.sync_for(Some(&client), &to.file, 0..u64::MAX).await;
    });
    lab.run(lab.here.sleep(SECOND));
    let told = waits(&lab, 0);
    let [one] = &told.waiting[..] else { panic!("{} wait", told.waiting.len()) };
    assert_eq!((one.waits_for, one.client.as_ref().map(Client::name)), (WaitsFor::Sync, Some("10.0.0.3")));
    assert!((SECOND - MILLISECOND..=SECOND).contains(&one.ns), "{} ns", one.ns);
}

#[test]
fn of_many_payers_the_sixteen_that_have_waited_longest_are_told_by_name() {
    let lab = EngineFixture::new(1, 256, &[slow()], &["dirty_ratio=5"]);
    lab.here.disks[0].hang();
    let files: Vec<_> = (0..30).map(|_| lab.file(0, 0, 0)).collect();
    for (at, file) in files.iter().enumerate() {
        writes(&lab, file, &format!("client {at}"), 100);
        lab.run(lab.here.sleep(MILLISECOND));
    }
    // A second call of the first payer, and a call of another client for the same file.
    writes(&lab, &files[0], "client 0", 100);
    writes(&lab, &files[0], "client 1", 100);
    lab.run(lab.here.sleep(MILLISECOND));
    let told = waits(&lab, 0);
    assert_eq!(lab.here.engine.status().devices[0].writers_waiting, 32);
    assert_eq!((told.waiting.len(), told.waiting_more), (16, 31 - 16));
    let calls: Vec<_> = told.waiting.iter().map(|one| one.calls).collect();
    assert_eq!((calls[0], calls.iter().sum::<u64>()), (2, 17), "{calls:?}");
    let longest: Vec<_> = told.waiting.iter().map(|one| one.ns).collect();
    assert!(longest.is_sorted_by(|a, b| a >= b), "{longest:?}");
}

#[test]
fn waits_of_a_call_add_up_and_agree_with_the_counters() {
    let lab = EngineFixture::new(1, 256, &[slow()], &["dirty_ratio=5"]);
    let files: Vec<_> = (0..4).map(|_| lab.file(0, 0, 0)).collect();
    let ended: Vec<_> = files.iter().map(|file| writes(&lab, file, "10.0.0.1", 200)).collect();
    lab.run(async {
        let all = || ended.iter().all(|ended| ended.load(std::sync::atomic::Ordering::Relaxed));
        assert!(lab.here.until(60 * SECOND, all).await);
        for file in &files {
            lab.here.sync(file).await.unwrap();
        }
    });
    let told = waits(&lab, 0);
    let named: Vec<_> =
        told.delays.accounts.iter().filter(|one| matches!(one.whose, AccountOwner::Client(_))).collect();
    let [client] = &named[..] else { panic!("{} clients", named.len()) };
    assert!(told.times.pause.count > 0 && told.times.calls.throttle.count > 0, "{:?}", told.times.calls.throttle);
    assert_eq!(told.times.pause.count, lab.count(Counter::ThrottlePauses));
    assert_eq!(told.times.pause.ns, lab.count(Counter::ThrottleNs));
    assert_eq!(client.times.of(Delay::Throttle), told.times.calls.throttle);
    assert_eq!(told.times.calls.throttle.ns, told.times.pause.ns, "a call's waits are the sum of its pauses");
    assert_eq!(
        (told.times.calls.sync.count, told.times.calls.sync.ns),
        (lab.count(Counter::SyncCalls), lab.count(Counter::SyncNs))
    );
    assert!(told.waiting.is_empty() && client.waiting == 0);
}

/// The events of a run that writes and syncs a few pages under a small limit.
fn followed(lab: &EngineFixture) -> Vec<Traced> {
    let mut follower = lab.here.engine.follow();
    let file = lab.file(0, 8 * PAGE, 9);
    let ended = writes(lab, &file, "10.0.0.1", 100);
    lab.run(async {
        assert!(lab.here.until(60 * SECOND, || ended.load(std::sync::atomic::Ordering::Relaxed)).await);
        lab.here.sync(&file).await.unwrap();
        lab.here.read(&file, 0, PAGE).await.unwrap();
    });
    let (events, lost) = follower.take(usize::MAX);
    assert_eq!(lost, 0);
    events
}

#[test]
fn what_begins_in_the_trace_ends_there_and_the_times_agree() {
    let lab = EngineFixture::new(1, 256, &[slow()], &["dirty_ratio=5"]);
    let events = followed(&lab);
    let (mut begun, mut pauses, mut syncs, mut requests) = (BTreeMap::new(), 0, 0, Vec::new());
    for traced in &events {
        match traced.event {
            EngineEvent::PauseBegins { wait, .. } | EngineEvent::SyncBegins { wait } => {
                assert!(begun.insert(wait, traced.at).is_none(), "wait {wait} begins twice");
            }
            EngineEvent::PauseEnds { wait, ns, cause } => {
                assert_eq!(traced.at.since(begun.remove(&wait).unwrap()), ns);
                assert_eq!(cause, PauseCause::DevicePart);
                assert_eq!(traced.client.as_ref().map(Client::name), Some("10.0.0.1"));
                pauses += 1;
            }
            EngineEvent::SyncEnds { wait, ns } => {
                assert_eq!(traced.at.since(begun.remove(&wait).unwrap()), ns);
                syncs += 1;
            }
            EngineEvent::Submitted { operation } => requests.push((operation, traced.at)),
            EngineEvent::Completed { operation, ns, error } => {
                let at = requests.iter().position(|(submitted, _)| *submitted == operation).unwrap();
                assert_eq!((traced.at.since(requests.remove(at).1), error), (ns, None));
            }
            _ => {}
        }
    }
    assert_eq!((pauses, syncs), (lab.count(Counter::ThrottlePauses), lab.count(Counter::SyncCalls)));
    assert!(pauses > 0 && begun.is_empty() && requests.is_empty(), "{begun:?} {requests:?}");
}

#[test]
fn turns_are_told_with_reason_and_pages_and_knobs_with_their_value() {
    // More than one request per slice.
    let disk = DiskOptions { request_bytes_max: PAGE as u32, ..slow() };
    let lab = EngineFixture::new(1, 256, &[disk], &["dirty_ratio=5"]);
    let mut follower = lab.here.engine.follow();
    drop(followed(&lab));
    lab.run(async {
        let file = lab.file(0, 0, 0);
        lab.here.write(&file, 0, 3 * PAGE, 1).await.unwrap();
        lab.here.sync(&file).await.unwrap();
    });
    let (events, _) = follower.take(usize::MAX);
    let pages_of = |wanted: &str| -> u64 {
        let turns = events.iter().filter_map(|traced| match traced.event {
            EngineEvent::FlushSlice { slice, pages, .. } if slice.reason() == wanted => Some(pages),
            _ => None,
        });
        turns.sum()
    };
    let submitted = events.iter().filter_map(|traced| match traced.event {
        EngineEvent::Submitted { operation: Operation::Write { len, .. } } => Some(u64::from(len) / PAGE as u64),
        _ => None,
    });
    assert_eq!(pages_of("background") + pages_of("sync"), submitted.sum());
    assert!(pages_of("background") > 0 && pages_of("sync") >= 3);
    let device = lab.here.devices[0];
    lab.here.engine.set_device_knob(device, Knob::ExpireCentisecs, 500).unwrap();
    lab.here.engine.set_knob(Knob::DirtyRatio, 20).unwrap();
    let changes: Vec<_> = follower
        .take(usize::MAX)
        .0
        .iter()
        .filter_map(|traced| match traced.event {
            EngineEvent::KnobChanged { knob, value } => Some((traced.device, knob, value)),
            _ => None,
        })
        .collect();
    assert_eq!(changes, [(Some(device), "dirty_expire_centisecs", 500), (None, "dirty_ratio", 20)]);
}

#[test]
fn following_changes_nothing_that_happens() {
    let run = |follows: bool| {
        let lab = EngineFixture::new(7, 256, &[slow()], &["dirty_ratio=5"]);
        let follower = follows.then(|| lab.here.engine.follow());
        let file = lab.file(0, 0, 0);
        let ended = writes(&lab, &file, "10.0.0.1", 200);
        lab.run(async {
            assert!(lab.here.until(60 * SECOND, || ended.load(std::sync::atomic::Ordering::Relaxed)).await);
            lab.here.sync(&file).await.unwrap();
        });
        drop(follower);
        lab.world.trace_hash()
    };
    assert_eq!(run(true), run(false));
}
