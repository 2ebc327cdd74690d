use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;

use afflux_frontend::OwnerKind;

use super::super::*;

const ANONYMOUS: (u32, u32) = (65_534, 65_533);

fn user(uid: u32, gid: u32, listed: &[u32]) -> CallerClaim {
    let mut groups = [0; afflux_frontend::GROUPS_MAX];
    groups[..listed.len()].copy_from_slice(listed);
    CallerClaim::User { uid, gid, groups, group_count: listed.len() as u8 }
}

/// The host knows one user, with more groups than a call can list.
fn of_host(uid: u32) -> UserGroups {
    match uid {
        1001 => UserGroups { gid: Some(101), further: (1..=40).collect() },
        _ => UserGroups::default(),
    }
}

fn carried_out(acts: &ActingUser, claim: &CallerClaim) -> Option<(u32, u32, Vec<u32>)> {
    identity(acts, ANONYMOUS, claim, |uid| Ok::<_, ()>(of_host(uid))).unwrap()
}

#[test]
fn what_is_claimed_counts_as_far_as_it_is_not_squashed() {
    let nobody = || Some((65_534, 65_533, vec![]));
    let mary = user(1000, 100, &[7, 8]);
    let claimed = |squash| ActingUser::AsClaimed { squash, has_host_groups: false };
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
    let john = ActingUser::AsUser { uid: 1001 };
    let groups: Vec<u32> = (1..=40).collect();
    for claim in
        [CallerClaim::Anonymous, user(0, 0, &[0]), user(1000, 7, &[42]), user(1001, 42, &[42]), user(1001, 101, &[])]
    {
        assert_eq!(carried_out(&john, &claim), Some((1001, 101, groups.clone())), "{claim:?}");
    }
    let other_group = carried_out(&john, &user(1001, 8, &[]));
    assert_eq!(other_group, Some((1001, 8, groups)), "it is in that group");
}

#[test]
fn a_user_of_another_host_has_the_groups_that_this_host_knows_if_the_rules_say_so() {
    let claimed = ActingUser::AsClaimed { squash: Squash::Root, has_host_groups: true };
    let groups: Vec<u32> = (1..=40).collect();
    assert_eq!(carried_out(&claimed, &user(1001, 101, &[50])), Some((1001, 101, groups.clone())));
    assert_eq!(carried_out(&claimed, &user(1001, 50, &[])), Some((1001, 101, groups.clone())), "it is not in 50");
    assert_eq!(carried_out(&claimed, &user(1001, 8, &[])), Some((1001, 8, groups)));
    assert_eq!(carried_out(&claimed, &user(1000, 100, &[7])), Some((1000, 100, vec![])), "the host does not know it");
    assert_eq!(carried_out(&claimed, &user(0, 0, &[7])), Some((ANONYMOUS.0, ANONYMOUS.1, vec![])));
}

#[test]
fn a_caller_waits_for_the_hosts_answer_and_for_a_new_one_when_that_is_old() {
    #[derive(Default)]
    struct Slow(Mutex<(Option<UserGroups>, u64)>);
    impl HostUsers for Slow {
        fn find(&self, _uid: u32) -> Option<UserGroups> {
            self.0.lock().unwrap().0.clone()
        }
        fn look_up(&self, _uid: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(std::future::pending())
        }
        fn give_up(&self, _uid: u32) {}
        fn number_of(&self, _kind: OwnerKind, _name: &str) -> Pin<Box<dyn Future<Output = Option<u32>> + Send>> {
            Box::pin(std::future::ready(None))
        }
        fn age(&self) -> u64 {
            self.0.lock().unwrap().1
        }
    }
    let host = Arc::new(Slow::default());
    let acts = ActingUser::AsClaimed { squash: Squash::Root, has_host_groups: true };
    let standing = PeerRights::Admitted { acts, read_only: false };
    let mut callers = Callers::new(standing, ANONYMOUS, Some(host.clone()), Client::named("192.0.2.1"));
    let make = |_: u32, _: u32, groups: &[u32]| {
        assert_eq!(groups, [7]);
        Caller::SERVER
    };
    assert!(matches!(callers.find(&credential(1000), make), Err(NoCaller::Unknown(1000, _))));
    host.0.lock().unwrap().0 = Some(UserGroups { gid: Some(100), further: vec![7] });
    assert!(callers.find(&credential(1000), make).is_ok() && !callers.are_old());
    host.0.lock().unwrap().1 += 1;
    assert!(callers.are_old());
}

/// The credential of a user, as on the wire.
fn credential(uid: u32) -> Vec<u8> {
    [1, 20, 0, 0, uid, 100, 0].into_iter().flat_map(u32::to_be_bytes).collect()
}

fn callers(standing: PeerRights) -> Callers {
    Callers::new(standing, ANONYMOUS, None, Client::named("192.0.2.1"))
}

#[test]
fn the_last_credentials_are_known_again_and_no_more_are_kept() {
    let acts = ActingUser::AsClaimed { squash: Squash::None, has_host_groups: false };
    let mut callers = callers(PeerRights::Admitted { acts, read_only: true });
    let made = std::cell::RefCell::new(Vec::new());
    let make = |uid: u32, _: u32, _: &[u32]| {
        made.borrow_mut().push(uid);
        Caller::SERVER
    };
    let find = |callers: &mut Callers, uid| callers.find(&credential(uid), make).ok().unwrap();
    for uid in 0..2 * KNOWN_MAX as u32 {
        let at = find(&mut callers, uid);
        assert_eq!(find(&mut callers, uid), at);
        assert!(callers.get(at).caller.is_read_only());
        assert!(callers.known.len() <= KNOWN_MAX);
    }
    assert_eq!(made.borrow().len(), 2 * KNOWN_MAX, "one for each");
    let newest: Vec<u32> = (KNOWN_MAX as u32..2 * KNOWN_MAX as u32).collect();
    for uid in &newest {
        let at = find(&mut callers, *uid);
        assert_eq!(*callers.get(at).credential, *credential(*uid));
    }
    assert_eq!(made.borrow().len(), 2 * KNOWN_MAX);
    find(&mut callers, 0);
    assert_eq!(made.borrow().len(), 2 * KNOWN_MAX + 1);
}

#[test]
fn bad_credentials_and_peers_are_refused() {
    let nobody = |_: u32, _: u32, _: &[u32]| -> Caller { panic!("nobody is to be made") };
    let mut refused = callers(PeerRights::Refused);
    let is_weak = |found| matches!(found, Err(NoCaller::Refused(Refusal::WeakCredential)));
    assert!(is_weak(refused.find(&credential(1000), nobody)));
    let mut cut = credential(1000);
    cut.truncate(20);
    cut[7] = 12;
    let acts = ActingUser::AsClaimed { squash: Squash::None, has_host_groups: false };
    let mut admitted = callers(PeerRights::Admitted { acts, read_only: false });
    assert!(matches!(admitted.find(&cut, nobody), Err(NoCaller::Refused(Refusal::BadCredential))));
    assert!(admitted.known.is_empty());
}
