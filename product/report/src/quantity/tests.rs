use super::{bytes, nanoseconds};

#[test]
fn a_time_has_a_unit() {
    for (text, ns) in [
        ("500ms", 500_000_000),
        ("30s", 30_000_000_000),
        ("5min", 300_000_000_000),
        ("2h", 7_200_000_000_000),
        ("1.5 s", 1_500_000_000),
        ("20 us", 20_000),
        ("7ns", 7),
    ] {
        assert_eq!(nanoseconds(text), Ok(ns), "{text}");
    }
}

#[test]
fn a_bad_time_is_refused_with_the_reason() {
    for (text, says) in [
        ("0", "out of range"),
        ("0s", "out of range"),
        ("9000h", "up to 8,760h"),
        ("soon", "not a time"),
        ("", "not a time"),
        ("-1s", "out of range"),
        ("+1s", "not a time"),
        ("1e3s", "not a time"),
        ("infs", "not a time"),
        ("30", "without a unit: write 30s"),
        ("1.5", "without a unit: write 1.5s"),
    ] {
        let why = nanoseconds(text).unwrap_err();
        assert!(why.contains(says), "{text}: {why}");
    }
}

#[test]
fn a_size_is_binary_or_decimal_or_in_bytes() {
    for (text, size) in [
        ("512MiB", 512 << 20),
        ("64 kib", 64 << 10),
        ("1GB", 1_000_000_000),
        ("1.5kB", 1_500),
        ("4096", 4096),
        ("7B", 7),
        ("0", 0),
    ] {
        assert_eq!(bytes(text), Ok(size), "{text}");
    }
}

#[test]
fn a_size_that_could_be_either_is_refused_with_both() {
    let why = bytes("1g").unwrap_err();
    assert!(why.contains("1GiB") && why.contains("1GB"), "{why}");
    for text in ["64k", "2 M", "1.5t", "3p"] {
        assert!(bytes(text).unwrap_err().starts_with("ambiguous: write "), "{text}");
    }
    for text in ["", "lots", "-1", "12 parsecs", "1MiBs", "m", "k k"] {
        assert!(bytes(text).is_err(), "{text}");
    }
}
