use std::time::Duration;

use super::{change, count, data, frequency, latency, memory, percent, rate, time, times};

#[test]
fn numbers_carry_the_unit_a_person_would_choose() {
    assert_eq!(memory(0), "0 B");
    assert_eq!(memory(2 << 30), "2.00 GiB");
    assert_eq!(memory(64 << 20), "64.0 MiB");
    assert_eq!(memory(u64::MAX), "16.0 EiB");
    assert_eq!(data(21_400_000), "21.4 MB");
    assert_eq!(data(999_999), "1.00 MB");
    assert_eq!(data(999), "999 B");
    assert_eq!(rate(50_200_000, Duration::from_secs(2)), "25.1 MB/s");
    assert_eq!(rate(1, Duration::ZERO), "0 B/s");
    assert_eq!(count(1_204), "1,204");
    assert_eq!(count(12), "12");
    assert_eq!(count(1_000_000), "1,000,000");
    assert_eq!(percent(0, 0), "-");
    assert_eq!((times(1, 0), times(1_050, 1_000)), ("-".to_owned(), "1.05".to_owned()));
    assert_eq!(percent(972, 1000), "97.2 %");
}

#[test]
fn times_are_short() {
    for (seconds, text) in [
        (0.0, "0 µs"),
        (0.000_21, "210 µs"),
        (0.038, "38 ms"),
        (0.3, "0.3 s"),
        (42.0, "42 s"),
        (250.0, "4 min 10 s"),
        (59.99, "1 min 0 s"),
        (7_260.0, "2 h 1 min"),
    ] {
        assert_eq!(time(Duration::from_secs_f64(seconds)), text);
    }
}

#[test]
fn latencies_have_three_digits_up_to_a_minute() {
    for (ns, text) in [
        (0, "0 ns"),
        (850, "850 ns"),
        (4_130_000, "4.13 ms"),
        (41_300_000, "41.3 ms"),
        (999_900, "1.00 ms"),
        (1_250_000_000, "1.25 s"),
        (42_000_000_000, "42.0 s"),
        (61_000_000_000, "1 min 1 s"),
    ] {
        assert_eq!(latency(ns), text);
    }
}

#[test]
fn frequencies_are_per_second() {
    assert_eq!(frequency(2_408, Duration::from_secs(2)), "1,204/s");
    assert_eq!(frequency(3, Duration::from_secs(2)), "1.5/s");
    assert_eq!(frequency(0, Duration::from_secs(2)), "0/s");
    assert_eq!(frequency(7, Duration::ZERO), "0/s");
}

#[test]
fn no_change_has_no_sign() {
    for (percent, text) in [(2.14, "+2.1 %"), (-12.56, "-12.6 %"), (0.04, "0.0 %"), (-0.04, "0.0 %"), (0.05, "+0.1 %")]
    {
        assert_eq!(change(percent), text, "{percent}");
    }
}
