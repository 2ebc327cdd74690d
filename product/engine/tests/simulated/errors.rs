//! Errors reach the right caller for as long as they last; no data is dropped and no caller is stuck.

//! rule: 2: no page is clean before it is written, and callers get the error until then
//! kept in: `product/engine/src/writeback/complete.rs`
//! rule: 6: a file that cannot be written takes a bounded amount of room from others
//! kept in: `product/engine/src/dirty.rs`

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use afflux_engine::counters::Counter;
use afflux_engine::{DeviceError, Error};
use afflux_simulator::{DiskOptions, Fault, FaultTarget, FaultWhat};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, TestFile, bytes};

const IO: DeviceError = DeviceError::Io { errno: 5 };

#[test]
fn a_failed_write_fails_every_sync_keeps_the_data_and_is_retried_with_growing_pauses() {
    let lab = EngineFixture::new(1, 256, &[DiskOptions::default()], &[]);
    let (file, other) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Write, FaultWhat::Error(IO)).on(file.id));
    lab.run(async {
        lab.here.write(&file, 0, PAGE, 2).await.unwrap();
        for _ in 0..5 {
            assert_eq!(lab.here.sync(&file).await, Err(Error::Device(IO)));
            assert_eq!(file.file.write_error(), Some(IO));
            assert_eq!(lab.here.read(&file, 0, PAGE).await.unwrap(), bytes(2, 0, PAGE));
        }
        lab.here.write(&other, 0, PAGE, 3).await.unwrap();
        lab.here.sync(&other).await.expect("another file of the device is no worse for it");
        lab.here.sleep(200 * SECOND).await;
    });
    let tries: Vec<u64> = lab.submitted(1).iter().map(|(at, ..)| *at).collect();
    let pauses: Vec<u64> = tries.windows(2).map(|pair| (pair[1] - pair[0]) / MILLISECOND).collect();
    let late = &pauses[pauses.len().saturating_sub(3)..];
    assert!(
        late.iter().all(|pause| (30_000..=30_200).contains(pause)),
        "the last pauses are the longest: {pauses:?} ms"
    );
    assert!(tries.len() < 30, "failed writes are not tried in a hurry: {pauses:?} ms");
    lab.here.disks[0].clear_faults();
    lab.run(async {
        assert!(lab.here.until(31 * SECOND, || file.file.is_clean()).await, "the retry succeeds by itself");
        lab.here.sync(&file).await.unwrap();
    });
    assert_eq!(file.disk.durable(file.id), bytes(2, 0, PAGE));
    assert_eq!(file.file.write_error(), None);
}

#[test]
fn a_sync_after_the_device_recovered_does_not_wait_for_the_retry_pause() {
    let lab = EngineFixture::new(1, 256, &[DiskOptions::default()], &[]);
    let file = lab.file(0, 0, 0);
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Write, FaultWhat::Error(IO)).times(12));
    lab.run(async {
        lab.here.write(&file, 0, PAGE, 2).await.unwrap();
        // After so many failures the pause is the longest.
        for _ in 0..12 {
            assert_eq!(lab.here.sync(&file).await, Err(Error::Device(IO)));
        }
        let started = lab.here.now_ns();
        lab.here.sync(&file).await.expect("the device works");
        assert!(lab.here.now_ns() - started < SECOND, "the sync waited for the pause");
    });
    assert_eq!(file.disk.durable(file.id), bytes(2, 0, PAGE));
}

#[test]
fn a_read_error_is_told_and_not_remembered() {
    for what in [FaultWhat::Error(IO), FaultWhat::Lost] {
        let lab = EngineFixture::new(1, 256, &[DiskOptions::default()], &["readahead_bytes_max=0"]);
        let file = lab.file(0, 4 * PAGE, 1);
        lab.here.disks[0].add_fault(Fault::always(FaultTarget::Read, what).times(1));
        lab.run(async {
            let error = lab.here.read(&file, 0, 100).await.unwrap_err();
            let right = if what == FaultWhat::Lost { DeviceError::Lost } else { IO };
            assert_eq!(error, Error::Device(right));
            assert_eq!(lab.here.read(&file, 0, 100).await.unwrap(), bytes(1, 0, 100));
        });
    }
}

