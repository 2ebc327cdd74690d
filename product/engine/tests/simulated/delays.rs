//! Delay accounting: the waits of each call are on its client's account, to the nanosecond, and on no other's.

//! rule: each instant that a call waits is on its client's account, once
//! kept in: `product/engine/src/call.rs`, `product/engine/src/devices/delays.rs`

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::counters::Counter;
use afflux_engine::rare::Rare;
use afflux_engine::{AccountOwner, Client, Delay, DelayTimes, DeviceDelays};
use afflux_simulator::DiskOptions;

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, TestFile, bytes};

fn slow() -> DiskOptions {
    DiskOptions { bytes_per_second: 10_000_000, ..DiskOptions::default() }
}

fn told(lab: &EngineFixture, disk: usize) -> DeviceDelays {
    lab.here.engine.waits(lab.here.devices[disk]).unwrap().delays
}

fn of_client(lab: &EngineFixture, disk: usize, client: &Client) -> DelayTimes {
    let told = told(lab, disk);
    let own = told.accounts.iter().find(|one| matches!(&one.whose, AccountOwner::Client(it) if it == client));
    own.map(|one| one.times).unwrap_or_default()
}

/// Count and duration of each kind of wait.
fn figures(times: &DelayTimes) -> [(u64, u64); 4] {
    Delay::ALL.map(|delay| (times.of(delay).count, times.of(delay).ns))
}

async fn read_for(lab: &EngineFixture, client: Option<&Client>, file: &TestFile, offset: u64) -> u64 {
    let (mut into, began) = (vec![0; PAGE], lab.here.now_ns());
    lab.here.engine.read_for(client, &file.file, offset, &mut into).await.unwrap();
    lab.here.now_ns() - began
}

#[test]
fn a_read_waits_as_long_as_it_takes_and_a_hit_for_nothing() {
    let lab = EngineFixture::new(1, 256, &[slow(), slow()], &["readahead_bytes_max=0"]);
    let (file, client) = (lab.file(0, 64 * PAGE, 1), Client::named("10.0.0.1").of_user(7));
    let mut took = Vec::new();
    lab.run(async {
        for page in [3, 40, 3, 40, 21] {
            took.push(read_for(&lab, Some(&client), &file, page * PAGE as u64).await);
        }
    });
    assert_eq!((took[2], took[3]), (0, 0), "hits");
    let times = of_client(&lab, 0, &client).of(Delay::Read);
    assert_eq!((times.count, times.ns), (3, took.iter().sum()));
    assert_eq!(Some(times.max_ns), took.iter().copied().max());
    assert!(times.p99_ns <= times.max_ns && times.p99_ns >= times.max_ns - times.max_ns / 32);
    assert_eq!(of_client(&lab, 0, &Client::named("10.0.0.1")), DelayTimes::default(), "another user's, or nobody's");
    assert!(told(&lab, 1).accounts.is_empty(), "another device has nothing to do with it");
}

#[test]
fn pauses_and_what_a_write_reads_are_told_apart_and_fill_the_time_it_took() {
    let lab = EngineFixture::new(1, 256, &[slow()], &["dirty_ratio=5", "readahead_bytes_max=0"]);
    let (file, client) = (lab.file(0, 300 * PAGE, 1), Client::named("10.0.0.1"));
    let mut took = 0;
    lab.run(async {
        for at in 0..300 {
            let began = lab.here.now_ns();
            // Some writes cover only a part of a sector, so the rest of the page is read.
            let (skip, len) = if at % 16 == 0 { (100, 100) } else { (0, PAGE) };
            let offset = at * PAGE as u64 + skip;
            lab.here.engine.write_for(Some(&client), &file.file, offset, &bytes(2, offset, len)).await.unwrap();
            took += lab.here.now_ns() - began;
        }
    });
    let [throttle, reclaim, read, sync] = figures(&of_client(&lab, 0, &client));
    assert_eq!(throttle.1, lab.count(Counter::ThrottleNs));
    assert!(throttle.0 > 0 && read.0 == 19, "{throttle:?} {read:?}");
    assert_eq!((throttle.1 + reclaim.1 + read.1, sync), (took, (0, 0)));
}

#[test]
fn a_sync_is_its_caller_s_and_agrees_with_the_counter() {
    let lab = EngineFixture::new(1, 256, &[slow()], &[]);
    let (file, clients) = (lab.file(0, 0, 0), ["10.0.0.1", "10.0.0.2"].map(Client::named));
    lab.run(async {
        lab.here.write(&file, 0, 8 * PAGE, 1).await.unwrap();
        lab.here.engine.sync_for(Some(&clients[0]), &file.file, 0..u64::MAX).await.unwrap();
        // There is nothing to wait for any more.
        lab.here.engine.sync_for(Some(&clients[1]), &file.file, 0..u64::MAX).await.unwrap();
    });
    let sync = of_client(&lab, 0, &clients[0]).of(Delay::Sync);
    assert_eq!((sync.count, sync.ns), (1, lab.count(Counter::SyncNs)));
    assert_eq!(of_client(&lab, 0, &clients[1]), DelayTimes::default());
}

