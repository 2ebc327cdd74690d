//! Behaviour of single kernels that others do not share.

use afflux_engine::Platform;
use afflux_engine::policy::PauseCause;
use afflux_engine::settings::Knob;
use afflux_linux_policies::NAMES;

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, slow};

#[test]
fn position_control_lets_bursts_pass_and_never_pauses_longer_than_200_ms() {
    for name in ["linux-3.6", "linux-6.1"] {
        let lab = EngineFixture::new(name, 1, 16_384, &[slow()], &[]);
        // Limits of 20 and 10 % of 16,384 pages: up to 2,457 no writer is throttled.
        let burst = lab.stream(&lab.file(0).0, 2300 * PAGE, 4 * PAGE);
        assert!(lab.until(SECOND / 10, || burst.ended()), "{name}: at memory speed");
        assert!(lab.engine.status().devices[0].pauses.is_empty(), "{name}");
        let _writers: Vec<_> = (0..8).map(|_| lab.stream(&lab.file(0).0, 1 << 30, 64 << 10)).collect();
        lab.sleep(10 * SECOND);
        let (mut least, mut most) = (u64::MAX, 0);
        for _ in 0..500 {
            lab.sleep(10 * MILLISECOND);
            (least, most) = (least.min(lab.dirty_pages()), most.max(lab.dirty_pages()));
        }
        assert!(least > 2200 && most <= 3276 + 8 * 32, "{name}: {least} to {most} pages around the setpoint");
        let pauses = lab.engine.status().devices[0].pauses.clone();
        assert!(pauses.iter().any(|row| row.cause == PauseCause::Rate), "{name}: {pauses:?}");
        assert!(pauses.iter().all(|row| row.longest_ns <= 200 * MILLISECOND), "{name}: {pauses:?}");
    }
}

#[test]
fn a_strict_limit_holds_a_device_to_its_bytes_and_leaves_the_other_alone() {
    let lab = EngineFixture::new("linux-6.1", 1, 32_768, &[slow(), slow()], &[]);
    for assignment in ["strict_limit=1", "max_bytes=4MiB"] {
        let (knob, value) = lab.engine.settings().parse(assignment).unwrap();
        lab.engine.set_device_knob(lab.devices[0], knob, value).unwrap();
    }
    let _held = lab.stream(&lab.file(0).0, 1 << 30, 64 << 10);
    lab.sleep(5 * SECOND);
    let mut most = 0;
    for _ in 0..300 {
        lab.sleep(10 * MILLISECOND);
        most = most.max(lab.engine.status().devices[0].dirty_bytes);
    }
    assert!(most <= 5 << 20, "{most} bytes");
    let free = lab.stream(&lab.file(1).0, 12 << 20, 64 << 10);
    assert!(lab.until(SECOND / 5, || free.ended()), "the other has the rest of the limit for its burst");
}

#[test]
fn without_periodic_writeback_old_data_stays_and_is_written_once_it_is_on_again() {
    for name in NAMES {
        let lab = EngineFixture::new(name, 1, 16_384, &[slow()], &["dirty_expire_centisecs=100"]);
        let file = lab.file(0).0;
        // Once before the timer has run, and once after.
        for seconds in [0, 7] {
            lab.engine.set_knob(Knob::WritebackCentisecs, 500).unwrap();
            lab.sleep(seconds * SECOND);
            lab.engine.set_knob(Knob::WritebackCentisecs, 0).unwrap();
            // This gives the device a share, without which it would be written for that reason.
            lab.run(lab.engine.write(&file, 0, &[1; 1000 * 4096])).unwrap();
            lab.run(lab.engine.sync(&file, 0..u64::MAX)).unwrap();
            lab.run(lab.engine.write(&file, 0, &[1; 4096])).unwrap();
            lab.sleep(10 * SECOND);
            assert_eq!(lab.dirty_pages(), 1, "{name}");
            lab.engine.set_knob(Knob::WritebackCentisecs, 100).unwrap();
            lab.sleep(3 * SECOND);
            assert_eq!(lab.dirty_pages(), 0, "{name}");
        }
    }
}

/// Many small files that were never written before, on a disk that was: an untar, a mail directory. All are written in
/// the first run after they expire, whatever the kernel.
#[test]
fn one_run_writes_any_number_of_small_files_that_have_expired() {
    for name in NAMES {
        for (files, pages) in [(100, 8), (2000, 1)] {
            let lab = EngineFixture::new(name, 1, 65_536, &[slow()], &["dirty_expire_centisecs=700"]);
            let first = lab.file(0).0;
            lab.run(async {
                // This gives the device a share, without which it would be written for that reason.
                lab.engine.write(&first, 0, &[1; 16 << 20]).await.unwrap();
                lab.engine.sync(&first, 0..u64::MAX).await.unwrap();
            });
            let began = lab.platform.now().0;
            let small: Vec<_> = (0..files).map(|_| lab.file(0).0).collect();
            lab.run(async {
                for file in &small {
                    lab.engine.write(file, 0, &vec![1; pages * PAGE as usize]).await.unwrap();
                }
            });
            lab.sleep(6900 * MILLISECOND);
            assert_eq!(lab.dirty_pages(), files * pages as u64, "{name}: none has expired");
            // The last run before the expiry may be just before it, and the next is 5 s later.
            let all_written = lab.until(6 * SECOND, || lab.dirty_pages() == 0);
            let seconds = (lab.platform.now().0 - began) as f64 / SECOND as f64;
            assert!(all_written, "{name}: after {seconds} s {} of {files} files are dirty", lab.dirty_pages());
        }
    }
}

/// 4 pages are written once, on a disk that nobody else uses and that has written before.
#[test]
fn the_flusher_looks_for_expired_data_at_its_interval() {
    let clean_after_ms = |name: &str, interval: &str| {
        let lab = EngineFixture::new(name, 1, 16_384, &[slow()], &["dirty_expire_centisecs=100", interval]);
        let file = lab.file(0).0;
        lab.run(async {
            lab.engine.write(&file, 0, &[1; 1000 * PAGE as usize]).await.unwrap();
            lab.engine.sync(&file, 0..u64::MAX).await.unwrap();
            lab.engine.write(&file, 0, &[1; 4 * PAGE as usize]).await.unwrap();
        });
        let began = lab.platform.now().0;
        assert!(lab.until(60 * SECOND, || lab.dirty_pages() == 0), "{name}, {interval}");
        (lab.platform.now().0 - began) / MILLISECOND
    };
    for name in NAMES {
        for (centisecs, ms) in [(50, 1000..1600), (200, 1500..2600), (500, 4000..5600), (1000, 9000..11_000)] {
            let after = clean_after_ms(name, &format!("dirty_writeback_centisecs={centisecs}"));
            assert!(ms.contains(&after), "{name}, {centisecs} cs: after {after} ms");
        }
    }
}
