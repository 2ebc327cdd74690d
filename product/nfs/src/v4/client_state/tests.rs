use afflux_volume::Share;

use super::super::state::clients::{CLIENTS_MAX, CreateSessionStep, ExchangeIdClient};
use super::super::state::leases::LEASE_SECONDS;
use super::super::state::lock_states::{LOCK_STATES_MAX, LockState, RangesAfter};
use super::super::state::opens::OPENS_MAX;
use super::super::state::persisted::ServerMemory;
use super::super::state::sessions::SESSIONS_MAX;
use super::*;
use crate::steps::steps_of;
use crate::v4::state::slots::ChannelAttrs;

const SECOND: u64 = 1_000_000_000;
const AFTER_A_LEASE: u64 = (LEASE_SECONDS as u64 + 2) * SECOND;
/// The opens of a lone party.
const PARTY_OPENS_MAX: usize = OPENS_MAX / 2;
/// A limit of files that bounds nobody.
const FILES_MAX: usize = usize::MAX;
const PARTY: Party = Party::User(7);
const READS: Share = Share { access: Share::READ, deny: 0 };

fn clientid(state: &mut State<u64>, party: Party, name: &[u8], now_ns: u64) -> u64 {
    let who = ExchangeIdClient { owner: name, verifier: [0; 8], updates: false };
    let known = state.clients.exchange_id(who, (party, None), now_ns, |_| true, &mut Vec::new()).unwrap().clientid;
    assert_eq!(state.clients.create_session(known, (party, None), 1, now_ns), Ok(CreateSessionStep::New));
    state.clients.created(known, b"made");
    state.clients.confirm(known, now_ns, &mut Vec::new());
    known
}

fn by(clientid: u64, party: Party) -> Opener<'static> {
    Opener { clientid, party, owner: b"owner", number: clientid, handle: b"", mark: 0 }
}

fn open(state: &mut State<u64>, by: Opener<'_>, file: u64, now_ns: u64) -> Result<Vec<u64>, NfsStatus> {
    let (locks, mut held) = (Locks::default(), Vec::new());
    state.evict_for(by.party, StateTable::Opens, &locks, now_ns, &mut held, |state, _| {
        state.opens.check_quota(&by, file, FILES_MAX, FILES_MAX)
    })?;
    state.opens.open(by, file, READS, |_, _| true, || Ok(file))?;
    Ok(held)
}

#[test]
fn a_silent_client_makes_room_before_its_party_is_refused_and_a_living_one_is_refused_at_once() {
    let mut state = State::new(&ServerMemory::new(3, 0, None));
    let filler = clientid(&mut state, PARTY, b"filler", SECOND);
    for file in 0..PARTY_OPENS_MAX as u64 {
        assert_eq!(open(&mut state, by(filler, PARTY), file, SECOND), Ok(Vec::new()));
    }
    let one_more = PARTY_OPENS_MAX as u64;
    assert_eq!(open(&mut state, by(filler, PARTY), one_more, SECOND), Err(NfsStatus::Serverfault));
    let other = clientid(&mut state, Party::Orphans, b"other", SECOND);
    assert_eq!(open(&mut state, by(other, Party::Orphans), one_more, SECOND), Ok(Vec::new()));
    // Another client of the party comes when the filler is silent: all its state is evicted, and nobody else's.
    let second = clientid(&mut state, PARTY, b"second", AFTER_A_LEASE);
    let held = open(&mut state, by(second, PARTY), one_more, AFTER_A_LEASE).unwrap();
    assert_eq!(held.len() + end_rest(&mut state), PARTY_OPENS_MAX);
    assert_eq!((state.opens.has_any(filler), state.opens.has_any(other), state.opens.len()), (false, true, 2));
    assert!(state.clients.lease(filler).is_none() && state.clients.lease(other).is_some());
}

/// Ends the remaining state of ended clients, as the server's task does. Returns the number of files.
fn end_rest(state: &mut State<u64>) -> usize {
    let mut held = Vec::new();
    while state.has_ended() {
        let before = held.len();
        state.end_some(&mut { ENDS_MAX }, &mut held);
        assert!(held.len() - before <= ENDS_MAX);
    }
    held.len()
}

