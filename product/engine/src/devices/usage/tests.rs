//! The clocks, step by step.

mod bandwidth;

use super::*;

const MS: u64 = Nanos::MILLISECOND;

fn at(ms: u64) -> Nanos {
    Nanos(ms * MS)
}

/// Reads, writes, either, calls alone, held up, in milliseconds.
fn times(clocks: &mut Clocks, now: u64) -> [u64; 5] {
    let BusyTimes { transfers_ns, reads_ns, writes_ns, calls_alone_ns, held_up_ns } = clocks.times(at(now));
    [reads_ns, writes_ns, transfers_ns, calls_alone_ns, held_up_ns].map(|ns| ns / MS)
}

#[test]
fn each_clock_runs_while_its_kind_is_in_flight() {
    let mut clocks = Clocks::default();
    clocks.begins(TransferKind::Read, at(0));
    clocks.begins(TransferKind::Write, at(10));
    clocks.begins(TransferKind::Write, at(12));
    clocks.ends(TransferKind::Read, at(15));
    assert_eq!(times(&mut clocks, 20), [15, 10, 20, 0, 0]);
    assert_eq!((clocks.in_flight(), clocks.count(TransferKind::Read)), (2, 0));
    clocks.ends(TransferKind::Write, at(20));
    clocks.ends(TransferKind::Write, at(30));
    assert_eq!(times(&mut clocks, 99), [15, 20, 30, 0, 0]);
    assert_eq!(clocks.any_ns(at(99)), 30 * MS);
}

#[test]
fn a_flush_alone_is_no_time_of_transfers() {
    let mut clocks = Clocks::default();
    clocks.begins(TransferKind::Write, at(0));
    clocks.ends(TransferKind::Write, at(5));
    clocks.begins(TransferKind::Other, at(5));
    clocks.ends(TransferKind::Other, at(25));
    assert_eq!(times(&mut clocks, 40), [0, 5, 5, 20, 0]);
    assert_eq!(clocks.any_ns(at(40)), 25 * MS);
}

#[test]
fn what_passes_up_to_a_flushs_end_may_be_its_doing() {
    let mut clocks = Clocks::default();
    clocks.begins(TransferKind::Write, at(0));
    clocks.begins(TransferKind::Write, at(0));
    clocks.begins(TransferKind::Other, at(4));
    // The flush waits for this write, then the other write waits for the flush.
    clocks.ends(TransferKind::Write, at(10));
    clocks.ends(TransferKind::Other, at(17));
    clocks.ends(TransferKind::Write, at(20));
    assert_eq!(times(&mut clocks, 20), [0, 20, 20, 0, 7]);
}

#[test]
fn an_instant_that_is_told_late_turns_no_clock_back() {
    let mut clocks = Clocks::default();
    clocks.begins(TransferKind::Write, at(10));
    clocks.begins(TransferKind::Write, at(8));
    assert_eq!(times(&mut clocks, 9), [0, 0, 0, 0, 0]);
    clocks.ends(TransferKind::Write, at(14));
    clocks.ends(TransferKind::Write, at(13));
    assert_eq!(times(&mut clocks, 20), [0, 4, 4, 0, 0]);
}
