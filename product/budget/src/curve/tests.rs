//! The law's vectors for the curve, and its properties.

use super::*;

const SECOND: u64 = 1_000_000_000;
const BAND: Band = Band { end_ns: SECOND };

#[test]
fn factors_are_those_of_the_law() {
    let ms = |backlog: u64| BAND.entry(backlog * MILLISECOND);
    for (backlog, factor) in [(250, 0), (251, 1), (400, 256), (625, 1024), (800, 2816), (900, 6656), (990, 16_384)] {
        assert_eq!(ms(backlog), Entry::Factor(factor), "{backlog} ms");
    }
    assert_eq!(ms(1000), Entry::Stopped);
    assert_eq!(BAND.entry(u64::MAX), Entry::Stopped);
}

#[test]
fn the_band_is_stretched_by_payers_whose_runs_are_dear() {
    let second = |run_ms: u64, payers| Band::stretched(SECOND, run_ms * MILLISECOND, payers).end_ns;
    assert_eq!(second(6, 1), SECOND);
    assert_eq!(second(6, 100), 4_800_000_000);
    assert_eq!(second(200, 4), 6_400_000_000);
    assert_eq!(second(200, 100), 60 * SECOND);
    assert_eq!(Band::stretched(u64::MAX, u64::MAX, u64::MAX).end_ns, u64::MAX);
}

#[test]
fn a_snapshot_is_due_sooner_where_more_wait() {
    let due = |payers| snapshot_debt_ns(BAND, 625 * MILLISECOND, payers);
    assert_eq!([due(1), due(100), due(1000)], [1_000_000, 40_000, 20_000]);
}

#[test]
fn the_guard_counts_where_memory_is_short() {
    let guarded =
        |backlog_ms: u64, bytes| guarded_backlog_ns(BAND, backlog_ms * MILLISECOND, bytes, 167_772_160, 268_435_456);
    assert_eq!(guarded(100, 157_286_400), 781_249_996);
    assert_eq!(guarded(600, 15_000_000), 600 * MILLISECOND);
    assert!(guarded_backlog_ns(BAND, 0, 1 << 20, 2 << 30, 1 << 30) > SECOND, "more than there may be: nobody enters");
}

#[test]
fn pauses_grow_with_the_backlog_and_have_no_step_inside_the_band() {
    let mut last = 0;
    for backlog in (0..SECOND).step_by(100_000) {
        let Entry::Factor(factor) = BAND.entry(backlog) else { panic!("stopped at {backlog}") };
        assert!(factor >= last);
        // A request of 4 ms, with a budget of a second: L is 30 ms then.
        if (500 * MILLISECOND..750 * MILLISECOND).contains(&backlog) {
            let Entry::Factor(before) = BAND.entry(backlog - 4 * MILLISECOND) else { unreachable!() };
            assert!(factor - before <= factor * 15 / 100, "{before} to {factor} at {backlog}");
        }
        last = factor;
    }
}

#[test]
fn credit_is_a_part_of_the_band() {
    assert_eq!(BAND.credit_ns_max(1), 187_500_000);
    assert_eq!(BAND.credit_ns_max(100), 1_875_000);
}
