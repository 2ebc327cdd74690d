//! A writer waits only for its own device's dirty limit, and then continues.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::counters::Counter;
use afflux_engine::settings::Knob;
use afflux_simulator::DiskOptions;

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND};

fn slow() -> DiskOptions {
    DiskOptions { bytes_per_second: 10_000_000, ..DiskOptions::default() }
}

/// Nanoseconds that a writer needs for 4 MiB on disk 0, with or without a writer that fills the hung disk 1.
fn time_of_a_burst(other_hangs: bool) -> u64 {
    let lab = EngineFixture::new(1, 1024, &[slow(), slow()], &[]);
    let (quick, stuck) = (lab.file(0, 0, 0), lab.file(1, 0, 0));
    let here = Arc::clone(&lab.here);
    if other_hangs {
        lab.here.disks[1].hang();
        let filled = lab.in_background(async move {
            for at in 0..4096 {
                here.write(&stuck, at * PAGE as u64, PAGE, 1).await.unwrap();
            }
        });
        lab.run(lab.here.sleep(2 * SECOND));
        assert!(!filled.load(Ordering::Relaxed), "the writer on the hung disk waits");
    }
    let started = lab.here.now_ns();
    lab.run(async {
        for at in 0..1024 {
            lab.here.write(&quick, at * PAGE as u64, PAGE, 2).await.unwrap();
        }
        lab.here.sync(&quick).await.unwrap();
    });
    lab.here.now_ns() - started
}

// rule: 6: no writer waits for another device
// kept in: `product/engine/src/devices/admission.rs`
#[test]
fn a_writer_never_waits_for_another_devices_limit() {
    let (alone, beside) = (time_of_a_burst(false), time_of_a_burst(true));
    assert!(beside * 5 <= alone * 6, "alone {alone} ns, beside a hung disk {beside} ns");
}

#[test]
fn the_dirty_limit_holds_and_writers_wait_and_go_on() {
    for (seed, ratio) in [(1, 1), (2, 10), (3, 50), (4, 90)] {
        let lab = EngineFixture::new(seed, 256, &[slow()], &[&format!("dirty_ratio={ratio}")]);
        let files: Vec<_> = (0..4).map(|_| lab.file(0, 0, 0)).collect();
        let ended: Vec<_> = files
            .iter()
            .map(|file| {
                let (here, file) = (Arc::clone(&lab.here), file.clone());
                lab.in_background(async move {
                    for at in 0..64 {
                        here.write(&file, at * 2 * PAGE as u64, 2 * PAGE, 7).await.unwrap();
                    }
                })
            })
            .collect();
        let allowance = 4 * 2 * PAGE as u64;
        lab.run(async {
            while !ended.iter().all(|ended| ended.load(Ordering::Relaxed)) {
                let device = lab.here.engine.status().devices[0].clone();
                let held = device.dirty_bytes.max(device.writeback_bytes);
                assert!(held <= device.dirty_limit_bytes + allowance, "{device:?}");
                assert!(lab.here.now_ns() < 60 * SECOND, "writers go on");
                lab.here.sleep(MILLISECOND / 5).await;
            }
        });
        assert!(lab.count(Counter::ThrottlePauses) > 0 || ratio == 90, "somebody waited at {ratio} %");
        lab.run(async {
            for file in &files {
                lab.here.sync(file).await.unwrap();
                assert_eq!(file.disk.durable_size(file.id), 128 * PAGE as u64);
            }
        });
    }
}

#[test]
fn a_raised_limit_lets_waiting_writers_go_at_once() {
    let lab = EngineFixture::new(1, 256, &[slow()], &["dirty_ratio=5"]);
    let file = lab.file(0, 0, 0);
    lab.here.disks[0].hang();
    let (here, to) = (Arc::clone(&lab.here), file.clone());
    let ended = lab.in_background(async move {
        for at in 0..40 {
            here.write(&to, at * PAGE as u64, PAGE, 1).await.unwrap();
        }
    });
    lab.run(lab.here.sleep(SECOND));
    assert!(!ended.load(Ordering::Relaxed));
    lab.here.engine.set_knob(Knob::DirtyRatio, 80).unwrap();
    lab.run(lab.here.sleep(10 * SECOND));
    assert!(ended.load(Ordering::Relaxed), "40 of 256 pages are below the new limit");
}

#[test]
fn overwriting_dirty_pages_never_waits() {
    let lab = EngineFixture::new(1, 256, &[slow()], &["dirty_ratio=50"]);
    let file = lab.file(0, 0, 0);
    lab.here.disks[0].hang();
    lab.run(async {
        lab.here.write(&file, 0, 8 * PAGE, 1).await.unwrap();
        let started = lab.here.now_ns();
        for version in 2..200 {
            lab.here.write(&file, 0, 8 * PAGE, version).await.unwrap();
        }
        assert!(lab.here.now_ns() - started < MILLISECOND);
    });
}

#[test]
fn many_writers_on_a_tiny_limit_all_end() {
    for seed in 0..10 {
        let lab = EngineFixture::new(seed, 64, &[slow()], &["dirty_ratio=1"]);
        let ended: Vec<_> = (0..12)
            .map(|_| {
                let (here, file) = (Arc::clone(&lab.here), lab.file(0, 0, 0));
                lab.in_background(async move {
                    for at in 0..10 {
                        here.write(&file, at * 5000, 5000, 3).await.unwrap();
                    }
                })
            })
            .collect();
        let all = || ended.iter().all(|ended| ended.load(Ordering::Relaxed));
        assert!(lab.run(lab.here.until(60 * SECOND, all)), "seed {seed}: {:?}", lab.here.engine.status());
    }
}
