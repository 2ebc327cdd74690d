//! The law's vectors for the curve, and its properties.

use super::super::*;
use crate::in_flight_ns;

const SECOND: u64 = 1_000_000_000;
const BAND: Band = Band { end_ns: SECOND };

#[test]
fn factors_are_those_of_the_law() {
    let ms = |backlog: u64| BAND.entry(backlog * MILLISECOND);
    for (backlog, factor) in [(750, 0), (751, 4), (800, 256), (875, 1024), (900, 1536), (950, 4096), (990, 16_384)] {
        assert_eq!(ms(backlog), AdmissionRule::Factor(factor), "{backlog} ms");
    }
    assert_eq!(ms(1000), AdmissionRule::Stopped);
    assert_eq!(BAND.entry(u64::MAX), AdmissionRule::Stopped);
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
    let due = |payers| snapshot_debt_ns(BAND, 750 * MILLISECOND, payers);
    assert_eq!([due(1), due(100), due(1000)], [1_000_000, 40_000, 20_000]);
}

#[test]
fn the_guard_counts_where_memory_is_short() {
    let guarded = |backlog_ms: u64, pages| guarded_backlog_ns(BAND, backlog_ms * MILLISECOND, pages, 1000);
    assert_eq!(guarded(100, 750), BAND.free_ns());
    assert_eq!(guarded(600, 100), 600 * MILLISECOND);
    assert_eq!(guarded(0, 1000), SECOND, "nobody enters");
    assert!(guarded_backlog_ns(BAND, 0, 1, 0) >= SECOND, "others have left nothing");
}

#[test]
fn pauses_grow_with_the_backlog_and_have_no_step_inside_the_band() {
    let mut last = 0;
    for backlog in (0..SECOND).step_by(100_000) {
        let AdmissionRule::Factor(factor) = BAND.entry(backlog) else { panic!("stopped at {backlog}") };
        assert!(factor >= last);
        // A request takes a quarter of what may be in flight.
        if (833 * MILLISECOND..917 * MILLISECOND).contains(&backlog) {
            let AdmissionRule::Factor(before) = BAND.entry(backlog - in_flight_ns(SECOND) / 4) else { unreachable!() };
            assert!(factor - before <= factor * 15 / 100, "{before} to {factor} at {backlog}");
        }
        last = factor;
    }
}

#[test]
fn credit_is_a_part_of_the_band() {
    assert_eq!(BAND.credit_ns_max(1), 125_000_000);
    assert_eq!(BAND.credit_ns_max(100), 1_250_000);
}
