use std::collections::BTreeSet;

use super::*;

impl Cached for BTreeSet<u64> {
    fn before(&self, page: u64, most: u64) -> u64 {
        (1..=most.min(page)).take_while(|back| self.contains(&(page - back))).count() as u64
    }

    fn first_absent(&self, from: u64, most: u64) -> Option<u64> {
        (from..from + most).find(|page| !self.contains(page))
    }
}

#[test]
fn ranges_are_repeated_forward_and_backward() {
    let ranges = |ahead: Ahead| ahead.ranges().collect::<Vec<_>>();
    assert_eq!(ranges(Ahead::NONE), []);
    assert_eq!(ranges(Ahead::one(3..9)), std::slice::from_ref(&(3..9)));
    assert_eq!(ranges(Ahead { first: 10..12, step: 100, count: 3 }), [10..12, 110..112, 210..212]);
    // No range begins before the file does.
    assert_eq!(ranges(Ahead { first: 150..151, step: -100, count: 3 }), [150..151, 50..51]);
    assert_eq!((Ahead::one(3..9).end_from(3), Ahead::one(3..9).end_from(4)), (9, 4));
}
