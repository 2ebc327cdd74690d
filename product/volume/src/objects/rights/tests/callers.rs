use super::super::*;

#[test]
fn the_same_user_with_the_same_groups_is_the_same_caller() {
    let callers = CallerTable::default();
    let first = callers.of(1000, 100, &[7, 3, 7]);
    assert_eq!(*first.credentials().unwrap().groups, [3, 7]);
    assert_eq!(callers.of(1000, 100, &[3, 7]).id(), first.id());
    for other in [callers.of(1000, 100, &[3]), callers.of(1000, 3, &[3, 7]), callers.of(1001, 100, &[3, 7])] {
        assert_ne!(other.id(), first.id());
    }
}

#[test]
fn no_number_is_given_twice_and_the_map_is_bounded() {
    let callers = CallerTable::default();
    let mut ids = std::collections::BTreeSet::new();
    for round in 0..2 {
        for uid in 0..2 * CALLERS_MAX as u32 {
            let new = ids.insert(callers.of(uid, round, &[]).id());
            assert!(new, "round {round}, user {uid}");
            assert!(callers.0.lock().unwrap().callers.len() <= CALLERS_MAX);
        }
    }
    assert!(!ids.contains(&Caller::SERVER.id()));
}

#[test]
fn a_user_who_goes_on_calling_keeps_its_number_whatever_others_name() {
    let callers = CallerTable::default();
    let id = callers.of(7, 7, &[7]).id();
    for uid in 0..10 * CALLERS_MAX as u32 {
        callers.of(uid, 100, &[]);
        if uid.is_multiple_of(CALLERS_MAX as u32 / 2) {
            assert_eq!(callers.of(7, 7, &[7]).id(), id, "after {uid} others");
        }
    }
    let known = callers.0.lock().unwrap();
    assert!(known.callers.len() + known.before.len() <= CALLERS_MAX);
}
