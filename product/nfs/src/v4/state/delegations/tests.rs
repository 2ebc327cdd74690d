use std::sync::atomic::AtomicU64;

use super::super::persisted::{PersistedRecords, ServerMemory};
use super::super::stateids::StateidKind;
use super::*;
use crate::steps::steps_of;

const PARTY: Party = Party::User(7);

fn alone() -> ClientDelegations {
    ClientDelegations::new(&ServerMemory::new(3, 0, None))
}

struct Client {
    clientid: u64,
    lease: Arc<Lease>,
    calls: Arc<LockNotices>,
}

impl Client {
    fn new(clientid: u64) -> Self {
        Self { clientid, lease: Arc::new(Lease::begun(0)), calls: Arc::default() }
    }

    fn wants(&self, file: u64) -> Delegate<'_> {
        let Self { clientid, lease, calls } = self;
        Delegate { clientid: *clientid, party: PARTY, file, handle: b"handle", lease, calls }
    }
}

fn id(of: &Delegation) -> StateidOther {
    match of.stateid.meaning() {
        Ok(StateidKind::State(id)) => id,
        other => panic!("{other:?}"),
    }
}

fn status(found: Result<&Arc<Delegation>, NfsStatus>) -> Result<u64, NfsStatus> {
    found.map(|it| it.file)
}

#[test]
fn a_delegation_is_its_clients_alone_and_ends_with_its_return() {
    let (mut all, client) = (alone(), Client::new(1));
    assert!(all.try_make(client.wants(9), |_| false).is_none() && !all.has_any(1));
    let made = all.try_make(client.wants(10), |_| true).unwrap();
    let at = id(&made);
    assert!(at.is_of_delegations() && !at.is_of_locks());
    for other in [0, 65_535, 1 << 31, u32::MAX - 1] {
        assert!(!StateidOther { id: other, ..at }.is_of_delegations());
    }
    assert_eq!(status(all.find(1, at, 1)), Ok(10));
    assert_eq!(status(all.find(1, at, 0)), Ok(10));
    assert_eq!(status(all.find(1, at, 2)), Err(NfsStatus::BadStateid));
    assert_eq!(status(all.find(2, at, 1)), Err(NfsStatus::BadStateid));
    assert_eq!(all.find_revoked(1, at, 1), Err(NfsStatus::LocksHeld));
    assert_eq!(all.of_file(10, 1).map(|it| it.stateid), Some(made.stateid));
    assert!(all.of_file(10, 2).is_none());
    assert_eq!((all.count_of(1), all.first_of(1), all.of_client(1).count()), (1, Some(at.id), 1));
    all.end(at.id).unwrap();
    assert!(all.end(at.id).is_none() && !all.has_any(1) && made.has_lapsed(Nanos(0)));
    assert_eq!(status(all.find(1, at, 1)), Err(NfsStatus::BadStateid));
    let next = all.try_make(client.wants(11), |_| true).unwrap();
    assert_eq!(id(&next).id, at.id, "the entry is used again");
    assert_eq!(status(all.find(1, at, 1)), Err(NfsStatus::BadStateid), "and the old stateid does not name it");
}

#[test]
fn a_revoked_delegation_stays_until_it_is_freed() {
    let (mut all, client) = (alone(), Client::new(1));
    let made = all.try_make(client.wants(10), |_| true).unwrap();
    made.revoke();
    made.revoke();
    assert!(client.lease.has_revoked_delegations());
    assert_eq!(status(all.find(1, id(&made), 1)), Err(NfsStatus::DelegRevoked));
    assert_eq!(all.find_revoked(2, id(&made), 1), Err(NfsStatus::BadStateid));
    let freed = all.find_revoked(1, id(&made), 1).unwrap();
    all.end(freed).unwrap();
    assert!(!client.lease.has_revoked_delegations());
    made.revoke();
    assert!(!client.lease.has_revoked_delegations(), "what is gone is not revoked");
}

