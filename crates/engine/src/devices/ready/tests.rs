use super::*;

fn entry(slot: u32, dirtied_at: u64, pages: u64) -> Entry {
    Entry { file: Weak::new(), slot, dirtied_at: Nanos(dirtied_at), size: Size::of(pages) }
}

/// Takes all; which they were.
fn all(mut next: impl FnMut() -> Option<Entry>) -> Vec<u32> {
    std::iter::from_fn(|| next().map(|entry| entry.slot)).collect()
}

/// Files 0 to 5, of which 4 and 5 have had a turn.
fn six() -> Ready {
    let mut ready = Ready::default();
    for (slot, dirtied_at, pages) in [(0, 10, 5), (1, 20, 100), (2, 30, 4), (3, 40, 1)] {
        ready.push(entry(slot, dirtied_at, pages), Behind::Dirty);
    }
    for (slot, dirtied_at, pages) in [(4, 35, 127), (5, 5, 0)] {
        ready.push(entry(slot, dirtied_at, pages), Behind::More);
    }
    ready
}

#[test]
fn in_turn_those_that_have_more_come_with_the_next_round() {
    let mut ready = six();
    assert_eq!(ready.youngest_dirty(), Some(Nanos(40)));
    assert_eq!(ready.next_in_turn().unwrap().slot, 4);
    ready.push(entry(6, 1, 1000), Behind::More);
    ready.push(entry(7, 1, 1000), Behind::Dirty);
    assert_eq!(all(|| ready.next_in_turn()), [5, 0, 1, 2, 3, 6, 7]);
    assert!(ready.is_empty() && ready.oldest().is_none() && ready.next_largest().is_none());
}

#[test]
fn by_size_the_largest_power_of_two_and_the_first_of_equals() {
    let mut ready = six();
    assert_eq!(all(|| ready.next_largest()), [1, 4, 0, 2, 3, 5]);
    assert!(ready.next_in_turn().is_none() && ready.is_empty());
}

#[test]
fn by_age_the_oldest_if_it_is_old_enough() {
    let mut ready = six();
    assert_eq!(ready.oldest(), Some(Nanos(5)));
    assert_eq!(all(|| ready.next_oldest(Nanos(30))), [5, 0, 1, 2]);
    assert_eq!(ready.oldest(), Some(Nanos(35)));
}

#[test]
fn by_expiry_the_first_in_turn_that_is_old_enough() {
    let mut ready = six();
    assert!(ready.next_expired(Nanos(4)).is_none());
    ready.next_in_turn();
    ready.push(entry(6, 1, 1), Behind::More);
    assert_eq!(all(|| ready.next_expired(Nanos(20))), [5, 0, 1, 6], "the round goes first");
    assert_eq!(all(|| ready.next_in_turn()), [2, 3]);
}

#[test]
fn a_file_that_grows_moves_and_one_that_has_left_does_not() {
    let mut ready = six();
    let small = ready.push(entry(6, 50, 1), Behind::Dirty);
    assert!(!small.is_outgrown(1) && small.is_outgrown(2));
    let grown = ready.grow(small, 6, 70).unwrap();
    assert!(!grown.is_outgrown(127) && grown.is_outgrown(128));
    assert_eq!(ready.grow(small, 5, 200), None, "another file has the place");
    assert_eq!(all(|| ready.next_largest()), [1, 4, 6, 0, 2, 3, 5], "behind those that had so much before");
    assert_eq!(ready.grow(grown, 6, 200), None, "it has its turn");
}

/// Equal files have equal turns, and a file that is filled up again and again does not outrun them.
#[test]
fn equals_take_turns() {
    let mut ready = Ready::default();
    for slot in 0..10 {
        ready.push(entry(slot, 0, 100), Behind::Dirty);
    }
    let mut turns = [0; 10];
    for _ in 0..1000 {
        let file = ready.next_largest().unwrap();
        turns[file.slot as usize] += 1;
        ready.push(entry(file.slot, 0, if file.slot == 3 { 127 } else { 64 }), Behind::More);
    }
    assert_eq!(turns, [100; 10]);
}
