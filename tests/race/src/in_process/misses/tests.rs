use std::collections::HashSet;

use super::Places;

#[test]
fn each_page_comes_once_before_any_comes_again() {
    let places = Places::new(1 << 12);
    let seen: HashSet<u64> = (0..1 << 12).map(|_| places.next()).collect();
    assert_eq!(seen.len(), 1 << 12);
}
