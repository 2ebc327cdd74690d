//! Background writeback starts and stops in the device's own time, and slices alternate.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::settings::Knob;
use afflux_simulator::DiskOptions;

use crate::fixture::{EngineFixture, PAGE, SECOND};

/// 10 MB/s, with no other reason to write than time; slices of 64 KiB.
fn timed(knobs: &[&str]) -> EngineFixture {
    let disk = DiskOptions { bytes_per_second: 10_000_000, request_bytes_max: 64 << 10, ..DiskOptions::default() };
    let quiet = ["dirty_ratio=90", "dirty_background_ratio=100", "writeback_slice_bytes=65536"];
    EngineFixture::new(1, 16_384, &[disk.clone(), disk], &[&quiet, knobs].concat())
}

#[test]
fn writing_starts_above_the_set_time_of_bandwidth_and_stops_at_it() {
    let lab = timed(&[]);
    let (file, other) = (lab.file(0, 0, 0), lab.file(1, 0, 0));
    let (device, here) = (lab.here.devices[0], Arc::clone(&lab.here));
    lab.run(async {
        // Makes the bandwidth known.
        here.write(&file, 0, 4 << 20, 1).await.unwrap();
        here.sync(&file).await.unwrap();
        let measured = here.engine.status().devices[0].write_bandwidth_bytes_per_s.unwrap();
        assert!((9_500_000..10_500_000).contains(&measured), "{measured}");
        here.write(&file, 0, 8 << 20, 2).await.unwrap();
        here.write(&other, 0, 8 << 20, 2).await.unwrap();
        let left = |device: usize| here.engine.status().devices[device].dirty_bytes;
        here.sleep(SECOND).await;
        assert_eq!(left(0), 8 << 20, "0 is off");
        // 0.5 s of 10 MB/s are 5 MB. The flusher starts without a writer, and stops there.
        for (centisecs, bytes) in [(50, 5_000_000), (10, 1_000_000), (0, 1_000_000)] {
            here.engine.set_device_knob(device, Knob::BackgroundCentisecs, centisecs).unwrap();
            let status = here.engine.status().devices[0].clone();
            if centisecs > 0 {
                let speed = status.write_bandwidth_bytes_per_s.unwrap();
                let expected = speed / PAGE as u64 * centisecs / 100 * PAGE as u64;
                assert_eq!(status.background_threshold_bytes, expected, "what decides is what is shown");
                assert_eq!(here.engine.device_knobs(device), [("dirty_background_centisecs", centisecs)]);
            } else {
                assert!(status.background_threshold_bytes > 20 << 20, "{status:?}");
            }
            here.sleep(SECOND).await;
            assert!(left(0).abs_diff(bytes) < 400_000, "{centisecs}: {} bytes are left", left(0));
        }
        assert_eq!(left(1), 8 << 20, "it was set for one device");
    });
}

#[test]
fn a_stream_is_written_behind_as_it_passes_the_time() {
    let lab = timed(&["dirty_background_centisecs=20"]);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        lab.here.write(&file, 0, 2 << 20, 1).await.unwrap();
        lab.here.sync(&file).await.unwrap();
        // Writes at half the disk's speed: 2 MB are 0.2 s of it.
        for at in 0..400_u64 {
            lab.here.write(&file, (2 << 20) + at * 50_000, 50_000, 1).await.unwrap();
            lab.here.sleep(SECOND / 100).await;
            let dirty = lab.here.dirty_bytes();
            assert!(dirty < 2_500_000, "{dirty} bytes at write {at}");
        }
        assert!(lab.here.dirty_bytes() > 1_500_000, "and no more than has to be");
    });
}

#[test]
fn a_device_of_which_nothing_is_known_is_written_to_at_once() {
    let lab = timed(&["dirty_background_centisecs=100"]);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        lab.here.write(&file, 0, 64 * PAGE, 1).await.unwrap();
        lab.here.sleep(SECOND).await;
        let device = lab.here.engine.status().devices[0].clone();
        assert!(device.written_bytes > 0 && device.write_bandwidth_bytes_per_s.is_some(), "{device:?}");
    });
}

#[test]
fn a_big_file_with_ever_more_to_write_does_not_keep_others_from_their_turn() {
    let disk = DiskOptions { bytes_per_second: 10_000_000, ..DiskOptions::default() };
    let lab = EngineFixture::new(
        1,
        4096,
        &[disk],
        &["dirty_background_ratio=0", "writeback_slice_bytes=1048576", "writeback_depth=2"],
    );
    let (big, small) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
    let here = Arc::clone(&lab.here);
    let ended = lab.in_background(async move {
        for at in 0..4096 {
            here.write(&big, at * 16 * PAGE as u64, 16 * PAGE, 1).await.unwrap();
        }
    });
    lab.run(lab.here.sleep(2 * SECOND));
    lab.run(lab.here.write(&small, 0, PAGE, 1)).unwrap();
    let clean = lab.run(lab.here.until(2 * SECOND, || small.file.is_clean()));
    assert!(clean && !ended.load(Ordering::Relaxed));
}