#[test]
fn a_lost_write_is_an_error_and_is_written_again() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 0, 0);
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Write, FaultWhat::Lost).times(1));
    lab.run(async {
        lab.here.write(&file, 0, 3 * PAGE, 2).await.unwrap();
        assert_eq!(lab.here.sync(&file).await, Err(Error::Device(DeviceError::Lost)));
        assert!(lab.here.until(60 * SECOND, || file.file.is_clean()).await);
        lab.here.sync(&file).await.unwrap();
    });
    assert_eq!(file.disk.durable(file.id), bytes(2, 0, 3 * PAGE));
}

// rule: 5: a caller that goes away strands nobody
// kept in: `product/device/src/request.rs`, `product/pages/src/wait/permits.rs`
#[test]
fn a_reader_that_goes_away_strands_nobody() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 4 * PAGE, 1);
    lab.here.disks[0].hang();
    let (here, from) = (Arc::clone(&lab.here), file.clone());
    let ended = lab.run(async {
        let mut first = pin!(lab.here.read(&file, 0, PAGE));
        std::future::poll_fn(|cx| {
            assert!(first.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        let ended = lab.in_background(async move {
            assert_eq!(here.read(&from, 0, PAGE).await.unwrap(), bytes(1, 0, PAGE));
        });
        lab.here.sleep(MILLISECOND).await;
        ended
        // `first` is dropped here, while its request is in flight.
    });
    lab.here.disks[0].release();
    lab.run(lab.here.sleep(SECOND));
    assert!(ended.load(Ordering::Relaxed));
}

#[test]
fn a_full_disk_is_told_to_the_writer_and_what_was_accepted_is_kept() {
    let lab =
        EngineFixture::new(1, 256, &[DiskOptions { capacity_bytes: 20 * PAGE as u64, ..DiskOptions::default() }], &[]);
    let file = lab.file(0, 0, 0);
    let mut accepted = 0;
    lab.run(async {
        let error = loop {
            match lab.here.write(&file, accepted * PAGE as u64, PAGE, 2).await {
                Ok(()) => accepted += 1,
                Err(error) => break error,
            }
            assert!(accepted < 100, "a full disk takes no more");
        };
        assert_eq!(error, Error::Device(DeviceError::NoSpace));
        assert!(accepted >= 15, "accepted {accepted} of 20 pages");
        lab.here.sync(&file).await.expect("what was accepted has its space");
    });
    let len = accepted as usize * PAGE;
    assert_eq!(file.disk.durable_bytes(file.id, 0, len), bytes(2, 0, len));
}

/// Up to a bound, the failing file's dirty pages are charged to no other file. Only its own writer gets the error.
#[test]
fn a_file_that_can_never_be_written_leaves_room_to_others() {
    let lab = EngineFixture::new(1, 1024, &[DiskOptions::default()], &["dirty_ratio=20"]);
    let (bad, good) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Write, FaultWhat::Error(IO)).on(bad.id));
    let limit = lab.here.engine.status().devices[0].dirty_limit_bytes;
    lab.run(async {
        let mut written = 0;
        let error = loop {
            match lab.here.write(&bad, written, 4 * PAGE, 2).await {
                Ok(()) => written += 4 * PAGE as u64,
                Err(error) => break error,
            }
            assert!(written <= 4 * limit, "a writer of what cannot be written is told");
        };
        assert_eq!(error, Error::Device(IO));
        let held = bad.file.dirty_bytes();
        // Writes five times the limit, across many retries of the failing file.
        for round in 0..5 {
            for at in (0..limit).step_by(4 * PAGE) {
                lab.here.write(&good, at, 4 * PAGE, 3 + round).await.expect("a file that can be written");
                let dirty = lab.here.dirty_bytes();
                assert!(
                    dirty <= limit + held,
                    "{dirty} bytes are dirty with a limit of {limit}, {held} of them failed"
                );
            }
            lab.here.sync(&good).await.expect("a file that can be written");
            lab.here.sleep(SECOND).await;
            assert_eq!(lab.here.write(&bad, written, PAGE, 2).await, Err(Error::Device(IO)));
        }
        let failed = lab.here.engine.drain(lab.here.devices[0]).await;
        assert!(failed.len() == 1 && failed[0].0.is_same(&bad.file) && failed[0].1 == Error::Device(IO));
        lab.here.disks[0].clear_faults();
        assert!(lab.here.until(31 * SECOND, || bad.file.is_clean()).await);
        lab.here.sync(&bad).await.unwrap();
        // The limit is unchanged.
        lab.here.disks[0].hang();
    });
    let (here, to) = (Arc::clone(&lab.here), good.clone());
    lab.in_background(async move {
        let _ = here.write(&to, 0, 4 * limit as usize, 9).await;
    });
    lab.run(lab.here.sleep(SECOND));
    let dirty = lab.here.dirty_bytes();
    assert!(limit / 2 < dirty && dirty <= limit, "{dirty} bytes are dirty with a limit of {limit}");
    assert_eq!(bad.disk.durable_bytes(bad.id, 0, 4 * PAGE), bytes(2, 0, 4 * PAGE));
}

