use std::cell::Cell;

use super::super::*;

const ONE: Party = Party::User(1);
const OTHER: Party = Party::User(2);

/// Things 0 to 999 of one party, heard at the times 1000 to 1999, and a thing of another party.
fn thousand() -> SilenceOrder<u64> {
    let mut order = SilenceOrder::default();
    (0..1000).for_each(|key| order.add(key, ONE, 1000 + key));
    order.add(5000, OTHER, 7);
    order
}

#[test]
fn the_longest_silent_one_comes_first_of_a_party_and_of_all() {
    let mut order = thousand();
    let heard_ns = |key: u64| if key == 5000 { 7 } else { 1000 + key };
    assert_eq!(order.longest_silent(None, heard_ns)[..2], [5000, 0]);
    assert_eq!(order.longest_silent(Some(ONE), heard_ns)[..2], [0, 1]);
    order.remove(0);
    order.remove(5000);
    assert_eq!(order.longest_silent(None, heard_ns)[..2], [1, 2]);
    assert_eq!(order.longest_silent(Some(OTHER), heard_ns), []);
    assert_eq!((order.len(), order.of_all.len(), order.of_party.len()), (999, 999, 1));
    assert_eq!(order.heard_from_ns(), Some(1001));
}

#[test]
fn one_that_was_heard_since_goes_behind_the_others_after_few_looks_at_a_time() {
    let (mut order, looks) = (thousand(), Cell::new(0));
    // All but one were heard again.
    let heard_ns = |key: u64| {
        looks.set(looks.get() + 1);
        if key == 700 { 1700 } else { 9000 + key }
    };
    let mut rounds = 0;
    while order.longest_silent(Some(ONE), heard_ns)[0] != 700 {
        rounds += 1;
        assert!(looks.replace(0) <= LOOKS_MAX && rounds < 1000 / LOOKS_MAX);
    }
    assert_eq!(rounds, 700 / LOOKS_MAX);
    assert_eq!(order.longest_silent(Some(ONE), heard_ns)[0], 700, "the order has the true times");
}
