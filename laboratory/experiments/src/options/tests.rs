#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

const fn info(default: &'static str) -> OptionInfo {
    OptionInfo { name: "it", value: "IT", default, doc: "what is tried" }
}

const COUNT: TypedOption<u64> = number(info("7"), 1..=2000);
const SOME: TypedOption<u64> = number(info(""), 1..=2);
const ANY: TypedOption<u64> = number(info(""), 0..=u64::MAX);
const BYTES: TypedOption<u64> = size(info(""), 4096..=1 << 20);
const SPEED: TypedOption<u64> = rate(info(""), 100_000..=10_000_000_000);
const SIDE: TypedOption<Side> = choice(info("left"));

named! {
    enum Side {
        Left = "left",
        Right = "right",
    }
}

options! {
    ALL {
        /// what is
        /// tried
        LENGTH: u64 = number("length", "N", "3", 1..=5);
        /// whether it is
        WHETHER: bool = switch("whether", "", "");
    }
}

#[test]
fn a_declaration_has_help_and_stands_in_the_list() {
    let told: Vec<_> = ALL.iter().map(|option| (option.name, option.doc, option.is_switch())).collect();
    assert_eq!(told, [("length", "what is tried", false), ("whether", "whether it is", true)]);
    let request =
        |name: &str, value: &str| Request { given: vec![(name.to_owned(), value.to_owned())], ..Request::default() };
    assert_eq!(LENGTH.value(&request("length", "5")).unwrap(), 5);
    assert_eq!(["yes", ""].map(|text| WHETHER.value(&request("whether", text)).unwrap()), [true, false]);
    assert_eq!([Side::Left, Side::Right].map(Named::name), ["left", "right"]);
}

fn given(value: &str) -> Request {
    Request { given: vec![("it".to_owned(), value.to_owned())], ..Request::default() }
}

#[test]
fn the_ends_of_a_range_are_in_it() {
    assert_eq!([1, 2000].map(|value| COUNT.read(&value.to_string())), [Ok(1), Ok(2000)]);
    assert_eq!(["4KiB", "1 MiB"].map(|text| BYTES.read(text)), [Ok(4096), Ok(1 << 20)]);
    assert_eq!(["100kB", "10GB/s"].map(|text| SPEED.read(text)), [Ok(100_000), Ok(10_000_000_000)]);
    assert_eq!(["left", "right"].map(|text| SIDE.read(text)), [Ok(Side::Left), Ok(Side::Right)]);
}

#[test]
fn what_is_not_given_is_the_default_or_nothing() {
    assert_eq!((COUNT.value(&Request::default()).unwrap(), COUNT.value(&given("8")).unwrap()), (7, 8));
    assert_eq!(SOME.value_if_given(&Request::default()).unwrap(), None);
    assert_eq!(SOME.value_if_given(&given("2")).unwrap(), Some(2));
    assert_eq!(SOME.list_if_given(&given("")).unwrap(), None);
    assert_eq!(SOME.list_if_given(&given("2, 1")).unwrap(), Some(vec![2, 1]));
    assert_eq!(
        (SIDE.value(&Request::default()).unwrap(), COUNT.list(&Request::default()).unwrap()),
        (Side::Left, vec![7])
    );
}

#[test]
fn what_is_refused_is_named_with_the_range() {
    for (refused, words) in [
        (COUNT.read("0").err(), "'0' is not a number from 1 to 2000"),
        (COUNT.read("-5").err(), "'-5' is not a number from 1 to 2000"),
        (ANY.read("99999999999999999999").err(), "is not a number from 0 to 18446744073709551615"),
        (BYTES.read("1MB or so").err(), "'1MB or so' is not a size from 4 KiB to 1 MiB, as 65536, 64KiB or 1GB"),
        (BYTES.read("2MiB").err(), "'2MiB' is not a size"),
        (SPEED.read("5").err(), "'5' is not a rate from 100 kB/s to 10 GB/s, as 25MB or 5MiB"),
        (SIDE.read("up {known}").err(), "'up {known}' is none of left, right"),
        (SOME.value(&given("3")).err().map(|error| error.to_string()), "--it 3: '3' is not a number from 1 to 2"),
        (Some(SOME.refused(&given("2"), "too late".to_owned()).to_string()), "--it 2: too late"),
    ] {
        assert!(refused.as_ref().is_some_and(|why| why.contains(words)), "{refused:?}");
    }
}