/// A file whose writes fail for a while waits, as long as the limit admits it.
#[test]
fn one_failed_write_refuses_no_writer() {
    let lab = EngineFixture::new(1, 1024, &[DiskOptions::default()], &[]);
    let file = lab.file(0, 0, 0);
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Write, FaultWhat::Error(IO)).times(1));
    lab.run(async {
        for at in 0..2000 {
            lab.here.write(&file, at * PAGE as u64, PAGE, 2).await.unwrap();
            lab.here.sleep(100_000).await;
        }
        while lab.here.sync(&file).await.is_err() {
            lab.here.sleep(SECOND).await;
        }
    });
    assert!(file.disk.durable(file.id) == bytes(2, 0, 2000 * PAGE));
}

/// Pages accepted while there was plenty of space get their blocks before other files get the rest: here 160 of 200
/// blocks are dirty in one file when space gets small for another.
#[test]
fn what_was_accepted_without_asking_keeps_its_room() {
    let disk = DiskOptions { capacity_bytes: 400 * PAGE as u64, ..DiskOptions::default() };
    let lab = EngineFixture::new(1, 4096, &[disk], &["reserve_below_bytes=64KiB", "dirty_background_ratio=100"]);
    let files = [lab.file(0, 0, 0), lab.file(0, 0, 0)];
    lab.run(async {
        lab.here.write(&files[0], 0, 160 * PAGE, 2).await.unwrap();
        let mut accepted = 0;
        while lab.here.write(&files[1], accepted * PAGE as u64, PAGE, 3).await.is_ok() {
            accepted += 1;
            assert!(accepted < 500, "a full disk takes no more");
        }
        assert!(accepted >= 230, "accepted {accepted} of 240 pages");
        for file in &files {
            lab.here.sync(file).await.expect("what was accepted has its room");
        }
    });
}

/// One small history of two files, in which the n-th request fails in each of two ways, for every n.
#[test]
fn whichever_request_fails_nothing_acknowledged_is_lost() {
    for what in [FaultWhat::Error(IO), FaultWhat::Lost] {
        for n in 0..60 {
            let lab = EngineFixture::new(n, 64, &[DiskOptions::default()], &[]);
            let files = [lab.file(0, 3 * PAGE + 100, 1), lab.file(0, 0, 0)];
            lab.here.disks[0].add_fault(Fault::always(FaultTarget::Any, what).after(n).times(1));
            let struck = lab.run(async {
                for file in &files {
                    // Each operation may meet the failure once and must work when it is tried again.
                    again(|| lab.here.write(file, 1000, 9000, 2)).await;
                    again(|| lab.here.sync(file)).await;
                    again(|| lab.here.engine.set_size(&file.file, 2000)).await;
                    again(|| lab.here.write(file, 7000, 100, 3)).await;
                    again(|| lab.here.sync(file)).await;
                    again(|| lab.here.read(file, 0, 8000)).await;
                }
                lab.here.disks[0].failures_of_all()
            });
            for (file, first) in files.iter().zip([1, 0]) {
                let mut right = bytes(first, 0, 7100);
                right[1000..2000].copy_from_slice(&bytes(2, 1000, 1000));
                right[2000..7000].fill(0);
                right[7000..].copy_from_slice(&bytes(3, 7000, 100));
                assert_eq!(lab.run(lab.here.read(file, 0, 8000)).unwrap(), right, "{what:?}, request {n}");
                assert_eq!(file.disk.durable(file.id), right, "{what:?}, request {n}");
            }
            if struck == 0 {
                break;
            }
            assert!(n < 59, "the history has fewer requests");
        }
    }
}

