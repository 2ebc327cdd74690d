use std::cell::Cell;

use super::super::persisted::ServerMemory;
use super::*;
use crate::v4::state::leases::LOOKS_MAX;

/// The clients of a lone party.
const PARTY_CLIENTS_MAX: usize = CLIENTS_MAX / 2;

const SECOND: u64 = 1_000_000_000;
const ME: Speaker = (Party::User(6), Some(0));
const OTHER_USER: Speaker = (Party::User(6), Some(9));
const OTHER_PARTY: Speaker = (Party::Orphans, Some(0));

fn hello(verifier: u8) -> ExchangeIdClient<'static> {
    ExchangeIdClient { owner: b"host", verifier: [verifier; 8], updates: false }
}

fn introduce(
    clients: &mut Clients,
    verifier: u8,
    by: Speaker,
    is_idle: bool,
) -> (Result<ExchangeIdResult, NfsStatus>, Vec<u64>) {
    let mut gone = Vec::new();
    (clients.exchange_id(hello(verifier), by, SECOND, |_| is_idle, &mut gone), gone)
}

/// A client with a session.
fn confirmed(clients: &mut Clients, verifier: u8, by: Speaker) -> u64 {
    let client = introduce(clients, verifier, by, true).0.unwrap();
    assert_eq!(clients.create_session(client.clientid, by, client.sequenceid, SECOND), Ok(CreateSessionStep::New));
    clients.created(client.clientid, b"made");
    clients.confirm(client.clientid, SECOND, &mut Vec::new());
    client.clientid
}

#[test]
fn the_same_run_of_a_client_is_known_again_and_a_new_run_ends_the_old_one() {
    let mut clients = Clients::new(&ServerMemory::new(3, 0, None));
    let first = confirmed(&mut clients, 1, ME);
    let (again, gone) = introduce(&mut clients, 1, ME, false);
    assert_eq!(again, Ok(ExchangeIdResult { clientid: first, sequenceid: 2, is_confirmed: true }));
    assert!(gone.is_empty());
    let (restarted, gone) = introduce(&mut clients, 2, ME, false);
    let restarted = restarted.unwrap();
    assert!(restarted.clientid != first && !restarted.is_confirmed && gone.is_empty());
    // Until the new one has a session, the old one goes on.
    assert!(clients.lease(first).is_some());
    let mut gone = Vec::new();
    assert_eq!(clients.create_session(restarted.clientid, ME, 1, SECOND), Ok(CreateSessionStep::New));
    clients.confirm(restarted.clientid, SECOND, &mut gone);
    assert_eq!(gone, [first]);
}

#[test]
fn another_user_takes_no_name_in_use_and_another_party_has_names_of_its_own() {
    let mut clients = Clients::new(&ServerMemory::new(3, 0, None));
    let first = confirmed(&mut clients, 1, ME);
    assert_eq!(introduce(&mut clients, 1, OTHER_USER, false).0, Err(NfsStatus::ClidInuse));
    let (other, gone) = introduce(&mut clients, 1, OTHER_PARTY, false);
    assert!(other.unwrap().clientid != first && gone.is_empty());
    assert_eq!(clients.create_session(first, OTHER_PARTY, 2, SECOND), Err(NfsStatus::StaleClientid));
    assert_eq!(clients.destroy_clientid(first, OTHER_PARTY.0, true), Err(NfsStatus::StaleClientid));
    // Without state the name is free.
    assert_eq!(introduce(&mut clients, 1, OTHER_USER, true).1, [first]);
}

fn machine(last: u8) -> Speaker {
    (Party::Machine([192, 0, 2, last].into()), Some(0))
}

