use afflux_volume::Share;

use super::super::state::clients::{CreateSessionStep, ExchangeIdClient};
use super::super::state::kept::ServerMemory;
use super::super::state::leases::LEASE_SECONDS;
use super::super::state::opens::OPENS_MAX;
use super::*;

const SECOND: u64 = 1_000_000_000;
const AFTER_A_LEASE: u64 = (LEASE_SECONDS as u64 + 2) * SECOND;
/// The opens of a lone party.
const PARTY_OPENS_MAX: usize = OPENS_MAX / 2;
/// Room for files that bounds nobody.
const FILES: (usize, usize) = (usize::MAX, usize::MAX);
const PARTY: Party = Party::User(7);
const READS: Share = Share { access: Share::READ, deny: 0 };

fn client(state: &mut State<u64>, party: Party, name: &[u8], now_ns: u64) -> u64 {
    let who = ExchangeIdClient { owner: name, verifier: [0; 8], updates: false };
    let known = state.clients.exchange_id(who, (party, None), now_ns, |_| true, &mut Vec::new()).unwrap().clientid;
    assert_eq!(state.clients.create_session(known, (party, None), 1, now_ns), Ok(CreateSessionStep::New));
    state.clients.created(known, b"made");
    state.clients.confirm(known, now_ns, &mut Vec::new());
    known
}

fn by(client: u64, party: Party) -> Opener<'static> {
    Opener { client, party, owner: b"owner", number: client, handle: b"", mark: 0 }
}

fn open(state: &mut State<u64>, by: Opener<'_>, file: u64, now_ns: u64) -> Result<Vec<u64>, NfsStatus> {
    let (locks, mut held) = (Locks::default(), Vec::new());
    let opens = (by.party, StateTable::Opens);
    state.make_room(opens, (&locks, now_ns), &mut held, |state, _| state.opens.check_room(&by, file, FILES))?;
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
    assert_eq!(open(&mut state, by(filler, PARTY), one_more, SECOND), Err(NfsStatus::Serverfault));
    let other = client(&mut state, Party::Orphans, b"other", SECOND);
    assert_eq!(open(&mut state, by(other, Party::Orphans), one_more, SECOND), Ok(Vec::new()));
    // Another client of the party comes when the filler is silent: all that it had makes room, and nobody else's.
    let second = client(&mut state, PARTY, b"second", AFTER_A_LEASE);
    let held = open(&mut state, by(second, PARTY), one_more, AFTER_A_LEASE).unwrap();
    assert_eq!(held.len(), PARTY_OPENS_MAX);
    assert_eq!((state.opens.has_any(filler), state.opens.has_any(other), state.opens.len()), (false, true, 2));
    assert!(state.clients.lease(filler).is_none() && state.clients.lease(other).is_some());
}

/// Has a client of each of these users open as many files as there is room for.
fn fill(state: &mut State<u64>, users: std::ops::Range<u32>) {
    for uid in users {
        let party = Party::User(uid);
        let filler = client(state, party, b"filler", SECOND);
        let mut file = 0;
        while state.opens.check_room(&by(filler, party), file, FILES).is_ok() {
            open(state, by(filler, party), file, SECOND).unwrap();
            file += 1;
        }
    }
}

#[test]
fn two_or_three_users_leave_opens_for_another_and_for_root() {
    let mut state = State::new(&ServerMemory::new(3, 0, None));
    fill(&mut state, 10..13);
    assert_eq!(state.opens.len(), OPENS_MAX / 2 + OPENS_MAX / 4 + OPENS_MAX / 8);
    for party in [Party::User(99), Party::ROOT] {
        let other = client(&mut state, party, b"other", SECOND);
        assert_eq!(open(&mut state, by(other, party), 1, SECOND), Ok(Vec::new()));
    }
}

#[test]
fn with_nothing_left_the_party_with_most_gives_up_an_open_of_a_silent_client_and_then_of_a_living_one() {
    let mut state = State::new(&ServerMemory::new(3, 0, None));
    fill(&mut state, 10..30);
    let all = state.opens.len();
    let other = client(&mut state, Party::Orphans, b"other", SECOND);
    // The first has half, and its newest client is alive.
    let held = open(&mut state, by(other, Party::Orphans), 1, SECOND).unwrap();
    assert_eq!((held.len(), state.opens.len()), (1, all));
    let silent = open(&mut state, by(other, Party::Orphans), 2, AFTER_A_LEASE).unwrap();
    assert_eq!(silent.len(), PARTY_OPENS_MAX - 1, "a silent client of the party ends with all that it has");
}

#[test]
fn an_open_that_makes_room_ends_with_its_locks_and_its_share() {
    let mut state = State::new(&ServerMemory::new(3, 0, None));
    let (locks, filler) = (Locks::default(), client(&mut state, PARTY, b"filler", SECOND));
    let holder = state.holder(filler, &locks).unwrap();
    let denies = Share { access: Share::READ, deny: Share::WRITE };
    let reserve = |place: u32, share| locks.share(7, (holder, place.into()), share, Nanos(SECOND)).is_ok();
    state.opens.open(by(filler, PARTY), 7, denies, reserve, || Ok(7)).unwrap();
    let writes = Share { access: Share::WRITE, deny: 0 };
    assert!(locks.check_share(7, None, writes, Nanos(SECOND)).is_err());
    assert!(state.try_take_one(PARTY, StateTable::LockStates, (&locks, SECOND), &mut Vec::new()));
    assert!(locks.check_share(7, None, writes, Nanos(SECOND)).is_ok());
    assert!(!state.try_take_one(PARTY, StateTable::Opens, (&locks, SECOND), &mut Vec::new()), "it has nothing more");
}
