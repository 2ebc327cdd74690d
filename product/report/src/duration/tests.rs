use super::nanoseconds;

#[test]
fn a_time_has_a_unit_or_is_in_seconds() {
    for (text, ns) in [
        ("500ms", 500_000_000),
        ("30s", 30_000_000_000),
        ("5min", 300_000_000_000),
        ("2h", 7_200_000_000_000),
        ("1.5", 1_500_000_000),
        ("20 us", 20_000),
        ("7ns", 7),
    ] {
        assert_eq!(nanoseconds(text), Ok(ns), "{text}");
    }
}

#[test]
fn a_bad_time_is_told_with_value_and_range() {
    for (text, says) in
        [("0", "out of range"), ("9000h", "up to 8,760h"), ("soon", "is not a time"), ("-1s", "out of range")]
    {
        let why = nanoseconds(text).unwrap_err();
        assert!(why.contains(says) && why.contains(&format!("'{text}'")), "{why}");
    }
}
