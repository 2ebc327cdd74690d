use super::second::{Second, apart};
use super::simulated::{at, simulate};
use super::*;

/// Pages whose writeback the file system ends at once, so that no instant of the real side is more exact.
const STEP_PAGES: f64 = 2048.0;

fn recorded(name: &str) -> Recording {
    let text = recording::ALL.iter().find(|known| known.0 == name).unwrap().1;
    Recording::read(text).unwrap()
}

fn pauses(rows: &[Second]) -> f64 {
    rows.iter().map(|second| second.pauses).sum()
}

/// By hand from the file: the disk wrote 25,184 pages until second 5 and 267,616 until 45.
#[test]
fn the_machine_is_taken_from_the_table() {
    let real = recorded("bytes");
    assert_eq!((real.seconds, real.hz, real.limit_pages, real.background_pages), (45, 250, 97_657, 48_829));
    assert_eq!((real.disk_pages_per_s, real.call_ns, real.sync_s), (6060.8, 266_000, 14.335));
    assert_eq!(real.rows[1], Second { dirty: 58_163.0, accepted: 58_176.0, written: 960.0, pauses: 27.0 });
    assert!(Recording::read("second dirty\n0 x\n").is_none());
}

/// Holds the simulated law to a recorded run from second `filled` on, when memory has filled.
fn is_near(name: &str, filled: usize) {
    let real = recorded(name);
    let simulated = simulate(&real).unwrap();
    let end = real.seconds as usize;
    let dirty = |from, until| apart(&real.rows, &simulated.rows, from..until, |second| second.dirty);
    let accepted = |from, until| apart(&real.rows, &simulated.rows, from..until, |second| second.accepted);
    let mean = (filled..end).map(|second| dirty(second, second + 1)).sum::<f64>() / (end - filled) as f64;
    let worst = dirty(filled, end);
    assert!(worst < 0.05 && mean < 0.02, "dirty pages: {worst} at worst, {mean} in the mean");
    let (worst, in_all) = (accepted(filled, end), accepted(end, end + 1));
    assert!(worst < 0.025 && in_all < 0.005, "accepted: {worst} at worst, {in_all} in all");
    let number = pauses(&simulated.rows) / pauses(&real.rows) - 1.0;
    assert!(number.abs() < 0.05, "pauses in all: {number}");
    assert!((simulated.sync_s / real.sync_s - 1.0).abs() < 0.01, "{} for {}", simulated.sync_s, real.sync_s);
    for (real, simulated) in real.rows.iter().zip(&simulated.rows).skip(end) {
        let most = STEP_PAGES + 0.05 * real.dirty;
        assert!((real.dirty - simulated.dirty).abs() < most, "in the sync {} for {}", simulated.dirty, real.dirty);
    }
}

/// An update at each completed write would give 361,680 accepted pages for 354,709.
#[test]
fn with_limits_in_bytes_linux_6_1_is_near_the_real_one_in_every_second() {
    is_near("bytes", 2);
}

#[test]
fn with_the_kernels_ratios_linux_6_1_is_near_the_real_one_in_every_second() {
    is_near("default", 4);
}

#[test]
fn the_sums_between_two_samples_are_on_a_line() {
    let sums = |dirty: f64| Second { dirty, accepted: 2.0 * dirty, written: dirty, pauses: dirty };
    let found = at(&[(0.0, sums(0.0)), (1.0, sums(100.0)), (3.0, sums(300.0))], 2.0);
    assert_eq!(found, sums(200.0));
}
