use super::super::*;

#[test]
fn the_call_that_began_first_is_the_oldest_until_it_ends() {
    let underway = Underway::new();
    assert_eq!(underway.oldest(), None);
    let first = underway.begin();
    let began = underway.oldest().unwrap();
    let second = underway.begin();
    assert_eq!(underway.oldest(), Some(began));
    assert_ne!(first.slot(), second.slot());
    drop(first);
    assert!(underway.oldest() >= Some(began));
    drop(second);
    assert_eq!(underway.oldest(), None);
}

#[test]
fn a_call_that_finds_every_place_taken_is_younger_than_all_that_are_known() {
    let underway = Underway::new();
    let begun: Vec<_> = (0..CALLS_KNOWN).map(|_| underway.begin()).collect();
    let mut slots: Vec<_> = begun.iter().filter_map(CallUnderway::slot).collect();
    slots.sort_unstable();
    assert!(slots.into_iter().eq(0..CALLS_KNOWN), "each has a place of its own");
    let oldest = underway.oldest();
    let more = underway.begin();
    assert_eq!(more.slot(), None);
    drop(more);
    assert_eq!(underway.oldest(), oldest);
    drop(begun);
    assert_eq!(underway.oldest(), None);
}
