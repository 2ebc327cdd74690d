use super::*;

fn user(uid: u32) -> Party {
    Party::User(uid)
}

/// Takes as much as a party gets, and returns that.
fn fill(counts: &mut PartyCounts, party: Party, most: usize) -> usize {
    let mut taken = 0;
    while counts.check_quota(party, 1, most).is_ok() {
        counts.add(party, 1);
        taken += 1;
    }
    taken
}

#[test]
fn a_lone_party_has_half() {
    let mut counts = PartyCounts::default();
    assert_eq!(fill(&mut counts, user(1), 1024), 1024 / 2);
    assert_eq!(counts.check_quota(user(1), 1, 1024), Err(TableFull::OfParty));
}

#[test]
fn two_or_three_parties_together_leave_room_for_a_fourth_and_for_root() {
    let mut counts = PartyCounts::default();
    let taken: Vec<usize> = (1..=3).map(|uid| fill(&mut counts, user(uid), 1024)).collect();
    assert_eq!(taken, [512, 256, 128]);
    assert!(fill(&mut counts, user(4), 1024) > 0);
    assert!(fill(&mut counts, Party::ROOT, 1024) >= 64, "root has its own entries");
}

#[test]
fn with_nothing_left_the_party_with_most_makes_room_for_one_with_less() {
    let mut counts = PartyCounts::default();
    for uid in 1..=20 {
        fill(&mut counts, user(uid), 1024);
    }
    assert_eq!(counts.check_quota(user(99), 1, 1024), Err(TableFull::OfAll { most: user(1) }));
    assert_eq!(counts.check_quota(user(1), 1, 1024), Err(TableFull::OfParty), "it makes room itself");
    let mut made = 0;
    while let Err(TableFull::OfAll { most }) = counts.check_quota(user(99), 1, 1024) {
        counts.remove(most, 1);
        counts.add(user(99), 1);
        made += 1;
    }
    assert!(made > 100, "{made}");
    assert!(counts.of(user(1)) >= counts.of(user(99)), "the greedy one keeps as much as it");
}

#[test]
fn root_s_entries_are_free_whatever_others_take() {
    let mut counts = PartyCounts::default();
    for uid in 1..=1000 {
        fill(&mut counts, user(uid), 160);
    }
    assert_eq!((counts.all, counts.check_quota(user(2000), 1, 160)), (150, Err(TableFull::OfAll { most: user(1) })));
    for _ in 0..10 {
        assert_eq!(counts.check_quota(Party::ROOT, 1, 160), Ok(()));
        counts.add(Party::ROOT, 1);
    }
}

#[test]
fn room_that_others_take_is_not_left() {
    let mut counts = PartyCounts::default();
    counts.add(user(1), 10);
    assert_eq!(counts.check_quota_of_rest(user(1), 1, 10, 160), Err(TableFull::OfParty), "these are root's");
    assert_eq!(counts.check_quota_of_rest(user(1), 1, 11, 160), Ok(()));
    counts.add(user(1), 1);
    assert_eq!(counts.check_quota_of_rest(user(1), 1, 11, 160), Err(TableFull::OfParty), "it has as many as are left");
    assert_eq!(counts.check_quota_of_rest(user(2), 1, 10, 160), Err(TableFull::OfAll { most: user(1) }));
}

#[test]
fn each_with_one_and_nothing_left_may_come_again() {
    let mut counts = PartyCounts::default();
    (1..=15).for_each(|uid| counts.add(user(uid), 1));
    assert_eq!(counts.check_quota(user(16), 1, 16), Err(TableFull::Even));
    assert_eq!(TableFull::Even.status(), NfsStatus::Delay);
    assert_eq!(counts.check_quota(user(15), 1, 16), Err(TableFull::OfParty));
}

#[test]
fn a_party_without_entries_takes_no_memory() {
    let mut counts = PartyCounts::default();
    counts.add(user(1), 3);
    counts.remove(user(1), 3);
    assert_eq!(counts, PartyCounts::default());
}

// rule: the party that gives up an entry is found without a walk over all parties
#[test]
fn the_party_with_most_is_that_of_a_walk_over_all_parties() {
    let (mut counts, mut seed) = (PartyCounts::default(), 7_u64);
    let mut below = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % most
    };
    for _ in 0..2000 {
        let party = if below(4) == 0 { Party::ROOT } else { user(below(6) as u32) };
        match below(2) {
            0 => counts.add(party, below(9) as usize),
            _ => counts.remove(party, (below(9) as usize).min(counts.of(party))),
        }
        let but = user(below(6) as u32);
        let others = counts.of_party.iter().filter(|(of, _)| **of != but && **of != Party::ROOT);
        assert_eq!(counts.largest(but), others.map(|(of, its)| (*its, *of)).max());
        assert_eq!(counts.by_count.len(), counts.of_party.len());
    }
}
