//! Rules that hold under every policy.

use afflux_engine::Platform;
use afflux_engine::counters::Counter;
use afflux_linux_policies::NAMES;
use afflux_reference::pattern;
use afflux_simulator::DiskOptions;

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, slow};

#[test]
fn a_stream_ends_at_the_disks_speed_with_bounded_dirty_pages_and_every_byte() {
    for name in NAMES {
        let lab = EngineFixture::new(name, 1, 4096, &[slow()], &[]);
        let (file, id) = lab.file(0);
        let (bytes, began) = (24 << 20, lab.platform.now().0);
        let writer = lab.stream(&file, bytes, 64 << 10);
        let mut most = 0;
        let ended = lab.until(60 * SECOND, || {
            most = most.max(lab.dirty_pages());
            writer.ended()
        });
        assert!(ended && !writer.failed(), "{name}: {:?}", lab.engine.status());
        // 20 % of 4,096, and the pages dirtied between two checks.
        assert!((500..=1400).contains(&most), "{name}: {most} pages were dirty at once");
        lab.run(lab.engine.sync(&file, 0..u64::MAX)).unwrap();
        let seconds = (lab.platform.now().0 - began) as f64 / SECOND as f64;
        // The disk takes 2.52 s for the bytes alone.
        assert!((2.5..3.4).contains(&seconds), "{name}: {seconds} s");
        let mut expected = vec![0; bytes as usize];
        pattern(1, 0, &mut expected);
        assert!(lab.disks[0].durable(id) == expected, "{name}: every byte is there");
        assert!(lab.count(Counter::BalanceCalls) > 0 && lab.count(Counter::ThrottlePauses) > 0, "{name}");
        let status = lab.engine.status();
        let pauses: u64 = status.devices[0].pauses.iter().map(|row| row.count).sum();
        assert_eq!(pauses, lab.count(Counter::ThrottlePauses), "{name}: every pause has a cause");
        assert_eq!(status.dirty_bytes, 0, "{name}");
    }
}

#[test]
fn many_writers_on_small_caches_all_end() {
    for name in NAMES {
        for (seed, frames) in [(1, 64), (2, 256), (3, 1024)] {
            let lab = EngineFixture::new(name, seed, frames, &[slow()], &[]);
            let writers: Vec<_> = (0..12).map(|_| lab.stream(&lab.file(0).0, 40 * PAGE, PAGE)).collect();
            let mut most = 0;
            let ended = lab.until(120 * SECOND, || {
                most = most.max(lab.dirty_pages());
                writers.iter().all(|writer| writer.ended())
            });
            assert!(ended, "{name}, {frames} frames: {:?}", lab.engine.status());
            assert!(most <= frames * 9 / 10, "{name}, {frames} frames: {most} were dirty");
        }
    }
}

#[test]
fn equal_writers_get_equal_parts() {
    for name in NAMES {
        let lab = EngineFixture::new(name, 1, 8192, &[DiskOptions { bytes_per_second: 5_000_000, ..slow() }], &[]);
        let writers: Vec<_> = (0..4).map(|_| lab.stream(&lab.file(0).0, 1 << 30, 16 << 10)).collect();
        lab.sleep(12 * SECOND);
        let before: Vec<u64> = writers.iter().map(|writer| writer.bytes()).collect();
        lab.sleep(10 * SECOND);
        let gained: Vec<u64> = writers.iter().zip(before).map(|(writer, before)| writer.bytes() - before).collect();
        let all: u64 = gained.iter().sum();
        let speed = all as f64 / 10.0;
        assert!((4.5e6..5.25e6).contains(&speed), "{name}: {speed} bytes/s are accepted");
        for part in &gained {
            assert!(part * 4 > all / 2 && part * 4 < all * 2, "{name}: {gained:?}");
        }
    }
}

#[test]
fn a_device_that_hangs_stops_its_own_writers_only_in_the_end() {
    for name in NAMES {
        let lab = EngineFixture::new(name, 1, 65_536, &[slow(), slow()], &[]);
        lab.disks[0].hang();
        let stuck = lab.stream(&lab.file(0).0, 1 << 30, 64 << 10);
        lab.sleep(20 * SECOND);
        assert!(!stuck.ended() && lab.dirty_pages() <= 65_536 * 9 / 10, "{name}");
        let other = lab.stream(&lab.file(1).0, 8 << 20, 64 << 10);
        let ended = lab.until(120 * SECOND, || other.ended());
        assert!(ended, "{name}: the other device's writer goes on: {:?}", lab.engine.status());
        let reader = lab.file(1).0;
        lab.run(lab.engine.write(&reader, 0, &[1; 100])).unwrap();
    }
}

#[test]
fn a_device_that_keeps_failing_tells_its_writers() {
    for name in NAMES {
        let disk = DiskOptions { capacity_bytes: 1 << 20, ..slow() };
        let lab = EngineFixture::new(name, 1, 1024, &[disk], &["reserve_below_bytes=0"]);
        let writer = lab.stream(&lab.file(0).0, 1 << 30, 64 << 10);
        let ended = lab.until(60 * SECOND, || writer.ended());
        assert!(ended && writer.failed(), "{name}: {:?}", lab.engine.status());
    }
}

#[test]
fn a_sync_a_drain_and_old_data_are_served() {
    for name in NAMES {
        let lab = EngineFixture::new(name, 1, 4096, &[slow()], &["dirty_expire_centisecs=300"]);
        let (synced, on_disk) = lab.file(0);
        lab.run(async {
            lab.engine.write(&synced, 0, &[7; 100_000]).await.unwrap();
            lab.engine.sync(&synced, 0..u64::MAX).await.unwrap();
        });
        assert_eq!(lab.disks[0].durable_size(on_disk), 100_000, "{name}");
        let (old, _) = lab.file(0);
        lab.run(lab.engine.write(&old, 0, &[7; 100_000])).unwrap();
        // A kernel's flusher wakes every 5 s, and a written file is flushed at a later look.
        assert!(lab.until(16 * SECOND, || old.is_clean()), "{name}: what is older than 3 s is written");
        let (drained, on_disk) = lab.file(0);
        lab.run(async {
            lab.engine.write(&drained, 0, &[7; 100_000]).await.unwrap();
            assert!(lab.engine.drain(lab.devices[0]).await.is_empty());
        });
        assert_eq!(lab.disks[0].durable_size(on_disk), 100_000, "{name}");
    }
}

#[test]
fn a_small_file_is_written_while_a_big_one_never_ends() {
    for name in NAMES {
        let lab = EngineFixture::new(name, 1, 8192, &[slow()], &[]);
        let big = lab.stream(&lab.file(0).0, 1 << 30, 64 << 10);
        lab.sleep(5 * SECOND);
        let small = lab.file(0).0;
        lab.run(lab.engine.write(&small, 0, &[7; 100_000])).unwrap();
        assert!(lab.until(20 * SECOND, || small.is_clean()), "{name}");
        assert!(!big.ended());
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for name in NAMES {
        let run = || {
            let lab = EngineFixture::new(name, 7, 1024, &[slow(), slow()], &[]);
            let writers: Vec<_> = (0..3).map(|at| lab.stream(&lab.file(at % 2).0, 4 << 20, 8 << 10)).collect();
            assert!(lab.until(60 * SECOND, || writers.iter().all(|writer| writer.ended())), "{name}");
            lab.sleep(100 * MILLISECOND);
            lab.world.trace_hash()
        };
        assert_eq!(run(), run(), "{name}");
    }
}