async fn again<T, F: Future<Output = Result<T, Error>>>(operation: impl Fn() -> F) -> T {
    for _ in 0..3 {
        if let Ok(output) = operation().await {
            return output;
        }
    }
    panic!("one failure of the device failed the same operation three times")
}

#[test]
fn a_failed_write_of_a_short_file_is_tried_again_in_whole_blocks_after_it_grew() {
    let lab = EngineFixture::new(1, 256, &[DiskOptions { block_bytes: 4096, ..DiskOptions::default() }], &[]);
    let file = lab.file(0, 0, 0);
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Write, FaultWhat::Error(IO)).times(1));
    lab.run(async {
        lab.here.write(&file, 0, 600, 2).await.unwrap();
        assert_eq!(lab.here.sync(&file).await, Err(Error::Device(IO)));
        lab.here.engine.set_size(&file.file, 2 * PAGE as u64).await.unwrap();
        lab.here.sync(&file).await.unwrap();
    });
    assert_eq!(file.disk.durable_bytes(file.id, 0, 600), bytes(2, 0, 600));
    let last = lab.submitted(1).pop().unwrap();
    assert_eq!((last.1, last.2), (0, PAGE as u64), "not whole blocks, and not the file's end");
}

/// No page of the file is dirty, but the changes that the failed flush covered may not be durable.
#[test]
fn a_failed_flush_without_pages_is_remembered_until_one_succeeds() {
    let lab = EngineFixture::plain(1);
    let file = lab.file(0, 0, 0);
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Sync, FaultWhat::Error(IO)).times(1));
    lab.run(async {
        lab.here.engine.set_size(&file.file, 10_000).await.unwrap();
        assert_eq!(lab.here.sync(&file).await, Err(Error::Device(IO)));
        assert_eq!(file.file.write_error(), Some(IO));
        assert_eq!(lab.here.engine.status().devices[0].files_failed, 1);
        lab.here.sync(&file).await.unwrap();
        assert_eq!(file.file.write_error(), None);
        assert_eq!(lab.here.engine.status().devices[0].files_failed, 0);
    });
    assert_eq!(file.disk.durable_size(file.id), 10_000);
}

#[test]
fn a_hole_that_the_device_cannot_punch_is_written_as_zeros_up_to_a_bound() {
    const TERABYTE: u64 = 1 << 40;
    let lab = EngineFixture::plain(1);
    let disk = &lab.here.disks[0];
    let id = disk.create_file();
    disk.make_sparse(id, TERABYTE);
    let file = lab.here.engine.open(lab.here.devices[0], disk.backing(id), TERABYTE);
    let file = TestFile { file, disk: Arc::clone(disk), id };
    disk.add_fault(Fault::always(FaultTarget::Layout, FaultWhat::Error(DeviceError::Unsupported)));
    lab.run(async {
        lab.here.write(&file, 0, 4 * PAGE, 2).await.unwrap();
        let refused = lab.here.engine.punch(&file.file, 100..TERABYTE).await;
        assert_eq!(refused, Err(Error::Device(DeviceError::Unsupported)));
        assert_eq!(lab.here.read(&file, 0, 4 * PAGE).await.unwrap(), bytes(2, 0, 4 * PAGE), "nothing has changed");
        lab.here.engine.punch(&file.file, 100..3 * PAGE as u64 + 100).await.unwrap();
        lab.here.sync(&file).await.unwrap();
    });
    let mut right = bytes(2, 0, 4 * PAGE);
    right[100..3 * PAGE + 100].fill(0);
    assert_eq!(file.disk.durable_bytes(id, 0, 4 * PAGE), right);
}

