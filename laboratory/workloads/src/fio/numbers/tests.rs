use super::*;

const K: u64 = 1024;

#[test]
fn unit_prefixes_are_binary_unless_the_base_is_1000() {
    let cases = [
        ("3", 3, 3),
        ("3b", 3, 3),
        ("3k", 3 * K, 3000),
        ("3K", 3 * K, 3000),
        ("3kb", 3 * K, 3000),
        ("3ki", 3 * K, 3000),
        ("3kib", 3000, 3 * K),
        ("3MiB", 3_000_000, 3 * K * K),
        ("3g", 3 * K * K * K, 3_000_000_000),
        ("3tib", 3_000_000_000_000, 3 * K * K * K * K),
        ("3p", 3 * K * K * K * K * K, 3_000_000_000_000_000),
        ("0x10", 16, 16),
        ("+5", 5, 5),
    ];
    for (text, binary, decimal) in cases {
        assert_eq!(number(text, KbBase::Binary), Ok(binary), "{text}");
        assert_eq!(number(text, KbBase::Decimal), Ok(decimal), "{text}");
    }
}

#[test]
fn what_fio_would_drop_is_an_error() {
    for text in
        ["", "k", "-1", " 1m", "1.5m", "1 k", "1x", "0x10k", "1kk", "1e3", "3i", "3ib", "1m-2m", "9223372036854775808"]
    {
        assert!(number(text, KbBase::Binary).is_err(), "{text}");
    }
    assert!(number("1.5m", KbBase::Binary).unwrap_err().contains("'.5m' is no unit"));
    for text in ["", "s", "10sec", "10x", "1.5", "1min", "-1", "1 s"] {
        assert!(time(text, 1).is_err(), "{text}");
    }
}

#[test]
fn times_have_units_and_a_plain_one() {
    let second = 1_000_000_000;
    let cases = [
        ("10", 10 * second),
        ("10s", 10 * second),
        ("10S", 10 * second),
        ("1m", 60 * second),
        ("2H", 7200 * second),
        ("2d", 172_800 * second),
        ("100ms", second / 10),
        ("100msec", second / 10),
        ("5us", 5000),
        ("5usec", 5000),
    ];
    for (text, ns) in cases {
        assert_eq!(time(text, second), Ok(ns), "{text}");
    }
    assert_eq!(time("5", 1000), Ok(5000));
    assert!(time("999999999d", second).is_err());
}

#[test]
fn ranges_are_put_in_order() {
    assert_eq!(range("4k-64k", KbBase::Binary), Ok((4 * K, 64 * K)));
    assert_eq!(range("64k:4k", KbBase::Binary), Ok((4 * K, 64 * K)));
    assert!(range("4k", KbBase::Binary).is_err());
}

#[test]
fn pairs_leave_what_is_empty_as_it_was() {
    let set = |text| pair(text, [1, 2], |part| part.parse().map_err(|_| part.to_owned()));
    assert_eq!(set("7"), Ok([7, 7]));
    assert_eq!(set("7,8"), Ok([7, 8]));
    assert_eq!(set(",8"), Ok([1, 8]));
    assert_eq!(set("7,"), Ok([7, 2]));
    assert_eq!(set("7,8,9"), Ok([7, 8]));
    assert!(set("7,8,9,10").is_err());
    assert!(set("x").is_err());
}