#[test]
fn a_wait_for_a_frame_is_no_wait_for_the_read_that_needs_it() {
    let lab = EngineFixture::new(1, 64, &[slow()], &["readahead_bytes_max=0"]);
    let (file, reader) = (lab.file(0, 64 * PAGE, 1), Client::named("10.0.0.1"));
    // For a second no caller gets a frame.
    assert!(lab.here.engine.try_force_rare(Rare::NoFrame, 1000));
    let here = Arc::clone(&lab.here);
    lab.in_background(async move {
        here.sleep(SECOND).await;
        here.engine.try_force_rare(Rare::NoFrame, 0);
    });
    let took = lab.run(read_for(&lab, Some(&reader), &file, 63 * PAGE as u64));
    let [throttle, reclaim, read, sync] = figures(&of_client(&lab, 0, &reader));
    assert_eq!((throttle, sync, reclaim.0, read.0), ((0, 0), (0, 0), 1, 1));
    assert!((SECOND..SECOND + 2 * MILLISECOND).contains(&reclaim.1) && read.1 > 0, "{reclaim:?} {read:?}");
    assert_eq!(reclaim.1 + read.1, took, "each instant once");
}

#[test]
fn calls_for_nobody_are_their_file_s_and_among_others_once_it_is_closed() {
    let lab = EngineFixture::new(1, 256, &[slow()], &["readahead_bytes_max=0"]);
    let files = [lab.file(0, 8 * PAGE, 1), lab.file(0, 8 * PAGE, 2)];
    let mut took = [0, 0];
    lab.run(async {
        for (file, took) in files.iter().zip(&mut took) {
            *took = read_for(&lab, None, file, 0).await;
        }
    });
    let all = told(&lab, 0);
    let rows = all.accounts.iter().map(|one| match &one.whose {
        AccountOwner::File(backing) => (files[0].disk.file_of(backing).unwrap(), one.times.ns()),
        AccountOwner::Client(client) => panic!("{client}"),
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    assert_eq!(rows, [(files[0].id, took[0]), (files[1].id, took[1])]);
    let [first, second] = files;
    drop(first);
    lab.run(lab.here.sleep(SECOND));
    let left = told(&lab, 0);
    assert_eq!((left.accounts.len(), left.others_count, left.others.ns()), (1, 1, took[0]));
    drop(second);
}

#[test]
fn a_call_that_is_given_up_has_waited_until_then() {
    let lab = EngineFixture::new(1, 256, &[slow()], &["readahead_bytes_max=0"]);
    let (file, client) = (lab.file(0, 8 * PAGE, 1), Client::named("10.0.0.1"));
    lab.here.disks[0].hang();
    lab.run(async {
        let mut into = vec![0; PAGE];
        let mut reads = pin!(lab.here.engine.read_for(Some(&client), &file.file, 0, &mut into));
        let mut gives_up = pin!(lab.here.sleep(3 * MILLISECOND));
        poll_fn(|cx| {
            assert!(reads.as_mut().poll(cx).is_pending(), "the disk hangs");
            gives_up.as_mut().poll(cx)
        })
        .await;
    });
    assert_eq!(figures(&of_client(&lab, 0, &client)), [(0, 0), (0, 0), (1, 3 * MILLISECOND), (0, 0)]);
    lab.here.disks[0].release();
}

#[test]
fn tasks_are_told_apart_and_nothing_else_happens_for_it() {
    let run = |named: bool| {
        let lab = EngineFixture::new(3, 256, &[slow()], &["dirty_ratio=5"]);
        let ended: Vec<_> = (0..4)
            .map(|at| {
                let (here, to, task) = (Arc::clone(&lab.here), lab.file(0, 0, 0), Client::task(&format!("job.{at}")));
                lab.in_background(async move {
                    let task = named.then_some(&task);
                    for page in 0..100 {
                        let offset = page * PAGE as u64;
                        here.engine.write_for(task, &to.file, offset, &bytes(1, offset, PAGE)).await.unwrap();
                    }
                    here.engine.sync_for(task, &to.file, 0..u64::MAX).await.unwrap();
                })
            })
            .collect();
        lab.run(async {
            assert!(lab.here.until(60 * SECOND, || ended.iter().all(|ended| ended.load(Ordering::Relaxed))).await);
        });
        let accounts = told(&lab, 0).accounts;
        let tasks = accounts.iter().filter(|one| matches!(one.whose, AccountOwner::Client(_))).count();
        (lab.world.trace_hash(), tasks)
    };
    let ((named, tasks), (unnamed, none)) = (run(true), run(false));
    assert_eq!((tasks, none), (4, 0));
    assert_eq!(named, unnamed, "a name of a task changes nothing");
}
