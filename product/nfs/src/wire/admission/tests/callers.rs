use super::super::*;

const ANONYMOUS: (u32, u32) = (65_534, 65_533);

fn user(uid: u32, gid: u32, listed: &[u32]) -> CallerClaim {
    let mut groups = [0; afflux_frontend::GROUPS_MAX];
    groups[..listed.len()].copy_from_slice(listed);
    CallerClaim::User { uid, gid, groups, group_count: listed.len() as u8 }
}

fn carried_out(acts: &ActingUser, claim: &CallerClaim) -> Option<(u32, u32, Vec<u32>)> {
    identity(acts, ANONYMOUS, claim)
}

#[test]
fn what_is_claimed_counts_as_far_as_it_is_not_squashed() {
    let nobody = || Some((65_534, 65_533, vec![]));
    let mary = user(1000, 100, &[7, 8]);
    let claimed = |squash| ActingUser::AsClaimed { squash };
    for squash in [Squash::Root, Squash::None] {
        assert_eq!(carried_out(&claimed(squash), &mary), Some((1000, 100, vec![7, 8])));
        assert_eq!(carried_out(&claimed(squash), &CallerClaim::Anonymous), nobody());
        assert_eq!(carried_out(&claimed(squash), &user(NO_ONE, 100, &[7])), nobody());
        assert_eq!(carried_out(&claimed(squash), &user(1000, NO_ONE, &[NO_ONE])), Some((1000, 65_533, vec![])));
    }
    // Root, and root's group with another user.
    assert_eq!(carried_out(&claimed(Squash::Root), &user(0, 0, &[7])), nobody());
    assert_eq!(carried_out(&claimed(Squash::Root), &user(1000, 0, &[0, 7])), Some((1000, 65_533, vec![7])));
    assert_eq!(carried_out(&claimed(Squash::None), &user(0, 0, &[0])), Some((0, 0, vec![0])));
    for acts in [claimed(Squash::All), ActingUser::Anonymously] {
        for claim in [&mary, &CallerClaim::Anonymous, &user(0, 0, &[])] {
            assert_eq!(carried_out(&acts, claim), nobody());
        }
    }
    assert_eq!(carried_out(&ActingUser::AsServer, &mary), None);
}

#[test]
fn a_user_of_this_host_cannot_claim_to_be_another() {
    let john = ActingUser::AsUser { uid: 1001, gid: 101, groups: vec![7, 8] };
    for claim in
        [CallerClaim::Anonymous, user(0, 0, &[0]), user(1000, 7, &[42]), user(1001, 42, &[42]), user(1001, 101, &[])]
    {
        assert_eq!(carried_out(&john, &claim), Some((1001, 101, vec![7, 8])), "{claim:?}");
    }
    let other_group = carried_out(&john, &user(1001, 8, &[]));
    assert_eq!(other_group, Some((1001, 8, vec![7, 8])), "it is in that group");
}

/// The credential of a user, as on the wire.
fn credential(uid: u32) -> Vec<u8> {
    [1, 20, 0, 0, uid, 100, 0].into_iter().flat_map(u32::to_be_bytes).collect()
}

fn callers(standing: PeerRights) -> Callers {
    Callers::new(standing, ANONYMOUS, Client::named("192.0.2.1"))
}

#[test]
fn the_last_credentials_are_known_again_and_no_more_are_kept() {
    let acts = ActingUser::AsClaimed { squash: Squash::None };
    let mut callers = callers(PeerRights::Admitted { acts, read_only: true });
    let made = std::cell::RefCell::new(Vec::new());
    let make = |uid: u32, _: u32, _: &[u32]| {
        made.borrow_mut().push(uid);
        Caller::SERVER
    };
    for uid in 0..2 * KNOWN_MAX as u32 {
        let at = callers.find(&credential(uid), make).unwrap();
        assert_eq!(callers.find(&credential(uid), make), Ok(at));
        assert!(callers.get(at).caller.is_read_only());
        assert!(callers.known.len() <= KNOWN_MAX);
    }
    assert_eq!(made.borrow().len(), 2 * KNOWN_MAX, "one for each");
    let newest: Vec<u32> = (KNOWN_MAX as u32..2 * KNOWN_MAX as u32).collect();
    for uid in &newest {
        let at = callers.find(&credential(*uid), make).unwrap();
        assert_eq!(*callers.get(at).credential, *credential(*uid));
    }
    assert_eq!(made.borrow().len(), 2 * KNOWN_MAX);
    callers.find(&credential(0), make).unwrap();
    assert_eq!(made.borrow().len(), 2 * KNOWN_MAX + 1);
}

#[test]
fn bad_credentials_and_peers_are_refused() {
    let nobody = |_: u32, _: u32, _: &[u32]| -> Caller { panic!("nobody is to be made") };
    let mut refused = callers(PeerRights::Refused);
    assert_eq!(refused.find(&credential(1000), nobody), Err(Refusal::WeakCredential));
    let mut cut = credential(1000);
    cut.truncate(20);
    cut[7] = 12;
    let acts = ActingUser::AsClaimed { squash: Squash::None };
    let mut admitted = callers(PeerRights::Admitted { acts, read_only: false });
    assert_eq!(admitted.find(&cut, nobody), Err(Refusal::BadCredential));
    assert!(admitted.known.is_empty());
}
