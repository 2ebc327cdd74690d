use super::*;

const TICKS: TickRate = TickRate::DEFAULT;

const fn at(ms: u64) -> Nanos {
    Nanos(ms * Nanos::MILLISECOND)
}

/// A file that is dirty since second 10.
fn seen(ms: u64, pages_and_inodes: u64) -> Seen {
    Seen {
        now: at(ms),
        ticks: TICKS,
        dirty_since: Some(at(10_000)),
        expire_ns: 30 * Nanos::SECOND,
        pages_and_inodes,
        woken: false,
    }
}

/// As recorded at a rate below the disk's: a run of 5 s after the first write gives one slice for the background
/// threshold. The next run begins 5 s after its end and goes on with the file. The file's data are 12 s old. That run
/// writes as many pages as were dirty. With ticks of 1 ms, timers of 5 s fire at multiples of 512 ms.
#[test]
fn a_file_with_a_used_up_slice_is_gone_on_with_however_young_it_is() {
    let mut periodic = Periodic::default();
    assert_eq!(periodic.step(&seen(12_000, 100)), Step::SleepUntil(at(15_360)));
    assert_eq!(periodic.step(&seen(15_360, 100)), Step::Background);
    periodic.slice(4000, 5000);
    assert_eq!(periodic.step(&seen(16_000, 100)), Step::Background);
    assert_eq!(periodic.ends(TICKS, at(16_000)), at(21_504));
    assert_eq!(periodic.step(&seen(21_503, 7000)), Step::SleepUntil(at(21_504)));
    for asked in [7000, 3000] {
        assert_eq!(periodic.step(&seen(21_504, 7000)), Step::GoOn);
        assert_eq!(periodic.asked(), asked);
        periodic.slice(4000, 30_000);
    }
    assert_eq!(periodic.step(&seen(22_000, 30_000)), Step::Background, "8,000 pages are more than 7,000");
    assert_eq!(periodic.asked(), u64::MAX);
}

#[test]
fn data_that_no_slice_has_touched_waits_until_it_expires() {
    let mut periodic = Periodic::default();
    assert_eq!(periodic.step(&seen(35_000, 100)), Step::Background);
    periodic.ends(TICKS, at(35_000));
    assert_eq!(periodic.step(&seen(40_448, 100)), Step::Expired);
    periodic.slice(4000, 50);
    assert_eq!(periodic.step(&seen(41_000, 100)), Step::Background, "no pages are left");
    periodic.ends(TICKS, at(41_000));
    assert_eq!(periodic.step(&Seen { dirty_since: None, ..seen(42_000, 0) }), Step::SleepUntil(Nanos::NEVER));
}

#[test]
fn a_writer_wakes_the_flusher_and_old_data_comes_first_every_5_s_only() {
    let mut periodic = Periodic::default();
    let woken = |ms| Seen { woken: true, ..seen(ms, 100) };
    assert_eq!(periodic.step(&woken(11_000)), Step::Background);
    periodic.slice(4000, 5000);
    periodic.ends(TICKS, at(12_000));
    assert_eq!(periodic.step(&woken(13_000)), Step::Background, "2 s after the last look");
    periodic.ends(TICKS, at(14_000));
    assert_eq!(periodic.step(&woken(16_000)), Step::GoOn);
}

#[test]
fn without_periodic_writeback_only_a_writer_wakes_the_flusher() {
    let off = |ms| Seen { expire_ns: u64::MAX, ..seen(ms, 100) };
    let mut periodic = Periodic::default();
    assert_eq!(periodic.step(&off(1_000_000)), Step::SleepUntil(Nanos::NEVER));
    assert_eq!(periodic.step(&Seen { woken: true, ..off(1_000_000) }), Step::Background);
}
