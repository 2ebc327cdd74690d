use super::super::*;

#[test]
fn what_began_first_is_first_until_its_end_whatever_ends_before() {
    let mut order = InOrder::default();
    let numbers: Vec<u64> = "abcd".chars().map(|name| order.begin(name)).collect();
    assert_eq!((numbers.as_slice(), order.next()), ([0, 1, 2, 3].as_slice(), 4));
    assert_eq!((order.end(2), order.end(2), order.end(9)), (Some('c'), None, None));
    assert_eq!((order.first(|_| true), order.first(|name| *name > 'a')), (Some(&(0, 'a')), Some(&(1, 'b'))));
    assert_eq!(order.end(0), Some('a'));
    order.values_mut().for_each(|name| name.make_ascii_uppercase());
    assert_eq!(order.begin('e'), 4);
    assert_eq!(
        (order.end(1), order.first(|_| true), order.first(char::is_ascii_lowercase)),
        (Some('B'), Some(&(3, 'D')), Some(&(4, 'e')))
    );
    assert_eq!((order.end(3), order.end(4), order.is_empty()), (Some('D'), Some('e'), true));
}
