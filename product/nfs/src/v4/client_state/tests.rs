use afflux_volume::Share;

use super::super::state::clients::{Introduction, SessionRequest};
use super::super::state::kept::ServerMemory;
use super::super::state::leases::LEASE_SECONDS;
use super::super::state::opens::PARTY_OPENS_MAX;
use super::*;

const SECOND: u64 = 1_000_000_000;
const AFTER_A_LEASE: u64 = (LEASE_SECONDS as u64 + 2) * SECOND;
const PARTY: Party = Party::User(7);
const READS: Share = Share { access: Share::READ, deny: 0 };

fn client(state: &mut State<u64>, party: Party, name: &[u8], now_ns: u64) -> u64 {
    let who = Introduction { owner: name, verifier: [0; 8], updates: false };
    let known = state.clients.introduce(who, (party, None), now_ns, |_| true, &mut Vec::new()).unwrap().client;
    assert_eq!(state.clients.create(known, (party, None), 1, now_ns), Ok(SessionRequest::New));
    state.clients.created(known, b"made");
    state.clients.confirm(known, now_ns, &mut Vec::new());
    known
}

fn by(client: u64, party: Party) -> Opener<'static> {
    Opener { client, party, owner: b"owner", number: client, handle: b"", mark: 0 }
}

fn open(state: &mut State<u64>, by: Opener<'_>, file: u64, now_ns: u64) -> Result<Vec<u64>, Status> {
    let (locks, mut held) = (Locks::default(), Vec::new());
    state.make_room(by.party, (&locks, now_ns), &mut held, |state| state.opens.check_room(&by, file))?;
    state.opens.open(by, file, READS, |_, _| true, || Ok(file))?;
    Ok(held)
}

#[test]
fn a_silent_client_makes_room_before_its_party_is_refused_and_a_living_one_is_refused_at_once() {
    let mut state = State::new(&ServerMemory::new(3, 0, None));
    let filler = client(&mut state, PARTY, b"filler", SECOND);
    for file in 0..PARTY_OPENS_MAX as u64 {
        assert_eq!(open(&mut state, by(filler, PARTY), file, SECOND), Ok(Vec::new()));
    }
    let one_more = PARTY_OPENS_MAX as u64;
    assert_eq!(open(&mut state, by(filler, PARTY), one_more, SECOND), Err(Status::ServerFault));
    let other = client(&mut state, Party::Orphans, b"other", SECOND);
    assert_eq!(open(&mut state, by(other, Party::Orphans), one_more, SECOND), Ok(Vec::new()));
    // Another client of the party comes when the filler is silent: all that it had makes room, and nobody else's.
    let second = client(&mut state, PARTY, b"second", AFTER_A_LEASE);
    let held = open(&mut state, by(second, PARTY), one_more, AFTER_A_LEASE).unwrap();
    assert_eq!(held.len(), PARTY_OPENS_MAX);
    assert_eq!((state.opens.has_any(filler), state.opens.has_any(other), state.opens.len()), (false, true, 2));
    assert!(state.clients.lease(filler).is_none() && state.clients.lease(other).is_some());
}

#[test]
fn one_who_finds_that_others_have_all_is_told_to_come_again_until_a_silent_one_makes_room() {
    let mut state = State::new(&ServerMemory::new(3, 0, None));
    for (party, begun_ns) in [(PARTY, SECOND), (Party::User(8), 3 * SECOND)] {
        let filler = client(&mut state, party, b"filler", begun_ns);
        for file in 0..PARTY_OPENS_MAX as u64 {
            open(&mut state, by(filler, party), file, SECOND).unwrap();
        }
    }
    let third = client(&mut state, Party::Orphans, b"third", 3 * SECOND);
    assert_eq!(open(&mut state, by(third, Party::Orphans), 1, 3 * SECOND), Err(Status::Jukebox));
    // Of two the one that was silent for longer.
    let held = open(&mut state, by(third, Party::Orphans), 1, AFTER_A_LEASE).unwrap();
    assert_eq!((held.len(), state.opens.len()), (PARTY_OPENS_MAX, PARTY_OPENS_MAX + 1));
}
