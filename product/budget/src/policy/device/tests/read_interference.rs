use super::super::*;

fn busy(reads_ns: u64, writes_ns: u64, transfers_ns: u64) -> BusyTimes {
    let ms = |ns| ns * MILLISECOND;
    BusyTimes {
        reads_ns: ms(reads_ns),
        writes_ns: ms(writes_ns),
        transfers_ns: ms(transfers_ns),
        ..BusyTimes::default()
    }
}

#[test]
fn what_reads_take_is_added_to_what_writes_cost() {
    let mut beside = ReadInterference::default();
    beside.completed(&busy(1000, 249, 1000), MILLISECOND);
    assert_eq!(beside.times(100), 100, "not before there was a window of time");
    // 100 ms of writes took 300 beside reads.
    beside.completed(&busy(1000, 300, 1000), 99 * MILLISECOND);
    assert_eq!(beside.times(100), 200, "half-way to three times");
    beside.completed(&busy(1300, 600, 1300), 100 * MILLISECOND);
    assert_eq!(beside.times(100), 250);
    let prices = beside.applied(DirectionPrices { run_ns: 1000, mib_ns: 10_000 });
    assert_eq!((prices.run_ns, prices.mib_ns), (2500, 25_000));
    // Reads that do not slow writes down.
    beside.completed(&busy(1600, 900, 1600), 300 * MILLISECOND);
    assert_eq!(beside.times(100), 175);
}

#[test]
fn writes_that_are_slow_by_themselves_are_the_prices_business() {
    let mut beside = ReadInterference::default();
    // 37 of 300 ms are shared.
    beside.completed(&busy(100, 300, 363), 100 * MILLISECOND);
    assert_eq!(beside.times(100), 100);
}

#[test]
fn writes_that_readers_starve_cost_eight_times_as_much_at_most() {
    let mut beside = ReadInterference::default();
    for window in 1..=20 {
        beside.completed(&busy(300 * window, 300 * window, 300 * window), 1);
    }
    assert!((799..=800).contains(&beside.times(100)));
    assert_eq!(beside.times(u64::MAX), u64::MAX);
}