/// Has a client of each of these users open as many files as the table allows.
fn fill(state: &mut State<u64>, users: std::ops::Range<u32>) {
    for uid in users {
        let party = Party::User(uid);
        let filler = clientid(state, party, b"filler", SECOND);
        let mut file = 0;
        while state.opens.check_quota(&by(filler, party), file, FILES_MAX, FILES_MAX).is_ok() {
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
        let other = clientid(&mut state, party, b"other", SECOND);
        assert_eq!(open(&mut state, by(other, party), 1, SECOND), Ok(Vec::new()));
    }
}

#[test]
fn with_nothing_left_the_party_with_most_gives_up_an_open_of_a_silent_client_and_then_of_a_living_one() {
    let mut state = State::new(&ServerMemory::new(3, 0, None));
    fill(&mut state, 10..30);
    let all = state.opens.len();
    let other = clientid(&mut state, Party::Orphans, b"other", SECOND);
    // The first has half, and its newest client is alive.
    let held = open(&mut state, by(other, Party::Orphans), 1, SECOND).unwrap();
    assert_eq!((held.len(), state.opens.len()), (1, all));
    let silent = open(&mut state, by(other, Party::Orphans), 2, AFTER_A_LEASE).unwrap().len() + end_rest(&mut state);
    assert_eq!(silent, PARTY_OPENS_MAX - 1, "a silent client of the party ends with all that it has");
}

#[test]
fn an_open_that_makes_room_ends_with_its_locks_and_its_share() {
    let mut state = State::new(&ServerMemory::new(3, 0, None));
    let (locks, filler) = (Locks::default(), clientid(&mut state, PARTY, b"filler", SECOND));
    let holder = state.holder(filler, &locks).unwrap();
    let denies = Share { access: Share::READ, deny: Share::WRITE };
    let reserve = |id: u32, share| locks.share(7, (holder, id.into()), share, Nanos(SECOND)).is_ok();
    state.opens.open(by(filler, PARTY), 7, denies, reserve, || Ok(7)).unwrap();
    let writes = Share { access: Share::WRITE, deny: 0 };
    assert!(locks.check_share(7, None, writes, Nanos(SECOND)).is_err());
    assert!(state.try_take_one(PARTY, StateTable::LockStates, &locks, SECOND, &mut Vec::new(), &mut { ENDS_MAX }));
    assert!(locks.check_share(7, None, writes, Nanos(SECOND)).is_ok());
    assert!(
        !state.try_take_one(PARTY, StateTable::Opens, &locks, SECOND, &mut Vec::new(), &mut { ENDS_MAX }),
        "it has nothing more"
    );
}

/// A new client with a session, if the tables allow.
fn try_client(state: &mut State<u64>, party: Party, name: u64, now_ns: u64) -> Result<u64, NfsStatus> {
    let (name, mut gone) = (name.to_be_bytes(), Vec::new());
    let who = ExchangeIdClient { owner: &name, verifier: [0; 8], updates: false };
    let known = state.clients.exchange_id(who, (party, None), now_ns, |_| false, &mut gone);
    drop(state.end_all(&gone, &Locks::default()));
    let clientid = known?.clientid;
    state.clients.created(clientid, b"made");
    state.clients.confirm(clientid, now_ns, &mut Vec::new());
    Ok(clientid)
}

fn try_session(
    state: &mut State<u64>,
    (clientid, party): (u64, Party),
    number: u64,
    now_ns: u64,
) -> Result<(), NfsStatus> {
    const WORD: u32 = 4096;
    let channel = ChannelAttrs {
        maxrequestsize: WORD,
        maxresponsesize: WORD,
        maxresponsesize_cached: WORD,
        maxoperations: 8,
        maxrequests: 64,
    };
    let lease = state.clients.lease(clientid).cloned().ok_or(NfsStatus::StaleClientid)?;
    let locks = Locks::default();
    state.evict_for(party, StateTable::Sessions, &locks, now_ns, &mut Vec::new(), |state, _| {
        state.sessions.check_quota(party)
    })?;
    let mut id = [0; 16];
    id[..8].copy_from_slice(&clientid.to_be_bytes());
    id[8..].copy_from_slice(&number.to_be_bytes());
    state.sessions.make(id, clientid, party, channel, lease);
    Ok(())
}

/// A new lock owner of a client's first open.
fn try_lock(
    state: &mut State<u64>,
    (clientid, party): (u64, Party),
    number: u64,
    now_ns: u64,
) -> Result<(), NfsStatus> {
    const NONE: RangesAfter<'static> = RangesAfter { step: (Span::WHOLE, None), count: &|| 0, all: &Vec::new };
    let open = state.opens.first_of(clientid).ok_or(NfsStatus::BadStateid)?;
    let locks = Locks::default();
    state.evict_for(party, StateTable::LockStates, &locks, now_ns, &mut Vec::new(), |state, _| {
        state.lock_states.check_quota(None, party, b"owner", || 1)
    })?;
    let number = clientid << 20 | number;
    let owner = Box::from(*b"owner");
    state.lock_states.begin(LockState { clientid, party, file: 7, open, owner, number, seqid: 0, by: 0 }, &NONE);
    Ok(())
}

#[test]
fn an_open_with_many_locks_closes_when_its_client_comes_again() {
    let mut state = State::new(&ServerMemory::new(3, 0, None));
    let clientid = clientid(&mut state, PARTY, b"locker", SECOND);
    open(&mut state, by(clientid, PARTY), 7, SECOND).unwrap();
    (0..2 * ENDS_MAX as u64).for_each(|number| try_lock(&mut state, (clientid, PARTY), number, SECOND).unwrap());
    let id = state.opens.first_of(clientid).unwrap();
    let closes = [(); 2].map(|()| state.end_open(id, None, &mut { ENDS_MAX }));
    assert_eq!((closes, state.lock_states.len(), state.opens.len()), ([None, Some(7)], 0, 0));
}

/// A table, the number of its entries, and the function by which a party's client adds one entry.
type Table = (&'static str, usize, fn(&mut State<u64>, (u64, Party), u64) -> bool);

const TABLES: [Table; 5] = [
    ("clients", CLIENTS_MAX, |state, (_, party), number| try_client(state, party, number, SECOND).is_ok()),
    ("sessions", SESSIONS_MAX, |state, who, number| try_session(state, who, number, SECOND).is_ok()),
    ("opens", OPENS_MAX, |state, (clientid, party), number| {
        open(state, by(clientid, party), 1 << 20 | number, SECOND).is_ok()
    }),
    ("opens of a file", OPENS_MAX, |state, (clientid, party), number| {
        open(state, Opener { number: clientid << 20 | number, ..by(clientid, party) }, 7, SECOND).is_ok()
    }),
    ("lock owners", LOCK_STATES_MAX, |state, who, number| try_lock(state, who, number, SECOND).is_ok()),
];

/// Most steps of a call.
const STEPS_MAX: u64 = 8192;

/// Makes each kind of call at this time, by a new client and by a known client.
fn check_each_call(state: &mut State<u64>, there: (u64, Party), table: &str, now_ns: u64) {
    let check = |name: &str, steps: u64| assert!(steps < STEPS_MAX, "{table} at {now_ns}: {name} takes {steps} steps");
    let (steps, new) = steps_of(|| try_client(state, Party::Orphans, now_ns, now_ns));
    check("EXCHANGE_ID", steps);
    for who in [there, (new.unwrap_or(there.0), Party::Orphans)] {
        check("CREATE_SESSION", steps_of(|| try_session(state, who, now_ns, now_ns)).0);
        check("OPEN", steps_of(|| open(state, by(who.0, who.1), now_ns, now_ns)).0);
        let again = Opener { number: now_ns, ..by(who.0, who.1) };
        check("OPEN of a full file", steps_of(|| open(state, again, 7, now_ns)).0);
        check("LOCK", steps_of(|| try_lock(state, who, 0, now_ns)).0);
        let first = state.opens.first_of(who.0);
        check("CLOSE", steps_of(|| state.end_open(first?, None, &mut { ENDS_MAX })).0);
        check("a question whether it is idle", steps_of(|| state.is_idle(who.0)).0);
    }
}

// rule: with any table of clients' state at its bound, filled by one party or by many, no call takes more than a fixed
// number of steps
#[test]
fn each_table_of_state_at_its_bound_leaves_each_call_few_steps() {
    for ((name, most, add), users) in TABLES.into_iter().flat_map(|table| [(table, 1..2), (table, 1..9)]) {
        let mut state = State::new(&ServerMemory::new(3, 0, None));
        let parties = users.map(|uid| {
            let party = Party::User(uid);
            let filler = clientid(&mut state, party, b"filler", SECOND);
            open(&mut state, by(filler, party), 7, SECOND).unwrap();
            (filler, party)
        });
        let parties: Vec<_> = parties.collect();
        for who in &parties {
            let mut number = 0;
            while number < most as u64 && add(&mut state, *who, number) {
                number += 1;
            }
        }
        let table = format!("{name} by {} parties", parties.len());
        check_each_call(&mut state, parties[0], &table, SECOND);
        check_each_call(&mut state, parties[0], &table, AFTER_A_LEASE);
        let (steps, _) = steps_of(|| state.end_all(&[parties[0].0], &Locks::default()));
        assert!(steps < STEPS_MAX, "{table}: the end of a client takes {steps} steps");
        end_rest(&mut state);
    }
}
