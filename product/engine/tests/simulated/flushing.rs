//! A policy in device time controls the flusher: the order and length of slices, and the requests in flight.

//! rule: a policy may ask for the largest file first, a bound on the cost in flight, and slices of whole runs
//! kept in: `product/engine/src/devices/ready.rs`, `product/engine/src/devices/in_flight.rs`

use std::sync::atomic::Ordering;

use afflux_engine::counters::Counter;
use afflux_engine::policy::{Cost, Direction, Flight};
use afflux_simulator::DiskOptions;

use crate::fixture::{MILLISECOND, PAGE, SECOND};
use crate::timed::{Terms, lab, slow, slow_terms, stream};

#[test]
fn the_file_with_most_that_is_dirty_has_its_turn_first_and_equals_have_turns() {
    let terms = Terms { background_ns: 200 * MILLISECOND, ..slow_terms() };
    let (lab, _) = lab(slow(), terms, &[]);
    let sizes: [usize; 5] = [100, 1800, 90, 400, 450];
    let files = sizes.map(|_| lab.file(0, 0, 0));
    let left = || files.clone().map(|file| file.file.dirty_bytes() / PAGE as u64);
    lab.run(async {
        for (file, pages) in files.iter().zip(sizes) {
            lab.here.write(file, 0, pages * PAGE, 1).await.unwrap();
        }
        // 2840 pages are half a second. The first slice lasts until the large file has no more than the next, not
        // counting its pages in flight.
        assert!(lab.here.until(SECOND, || left()[1] < 1200).await);
        assert_eq!(left().map(|pages| pages as usize)[2..], sizes[2..], "the large one goes first");
        assert_eq!(left()[0], 100);
        lab.here.sleep(SECOND).await;
        // 200 ms are 1220 pages: the three files of equal size each had a slice, the small ones none.
        assert_eq!((left()[0], left()[2]), (100, 90));
        assert!(left()[1] < 512, "{:?}", left());
        assert!(left().iter().sum::<u64>() <= 1230, "{:?}", left());
    });
}

#[test]
fn a_file_that_is_filled_up_for_ever_does_not_outrun_a_small_one() {
    let (lab, _) = lab(slow(), slow_terms(), &[]);
    let (large, small) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
    let stop = stream(&lab, &large, 0);
    lab.run(async {
        lab.here.sleep(3 * SECOND).await;
        for _ in 0..3 {
            lab.here.write(&small, 0, PAGE, 1).await.unwrap();
            let began = lab.here.now_ns();
            assert!(lab.here.until(10 * SECOND, || small.file.is_clean()).await);
            let took = lab.here.now_ns() - began;
            assert!((2 * SECOND..3 * SECOND).contains(&took), "after 2 s it goes first: {took} ns");
        }
    });
    stop.store(true, Ordering::Relaxed);
    let rate = large.disk.size(large.id) / (lab.here.now_ns() / SECOND);
    assert!(rate > 22_000_000, "{rate} bytes a second");
}

#[test]
fn what_is_in_flight_is_bounded_by_its_cost_and_requests_by_their_bytes() {
    let terms = slow_terms();
    // Besides the bound in time: one request that is too large, and no request allowed at all.
    for (flight, least_ns, most_ns, count) in [
        (Flight { requests: 1, ..terms.flight }, 75 * MILLISECOND, 130 * MILLISECOND, 5),
        (Flight { requests: 20, ..terms.flight }, 400 * MILLISECOND, 600 * MILLISECOND, 20),
        (Flight { requests: 0, cost_max: Cost(0), ..terms.flight }, 20 * MILLISECOND, 30 * MILLISECOND, 1),
        (Flight { requests: 20, requests_max: Some(3), ..terms.flight }, 60 * MILLISECOND, 90 * MILLISECOND, 3),
    ] {
        let (lab, policy) = lab(slow(), Terms { flight, ..terms }, &[]);
        let file = lab.file(0, 0, 0);
        lab.run(async {
            for at in 0..200 {
                lab.here.write(&file, at * 64 * PAGE as u64, 64 * PAGE, 1).await.unwrap();
            }
            lab.here.sync(&file).await.unwrap();
        });
        let most = policy.most_in_flight_ns.load(Ordering::Relaxed);
        assert!((least_ns..=most_ns).contains(&most), "{most} ns in flight with {flight:?}");
        assert_eq!(lab.here.disks[0].data_in_flight_max(), count, "{flight:?}");
        let told = policy.told.lock().unwrap();
        assert!(told.iter().all(|done| done.bytes <= flight.request_bytes && done.direction == Direction::Write));
        let large = told.iter().filter(|done| done.bytes == flight.request_bytes).count();
        assert!(large * 2 > told.len(), "{large} of {} requests are as large as they may be", told.len());
        assert!(told.iter().filter(|done| done.held_back).count() * 2 > told.len(), "more waits to be written");
        assert_eq!(told.iter().map(|done| done.in_flight).max(), Some(u64::from(count)));
    }
}

