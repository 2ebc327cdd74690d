mod rings;

use super::*;

fn entry(slot: u32, dirtied_at: u64, pages: u64) -> ReadyEntry<()> {
    let (hot, look_at) = (false, Nanos::NEVER);
    ReadyEntry { file: Weak::new(), slot, dirtied_at: Nanos(dirtied_at), size: Size::of(pages), hot, look_at }
}

/// Takes all files; returns their slots.
fn all(mut next: impl FnMut() -> Option<ReadyEntry<()>>) -> Vec<u32> {
    std::iter::from_fn(|| next().map(|entry| entry.slot)).collect()
}

/// Files 0 to 5, of which 4 and 5 have had a slice.
fn six() -> Ready<()> {
    let mut ready = Ready::default();
    for (slot, dirtied_at, pages) in [(0, 10, 5), (1, 20, 100), (2, 30, 4), (3, 40, 1)] {
        ready.push(entry(slot, dirtied_at, pages), ListPosition::Dirty);
    }
    for (slot, dirtied_at, pages) in [(4, 35, 127), (5, 5, 0)] {
        ready.push(entry(slot, dirtied_at, pages), ListPosition::More);
    }
    ready
}

#[test]
fn in_turn_those_that_have_more_come_with_the_next_round() {
    let mut ready = six();
    assert_eq!(ready.next_of_round().unwrap().slot, 4);
    ready.push(entry(6, 1, 1000), ListPosition::More);
    ready.push(entry(7, 1, 1000), ListPosition::Dirty);
    assert_eq!(all(|| ready.next_of_round()), [5, 0, 1, 2, 3, 6, 7]);
    assert!(ready.is_empty() && ready.oldest(true).is_none() && ready.next_largest(true).is_none());
}

#[test]
fn by_size_the_largest_power_of_two_and_the_first_of_equals() {
    let mut ready = six();
    assert_eq!(all(|| ready.next_largest(true)), [1, 4, 0, 2, 3, 5]);
    assert!(ready.next_of_round().is_none() && ready.is_empty());
}

#[test]
fn by_age_the_oldest_if_it_is_old_enough() {
    let mut ready = six();
    assert_eq!(ready.oldest(true), Some(Nanos(5)));
    assert_eq!(all(|| ready.next_oldest(Nanos(30), true)), [5, 0, 1, 2]);
    assert_eq!(ready.oldest(true), Some(Nanos(35)));
}

#[test]
fn a_round_begins_with_those_that_have_more_and_the_others_up_to_the_first_young_one_but_each_old_one_comes() {
    let mut ready = six();
    assert!(ready.has_round(), "two have more");
    ready.push(entry(6, 12, 1), ListPosition::Dirty);
    assert_eq!(all(|| ready.next_queued(Nanos(25))), [4, 5, 0, 1, 6], "6 is old, and behind younger ones");
    assert!(!ready.has_round());
    assert_eq!(ready.next_queued(Nanos(40)).unwrap().slot, 2);
    assert!(ready.has_round());
    assert_eq!(all(|| ready.next_queued(Nanos(0))), [3], "a round goes on however young its files are");
}

#[test]
fn by_expiry_the_first_in_turn_that_is_old_enough() {
    let mut ready = six();
    assert!(ready.next_expired(Nanos(4)).is_none());
    ready.next_of_round();
    ready.push(entry(6, 1, 1), ListPosition::More);
    assert_eq!(all(|| ready.next_expired(Nanos(20))), [5, 0, 1, 6], "the round goes first");
    assert_eq!(all(|| ready.next_of_round()), [2, 3]);
}

#[test]
fn a_file_that_grows_moves_and_one_that_has_left_does_not() {
    let mut ready = six();
    let small = ready.push(entry(6, 50, 1), ListPosition::Dirty);
    assert!(!small.is_outgrown(1) && small.is_outgrown(2));
    let grown = ready.grow(small, 6, 70).unwrap();
    assert!(!grown.is_outgrown(127) && grown.is_outgrown(128));
    assert_eq!(ready.grow(small, 5, 200), None, "another file has the place");
    assert_eq!(all(|| ready.next_largest(true)), [1, 4, 6, 0, 2, 3, 5], "behind those that had so much before");
    assert_eq!(ready.grow(grown, 6, 200), None, "it has its turn");
}

/// Equal files have equal slices, and a file that is filled up again and again does not outrun them.
#[test]
fn equals_take_turns() {
    let mut ready = Ready::default();
    for slot in 0..10 {
        ready.push(entry(slot, 0, 100), ListPosition::Dirty);
    }
    let mut turns = [0; 10];
    for _ in 0..1000 {
        let file = ready.next_largest(true).unwrap();
        turns[file.slot as usize] += 1;
        ready.push(entry(file.slot, 0, if file.slot == 3 { 127 } else { 64 }), ListPosition::More);
    }
    assert_eq!(turns, [100; 10]);
}

#[test]
fn hot_files_are_passed_over_unless_they_are_asked_for() {
    let mut ready = Ready::default();
    for (slot, dirtied_at, pages, hot) in
        [(0, 10, 500, true), (1, 20, 100, false), (2, 5, 200, true), (3, 30, 300, true)]
    {
        ready.push(ReadyEntry { hot, ..entry(slot, dirtied_at, pages) }, ListPosition::Dirty);
    }
    assert_eq!((ready.oldest(false), ready.oldest(true)), (Some(Nanos(20)), Some(Nanos(5))));
    assert_eq!(all(|| ready.next_oldest(Nanos(9), true)), [2]);
    assert_eq!(all(|| ready.next_largest(false)), [1]);
    assert!(ready.next_oldest(Nanos(100), false).is_none() && ready.oldest(false).is_none() && !ready.is_empty());
    assert_eq!(all(|| ready.next_largest(true)), [0, 3]);
    assert!(ready.is_empty());
}

#[test]
fn files_are_looked_at_when_it_is_time_to() {
    let mut ready = six();
    assert!(ready.look_at().is_none() && ready.next_to_look_at(Nanos(1000)).is_none(), "these never");
    for (slot, look_at) in [(6, 70), (7, 50), (8, 90)] {
        ready.push(ReadyEntry { look_at: Nanos(look_at), ..entry(slot, 100, 1) }, ListPosition::Dirty);
    }
    assert_eq!(ready.look_at(), Some(Nanos(50)));
    assert_eq!(all(|| ready.next_to_look_at(Nanos(70))), [7, 6]);
    assert_eq!(all(|| ready.next_oldest(Nanos(100), true)).len(), 7);
    assert!(ready.look_at().is_none(), "a file that has another turn is looked at no more");
}

#[test]
fn files_are_counted_by_where_they_stand_in_the_order_of_turns() {
    let mut ready = six();
    let counts = |dirty, round, more| ListedFiles { dirty, round, more };
    assert_eq!(ready.counts(), counts(4, 0, 2));
    ready.next_of_round();
    assert_eq!(ready.counts(), counts(0, 5, 0));
    ready.push(entry(6, 1, 1), ListPosition::More);
    ready.push(entry(7, 1, 1), ListPosition::Dirty);
    ready.next_of_round();
    assert_eq!(ready.counts(), counts(1, 4, 1));
}