/// The writers wait for charges that another file's hung write holds. Meanwhile each flush of a third file fails.
#[test]
fn a_file_whose_syncs_fail_moves_and_wakes_no_writer_of_another() {
    let lab = EngineFixture::new(1, 1024, &[DiskOptions::default()], &["dirty_bytes=256KiB"]);
    let (hung, noisy) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
    let disk = &lab.here.disks[0];
    disk.add_fault(Fault::always(FaultTarget::Write, FaultWhat::Hang).on(hung.id).times(1));
    disk.add_fault(Fault::always(FaultTarget::Sync, FaultWhat::Error(IO)).on(noisy.id));
    let ends = Arc::new(AtomicUsize::new(0));
    lab.run(async {
        let (here, to) = (Arc::clone(&lab.here), hung.clone());
        lab.in_background(async move {
            // The limit stops it in the midst.
            let _ = here.write(&to, 0, 512 * PAGE, 2).await;
        });
        lab.here.sleep(MILLISECOND).await;
        for _ in 0..6 {
            let (here, to, ends) = (Arc::clone(&lab.here), lab.file(0, 0, 0), Arc::clone(&ends));
            lab.in_background(async move {
                here.write(&to, 0, PAGE, 3).await.unwrap();
                ends.fetch_add(1, Ordering::Relaxed);
            });
            lab.here.sleep(MILLISECOND).await;
        }
        let pauses = lab.count(Counter::ThrottlePauses);
        assert!(pauses >= 7, "each of them waits");
        for size in 1..20 {
            lab.here.engine.set_size(&noisy.file, size * 1000).await.unwrap();
            assert_eq!(lab.here.sync(&noisy).await, Err(Error::Device(IO)));
        }
        assert_eq!(lab.count(Counter::ThrottlePauses), pauses, "each waits on as before");
        assert_eq!(lab.here.engine.status().devices[0].files_failed, 1);
    });
    assert_eq!(ends.load(Ordering::Relaxed), 0);
    disk.clear_faults();
    disk.release();
    lab.run(lab.here.sleep(60 * SECOND));
    assert_eq!(ends.load(Ordering::Relaxed), 6, "and enters when there is room");
}

/// Failing files hold all of the limit that was free before their failure was known. A device with more than two of
/// them may count as failing itself, and refuse other files; no writer waits for ever.
#[test]
fn files_that_fail_leave_room_to_the_others_of_their_device() {
    const PAGES: usize = 500;
    let sizes = [(64, 1), (64, 16), (64, 64), (128, 64), (256, 1), (256, 16)];
    for (memory, chunk) in sizes {
        for failing in [1, 2, 3, 5] {
            let lab = EngineFixture::new(1, memory, &[DiskOptions::default()], &["readahead_bytes_max=0"]);
            let begin = |file: &TestFile| {
                let (here, to) = (Arc::clone(&lab.here), file.clone());
                let accepted = Arc::new(AtomicUsize::new(0));
                let told = Arc::clone(&accepted);
                let ended = lab.in_background(async move {
                    for at in (0..PAGES / chunk).map(|turn| turn * chunk * PAGE) {
                        if here.write(&to, at as u64, chunk * PAGE, 2).await.is_err() {
                            return;
                        }
                        told.store(at + chunk * PAGE, Ordering::Relaxed);
                        here.sleep(20_000).await;
                    }
                });
                (ended, accepted)
            };
            let files: Vec<_> = (0..=failing).map(|_| lab.file(0, 0, 0)).collect();
            for file in &files[1..] {
                let fault = Fault::always(FaultTarget::Write, FaultWhat::Error(IO)).on(file.id);
                lab.here.disks[0].add_fault(fault);
            }
            let writers: Vec<_> = files.iter().map(begin).collect();
            let ended = || writers.iter().all(|(ended, _)| ended.load(Ordering::Relaxed));
            let case = format!("{memory} pages of memory, {failing} files that fail, {chunk} pages a write");
            assert!(lab.run(lab.here.until(600 * SECOND, ended)), "{case}: a writer waits for ever");
            if failing <= 2 {
                assert_eq!(writers[0].1.load(Ordering::Relaxed), PAGES / chunk * chunk * PAGE, "{case}: refused");
            }
            lab.here.disks[0].clear_faults();
            for (file, (_, accepted)) in files.iter().zip(&writers) {
                assert!(lab.run(lab.here.until(120 * SECOND, || file.file.is_clean())), "{case}");
                lab.run(lab.here.sync(file)).unwrap();
                let accepted = accepted.load(Ordering::Relaxed);
                assert!(file.disk.durable_bytes(file.id, 0, accepted) == bytes(2, 0, accepted), "{case}");
            }
        }
    }
}
