use super::*;

#[test]
fn policies_are_found_by_their_names() {
    for policy in Readahead::ALL {
        assert_eq!(Readahead::from_name(policy.name()), Ok(*policy));
    }
    assert!(Readahead::from_name("linus").unwrap_err().contains("linux"));
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
