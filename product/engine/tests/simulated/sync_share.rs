//! The cost of a sync: it waits for requests in flight, and other writes still get the device.

//! rule: a sync waits for its pages in flight, and the rest still goes to the device; an idle device never waits
//! kept in: `product/engine/src/writeback/flusher.rs`

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use afflux_engine::policy::{Cost, Flight};
use afflux_engine::rare::Rare;
use afflux_engine::{Device, Operation, Platform, Request};
use afflux_frames::Frames;
use afflux_simulator::{Disk, DiskOptions, World, WorldOptions};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND};
use crate::timed::{Terms, Timed, lab, lab_with, slow, slow_terms, stream};

/// Syncs a page of a file beside another file that owes a second of work and is always refilled, with gaps. Returns the
/// longest sync in ms.
fn sync_beside((lab, _): (EngineFixture, Arc<Timed>), gap_bytes: u64) -> u64 {
    let (large, small) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
    let stop = stream(&lab, &large, gap_bytes);
    let longest = lab.run(async {
        lab.here.sleep(2 * SECOND).await;
        let mut longest = 0;
        for page in 0..5 {
            lab.here.sleep(SECOND / 2).await;
            lab.here.write(&small, page * PAGE as u64, PAGE, 1).await.unwrap();
            let began = lab.here.now_ns();
            lab.here.sync(&small).await.unwrap();
            longest = longest.max(lab.here.now_ns() - began);
        }
        longest
    });
    stop.store(true, Ordering::Relaxed);
    longest / MILLISECOND
}

#[test]
fn a_sync_of_a_page_waits_for_what_is_in_flight_and_not_for_what_another_file_owes() {
    const GAP: u64 = 64 << 10;
    let throttled = || lab_with("throttled", slow_terms());
    let disk = || lab_with("disk", Terms::of(8 * MILLISECOND, 100_000_000));
    let stick = || lab_with("usb-stick", Terms::of(400 * MILLISECOND, 12_000_000));
    for (name, took_ms, most_ms) in [
        ("throttled, a stream", sync_beside(throttled(), 0), 150),
        ("throttled, runs", sync_beside(throttled(), GAP), 150),
        // The 32 MiB in the disk's own cache are neither in flight nor durable.
        ("disk, a stream", sync_beside(disk(), 0), 500),
        ("disk, runs", sync_beside(disk(), GAP), 1000),
        ("stick, a stream", sync_beside(stick(), 0), 300),
    ] {
        eprintln!("{name}: {took_ms} ms at most");
        assert!(took_ms <= most_ms, "{name}: {took_ms} ms");
    }
}

/// Four tasks sync a page each, over and over, beside a stream; `in_call` lets them run their syncs themselves. Returns
/// the stream's bytes in ten seconds, and the syncs.
fn storm(sync_lead: Cost, in_call: bool) -> (u64, u64) {
    let disk = DiskOptions { latency_ns: 8 * MILLISECOND, depth: 1, ..slow() };
    let terms = Terms::of(8 * MILLISECOND, 25_000_000);
    let flight = Flight { sync_lead, requests: 1, ..terms.flight };
    let (lab, _) = lab(disk, Terms { flight, ..terms }, &[]);
    assert!(lab.here.engine.try_force_rare(Rare::SyncInCall, if in_call { 1000 } else { 0 }));
    let large = lab.file(0, 0, 0);
    stream(&lab, &large, 0);
    let syncs = Arc::new(AtomicU64::new(0));
    for _ in 0..4 {
        let (here, file, syncs) = (Arc::clone(&lab.here), lab.file(0, 0, 0), Arc::clone(&syncs));
        lab.in_background(async move {
            for at in 0.. {
                here.write(&file, at % 7 * PAGE as u64, PAGE, 1).await.unwrap();
                here.sync(&file).await.unwrap();
                syncs.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    lab.run(lab.here.sleep(10 * SECOND));
    (large.disk.size(large.id), syncs.load(Ordering::Relaxed))
}

#[test]
fn syncs_that_used_more_than_their_lead_share_the_device_with_the_rest_by_cost() {
    let (starved, alone) = storm(Cost::MAX, false);
    // With an unlimited lead the stream gets only the time that syncs' flushes leave.
    assert!(starved < 80_000_000, "{starved} bytes of the stream beside syncs that always go first");
    for in_call in [false, true] {
        let (bytes, syncs) = storm(Cost(SECOND / 4), in_call);
        eprintln!("{starved} bytes beside {alone} syncs; with a lead {bytes} beside {syncs}");
        // A sync pays for two runs and 0.2 ms of bytes. So in 10 s each side has some 5 s: 310 syncs and 125 MB.
        assert!((110_000_000..140_000_000).contains(&bytes), "{bytes} bytes of the stream");
        assert!((310..500).contains(&syncs), "{syncs} syncs");
    }
}

/// Writes a page and syncs, over and over, at the disk itself; returns the duration.
fn plain_loop(options: &DiskOptions, rounds: u64) -> u64 {
    let world = World::new(WorldOptions::seed(1));
    let disk = Disk::new(&world, 0, options.clone());
    let (backing, frames) = (disk.backing(disk.create_file()), Arc::new(Frames::new(1 << 20).unwrap()));
    let ended = Arc::new(AtomicU64::new(0));
    let carry_out = async |operation, bytes: &[u8]| {
        let (before, ends) = (ended.load(Ordering::Relaxed), Arc::clone(&ended));
        let waker = Arc::new(Mutex::new(Waker::noop().clone()));
        let wake = Arc::clone(&waker);
        disk.submit(Request::probe(&frames, backing.clone(), operation, bytes, move |result, _| {
            result.unwrap();
            ends.fetch_add(1, Ordering::Relaxed);
            wake.lock().unwrap().wake_by_ref();
        }));
        poll_fn(|cx| {
            waker.lock().unwrap().clone_from(cx.waker());
            if ended.load(Ordering::Relaxed) > before { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    };
    let all = async {
        for round in 0..rounds {
            carry_out(Operation::Write { offset: round * PAGE as u64, len: PAGE as u32 }, &[7; PAGE]).await;
            carry_out(Operation::Sync, &[]).await;
        }
        world.platform().now().0
    };
    world.run(all).unwrap()
}

#[test]
fn an_idle_device_never_waits() {
    const ROUNDS: u64 = 300;
    for (latency_ns, volatile_cache) in [(50_000, true), (50_000, false), (5 * MILLISECOND, true)] {
        let disk = DiskOptions { depth: 1, latency_ns, volatile_cache, ..slow() };
        let plain_ns = plain_loop(&disk, ROUNDS);
        let (lab, policy) = lab(disk, Terms::of(latency_ns, 25_000_000), &[]);
        let file = lab.file(0, 0, 0);
        let took_ns = lab.run(async {
            for round in 0..ROUNDS {
                lab.here.write(&file, round * PAGE as u64, PAGE, 1).await.unwrap();
                lab.here.sync(&file).await.unwrap();
            }
            lab.here.now_ns()
        });
        eprintln!("{took_ns} ns, {plain_ns} ns by itself");
        // Tasks' steps take a little.
        assert!(took_ns <= plain_ns + ROUNDS * 1_000, "{took_ns} ns, {plain_ns} ns by itself");
        assert_eq!(policy.told.lock().unwrap().len() as u64, ROUNDS, "a request each");
    }
}