#[test]
fn a_machine_is_one_client_from_each_of_its_addresses() {
    let mut clients = Clients::new(&ServerMemory::new(3, 0, None));
    let first = confirmed(&mut clients, 1, machine(1));
    let same = Ok(ExchangeIdResult { clientid: first, sequenceid: 2, is_confirmed: true });
    assert_eq!(clients.create_session(first, machine(2), 2, SECOND), Err(NfsStatus::StaleClientid), "not proved yet");
    assert_eq!(introduce(&mut clients, 1, machine(2), false), (same, vec![]));
    assert_eq!(clients.create_session(first, machine(2), 2, SECOND), Ok(CreateSessionStep::New));
    // Another run, another user and a user of this host are clients of their own.
    for by in [machine(3), (machine(3).0, Some(9)), OTHER_PARTY] {
        let verifier = if by == machine(3) { 2 } else { 1 };
        let other = introduce(&mut clients, verifier, by, false).0.unwrap();
        assert!(other.clientid != first && !other.is_confirmed, "{by:?}");
    }
    // The number alone proves nothing.
    assert_eq!(clients.create_session(first, machine(3), 3, SECOND), Err(NfsStatus::StaleClientid));
    assert_eq!(clients.destroy_clientid(first, machine(3).0, true), Err(NfsStatus::StaleClientid));
    // After the end of the client, its run is unknown.
    assert_eq!(clients.destroy_clientid(first, machine(2).0, true), Ok(()));
    assert!(!introduce(&mut clients, 1, machine(2), false).0.unwrap().is_confirmed);
}

#[test]
fn a_restarted_machine_ends_what_it_had_at_each_address_that_it_uses_again() {
    let mut clients = Clients::new(&ServerMemory::new(3, 0, None));
    let first = confirmed(&mut clients, 1, machine(1));
    let strange = confirmed(&mut clients, 7, (machine(4).0, Some(9)));
    // The next run begins at the other address.
    let next = confirmed(&mut clients, 2, machine(2));
    assert!(clients.lease(first).is_some(), "another address may be another machine");
    let same = Ok(ExchangeIdResult { clientid: next, sequenceid: 2, is_confirmed: true });
    assert_eq!(introduce(&mut clients, 2, machine(1), false), (same, vec![first]));
    // Another user's client at an address stays.
    assert_eq!(introduce(&mut clients, 2, machine(4), false), (same, vec![]));
    assert!(clients.lease(strange).is_some());
    assert_eq!(clients.owners, names_of(&clients));
}

#[test]
fn the_addresses_of_a_client_have_a_bound() {
    let mut clients = Clients::new(&ServerMemory::new(3, 0, None));
    let first = confirmed(&mut clients, 1, machine(1));
    for last in 2..=255 {
        assert_eq!(introduce(&mut clients, 1, machine(last), false).0.unwrap().clientid, first);
    }
    assert_eq!(clients.known[&first].further.len(), FURTHER_ADDRESSES_MAX);
    let speaks = |clients: &mut Clients, last| clients.create_session(first, machine(last), 2, SECOND).is_ok();
    assert!(speaks(&mut clients, 1) && speaks(&mut clients, 255) && !speaks(&mut clients, 2));
}

#[test]
fn an_update_needs_the_client_its_run_and_its_user() {
    let mut clients = Clients::new(&ServerMemory::new(3, 0, None));
    let update = |clients: &mut Clients, verifier, by| {
        let who = ExchangeIdClient { updates: true, ..hello(verifier) };
        clients.exchange_id(who, by, SECOND, |_| false, &mut Vec::new()).map(|it| it.clientid)
    };
    assert_eq!(update(&mut clients, 1, ME), Err(NfsStatus::Noent));
    let first = confirmed(&mut clients, 1, ME);
    assert_eq!(update(&mut clients, 1, ME), Ok(first));
    assert_eq!(update(&mut clients, 2, ME), Err(NfsStatus::NotSame));
    assert_eq!(update(&mut clients, 1, OTHER_USER), Err(NfsStatus::Perm));
}

#[test]
fn a_create_session_runs_once_in_its_order() {
    let mut clients = Clients::new(&ServerMemory::new(3, 0, None));
    let client = introduce(&mut clients, 1, ME, true).0.unwrap().clientid;
    assert_eq!(clients.create_session(client, ME, 0, SECOND), Err(NfsStatus::SeqMisordered), "nothing was made before");
    assert_eq!(clients.create_session(client, ME, 2, SECOND), Err(NfsStatus::SeqMisordered));
    assert_eq!(clients.create_session(client, OTHER_USER, 1, SECOND), Err(NfsStatus::ClidInuse));
    assert_eq!(clients.create_session(client, ME, 1, SECOND), Ok(CreateSessionStep::New));
    clients.created(client, b"made");
    assert_eq!(clients.create_session(client, ME, 1, SECOND), Ok(CreateSessionStep::Again(b"made".to_vec())));
    assert_eq!(clients.create_session(client + 1, ME, 1, SECOND), Err(NfsStatus::StaleClientid), "a forged number");
    // A client that never came back is unknown after its lease.
    let late = introduce(&mut clients, 4, (Party::User(5), None), true).0.unwrap().clientid;
    assert_eq!(clients.create_session(late, (Party::User(5), None), 1, 100 * SECOND), Err(NfsStatus::StaleClientid));
}

