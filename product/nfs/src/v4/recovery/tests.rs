use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use afflux_frontend::PersistedWords;
use afflux_volume::{LockMode, Share, Span};

use super::super::state::clients::{CreateSessionStep, ExchangeIdClient};
use super::super::state::lock_states::{LockState, RangesAfter};
use super::super::state::opens::Opener;
use super::super::state::persisted::{PersistedRecords, ServerMemory};
use super::super::state::stateids::StateidKind;
use super::*;

const PARTY: Party = Party::User(7);
const OWNER: u64 = 99;
const DENIES_WRITING: Share = Share { access: Share::READ, deny: Share::WRITE };
const WRITES: Share = Share { access: Share::WRITE, deny: 0 };
/// Handles, and the numbers that their files have for the first server.
const FILES: [(&[u8], u64); 3] = [(b"first", 10), (b"second", 20), (b"third", 30)];

/// A client that has each file open, closed to writers, and locked at the byte of its number. Its memory.
fn left() -> PersistedWords {
    let words: PersistedWords = Arc::new((0..4 + 64 * 16).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
    let (records, found) = PersistedRecords::new(Arc::clone(&words), 0);
    assert!(found.is_none());
    let (mut state, locks) = (State::new(&ServerMemory::new(3, 0, Some(&records))), Locks::default());
    let who = ExchangeIdClient { owner: b"client", verifier: [0; 8], updates: false };
    let clientid = state.clients.exchange_id(who, (PARTY, None), 0, |_| true, &mut Vec::new()).unwrap().clientid;
    assert_eq!(state.clients.create_session(clientid, (PARTY, None), 1, 0), Ok(CreateSessionStep::New));
    state.clients.created(clientid, b"made");
    state.clients.confirm(clientid, 0, &mut Vec::new());
    state.keep_server();
    let holder = state.holder(clientid, &locks).unwrap();
    for (handle, file) in FILES {
        let by = Opener { clientid, party: PARTY, owner: b"program", number: OWNER, handle, mark: 0 };
        let opened = state.opens.open(by, file, DENIES_WRITING, |_, _| true, || Ok(file)).unwrap();
        let Ok(StateidKind::State(at)) = opened.meaning() else { panic!("{opened:?}") };
        let (owner, span) = (lock_owner(holder, OWNER), Span::between(file, file).unwrap());
        let lock = Lock { owner, span, mode: LockMode::Exclusive, process: 0 };
        locks.lock(file, lock, Nanos(0)).unwrap();
        let (count, all) = (|| 1, || locks.ranges_of(file, owner));
        let ranges = RangesAfter { step: (span, Some(LockMode::Exclusive)), count: &count, all: &all };
        let lock_state = LockState {
            clientid,
            party: PARTY,
            file,
            open: at.id,
            owner: b"program".as_slice().into(),
            number: OWNER,
            seqid: 1,
            by: 0,
        };
        state.lock_states.begin(lock_state, &ranges);
    }
    words
}

/// The next server, for which the files have these numbers, or are gone. Also what it reports as lost.
fn next(words: &PersistedWords, numbers: [Option<u64>; 3]) -> (State<u64>, Locks, Vec<u64>) {
    let (records, found) = PersistedRecords::new(Arc::clone(words), 0);
    let found = found.unwrap();
    assert_eq!(handles(&found).len(), FILES.len());
    let (number, run, ..) = of_server(&found).unwrap();
    let file_of = |handle: &[u8]| {
        let at = FILES.iter().position(|(known, _)| *known == handle).unwrap();
        numbers[at].map(|number| HeldFile { file: number, held: number }).ok_or(VolumeError::Stale)
    };
    let locks = Locks::default();
    let memory = ServerMemory::new(number, run, Some(&records));
    let view = VolumeView { owner_id: &|_, _| OWNER, file_of: &file_of, locks: &locks, now_ns: 0 };
    let (state, lost) = State::recovered(&memory, found, &view).unwrap();
    (state, locks, lost.into_iter().map(|it| it.file).collect())
}

/// Whether the byte of a file is locked, and whether writers are denied.
fn is_locked(locks: &Locks, file: u64, byte: u64) -> (bool, bool) {
    let owner = LockOwner { holder: HolderId(u64::MAX), number: 1, family: LockFamily::Single };
    let span = Span::between(byte, byte).unwrap();
    let wanted = Lock { owner, span, mode: LockMode::Shared, process: 0 };
    (locks.conflict(file, &wanted, Nanos(0)).is_some(), locks.check_share(file, None, WRITES, Nanos(0)).is_err())
}

#[test]
fn files_whose_numbers_change_places_keep_their_own_locks_and_denials() {
    let (state, locks, lost) = next(&left(), [Some(20), Some(10), Some(30)]);
    assert_eq!((lost.len(), state.opens.len(), state.lock_states.len()), (0, 3, 3));
    for (file, byte) in [(20, 10), (10, 20), (30, 30)] {
        assert_eq!(is_locked(&locks, file, byte), (true, true), "file {file}");
    }
    assert_eq!([(10, 10), (20, 20)].map(|(file, byte)| is_locked(&locks, file, byte).0), [false; 2]);
}

#[test]
fn each_open_of_a_file_that_is_gone_ends_with_its_locks_and_denials() {
    let words = left();
    // The second file is gone, and the third has its number.
    let (state, locks, lost) = next(&words, [Some(10), None, Some(20)]);
    assert_eq!((lost, state.opens.len(), state.lock_states.len()), (vec![20], 2, 2));
    assert_eq!((is_locked(&locks, 20, 20), is_locked(&locks, 20, 30)), ((false, true), (true, true)));
    assert_eq!(is_locked(&locks, 30, 30), (false, false));
    // A server after that has no more of it, and goes on with the rest.
    let (state, locks, lost) = next_of_two(&words);
    assert_eq!((lost.len(), state.opens.len()), (0, 2));
    assert_eq!([is_locked(&locks, 10, 10), is_locked(&locks, 30, 30)], [(true, true); 2]);
    // All are gone: nothing of them remains.
    let (state, locks, lost) = next(&left(), [None; 3]);
    assert_eq!((lost.len(), state.opens.len(), state.lock_states.len()), (3, 0, 0));
    assert!(locks.held().iter().all(|it| (it.ranges, it.denying) == (0, 0)));
}

/// The server after the one that has ended an open.
fn next_of_two(words: &PersistedWords) -> (State<u64>, Locks, Vec<u64>) {
    let (records, found) = PersistedRecords::new(Arc::clone(words), 0);
    let found = found.unwrap();
    assert_eq!(handles(&found), [Box::from(b"first".as_slice()), Box::from(b"third".as_slice())]);
    let locks = Locks::default();
    let file_of = |handle: &[u8]| {
        let file = if handle == b"first" { 10 } else { 30 };
        Ok(HeldFile { file, held: file })
    };
    let memory = ServerMemory::new(3, 2, Some(&records));
    let view = VolumeView { owner_id: &|_, _| OWNER, file_of: &file_of, locks: &locks, now_ns: 0 };
    let (state, lost) = State::recovered(&memory, found, &view).unwrap();
    (state, locks, lost.into_iter().map(|it| it.file).collect())
}
