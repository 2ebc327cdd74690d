use super::*;

#[test]
fn quantities_are_read_with_and_without_units() {
    let cases = [
        (Unit::Bytes, "4096", Some(4096)),
        (Unit::Bytes, "64 KiB", Some(65_536)),
        (Unit::Bytes, "1_000", Some(1000)),
        (Unit::Bytes, "25MB", Some(25_000_000)),
        (Unit::BytesPerSecond, "25 MB/s", Some(25_000_000)),
        (Unit::BytesPerSecond, "5MiB", Some(5 << 20)),
        (Unit::BytesPerSecond, "fast", None),
        (Unit::Nanoseconds, "8.5 ms", Some(8_500_000)),
        (Unit::Nanoseconds, "75us", Some(75_000)),
        (Unit::Nanoseconds, "1.5s", Some(1_500_000_000)),
        (Unit::Nanoseconds, "2 min", Some(120_000_000_000)),
        (Unit::Nanoseconds, "12", Some(12)),
        (Unit::Nanoseconds, "3 weeks", None),
        (Unit::Nanoseconds, "1.2.3 s", None),
        (Unit::Nanoseconds, "999999999999 min", None),
        (Unit::Nanoseconds, "-1 s", None),
        (Unit::Count, "16", Some(16)),
        (Unit::Count, "16k", None),
    ];
    for (unit, text, number) in cases {
        assert_eq!(unit.parse(text), number, "{text}");
    }
}

#[test]
fn what_is_shown_is_read_back() {
    for unit in [Unit::Bytes, Unit::BytesPerSecond, Unit::Nanoseconds, Unit::Count] {
        for number in [0, 1, 512, 999, 1000, 4096, 122_880, 1_500_000, 25_000_000, 60_000_000_000, 1 << 40] {
            let shown = unit.show(number);
            let plain = shown.trim_end_matches(" bytes").trim_end_matches(" B/s");
            assert_eq!(unit.parse(plain), Some(number), "{shown}");
        }
    }
    assert_eq!(Unit::Bytes.show(122_880), "120 KiB");
    assert_eq!(Unit::BytesPerSecond.show(25_000_000), "25 MB/s");
    assert_eq!(Unit::Nanoseconds.show(8_500_000), "8500 us");
}
