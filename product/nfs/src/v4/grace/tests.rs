use super::*;

#[test]
fn others_wait_only_as_long_as_an_earlier_client_is_missing() {
    assert!(!Grace::new(Vec::new(), 0).is_on(0), "a first server has nobody to wait for");
    let mut grace = Grace::new(vec![7, 8], 5);
    assert!(grace.may_reclaim(7, 6) && !grace.may_reclaim(9, 6));
    assert_eq!(grace.add(1, 7), None, "it is on the list already");
    assert_eq!(grace.complete(7), None, "it has state again");
    assert!(grace.is_on(6) && !grace.may_reclaim(7, 6));
    assert_eq!(grace.complete(8), Some(vec![7]), "it had nothing any more");
    assert!(!grace.is_on(6));
    assert_eq!(grace.add(2, 9), Some(vec![7, 9]));
    assert_eq!(grace.remove(&[1, 5]), Some(vec![9]));
}

#[test]
fn who_is_missing_for_too_long_may_never_ask_again() {
    let mut grace = Grace::new(vec![7], 5);
    assert_eq!(grace.expire(5 + GRACE_NS - 1), None);
    assert!(!grace.is_on(5 + GRACE_NS) && !grace.may_reclaim(7, 5 + GRACE_NS));
    assert_eq!(grace.expire(5 + GRACE_NS), Some(Vec::new()));
    assert_eq!(grace.expire(5 + GRACE_NS), None);
}
