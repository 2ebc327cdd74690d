//! Behaviour of single kernels that others do not share.

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
