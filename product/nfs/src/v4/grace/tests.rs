use super::*;
use crate::steps::steps_of;
use crate::v4::state::clients::CLIENTS_MAX;

/// A name whose halves no other number has.
const fn name(at: u64) -> u64 {
    at << 32 | at
}

fn change(names: &[(u64, bool)]) -> Option<ListChange> {
    Some(names.iter().copied().collect())
}

/// The whole list.
fn names(grace: &Grace) -> BTreeSet<u64> {
    let denials = grace.is_listed(DENIALS).then_some(&DENIALS);
    grace.missing.iter().chain(grace.of_names.keys()).chain(denials).copied().collect()
}

#[test]
fn others_wait_only_as_long_as_an_earlier_client_is_missing() {
    assert!(!Grace::new(Vec::new(), 0).is_on(0), "a first server has nobody to wait for");
    let mut grace = Grace::new(vec![name(7), name(8)], 5);
    assert!(grace.may_reclaim(name(7), 6) && !grace.may_reclaim(name(9), 6));
    grace.add(1, name(7));
    assert_eq!(grace.take_change(), None, "it is on the list already");
    grace.complete(name(7));
    assert_eq!(grace.take_change(), None, "it has state again");
    assert!(grace.is_on(6) && !grace.may_reclaim(name(7), 6));
    grace.complete(name(8));
    assert_eq!(grace.take_change(), change(&[(name(8), false)]), "it had nothing any more");
    assert!(!grace.is_on(6));
    grace.add(2, name(9));
    assert_eq!(grace.take_change(), change(&[(name(9), true)]));
    grace.remove(&[1, 5]);
    assert_eq!(grace.take_change(), change(&[(name(7), false)]));
}

#[test]
fn who_is_missing_for_too_long_may_never_ask_again() {
    let mut grace = Grace::new(vec![name(7)], 5);
    grace.expire(5 + GRACE_NS - 1);
    assert_eq!(grace.take_change(), None);
    assert!(!grace.is_on(5 + GRACE_NS) && !grace.may_reclaim(name(7), 5 + GRACE_NS));
    grace.expire(5 + GRACE_NS);
    assert_eq!(grace.take_change(), change(&[(name(7), false)]));
    grace.expire(5 + GRACE_NS);
    assert_eq!(grace.take_change(), None);
}

#[test]
fn a_client_at_another_address_or_in_another_run_is_the_one_that_is_missing() {
    let (moved, restarted, both) = (9 << 32 | 7, 7 << 32 | 9, name(9));
    for back in [moved, restarted] {
        let mut grace = Grace::new(vec![name(7)], 5);
        assert!(grace.may_reclaim(back, 6) && !grace.may_reclaim(both, 6));
        grace.add(1, back);
        assert_eq!(grace.take_change(), change(&[(back, true)]));
        grace.complete(back);
        assert_eq!(grace.take_change(), change(&[(name(7), false)]));
        assert!(!grace.is_on(6));
    }
}

#[test]
fn each_change_tells_the_names_that_come_on_the_list_or_leave_it() {
    for seed in 1..200_u64 {
        let mut random = seed;
        let mut below = |most: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % most
        };
        let left: Vec<u64> = (0..below(4)).map(name).chain((seed % 2 == 0).then_some(DENIALS)).collect();
        let mut grace = Grace::new(left.clone(), 0);
        let without = (left == [DENIALS]).then(|| ListChange::from([(DENIALS, false)]));
        assert_eq!(grace.take_change(), without, "seed {seed}");
        for _ in 0..40 {
            let (before, clientid, of) = (names(&grace), below(4), name(below(5)));
            match below(9) {
                0..3 => grace.add(clientid, of),
                3..5 => grace.complete(of),
                5..7 => grace.remove(&[clientid, below(4)]),
                7 => grace.add_denials(),
                _ => grace.expire(below(2 * GRACE_NS)),
            }
            let after = names(&grace);
            let mut expected: ListChange = after.difference(&before).map(|name| (*name, true)).collect();
            expected.extend(before.difference(&after).map(|name| (*name, false)));
            assert_eq!(grace.take_change().unwrap_or_default(), expected, "seed {seed}");
        }
    }
}

/// A call and its name.
type Change<'a> = (&'a str, &'a dyn Fn(&mut Grace));

// rule: however many clients are on the list, a client's first open and its end take a fixed number of steps
#[test]
fn a_change_of_a_long_list_takes_few_steps() {
    const STEPS_MAX: u64 = 16;
    let mut grace = Grace::new((0..CLIENTS_MAX as u64).map(name).collect(), 0);
    (0..CLIENTS_MAX as u64).for_each(|clientid| grace.add(clientid, name(clientid)));
    let new = CLIENTS_MAX as u64;
    let calls: [Change<'_>; 5] = [
        ("a new client", &|grace| grace.add(new, name(new))),
        ("a client under another name", &|grace| grace.add(new, name(new + 1))),
        ("a denial", &|grace| grace.add_denials()),
        ("the end of reclaims", &|grace| grace.complete(name(7))),
        ("the end of a client", &|grace| grace.remove(&[new])),
    ];
    for (call, make) in calls {
        let (steps, change) = steps_of(|| {
            make(&mut grace);
            grace.take_change()
        });
        assert!(steps <= STEPS_MAX, "{call}: {steps} steps");
        assert!(change.is_none_or(|change| change.len() <= 2), "{call}");
    }
}

#[test]
fn names_of_which_an_earlier_server_has_left_nothing_go_off_the_list() {
    let mut grace = Grace::new(vec![name(7)], 0);
    grace.add(1, name(8));
    assert_eq!(grace.take_change(), change(&[(name(8), true)]));
    grace.drop_unlisted(&[name(6), name(7), name(8), DENIALS]);
    assert_eq!(grace.take_change(), change(&[(name(6), false), (DENIALS, false)]));
}