#[test]
fn a_flood_of_introductions_takes_nothing_from_confirmed_clients_and_other_parties() {
    let mut clients = Clients::new(&ServerMemory::new(3, 0, None));
    let kept = confirmed(&mut clients, 1, ME);
    let other = confirmed(&mut clients, 1, OTHER_PARTY);
    for at in 0..3 * PARTY_CLIENTS_MAX {
        let owner = at.to_be_bytes();
        let who = ExchangeIdClient { owner: &owner, verifier: [0; 8], updates: false };
        clients.exchange_id(who, ME, 2 * SECOND, |_| false, &mut Vec::new()).unwrap();
    }
    assert_eq!(clients.len(), PARTY_CLIENTS_MAX + 1);
    assert!(clients.lease(kept).is_some() && clients.lease(other).is_some());
    assert_eq!(clients.owners, names_of(&clients), "each client is found by its name, and nobody else");
    // The newest ones are there, and are known again by their names.
    let last = (3 * PARTY_CLIENTS_MAX - 1).to_be_bytes();
    let first = 0_usize.to_be_bytes();
    assert!(clients.owners.find(ME.0, &last).unconfirmed.is_some());
    assert_eq!(clients.owners.find(ME.0, &first), OwnerClientids::default());
}

/// The names of all clients, one after the other.
fn names_of(clients: &Clients) -> ClientOwners {
    assert_eq!(clients.confirmed.len() + clients.unconfirmed.len(), clients.len(), "each client has one place in time");
    let mut names = ClientOwners::default();
    clients.known.iter().for_each(|(id, it)| names.add(it.party, &it.owner, *id, it.is_confirmed));
    names
}

#[test]
fn a_client_that_tries_again_is_no_longer_the_first_to_go() {
    let mut clients = Clients::new(&ServerMemory::new(3, 0, None));
    let introduce = |clients: &mut Clients, name: usize, now_ns| {
        let owner = name.to_be_bytes();
        let who = ExchangeIdClient { owner: &owner, verifier: [0; 8], updates: false };
        clients.exchange_id(who, ME, now_ns, |_| false, &mut Vec::new()).unwrap().clientid
    };
    let all: Vec<u64> =
        (0..PARTY_CLIENTS_MAX).map(|name| introduce(&mut clients, name, SECOND + name as u64)).collect();
    // Its session found no free entry.
    assert_eq!(clients.create_session(all[0], ME, 1, 2 * SECOND), Ok(CreateSessionStep::New));
    introduce(&mut clients, PARTY_CLIENTS_MAX, 2 * SECOND);
    assert!(clients.lease(all[0]).is_some() && clients.lease(all[1]).is_none());
    assert_eq!(clients.owners, names_of(&clients));
}

#[test]
fn a_client_that_was_silent_for_a_day_is_forgotten_by_the_next_introduction() {
    const DAY: u64 = 24 * 60 * 60 * SECOND;
    let mut clients = Clients::new(&ServerMemory::new(3, 0, None));
    let (silent, heard) = (confirmed(&mut clients, 1, ME), confirmed(&mut clients, 1, OTHER_PARTY));
    clients.lease(heard).unwrap().try_renew(DAY);
    let introduce = |clients: &mut Clients, now_ns| {
        let mut gone = Vec::new();
        let who = ExchangeIdClient { owner: b"third", verifier: [0; 8], updates: false };
        clients.exchange_id(who, (Party::User(5), None), now_ns, |_| true, &mut gone).unwrap();
        gone.retain(|id| [silent, heard].contains(id));
        gone
    };
    assert_eq!(introduce(&mut clients, SECOND + DAY), []);
    assert_eq!(introduce(&mut clients, 2 * SECOND + DAY), [silent]);
    assert_eq!(introduce(&mut clients, 2 * DAY), []);
    assert_eq!(introduce(&mut clients, 2 * DAY + SECOND), [heard]);
    assert_eq!(clients.owners, names_of(&clients));
}

