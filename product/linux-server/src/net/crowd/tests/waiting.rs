use super::super::*;

const CROWD: Party = Party::User(1);
const OTHER: Party = Party::User(2);

#[test]
fn a_party_with_fewer_connections_comes_first_and_each_in_the_order_of_arrival() {
    let mut waiting = PartyQueue::new();
    for number in 0..3 {
        assert_eq!(waiting.add(CROWD, number), None);
    }
    assert_eq!(waiting.add(OTHER, 9), None);
    let connections = |party| if party == CROWD { 5 } else { 0 };
    assert_eq!(waiting.parties(connections), [OTHER, CROWD]);
    assert_eq!(waiting.parties(|_| 1), [CROWD, OTHER], "with as many each, the first comes first");
    assert_eq!((waiting.take(OTHER), waiting.take(OTHER)), (Some(9), None));
    assert_eq!((0..4).map(|_| waiting.take(CROWD)).collect::<Vec<_>>(), [Some(0), Some(1), Some(2), None]);
    assert!(waiting.is_empty());
}

#[test]
fn a_crowd_loses_its_own_places_and_no_others() {
    let mut waiting = PartyQueue::new();
    assert_eq!(waiting.add(OTHER, 0), None);
    let lost: Vec<_> = (1..=100).filter_map(|number| waiting.add(CROWD, number)).collect();
    assert_eq!(lost, vec![CROWD; 100 - PARTY_MAX]);
    assert_eq!(waiting.take(CROWD), Some(101 - PARTY_MAX), "the latest stay");
    for user in 3..=28 {
        let _ = waiting.add(Party::User(user), user as usize);
    }
    assert_eq!(waiting.add(Party::User(99), 99), Some(CROWD), "the party with the most loses one");
    assert_eq!(waiting.take(OTHER), Some(0));
    assert_eq!(waiting.take(Party::User(99)), Some(99));
}
