use super::super::*;

const MS: u64 = Nanos::MILLISECOND;

/// Writes of 100 KB one after another, each `ms` long, with `idle_ms` between them.
fn write(usage: &mut Usage, now: &mut u64, count: u32, ms: u64, idle_ms: u64) {
    for _ in 0..count {
        usage.begins(TransferKind::Write, Nanos(*now));
        *now += ms * MS;
        ends(usage, *now);
        *now += idle_ms * MS;
    }
}

/// A write of 100 KB ends.
fn ends(usage: &mut Usage, now: u64) {
    usage.ends(TransferKind::Write, 1, 100_000, Nanos(0), Nanos(now));
}

#[test]
fn nothing_is_known_before_the_first_window() {
    let (mut usage, mut now) = (Usage::default(), 0);
    write(&mut usage, &mut now, 1, 4, 0);
    assert_eq!(usage.bandwidth.bytes_per_second(), None);
    write(&mut usage, &mut now, 1, 4, 0);
    assert_eq!(usage.bandwidth.bytes_per_second(), Some(25_000_000), "200 KB in 8 ms");
}

#[test]
fn idle_time_does_not_count() {
    let (mut usage, mut now) = (Usage::default(), 0);
    write(&mut usage, &mut now, 100, 4, 1000);
    assert_eq!(usage.bandwidth.bytes_per_second(), Some(25_000_000));
}

#[test]
fn requests_that_overlap_share_the_time() {
    let mut usage = Usage::default();
    for at in 0..4 {
        usage.begins(TransferKind::Write, Nanos(at));
    }
    for _ in 0..4 {
        ends(&mut usage, 16 * MS);
    }
    assert_eq!(
        usage.bandwidth.bytes_per_second(),
        Some(6_250_000),
        "what ended with the window's first request counts in it"
    );
    usage.begins(TransferKind::Write, Nanos(20 * MS));
    ends(&mut usage, 36 * MS);
    assert_eq!(usage.bandwidth.bytes_per_second(), Some(15_625_000), "the other three belong to the next window");
}

#[test]
fn a_change_of_speed_is_learned_within_a_second_and_a_half() {
    let (mut usage, mut now) = (Usage::default(), 0);
    write(&mut usage, &mut now, 2500, 4, 0);
    assert_eq!(usage.bandwidth.bytes_per_second(), Some(25_000_000));
    write(&mut usage, &mut now, 75, 40, 0);
    let after = usage.bandwidth.bytes_per_second().unwrap_or(0);
    // After 3 s of the new speed 1/e of the difference remains.
    assert!((10_600_000..10_900_000).contains(&after), "{after}");
}

#[test]
fn the_first_second_is_its_own_mean() {
    let (mut usage, mut now) = (Usage::default(), 0);
    write(&mut usage, &mut now, 50, 4, 0);
    write(&mut usage, &mut now, 80, 10, 0);
    // 200 ms at 25 MB/s and 770 ms at 10 MB/s; the last 30 ms are in an open window.
    let mean = usage.bandwidth.bytes_per_second().unwrap_or(0);
    assert!((13_092_000..13_094_000).contains(&mean), "{mean}");
}