#[test]
fn a_party_with_all_its_clients_gets_an_error_that_ends_its_call_until_one_is_silent() {
    let mut clients = Clients::new(&ServerMemory::new(3, 0, None));
    let introduce = |clients: &mut Clients, name: usize, by, now_ns| {
        let owner = name.to_be_bytes();
        let who = ExchangeIdClient { owner: &owner, verifier: [0; 8], updates: false };
        let mut gone = Vec::new();
        clients.exchange_id(who, by, now_ns, |_| false, &mut gone).map(|it| (it.clientid, gone))
    };
    for name in 0..PARTY_CLIENTS_MAX {
        let (client, _) = introduce(&mut clients, name, ME, SECOND).unwrap();
        clients.confirm(client, SECOND + name as u64, &mut Vec::new());
    }
    assert_eq!(introduce(&mut clients, PARTY_CLIENTS_MAX, ME, SECOND), Err(NfsStatus::Serverfault));
    assert!(introduce(&mut clients, 1, OTHER_PARTY, SECOND).is_ok());
    let first = clients.known.keys().next().copied().unwrap();
    let (_, gone) = introduce(&mut clients, PARTY_CLIENTS_MAX, ME, 70 * SECOND).unwrap();
    assert_eq!(gone, [first], "the one that was silent for longest");
}

/// Makes a client that has a session.
fn made(clients: &mut Clients, name: usize, by: Speaker, has_state: impl Fn(u64) -> bool) -> Result<u64, NfsStatus> {
    let owner = name.to_be_bytes();
    let who = ExchangeIdClient { owner: &owner, verifier: [0; 8], updates: false };
    let known = clients.exchange_id(who, by, SECOND, |id| !has_state(id), &mut Vec::new())?;
    clients.confirm(known.clientid, SECOND + name as u64, &mut Vec::new());
    Ok(known.clientid)
}

#[test]
fn users_who_take_all_clients_leave_some_to_root_and_the_one_with_most_makes_room_for_others() {
    let mut clients = Clients::new(&ServerMemory::new(3, 0, None));
    for uid in 10..30 {
        let by = (Party::User(uid), Some(uid));
        let mut name = 0;
        while clients.owners.counts().check_quota(by.0, 1, CLIENTS_MAX).is_ok() {
            made(&mut clients, name, by, |_| true).unwrap();
            name += 1;
        }
    }
    let (all, first) = (clients.len(), *clients.known.keys().next().unwrap());
    let without_state = *clients.known.keys().nth(5).unwrap();
    let looks = Cell::new(0);
    let has_state = |id| {
        looks.set(looks.get() + 1);
        id != without_state
    };
    made(&mut clients, 0, (Party::Orphans, None), has_state).unwrap();
    assert_eq!((clients.len(), clients.lease(without_state).is_none()), (all, true), "one without state goes first");
    made(&mut clients, 1, (Party::Orphans, None), has_state).unwrap();
    assert_eq!((clients.len(), clients.lease(first).is_none()), (all, true), "then the longest silent one");
    assert!(looks.get() <= 2 * LOOKS_MAX, "{} of {all} clients", looks.get());
    let most = (Party::User(10), Some(10));
    assert_eq!(made(&mut clients, PARTY_CLIENTS_MAX, most, |_| true), Err(NfsStatus::Serverfault));
    made(&mut clients, 0, (Party::ROOT, Some(0)), |_| true).unwrap();
    assert_eq!(clients.len(), all + 1, "root has places of its own");
    assert_eq!(clients.owners, names_of(&clients));
}

#[test]
fn a_client_says_once_that_it_has_reclaimed_all() {
    let mut clients = Clients::new(&ServerMemory::new(3, 0, None));
    let client = confirmed(&mut clients, 1, ME);
    assert!(!clients.has_reclaimed(client));
    assert_eq!(clients.reclaim_complete(client), Ok(()));
    assert!(clients.has_reclaimed(client));
    assert_eq!(clients.reclaim_complete(client), Err(NfsStatus::CompleteAlready));
    assert_eq!(clients.destroy_clientid(client, ME.0, false), Err(NfsStatus::ClientidBusy));
    assert_eq!(clients.destroy_clientid(client, ME.0, true), Ok(()));
    assert_eq!(clients.reclaim_complete(client), Err(NfsStatus::StaleClientid));
}