#[test]
fn a_recall_calls_the_client_once_and_again_if_the_client_does_not_know_it() {
    let (mut all, client) = (alone(), Client::new(1));
    let made = all.try_make(client.wants(10), |_| true).unwrap();
    let recall = || Arc::clone(&made).recall();
    recall();
    recall();
    assert_eq!((client.calls.recalls(), made.is_recalled()), (1, true));
    made.answered(false);
    assert!(!made.is_recalled());
    recall();
    made.answered(true);
    recall();
    assert_eq!(client.calls.recalls(), 2);
    let mut writer = Writer::default();
    made.write(&mut writer);
    let words = writer.into_bytes();
    assert_eq!((&words[..4], &words[16..20], &words[24..30]), (&[0, 0, 0, 1][..], &[0; 4][..], &b"handle"[..]));
    all.end(id(&made).id);
    made.answered(false);
    recall();
    assert_eq!(client.calls.recalls(), 2);
}

// rule: no client has more delegations than its part, and the search for one does not grow with their number
#[test]
fn delegations_are_bounded_for_each_client_party_and_all() {
    let (mut all, clients) = (alone(), [1, 2, 3].map(Client::new));
    let mut made = 0;
    for client in &clients {
        let mut own = 0_usize;
        while all.check_quota(&client.wants(made)).is_ok() {
            all.try_make(client.wants(made), |_| true).unwrap();
            (made, own) = (made + 1, own + 1);
        }
        assert!(own <= DELEGATIONS_OF_CLIENT_MAX);
    }
    assert_eq!(all.count_of(1), DELEGATIONS_OF_CLIENT_MAX);
    assert_eq!(made as usize, DELEGATIONS_MAX / 2, "a lone party has half");
    let other = Client::new(9);
    assert!(all.check_quota(&Delegate { party: Party::User(8), ..other.wants(1 << 40) }).is_ok());
    let (steps, _) = steps_of(|| {
        let first = all.first_of(2).unwrap();
        all.end(first).unwrap();
        all.try_make(clients[1].wants(1 << 41), |_| true).unwrap();
        all.of_file(1 << 41, 2).unwrap();
    });
    assert!(steps <= 8, "{steps} steps");
}

fn words(pieces: usize) -> Arc<Vec<AtomicU64>> {
    Arc::new((0..4 + pieces * 16).map(|_| AtomicU64::new(0)).collect())
}

#[test]
fn a_later_server_finds_delegations_and_whether_they_were_revoked() {
    let words = words(64);
    let (records, _) = PersistedRecords::new(Arc::clone(&words) as _, 0);
    records.clear();
    let (mut all, client) = (ClientDelegations::new(&ServerMemory::new(3, 0, Some(&records))), Client::new(1));
    let [good, revoked, returned] = [10, 11, 12].map(|file| all.try_make(client.wants(file), |_| true).unwrap());
    revoked.revoke();
    all.end(id(&returned).id);
    let (records, found) = PersistedRecords::new(words as _, 0);
    let memory = ServerMemory::new(3, 1, Some(&records));
    let (mut next, again) = (ClientDelegations::new(&memory), Client::new(1));
    for mut item in found.unwrap() {
        let record = Record::read(item.kind, &item.bytes).unwrap();
        let Record::Delegation { file, .. } = record else { panic!("{record:?}") };
        assert!(next.try_restore(item.id, again.wants(file), &record, std::mem::take(&mut item.item)));
    }
    next.restored();
    assert_eq!(next.all().count(), 2);
    assert_eq!(status(next.find(1, id(&good), 1)), Ok(10));
    assert_eq!(status(next.find(1, id(&revoked), 1)), Err(NfsStatus::DelegRevoked));
    assert!(again.lease.has_revoked_delegations());
    let new = next.try_make(again.wants(12), |_| true).unwrap();
    assert!(new.stateid != returned.stateid && status(next.find(1, id(&returned), 1)).is_err());
}

// rule: delegations leave half of the memory for the state that a client cannot do without
#[test]
fn persisted_delegations_leave_memory_for_opens() {
    let (records, _) = PersistedRecords::new(words(128) as _, 0);
    records.clear();
    let memory = ServerMemory::new(3, 0, Some(&records));
    let (mut all, client) = (ClientDelegations::new(&memory), Client::new(1));
    let mut made = 0;
    while all.check_quota(&client.wants(made)).is_ok() {
        all.try_make(client.wants(made), |_| true).unwrap();
        made += 1;
    }
    assert!((16..=64).contains(&made), "{made}");
    assert_eq!(memory.check_quota(&PersistedItem::default(), Party::User(8), delegation_bytes(b"handle")), Ok(()));
}
