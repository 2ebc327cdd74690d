use super::*;

const TICKS: TickRate = TickRate::DEFAULT;
const INTERVAL_NS: u64 = 5 * Nanos::SECOND;

const fn at(ms: u64) -> Nanos {
    Nanos(ms * Nanos::MILLISECOND)
}

/// A file that is dirty since second 10, of a device that has been given `submitted` pages.
fn seen(ms: u64, pages_and_inodes: u64, submitted: u64) -> Seen {
    Seen {
        now: at(ms),
        ticks: TICKS,
        dirty_since: Some(at(10_000)),
        has_round: false,
        expire_ns: 30 * Nanos::SECOND,
        interval_ns: INTERVAL_NS,
        coarse_timers: true,
        submitted,
        pages_and_inodes,
        woken: false,
    }
}

fn old(ms: u64) -> Step {
    Step::Old { before: Nanos(at(ms).0.saturating_sub(30 * Nanos::SECOND)) }
}

/// As recorded at a rate below the disk's: a run of 5 s after the first write gives one slice for the background
/// threshold. The next run begins 5 s after its end and goes on with the file. The file's data are 12 s old. That run
/// writes as many pages as were dirty. With ticks of 1 ms, timers of 5 s fire at multiples of 512 ms.
#[test]
fn a_file_with_a_used_up_slice_is_gone_on_with_however_young_it_is() {
    let mut periodic = Periodic::default();
    assert_eq!(periodic.step(&seen(12_000, 100, 0)), Step::SleepUntil(at(15_360)));
    assert_eq!(periodic.step(&seen(15_360, 100, 0)), Step::Background);
    periodic.slice_begins();
    let more = |ms, dirty, submitted| Seen { has_round: true, ..seen(ms, dirty, submitted) };
    assert_eq!(periodic.step(&more(16_000, 100, 4000)), Step::Background);
    assert_eq!(periodic.ends(&more(16_000, 100, 4000)), at(21_504));
    assert_eq!(periodic.step(&more(21_503, 7000, 4000)), Step::SleepUntil(at(21_504)));
    for (submitted, asked) in [(4000, 7000), (8000, 3000)] {
        assert_eq!(periodic.step(&more(21_504, 7000, submitted)), old(21_504));
        assert_eq!(periodic.asked(), asked);
        periodic.slice_begins();
        assert_eq!(periodic.asked(), u64::MAX, "a sync's slice is not the run's");
    }
    assert_eq!(periodic.step(&more(22_000, 30_000, 12_000)), Step::Background, "8,000 pages are more than 7,000");
    assert_eq!(periodic.asked(), u64::MAX);
}

/// A slice has 1,024 pages at least, but the run is charged with the written pages alone.
#[test]
fn a_run_writes_all_small_files_that_have_expired() {
    let mut periodic = Periodic::default();
    assert_eq!(periodic.step(&seen(40_448, 800, 0)), old(40_448));
    for file in 1..100 {
        assert_eq!(periodic.asked(), 800 - (file - 1) * 8);
        periodic.slice_begins();
        assert_eq!(periodic.step(&seen(40_448 + file, 9999, file * 8)), old(40_448 + file), "file {file}");
    }
    assert_eq!(periodic.step(&seen(41_000, 9999, 800)), Step::Background, "no pages are left");
}

#[test]
fn data_that_no_slice_has_touched_waits_until_it_expires() {
    let mut periodic = Periodic::default();
    assert_eq!(periodic.step(&seen(35_000, 100, 0)), Step::Background);
    periodic.ends(&seen(35_000, 100, 0));
    assert_eq!(periodic.step(&seen(40_448, 100, 0)), old(40_448));
    assert_eq!(periodic.step(&Seen { dirty_since: None, ..seen(42_000, 0, 50) }), Step::SleepUntil(Nanos::NEVER));
}

#[test]
fn a_writer_wakes_the_flusher_and_old_data_comes_first_once_an_interval_only() {
    let mut periodic = Periodic::default();
    let woken = |ms| Seen { woken: true, has_round: true, ..seen(ms, 100, 0) };
    assert_eq!(periodic.step(&Seen { has_round: false, ..woken(11_000) }), Step::Background);
    periodic.ends(&woken(12_000));
    assert_eq!(periodic.step(&woken(13_000)), Step::Background, "2 s after the last look");
    periodic.ends(&woken(14_000));
    assert_eq!(periodic.step(&woken(16_000)), old(16_000));
}

/// Timers of 3.6 fire at the tick; since 4.8 they round up, the more the farther they reach.
#[test]
fn the_flusher_wakes_by_the_interval_in_force() {
    for (interval_cs, coarse_timers, wakes_ms) in [
        (500, true, 15_360),
        (100, true, 11_008),
        (50, true, 10_504),
        (500, false, 15_000),
        (2000, false, 30_000),
        (1, false, 10_010),
    ] {
        let mut periodic = Periodic::default();
        let interval_ns = interval_cs * Nanos::CENTISECOND;
        let seen = Seen { interval_ns, coarse_timers, ..seen(10_001, 100, 0) };
        assert_eq!(periodic.step(&seen), Step::SleepUntil(at(wakes_ms)), "{interval_cs} cs");
    }
}

#[test]
fn a_change_of_the_interval_wakes_the_flusher() {
    let mut periodic = Periodic::default();
    assert_eq!(periodic.step(&seen(35_000, 100, 0)), Step::Background);
    periodic.ends(&seen(35_000, 100, 0));
    assert_eq!(periodic.step(&seen(35_100, 100, 0)), Step::SleepUntil(at(40_448)));
    let shorter = |ms| Seen { interval_ns: Nanos::SECOND, ..seen(ms, 100, 0) };
    assert_eq!(periodic.step(&shorter(35_200)), Step::Background);
    assert_eq!(periodic.ends(&shorter(35_200)), at(36_224));
}

#[test]
fn without_periodic_writeback_only_a_writer_wakes_the_flusher() {
    let off = |ms| Seen { expire_ns: u64::MAX, interval_ns: 0, ..seen(ms, 100, 0) };
    let mut periodic = Periodic::default();
    assert_eq!(periodic.step(&off(1_000_000)), Step::SleepUntil(Nanos::NEVER));
    assert_eq!(periodic.step(&Seen { woken: true, ..off(1_000_000) }), Step::Background);
    assert_eq!(periodic.ends(&off(1_000_000)), Nanos::NEVER);
    assert_eq!(periodic.step(&seen(1_000_100, 100, 0)), old(1_000_100), "it is on again");
}
