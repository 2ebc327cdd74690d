use super::load::Load;
use super::recording::Piece;
use super::second::{Second, Side, apart};
use super::simulated::{EXTENT_PAGES, at, before_ns, simulate};
use super::*;

/// Pages that may have reached the disk while their extents have not ended. In an fsync beside the flusher each writes
/// an extent of its own, and the two alternate.
const STEP_PAGES: f64 = 4.0 * EXTENT_PAGES as f64;

fn recorded(name: &str) -> Recording {
    let text = recording::ALL.iter().find(|known| known.0 == name).unwrap().1;
    Recording::read(text).unwrap()
}

fn pauses(rows: &[Second]) -> f64 {
    rows.iter().map(|second| second.pauses).sum()
}

/// By hand from the file: the disk wrote 267,648 pages until second 45 and 352,672 until 59. Tick 4,294,895,239 is the
/// 7th after a multiple of 64, and so is 519.
#[test]
fn the_machine_is_taken_from_the_table() {
    let real = recorded("bytes");
    assert_eq!((real.seconds, real.hz, real.limit_pages, real.background_pages), (45, 250, 97_657, 48_829));
    assert_eq!((real.call_ns, real.inodes, real.side.sync_s), (266_000, 10_784, 14.3189));
    assert_eq!((real.worker_ns_per_page, real.positions.len()), (2994, 0));
    assert!((real.disk_pages_per_s - 6073.1).abs() < 0.1, "{}", real.disk_pages_per_s);
    assert_eq!(real.side.rows[1], Second { dirty: 57_928.0, accepted: 57_928.0, written: 960.0, pauses: 29.0 });
    assert_eq!((real.load, before_ns(&real)), (Load::Stream, 2_076_000_000));
    assert_eq!(recorded("at-rate").load, Load::AtRate { bytes_per_s: 20_000_000 });
    let small = recorded("small-sync").positions;
    assert_eq!(small[0], [Piece { page: 0, position: 34_304, pages: 8 }]);
    assert_eq!((small.len(), small[1][1]), (2, Piece { page: 32_768, position: 2_031_616, pages: 32_768 }));
    assert_eq!(recorded("burst").call_ns, 274_000);
    assert!(Recording::read("second dirty\n0 x\n").is_none());
}

/// Holds the simulated law to a recorded run from second `filled` on, when memory has filled.
fn is_near(name: &str, filled: usize) -> [Side; 2] {
    let real = recorded(name);
    let simulated = simulate(&real).unwrap();
    let end = real.seconds as usize;
    let dirty = |from, until| apart(&real.side.rows, &simulated.rows, from..until, |second| second.dirty);
    let accepted = |from, until| apart(&real.side.rows, &simulated.rows, from..until, |second| second.accepted);
    let mean = (filled..end).map(|second| dirty(second, second + 1)).sum::<f64>() / (end - filled) as f64;
    let worst = dirty(filled, end);
    assert!(worst < 0.05 && mean < 0.02, "dirty pages: {worst} at worst, {mean} in the mean");
    let (worst, in_all) = (accepted(filled, end), accepted(end, end + 1));
    assert!(worst < 0.025 && in_all < 0.005, "accepted: {worst} at worst, {in_all} in all");
    let number = pauses(&simulated.rows) / pauses(&real.side.rows) - 1.0;
    assert!(number.abs() < 0.05, "pauses in all: {number}");
    assert!((simulated.sync_s / real.side.sync_s - 1.0).abs() < 0.01, "{} for {}", simulated.sync_s, real.side.sync_s);
    for (real, simulated) in real.side.rows.iter().zip(&simulated.rows).skip(end) {
        let most = STEP_PAGES + 0.05 * real.dirty;
        assert!((real.dirty - simulated.dirty).abs() < most, "in the sync {} for {}", simulated.dirty, real.dirty);
    }
    [real.side, simulated]
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

/// The first sync waits until the stream's piece of the disk ends behind it, and the elevator jumps back. Each later
/// one waits for the elevator's deadline for writes: the stream's requests have later positions.
#[test]
fn a_small_files_syncs_beside_a_stream_are_as_long_as_the_real_ones() {
    let [real, simulated] = is_near("small-sync", 2).map(|side| side.small_syncs_s);
    assert_eq!(real.len(), simulated.len());
    for (real, simulated) in real.iter().zip(&simulated) {
        assert!((simulated / real - 1.0).abs() < 0.05, "{simulated} for {real}");
    }
}

/// If the flushers took no processor time, the first burst would take 0.48 s.
#[test]
fn bursts_to_another_disk_are_as_long_as_the_real_ones() {
    let [real, simulated] = is_near("burst", 2).map(|side| side.bursts_s);
    assert_eq!((real.len(), simulated.len()), (6, 6));
    for (real, simulated) in real.chunks(2).zip(simulated.chunks(2)) {
        assert!((simulated[0] / real[0] - 1.0).abs() < 0.05, "a burst of {} s for {}", simulated[0], real[0]);
        let [real, simulated] = [real, simulated].map(|parts| parts.iter().sum::<f64>());
        assert!((simulated / real - 1.0).abs() < 0.1, "{simulated} s with its sync for {real}");
    }
}

/// Without the rule about used-up slices, the flusher would write at the background threshold alone.
#[test]
fn below_the_disks_rate_the_flusher_runs_as_the_real_one() {
    let real = recorded("at-rate");
    let simulated = simulate(&real).unwrap();
    for (second, (real, simulated)) in real.side.rows.iter().zip(&simulated.rows).enumerate().skip(1) {
        let written = (simulated.written - real.written).abs();
        assert!(written < 200.0, "second {second}: written {} for {}", simulated.written, real.written);
        let dirty = (simulated.dirty - real.dirty).abs();
        assert!(dirty < EXTENT_PAGES as f64, "second {second}: dirty {} for {}", simulated.dirty, real.dirty);
    }
    assert!((simulated.sync_s / real.side.sync_s - 1.0).abs() < 0.01, "{}", simulated.sync_s);
}

#[test]
fn the_sums_between_two_samples_are_on_a_line() {
    let sums = |dirty: f64| Second { dirty, accepted: 2.0 * dirty, written: dirty, pauses: dirty };
    let found = at(&[(0.0, sums(0.0)), (1.0, sums(100.0)), (3.0, sums(300.0))], 2.0);
    assert_eq!(found, sums(200.0));
}
