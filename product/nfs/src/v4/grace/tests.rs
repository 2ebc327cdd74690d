use super::*;

/// A name whose halves no other number has.
const fn name(at: u64) -> u64 {
    at << 32 | at
}

#[test]
fn others_wait_only_as_long_as_an_earlier_client_is_missing() {
    assert!(!Grace::new(Vec::new(), 0).is_on(0), "a first server has nobody to wait for");
    let mut grace = Grace::new(vec![name(7), name(8)], 5);
    assert!(grace.may_reclaim(name(7), 6) && !grace.may_reclaim(name(9), 6));
    assert_eq!(grace.add(1, name(7)), None, "it is on the list already");
    assert_eq!(grace.complete(name(7)), None, "it has state again");
    assert!(grace.is_on(6) && !grace.may_reclaim(name(7), 6));
    assert_eq!(grace.complete(name(8)), Some(vec![name(7)]), "it had nothing any more");
    assert!(!grace.is_on(6));
    assert_eq!(grace.add(2, name(9)), Some(vec![name(7), name(9)]));
    assert_eq!(grace.remove(&[1, 5]), Some(vec![name(9)]));
}

#[test]
fn who_is_missing_for_too_long_may_never_ask_again() {
    let mut grace = Grace::new(vec![name(7)], 5);
    assert_eq!(grace.expire(5 + GRACE_NS - 1), None);
    assert!(!grace.is_on(5 + GRACE_NS) && !grace.may_reclaim(name(7), 5 + GRACE_NS));
    assert_eq!(grace.expire(5 + GRACE_NS), Some(Vec::new()));
    assert_eq!(grace.expire(5 + GRACE_NS), None);
}

#[test]
fn a_client_at_another_address_or_in_another_run_is_the_one_that_is_missing() {
    let (moved, restarted, both) = (9 << 32 | 7, 7 << 32 | 9, name(9));
    for back in [moved, restarted] {
        let mut grace = Grace::new(vec![name(7)], 5);
        assert!(grace.may_reclaim(back, 6) && !grace.may_reclaim(both, 6));
        assert_eq!(grace.add(1, back).map(|names| names.len()), Some(2));
        assert_eq!(grace.complete(back), Some(vec![back]));
        assert!(!grace.is_on(6));
    }
}

#[test]
fn each_change_tells_the_list_if_that_is_another_one() {
    for seed in 1..200_u64 {
        let mut random = seed;
        let mut below = |most: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % most
        };
        let mut grace = Grace::new((0..below(4)).map(name).chain((seed % 2 == 0).then_some(DENIALS)).collect(), 0);
        for _ in 0..40 {
            let (before, clientid, of) = (grace.names(), below(4), name(below(5)));
            let told = match below(9) {
                0..3 => grace.add(clientid, of),
                3..5 => grace.complete(of),
                5..7 => grace.remove(&[clientid, below(4)]),
                7 => grace.add_denials(),
                _ => grace.expire(below(2 * GRACE_NS)),
            };
            let after = grace.names();
            assert_eq!(told, (before != after).then_some(after), "seed {seed}");
        }
    }
}
