use super::*;

#[test]
fn a_number_names_one_value_and_nothing_afterwards() {
    let mut slots = NumberedSlots::new(2);
    let (first, second) = (slots.insert('a').unwrap(), slots.insert('b').unwrap());
    assert_eq!((first, slots.get(first), slots.get(second)), (1, Some(&'a'), Some(&'b')));
    assert_eq!(slots.insert('c'), None, "there is no room");
    assert_eq!(slots.remove(first), Some('a'));
    assert_eq!(slots.get(first), None);
    assert_eq!((slots.remove(first), slots.len()), (None, 1));
    let third = slots.insert('c').unwrap();
    assert_ne!(third, first);
    assert_eq!(slots.get(third), Some(&'c'));
    assert_eq!(slots.get_mut(first), None);
}

#[test]
fn numbers_that_were_never_given_out_name_nothing() {
    let mut slots = NumberedSlots::new(1);
    slots.insert('a').unwrap();
    for number in [0, 2, u64::MAX, 1 << 32, (1 << 32) + 1] {
        assert_eq!(slots.get(number), None, "{number}");
        assert_eq!(slots.remove(number), None, "{number}");
    }
}
