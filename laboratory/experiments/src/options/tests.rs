#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

#[derive(Clone, Copy, PartialEq, Debug, ValueEnum)]
enum Side {
    Left,
    #[value(name = "right hand")]
    Right,
}

#[test]
fn the_ends_of_a_range_are_in_it() {
    assert_eq!(["1", "2000"].map(number(1..=2000)), [Ok(1), Ok(2000)]);
    assert_eq!(["4KiB", "1 MiB"].map(size(4096..=1 << 20)), [Ok(4096), Ok(1 << 20)]);
    assert_eq!(["100kB", "10GB/s"].map(rate(100_000..=10_000_000_000)), [Ok(100_000), Ok(10_000_000_000)]);
    assert_eq!(["left", "right hand"].map(named), [Ok(Side::Left), Ok(Side::Right)]);
    assert_eq!([Side::Left, Side::Right].map(|side| side.name()), ["left", "right hand"]);
    assert_eq!(list(number(1..=9))("2, 1"), Ok(vec![2, 1]));
}

#[test]
fn what_is_refused_is_named_with_the_range() {
    let count = number(1..=2000);
    let bytes = size(4096..=1 << 20);
    for (refused, words) in [
        (count("0").err(), "'0' is not a number from 1 to 2000"),
        (count("-5").err(), "'-5' is not a number from 1 to 2000"),
        (number(0..=u64::MAX)("99999999999999999999").err(), "is not a number from 0 to 18446744073709551615"),
        (bytes("1MB or so").err(), "'1MB or so' is not a size from 4 KiB to 1 MiB, as 65536, 64KiB or 1GB"),
        (bytes("2MiB").err(), "'2MiB' is not a size"),
        (rate(100_000..=10_000_000_000)("5").err(), "'5' is not a rate from 100 kB/s to 10 GB/s, as 25MB or 5MiB"),
        (named::<Side>("up {known}").err(), "'up {known}' is none of left, right hand"),
        (list(&count)("7,x").err(), "'x' is not a number from 1 to 2000"),
        (list(&count)("7,8,7").err(), "at most 32 values, each once"),
    ] {
        assert!(refused.as_ref().is_some_and(|why| why.contains(words)), "{refused:?}");
    }
}
