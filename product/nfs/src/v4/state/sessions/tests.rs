use super::super::persisted::ServerMemory;
use super::super::slots::SlotCall;
use super::*;
use crate::status::NfsStatus;

const PARTY: Party = Party::User(7);

fn channel(maxoperations: u32, maxrequests: u32) -> ChannelAttrs {
    ChannelAttrs {
        maxrequestsize: 1 << 21,
        maxresponsesize: 1 << 21,
        maxresponsesize_cached: 9000,
        maxoperations,
        maxrequests,
    }
}

fn session_id(at: usize) -> SessionId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&at.to_be_bytes());
    id
}

#[test]
fn a_session_grants_no_more_than_its_bounds() {
    let granted = channel(10_000, 10_000).granted(1 << 20).unwrap();
    let expected = ChannelAttrs {
        maxrequestsize: 1 << 20,
        maxresponsesize: 1 << 20,
        maxresponsesize_cached: 2048,
        maxoperations: 64,
        maxrequests: 64,
    };
    assert_eq!(granted, expected);
    assert_eq!(ChannelAttrs { maxrequestsize: 20, ..expected }.granted(1 << 20), Err(NfsStatus::Toosmall));
    assert_eq!(ChannelAttrs { maxresponsesize: 20, ..expected }.granted(1 << 20), Err(NfsStatus::Toosmall));
    assert_eq!(channel(0, 8).granted(1 << 20), Err(NfsStatus::Inval));
    assert_eq!(channel(8, 0).granted(1 << 20), Err(NfsStatus::Inval));
}

#[test]
fn a_session_answers_its_own_user_or_other_machines_and_ends_with_its_client() {
    let mut sessions = Sessions::new(&ServerMemory::new(3, 0, None));
    let lease = Arc::new(Lease::begun(0));
    let machines = ["192.0.2.7", "198.51.100.7"].map(|address| Party::Machine(address.parse().unwrap()));
    sessions.make(session_id(4), 9, machines[0], channel(8, 8), Arc::clone(&lease));
    for (party, status) in [(machines[0], None), (machines[1], None), (PARTY, Some(NfsStatus::Badsession))] {
        assert_eq!(sessions.find(&session_id(4), party).err(), status, "{party}");
    }
    sessions.make(session_id(1), 5, PARTY, channel(8, 8), lease);
    assert_eq!(sessions.find(&session_id(1), machines[0]).err(), Some(NfsStatus::Badsession));
    assert!(sessions.find(&session_id(1), PARTY).is_ok());
    assert_eq!(sessions.find(&session_id(1), Party::User(8)).err(), Some(NfsStatus::Badsession));
    assert_eq!(sessions.find(&session_id(2), PARTY).err(), Some(NfsStatus::Badsession));
    assert!(sessions.has_any(5) && !sessions.has_any(6));
    sessions.end_all(5);
    assert!(!sessions.has_any(5));
    assert_eq!(sessions.find(&session_id(1), PARTY).err(), Some(NfsStatus::Badsession));
}

#[test]
fn a_party_that_wants_all_sessions_leaves_some_to_others() {
    let mut sessions = Sessions::new(&ServerMemory::new(3, 0, None));
    let mut make = |at: usize, party| {
        sessions.check_quota(party)?;
        sessions.make(session_id(at), at as u64, party, channel(8, 1), Arc::new(Lease::begun(0)));
        Ok(())
    };
    for at in 0..SESSIONS_MAX / 2 {
        make(at, PARTY).unwrap();
    }
    assert_eq!(make(SESSIONS_MAX / 2, PARTY), Err(TableFull::OfParty));
    assert_eq!(make(SESSIONS_MAX, Party::User(8)), Ok(()));
}

#[test]
fn the_party_with_most_gives_up_an_idle_session_of_its_longest_silent_client() {
    let mut sessions = Sessions::new(&ServerMemory::new(3, 0, None));
    for at in 0..3 {
        let lease = Arc::new(Lease::begun(10 - at as u64));
        sessions.make(session_id(at), at as u64, PARTY, channel(8, 1), lease);
    }
    let at_work = sessions.find(&session_id(2), PARTY).unwrap();
    at_work.slots().begin(&SlotCall { slotid: 0, sequenceid: 1, highest_slotid: 0, call_hash: 0 }).unwrap();
    assert!(sessions.try_end_one_of(PARTY));
    assert!(sessions.find(&session_id(1), PARTY).is_err() && sessions.find(&session_id(2), PARTY).is_ok());
    assert!(sessions.try_end_one_of(PARTY) && sessions.try_end_one_of(PARTY));
    assert!(!sessions.try_end_one_of(PARTY) && !sessions.try_end_one_of(Party::Orphans));
    assert_eq!(sessions.counts, PartyCounts::default());
}
