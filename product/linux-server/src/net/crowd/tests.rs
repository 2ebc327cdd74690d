mod waiting;

use super::*;

const A: Party = Party::User(1001);
const B: Party = Party::User(1002);
const C: Party = Party::User(1003);

fn limits(connections_max: usize, peer_connections_max: usize) -> ServeLimits {
    ServeLimits { connections_max, peer_connections_max, idle_ns: 0, request_bytes_max: 0, unread_ns: 0 }
}

fn member(id: u64, party: Party, active_ns: u64) -> Member {
    Member { id, party, idle: true, stalled: false, leaving: false, active_ns }
}

/// Connections of a party, all at work.
fn at_work(party: Party, numbers: std::ops::Range<u64>) -> Vec<Member> {
    numbers.map(|id| Member { idle: false, ..member(id, party, 1_000 + id) }).collect()
}

#[test]
fn the_oldest_idle_one_of_the_party_with_the_most_makes_room() {
    let choose = |members: &[Member], party| choose(members, party, &limits(4, 3));
    let four = [member(0, B, 1), member(1, A, 7), member(2, A, 5), member(3, A, 6)];
    assert_eq!(choose(&four[..3], B), Choice::Serve);
    // All slots are taken: the only connection of `B` is the oldest, and stays.
    assert_eq!(choose(&four, B), Choice::Evict(2));
    assert_eq!(choose(&four, C), Choice::Evict(2));
    // A party at its own bound gives up a slot itself, even if there are slots for others.
    assert_eq!(choose(&four[1..], A), Choice::Evict(2));
    // Only one connection at a time is asked to close.
    let leaving = four.map(|member| Member { leaving: member.id == 3, ..member });
    assert_eq!(choose(&leaving, B), Choice::Wait);
}

#[test]
fn who_does_not_read_makes_room_before_who_works_and_the_party_with_the_most_before_all() {
    let choose = |members: &[Member], party| choose(members, party, &limits(8, 6));
    let mut members = [at_work(A, 0..5), at_work(B, 5..8)].concat();
    assert_eq!(choose(&members, C), Choice::Evict(0), "the one that has moved nothing for the longest");
    members[3].stalled = true;
    assert_eq!(choose(&members, C), Choice::Evict(3));
    members[4].idle = true;
    assert_eq!(choose(&members, C), Choice::Evict(4));
    // Idle and stalled connections of a smaller party stay while there is a larger one.
    let mut members = [at_work(A, 0..5), at_work(B, 5..8)].concat();
    (members[5].idle, members[6].stalled) = (true, true);
    assert_eq!(choose(&members, C), Choice::Evict(0));
    // The party with the most connections gives up a stalled connection of its own, not one at work.
    assert_eq!(choose(&members, A), Choice::Refuse);
    members[2].stalled = true;
    assert_eq!(choose(&members, A), Choice::Evict(2));
    // A party with all the connections that it may have.
    let mut members = [at_work(A, 0..6), at_work(B, 6..7)].concat();
    assert_eq!(choose(&members, A), Choice::Refuse);
    members[6].idle = true;
    assert_eq!(choose(&members, A), Choice::Refuse, "another's is none of its business");
    assert_eq!(choose(&members, B), Choice::Serve);
    // No party has two more than the newcomer's: an idle connection of a party with as many goes.
    let mut members: Vec<_> =
        (0..8).flat_map(|uid| at_work(Party::User(uid + 1), uid.into()..u64::from(uid) + 1)).collect();
    assert_eq!(choose(&members, Party::User(100)), Choice::Refuse);
    members[1].idle = true;
    assert_eq!(choose(&members, Party::User(100)), Choice::Evict(1));
}

/// Parties come one after the other. Each gets as many connections as it can, all at work for ever.
#[test]
fn no_number_of_parties_takes_all_places_from_the_next() {
    let limits = limits(1_024, 768);
    let mut members: Vec<Member> = Vec::new();
    let mut next = 0;
    let mut come = |members: &mut Vec<Member>, party, most: usize| {
        for _ in 0..most {
            match choose(members, party, &limits) {
                Choice::Serve => {}
                Choice::Evict(gone) => members.retain(|member| member.id != gone),
                Choice::Wait | Choice::Refuse => return,
            }
            members.extend(at_work(party, next..next + 1));
            next += 1;
            assert!(members.len() <= limits.connections_max);
        }
    };
    let count = |members: &[Member], party| members.iter().filter(|member| member.party == party).count();
    come(&mut members, A, 2_000);
    assert_eq!(count(&members, A), 768);
    come(&mut members, B, 2_000);
    for newcomer in 0..30 {
        let party = Party::Machine(std::net::Ipv4Addr::from(newcomer).into());
        come(&mut members, party, 20);
        assert_eq!(count(&members, party), 20, "{party}");
    }
    assert_eq!(members.len(), 960, "the others are root's");
    come(&mut members, Party::ROOT, 64);
    assert_eq!((count(&members, Party::ROOT), members.len()), (64, 1_024));
    assert!((0..30).all(|party| count(&members, Party::Machine(std::net::Ipv4Addr::from(party).into())) == 20));
    // Root gets more slots from a larger party.
    come(&mut members, Party::ROOT, 50);
    assert_eq!(count(&members, Party::ROOT), 114);
    come(&mut members, C, 10);
    assert_eq!((count(&members, C), members.len()), (10, 1_024));
}

#[test]
fn so_many_users_that_none_has_two_leave_roots_places_to_root() {
    let limits = limits(64, 64);
    let mut members: Vec<_> =
        (0..60).flat_map(|uid| at_work(Party::User(uid + 1), uid.into()..u64::from(uid) + 1)).collect();
    assert_eq!(choose(&members, Party::User(100), &limits), Choice::Refuse);
    for id in 60..64 {
        assert_eq!(choose(&members, Party::ROOT, &limits), Choice::Serve);
        members.extend(at_work(Party::ROOT, id..id + 1));
    }
    assert_eq!(choose(&members, Party::User(100), &limits), Choice::Refuse, "root's own are no others'");
    assert_eq!(choose(&members, Party::ROOT, &limits), Choice::Refuse);
}

#[test]
fn a_refusal_by_the_bound_on_all_connections_names_it() {
    let said = |connections: usize| {
        let bound = limits(64, 16).bound_reached(connections);
        RefusedConnection { party: Party::ROOT, connections, bound }.to_string()
    };
    assert!(said(16).contains("it may have 16"), "{}", said(16));
    assert!(said(0).contains("64 places in all") && !said(0).contains("may have"), "{}", said(0));
}
