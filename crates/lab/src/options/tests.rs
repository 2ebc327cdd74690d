use super::*;

#[test]
fn the_ends_of_a_range_are_in_it() {
    assert_eq!([1, 2000].map(|value| number(1, 2000)(&value.to_string())), [Ok(1), Ok(2000)]);
    assert_eq!(["4KiB", "100 GB"].map(|text| size(4096, 100_000_000_000)(text)), [Ok(4096), Ok(100_000_000_000)]);
    assert_eq!(["1MB", "50MB/s"].map(|text| rate(1_000_000, 50_000_000)(text)), [Ok(1_000_000), Ok(50_000_000)]);
    assert_eq!([or_nothing(number(1, 2))(""), or_nothing(number(1, 2))("2")], [Ok(None), Ok(Some(2))]);
}

#[test]
fn what_is_refused_is_named_with_the_range() {
    for (refused, words) in [
        (number(1, 2000)("0"), "'0' is not a number from 1 to 2000"),
        (number(1, 2000)("-5"), "'-5' is not a number from 1 to 2000"),
        (number(0, u64::MAX)("99999999999999999999"), "is not a number from 0 to 18446744073709551615"),
        (size(4096, 1 << 20)("1MB or so"), "'1MB or so' is not a size from 4 KiB to 1 MiB, as 65536, 64KiB or 1GB"),
        (size(4096, 1 << 20)("2MiB"), "'2MiB' is not a size"),
        (rate(100_000, 10_000_000_000)("5"), "'5' is not a rate from 100 kB/s to 10 GB/s, as 25MB or 5MiB"),
    ] {
        assert!(refused.as_ref().is_err_and(|why| why.contains(words)), "{refused:?}");
    }
    assert!(or_nothing(number(1, 2))("3").is_err());
}
