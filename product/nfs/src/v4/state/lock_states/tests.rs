use afflux_volume::Span;

use super::super::persisted::ServerMemory;
use super::super::stateids::StateidKind;
use super::*;

const PARTY: Party = Party::User(7);

fn state(clientid: u64, file: u64, open: u32, number: u64) -> LockState {
    LockState { clientid, party: PARTY, file, open, owner: Box::from(*b"owner"), number, seqid: 0, by: 0 }
}

const NONE: RangesAfter<'static> = RangesAfter { step: (Span::WHOLE, None), count: &|| 0, all: &Vec::new };

/// A lock owner that is known or new has got a lock.
fn locked(states: &mut LockStates, state: LockState) -> Stateid {
    match states.id_of(state.file, state.number) {
        Some(id) => states.changed(id, state.by, &NONE),
        None => states.begin(state, &NONE),
    }
}

fn check_new(states: &LockStates, party: Party) -> Result<(), TableFull> {
    states.check_quota(None, party, b"owner", || 1)
}

fn id(stateid: Stateid) -> StateidOther {
    match stateid.meaning() {
        Ok(StateidKind::State(id)) => id,
        other => panic!("{other:?}"),
    }
}

/// Ends those that were begun with an open. Returns their number.
fn end_of(states: &mut LockStates, open: u32) -> usize {
    std::iter::from_fn(|| states.end(states.first_of_open(open)?)).count()
}

#[test]
fn an_owner_has_one_stateid_for_a_file_that_steps_with_each_change_and_ends_with_its_open() {
    let mut states = LockStates::new(&ServerMemory::new(3, 0, None));
    let first = locked(&mut states, state(1, 10, 0, 77));
    let at = id(first);
    assert!(at.is_of_locks() && !StateidOther { id: 5, ..at }.is_of_locks());
    let second = locked(&mut states, state(1, 10, 0, 77));
    assert_eq!((second.other, second.seqid), (first.other, 2));
    assert_ne!(locked(&mut states, state(1, 11, 0, 77)).other, first.other, "another file");
    assert_eq!(states.changed(at.id, 0, &NONE).seqid, 3);
    assert_eq!(states.find(1, at, 3).map(|it| it.number), Ok(77));
    assert_eq!(states.find(1, at, 2).map(|it| it.number), Err(NfsStatus::OldStateid));
    assert_eq!(states.find(2, at, 3).map(|it| it.number), Err(NfsStatus::BadStateid), "another client's");
    assert_eq!(states.find(1, StateidOther { memory: 2, ..at }, 3).map(|it| it.number), Err(NfsStatus::BadStateid));
    assert_eq!(states.of_owner(10, 77).map(|it| it.clientid), Some(1));
    assert_eq!(end_of(&mut states, 0), 2);
    assert_eq!(states.find(1, at, 0).map(|it| it.number), Err(NfsStatus::BadStateid));
    assert_eq!((states.len(), states.of_owner(10, 77)), (0, None));
    // The entry is used again, and the old stateid does not name it.
    assert_eq!(id(locked(&mut states, state(1, 12, 0, 78))).id & 1, at.id & 1 ^ 1);
    assert_eq!(states.find(1, at, 0).map(|it| it.number), Err(NfsStatus::BadStateid));
}

#[test]
fn a_party_that_has_all_lock_owners_leaves_room_to_others() {
    let mut states = LockStates::new(&ServerMemory::new(3, 0, None));
    for file in 0..LOCK_STATES_MAX as u64 / 2 {
        assert!(check_new(&states, PARTY).is_ok());
        locked(&mut states, state(1, file, 0, 7));
    }
    assert!(check_new(&states, PARTY).is_err() && check_new(&states, Party::Orphans).is_ok());
    end_of(&mut states, 0);
    assert!(check_new(&states, PARTY).is_ok());
    assert_eq!(states.index, StateIndex::default(), "nothing is left in it");
}