#[test]
fn scattered_pages_in_flight_cost_their_runs() {
    let terms = Terms::of(10 * MILLISECOND, 100_000_000);
    let disk = DiskOptions { latency_ns: 10 * MILLISECOND, ..DiskOptions::default() };
    let (lab, policy) = lab(disk, Terms { limit_ns: 10 * SECOND, ..terms }, &[]);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        for at in 0..300 {
            lab.here.write(&file, at * 3 * PAGE as u64, PAGE, 1).await.unwrap();
        }
        lab.here.sync(&file).await.unwrap();
    });
    assert_eq!(lab.here.disks[0].data_in_flight_max(), 10, "10 ms each in 100 ms");
    assert!(policy.most_in_flight_ns.load(Ordering::Relaxed) <= 111 * MILLISECOND);
}

#[test]
fn a_slice_ends_with_the_run_that_it_is_in() {
    // Two files of four runs of 25 pages each, slices of 16 pages.
    let turns = |run_tail_bytes| {
        let terms = slow_terms();
        let flight = Flight { run_tail_bytes, request_bytes: 8 * PAGE as u64, ..terms.flight };
        let terms = Terms { slice_bytes: 16 * PAGE as u64, flight, background_ns: SECOND, ..terms };
        let (lab, _) = lab(slow(), terms, &["dirty_expire_centisecs=10"]);
        let files = [lab.file(0, 0, 0), lab.file(0, 0, 0)];
        lab.run(async {
            for file in &files {
                for run in 0..4 {
                    lab.here.write(file, run * 50 * PAGE as u64, 25 * PAGE, 1).await.unwrap();
                }
            }
            assert!(lab.here.until(SECOND, || files.iter().all(|file| file.file.is_clean())).await);
        });
        lab.count(Counter::FlusherTurns)
    };
    let (cut, whole) = (turns(0), turns(9 * PAGE as u64));
    assert!((13..=18).contains(&cut), "{cut} turns of 16 pages");
    assert!((8..=11).contains(&whole), "{whole} turns of a run");
    // 9 pages remain after the first slice of a run.
    assert!(turns(8 * PAGE as u64) > whole);
}

#[test]
fn slices_end_at_multiples_of_what_the_device_writes_whole() {
    // Two files of 256 pages from page 40 on, in slices of 64 pages.
    let turns = |slice_align_bytes| {
        let terms = slow_terms();
        let (slice_bytes, request_bytes) = (64 * PAGE as u64, 8 * PAGE as u64);
        let flight = Flight { slice_align_bytes, run_tail_bytes: 0, request_bytes, ..terms.flight };
        let terms = Terms { slice_bytes, flight, background_ns: SECOND, ..terms };
        let (lab, _) = lab(slow(), terms, &["dirty_expire_centisecs=10"]);
        let files = [lab.file(0, 0, 0), lab.file(0, 0, 0)];
        lab.run(async {
            for file in &files {
                lab.here.write(file, 40 * PAGE as u64, 256 * PAGE, 1).await.unwrap();
            }
            assert!(lab.here.until(2 * SECOND, || files.iter().all(|file| file.file.is_clean())).await);
        });
        lab.count(Counter::FlusherTurns)
    };
    // All slices have 64 pages, or the first ends at the next multiple and the last takes the rest.
    let (anywhere, aligned) = (turns(0), turns(64 * PAGE as u64));
    assert!((8..=10).contains(&anywhere) && aligned >= anywhere + 2, "{anywhere} turns, {aligned} aligned");
}
