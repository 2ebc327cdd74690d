//! Locks of version 4 over sockets and over machines: who excludes whom, the stateids of lock owners, notices.

use std::net::Ipv4Addr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use afflux_nfs::{ClientInfo, ClientMemory, ClientStateKind, ClientStatus, ListChange};
use afflux_nfs_client::Client;
use afflux_nfs_client::sessions::{ANONYMOUS, CALLBACK_PROGRAM, Compound, NFS_4, Outcome, Session, Stateid};
use afflux_volume::{Lock, LockFamily, LockHolder, LockMode, LockOwner, LockRefusal, Nanos, Share, Span};

use crate::compounds::{BOTH, READ, WRITE, begun, open, ops, root, status};
use crate::peer::{Peer, accepted, call_record, marked};
use crate::world::{CLIENT, World};

const SHARED: u32 = 1;
const EXCLUSIVE: u32 = 2;
const EXCLUSIVE_WAITING: u32 = 4;
const WHOLE: (u64, u64) = (0, u64::MAX);

/// The stateid in the last result of a compound of PUTFH and one operation more.
fn stateid(outcome: &Outcome) -> Stateid {
    let mut reader = outcome.reader();
    assert_eq!(reader.next_result(), Ok((22, 0)));
    assert!(matches!(reader.next_result(), Ok((12 | 14, 0))));
    reader.stateid().unwrap()
}

/// The lock in the way, of a compound of SEQUENCE, PUTFH and one operation more: offset, length, kind, client, owner.
fn denied(outcome: &Outcome) -> (u64, u64, u32, u64, Vec<u8>) {
    assert_eq!(outcome.status, status::DENIED);
    let mut reader = outcome.reader();
    reader.skip_sequence().unwrap();
    assert_eq!(reader.next_result(), Ok((22, 0)));
    assert!(matches!(reader.next_result(), Ok((12 | 13, status::DENIED))));
    let lock = (reader.u64().unwrap(), reader.u64().unwrap(), reader.u32().unwrap(), reader.u64().unwrap());
    let owner = reader.opaque().unwrap().to_vec();
    reader.end().unwrap();
    (lock.0, lock.1, lock.2, lock.3, owner)
}

fn second(world: &World) -> Session {
    Session::begin(Client::connect(world.serve()).unwrap(), b"second", 1).unwrap()
}

#[test]
fn clients_and_owners_exclude_each_other_and_are_told_by_whom() {
    let (world, mut one) = begun(1);
    let mut two = second(&world);
    let (open_one, file) = open(&mut one, (BOTH, 0), b"program", b"file");
    let (open_two, _) = open(&mut two, (BOTH, 0), b"program", b"file");
    let held = stateid(&one.must(ops().put(&file).lock(EXCLUSIVE, (10, 10), open_one, b"owner")).unwrap());
    let refused = two.call(ops().put(&file).lock(SHARED, (0, 11), open_two, b"owner")).unwrap();
    assert_eq!(denied(&refused), (10, 10, EXCLUSIVE, one.number, b"owner".to_vec()));
    let refused = one.call(ops().put(&file).test_lock(SHARED, WHOLE, b"other")).unwrap();
    assert_eq!(denied(&refused), (10, 10, EXCLUSIVE, one.number, b"owner".to_vec()));
    // An owner is in nobody's way on the bytes beside, and not in its own.
    two.must(ops().put(&file).lock(EXCLUSIVE, (0, 10), open_two, b"owner").test_lock(EXCLUSIVE, (0, 10), b"owner"))
        .unwrap();
    one.must(ops().put(&file).test_lock(EXCLUSIVE, (10, 10), b"owner")).unwrap();
    // To share is enough for the other to read, and all is free after the unlock.
    let held = stateid(&one.must(ops().put(&file).lock_more(SHARED, (10, 10), held)).unwrap());
    two.must(ops().put(&file).test_lock(SHARED, (10, 10), b"owner")).unwrap();
    one.must(ops().put(&file).unlock(WHOLE, held)).unwrap();
    two.must(ops().put(&file).test_lock(EXCLUSIVE, WHOLE, b"owner")).unwrap();
}

#[test]
fn a_lock_owner_has_a_stateid_that_reads_writes_and_ends() {
    let (_world, mut session) = begun(1);
    let (opened, file) = open(&mut session, (BOTH, 0), b"program", b"file");
    let first = stateid(&session.must(ops().put(&file).lock(EXCLUSIVE, (0, 1), opened, b"owner")).unwrap());
    session.must(ops().put(&file).write(first, 0, 0, b"x").read(first, 0, 1)).unwrap();
    let next = stateid(&session.must(ops().put(&file).lock(EXCLUSIVE, (8, 1), opened, b"owner")).unwrap());
    assert_eq!((next.0, next.1), (2, first.1));
    let of = |session: &mut Session, it| session.call(it).unwrap().status;
    assert_eq!(of(&mut session, ops().put(&file).lock_more(SHARED, (9, 1), first)), status::OLD_STATEID);
    assert_eq!(of(&mut session, ops().put(&file).lock_more(SHARED, (9, 1), (3, first.1))), status::BAD_STATEID);
    assert_eq!(of(&mut session, ops().put(&file).lock_more(SHARED, (9, 1), opened)), status::BAD_STATEID);
    assert_eq!(of(&mut session, ops().put(&file).lock(SHARED, (9, 1), next, b"x")), status::BAD_STATEID);
    assert_eq!(of(&mut session, ops().free(next)), status::LOCKS_HELD);
    assert_eq!(of(&mut session, ops().free(opened)), status::LOCKS_HELD);
    let last = stateid(&session.must(ops().put(&file).unlock(WHOLE, next)).unwrap());
    session.must(ops().test_stateid(last).free(last)).unwrap();
    assert_eq!(of(&mut session, ops().put(&file).unlock(WHOLE, last)), status::BAD_STATEID);
    assert_eq!(of(&mut session, ops().put(&file).read(last, 0, 1)), status::BAD_STATEID);
}

#[test]
fn bad_locks_get_the_protocols_errors() {
    let (world, mut session) = begun(1);
    let (reader, file) = open(&mut session, (READ, 0), b"reader", b"file");
    let (writer, _) = open(&mut session, (WRITE, 0), b"writer", b"file");
    let (_, other) = open(&mut session, (BOTH, 0), b"reader", b"other");
    let mut two = second(&world);
    let of = |session: &mut Session, it| session.call(it).unwrap().status;
    let lock = |handle: &[u8], kind, range, by| ops().put(handle).lock(kind, range, by, b"owner");
    assert_eq!(of(&mut session, lock(&file, EXCLUSIVE, WHOLE, reader)), status::OPENMODE);
    assert_eq!(of(&mut session, lock(&file, SHARED, WHOLE, writer)), status::OPENMODE);
    assert_eq!(of(&mut session, lock(&file, SHARED, (0, 0), reader)), status::INVAL);
    assert_eq!(of(&mut session, lock(&file, SHARED, (2, u64::MAX - 1), reader)), status::INVAL);
    assert_eq!(of(&mut session, lock(&file, 5, WHOLE, reader)), status::BADXDR);
    assert_eq!(of(&mut session, lock(&other, SHARED, WHOLE, reader)), status::BAD_STATEID);
    assert_eq!(of(&mut two, lock(&file, SHARED, WHOLE, reader)), status::BAD_STATEID);
    assert_eq!(of(&mut session, root().lock(SHARED, WHOLE, reader, b"owner")), status::ISDIR);
    // Nothing of that has left a lock behind.
    two.must(ops().put(&file).test_lock(EXCLUSIVE, WHOLE, b"owner").put(&other).test_lock(EXCLUSIVE, WHOLE, b"o"))
        .unwrap();
    session.must(ops().put(&file).lock(SHARED, (u64::MAX, u64::MAX), reader, b"owner")).unwrap();
}

#[test]
fn a_close_ends_the_locks_and_so_does_the_clients_end() {
    let (world, mut one) = begun(1);
    let mut two = second(&world);
    let (opened, file) = open(&mut one, (BOTH, 0), b"program", b"file");
    one.must(ops().put(&file).lock(EXCLUSIVE, WHOLE, opened, b"owner")).unwrap();
    assert_eq!(two.call(ops().put(&file).test_lock(SHARED, WHOLE, b"owner")).unwrap().status, status::DENIED);
    one.must(ops().put(&file).close(opened)).unwrap();
    two.must(ops().put(&file).test_lock(EXCLUSIVE, WHOLE, b"owner")).unwrap();
    let (opened, file) = open(&mut one, (BOTH, 0), b"program", b"file");
    one.must(ops().put(&file).lock(EXCLUSIVE, WHOLE, opened, b"owner")).unwrap();
    // The same client after a new start: its earlier self is gone.
    let restarted = ops().exchange_id(b"test", *b"another!", 0);
    let known = afflux_nfs_client::sessions::compound(&mut two.client, 1, &restarted).unwrap();
    let mut reader = known.reader();
    reader.next_result().unwrap();
    let (number, sequence) = (reader.u64().unwrap(), reader.u32().unwrap());
    assert_eq!(two.call(ops().put(&file).test_lock(SHARED, WHOLE, b"owner")).unwrap().status, status::DENIED);
    let made = ops().create_session(number, sequence, 16, 8);
    assert_eq!(afflux_nfs_client::sessions::compound(&mut two.client, 1, &made).unwrap().status, 0);
    two.must(ops().put(&file).test_lock(EXCLUSIVE, WHOLE, b"owner")).unwrap();
    assert!(world.volume.locks().held().is_empty());
}

// rule: people see each client of version 4 with its opens, denials and locks, and can take them away
#[test]
fn a_client_is_shown_with_what_it_has_of_each_file_and_loses_it_with_its_end() {
    let (world, mut one) = begun(2);
    let (opened, file) = open(&mut one, (BOTH, WRITE), b"program", b"file");
    open(&mut one, (READ, 0), b"program", b"other");
    one.must(ops().put(&file).lock(SHARED, (8, 2), opened, b"owner")).unwrap();
    let mut two = second(&world);
    let clients = world.server.clients();
    let numbers = |it: &ClientInfo| (it.opens, it.denying, it.ranges, it.waiting, it.sessions, it.slots);
    assert_eq!(clients.iter().map(numbers).collect::<Vec<_>>(), [(2, 1, 1, 0, 1, 8), (0, 0, 0, 0, 1, 8)]);
    let first = &clients[0];
    assert_eq!((first.id.0, first.minor_version, first.status), (one.number, Some(2), ClientStatus::Confirmed));
    assert!(first.lease_left_ns > 0 && first.own_name == "test" && clients[1].minor_version == Some(1), "{clients:?}");
    let (states, others) = world.server.states_of(first.id, 9);
    let shown: Vec<_> = states.iter().map(|it| (it.owner.as_str(), it.kind)).collect();
    let opened = |access, deny| ("program", ClientStateKind::Open(Share { access, deny }));
    let locked = ClientStateKind::Lock(Span::of(8, 2).unwrap(), LockMode::Shared);
    assert_eq!((shown, others), (vec![opened(3, 2), ("owner", locked), opened(1, 0)], 0));
    let numbers: Vec<_> = states.iter().map(|it| it.held.as_ref().map(|held| held.fileid())).collect();
    assert_eq!(numbers, states.iter().map(|it| Some(it.file)).collect::<Vec<_>>());
    let (few, others) = world.server.states_of(first.id, 1);
    assert_eq!((few.len(), others), (1, 2));
    // An open can be taken away, though its client has no lock.
    let (_, denied) = open(&mut two, (BOTH, READ), b"program", b"third");
    assert_eq!(one.call(root().open((READ, 0), b"program", b"third", false)).unwrap().status, status::SHARE_DENIED);
    assert!(world.server.try_end_client(clients[1].id) && !world.server.try_end_client(clients[1].id));
    one.must(root().open((READ, 0), b"program", b"third", false).put(&denied)).unwrap();
    assert_eq!(two.call(ops().put_root()).unwrap().status, status::BADSESSION);
    assert_eq!(world.server.clients().len(), 1);
}

/// Programs of this host, as a mount has them.
pub(crate) struct Programs;

impl LockHolder for Programs {
    fn has_lapsed(&self, _: Nanos) -> bool {
        false
    }

    fn try_revoke(&self, _: Nanos) -> bool {
        false
    }

    fn name(&self) -> String {
        "programs".to_owned()
    }
}

#[test]
fn programs_of_this_host_and_clients_exclude_each_other_and_wait_for_each_other() {
    let (world, mut session) = begun(1);
    let (opened, handle) = open(&mut session, (BOTH, 0), b"program", b"file");
    let file = world.platform.block_on(world.volume.resolve(&handle)).unwrap().fileid();
    let locks = world.volume.locks();
    let holder = locks.register(Arc::new(Programs), 0);
    for family in [LockFamily::Bytes, LockFamily::Files] {
        let owner = LockOwner { holder, number: 7, family };
        let wanted = Lock { owner, span: Span::WHOLE, mode: LockMode::Exclusive, process: 77 };
        let held = stateid(&session.must(ops().put(&handle).lock(EXCLUSIVE, (4, 4), opened, b"owner")).unwrap());
        let mut wait = pin!(world.volume.lock_in_order(file, wanted));
        assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(matches!(locks.lock(file, wanted, Nanos(0)), Err(LockRefusal::Held(_))));
        session.must(ops().put(&handle).unlock(WHOLE, held)).unwrap();
        assert_eq!(wait.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())));
        let refused = session.call(ops().put(&handle).lock(SHARED, WHOLE, opened, b"owner")).unwrap();
        assert_eq!(denied(&refused), (0, u64::MAX, EXCLUSIVE, 0, b"process 77".to_vec()));
        locks.unlock(file, owner, Span::WHOLE, Nanos(0)).unwrap();
    }
}

/// A session with a back channel over a machine. Returns its number, too.
fn with_back_channel(peer: &mut Peer) -> (u64, [u8; 16]) {
    let call = |peer: &mut Peer, ops: &afflux_nfs_client::sessions::Compound| {
        Outcome::read(&peer.call(NFS_4, 1, &ops.arguments(1))).unwrap()
    };
    let known = call(peer, &ops().exchange_id(b"waits", *b"verifier", 0));
    let mut reader = known.reader();
    reader.next_result().unwrap();
    let (number, sequence) = (reader.u64().unwrap(), reader.u32().unwrap());
    const BACK_CHANNEL: u32 = 2;
    let made = call(peer, &ops().create_session_with(number, sequence, 16, 8, BACK_CHANNEL));
    let id: [u8; 16] = *made.results[8..].first_chunk().unwrap();
    assert_eq!(made.results[28..32], BACK_CHANNEL.to_be_bytes());
    let complete = call(peer, &ops().sequence(id, 1, 0, true).reclaim_complete());
    assert_eq!(complete.status, 0);
    (number, id)
}

#[test]
fn a_client_that_waits_is_told_and_has_its_turn_before_others() {
    let (world, mut holder) = begun(1);
    let mut peer = Peer::new(&world, CLIENT);
    let (number, id) = with_back_channel(&mut peer);
    let mut sequence = 1;
    let mut call = |peer: &mut Peer, it: afflux_nfs_client::sessions::Compound| {
        sequence += 1;
        let whole = ops().sequence(id, sequence, 0, true).followed_by(&it);
        Outcome::read(&peer.call(NFS_4, 1, &whole.arguments(1))).unwrap()
    };
    let (held, file) = open(&mut holder, (BOTH, 0), b"program", b"file");
    holder.must(ops().put(&file).lock(EXCLUSIVE, WHOLE, held, b"owner")).unwrap();
    let opened = call(&mut peer, root().open((BOTH, 0), b"waiter", b"file", false));
    let mut reader = opened.reader();
    reader.skip_sequence().unwrap();
    reader.next_result().unwrap();
    assert_eq!(reader.next_result(), Ok((18, 0)));
    let opened = reader.stateid().unwrap();
    reader.skip(20).unwrap();
    const MAY_NOTIFY: u32 = 0x20;
    assert!(reader.u32().unwrap() & MAY_NOTIFY != 0);
    let wanted = || ops().put(&file).lock(EXCLUSIVE_WAITING, (3, 3), opened, b"waiting owner");
    assert_eq!(call(&mut peer, wanted()).status, status::DENIED);
    holder.must(ops().put(&file).close(held)).unwrap();
    let notice = peer.replies(1).remove(0);
    let word = |at: usize| u32::from_be_bytes(*notice[at..].first_chunk().unwrap());
    assert_eq!([word(4), word(8), word(12), word(16), word(20)], [0, 2, CALLBACK_PROGRAM, 1, 1]);
    assert_eq!((word(56), &notice[60..76]), (11, &id[..]));
    let padded = [&file[..], &[0; 3][..(4 - file.len() % 4) % 4]].concat();
    let told = [&13_u32.to_be_bytes()[..], &(file.len() as u32).to_be_bytes(), &padded, &number.to_be_bytes()].concat();
    let owner = [&13_u32.to_be_bytes()[..], b"waiting owner\0\0\0"].concat();
    assert!(notice.ends_with(&[told, owner].concat()), "{notice:?}");
    // The answer is no stray.
    let answer = [&word(0).to_be_bytes()[..], &[0, 0, 0, 1], &[0; 20]].concat();
    peer.send(&marked(&answer)).unwrap();
    peer.drain();
    assert!(world.server.calls().iter().any(|row| row.name == "rpc_stray_reply" && row.count == 0));
    // Its turn: nobody else gets the bytes before it.
    let mut other = second(&world);
    let (by_other, _) = open(&mut other, (BOTH, 0), b"program", b"file");
    let refused = other.call(ops().put(&file).lock(SHARED, WHOLE, by_other, b"owner")).unwrap();
    assert_eq!(refused.status, status::DENIED);
    assert_eq!(call(&mut peer, wanted()).status, 0);
}

#[test]
fn a_machine_that_gets_another_address_goes_on_with_its_session_and_its_locks() {
    let (world, mut other) = begun(1);
    let (mut before, mut after) = (Peer::new(&world, CLIENT), Peer::new(&world, Ipv4Addr::new(192, 0, 2, 9)));
    let (number, id) = with_back_channel(&mut before);
    let mut sequence = 1;
    // The stateid in the third result.
    let mut call = |peer: &mut Peer, it: afflux_nfs_client::sessions::Compound| {
        sequence += 1;
        let whole = ops().sequence(id, sequence, 0, true).followed_by(&it);
        let outcome = Outcome::read(&peer.call(NFS_4, 1, &whole.arguments(1))).unwrap();
        assert_eq!(outcome.status, 0);
        let mut reader = outcome.reader();
        reader.skip_sequence().unwrap();
        (0..2).for_each(|_| assert_eq!(reader.next_result().unwrap().1, 0));
        reader.stateid().unwrap()
    };
    let (by_other, file) = open(&mut other, (BOTH, 0), b"program", b"file");
    let opened = call(&mut before, root().open((BOTH, 0), b"program", b"file", false));
    let held = call(&mut before, ops().put(&file).lock(EXCLUSIVE, (0, 10), opened, b"owner"));
    let held = call(&mut after, ops().put(&file).lock_more(EXCLUSIVE, (10, 10), held));
    let refused = other.call(ops().put(&file).lock(SHARED, (15, 1), by_other, b"owner")).unwrap();
    assert_eq!(denied(&refused), (0, 20, EXCLUSIVE, number, b"owner".to_vec()));
    call(&mut after, ops().put(&file).unlock(WHOLE, held).close(opened));
    other.must(ops().put(&file).lock(EXCLUSIVE, WHOLE, by_other, b"owner")).unwrap();
}

/// Changes a list of names.
fn change_list(list: &mut Vec<u64>, change: ListChange) {
    list.retain(|name| !change.contains_key(name));
    list.extend(change.into_iter().filter(|(_, is_listed)| *is_listed).map(|(name, _)| name));
}

/// A list of clients in memory.
#[derive(Default)]
pub(crate) struct List(pub(crate) std::sync::Mutex<Vec<u64>>);

impl afflux_nfs::ClientList for List {
    fn change(&self, names: ListChange) -> futures_util::future::BoxFuture<'static, bool> {
        change_list(&mut self.0.lock().unwrap(), names);
        Box::pin(std::future::ready(true))
    }
}

#[test]
fn after_a_restart_others_wait_until_each_client_has_asked_for_what_it_had() {
    const GRACE: u32 = 10_013;
    const NO_GRACE: u32 = 10_033;
    let list = Arc::new(List::default());
    let names = || list.0.lock().unwrap().clone();
    let world = World::new();
    world.server.offer_version_4(ClientMemory { list: Some(Arc::clone(&list) as _), ..ClientMemory::default() });
    let mut one = Session::begin(Client::connect(world.serve()).unwrap(), b"one", 1).unwrap();
    assert_eq!(names(), []);
    let (opened, file) = open(&mut one, (BOTH, 0), b"program", b"file");
    one.must(ops().put(&file).lock(EXCLUSIVE, WHOLE, opened, b"owner")).unwrap();
    assert_eq!(names().len(), 1);
    // The next server of the same directory, with the list and without the locks.
    let left = names();
    world.volume.locks().held().iter().for_each(|it| world.volume.locks().release_holder(it.holder, Nanos(0)));
    let next = afflux_nfs::Server::new(Arc::clone(&world.volume), afflux_nfs::AdmittedPeers::AnyPeer);
    next.offer_version_4(ClientMemory {
        previous_names: left,
        list: Some(Arc::clone(&list) as _),
        ..ClientMemory::default()
    });
    let serve = || Client::connect(world.serve_another(&next)).unwrap();
    let mut other = Session::begin(serve(), b"other", 1).unwrap();
    let opens = || root().open((BOTH, 0), b"program", b"file", false);
    assert_eq!(other.call(opens()).unwrap().status, GRACE);
    // The server does not call a lock free that another client may reclaim. Nor does it let a caller use a file that
    // another client's open may deny.
    assert_eq!(other.call(ops().put(&file).test_lock(SHARED, WHOLE, b"o")).unwrap().status, GRACE);
    assert_eq!(other.call(ops().put(&file).read(ANONYMOUS, 0, 1)).unwrap().status, GRACE);
    assert_eq!(other.call(ops().put(&file).write(ANONYMOUS, 0, 0, b"x")).unwrap().status, GRACE);
    assert_eq!(other.call(ops().put(&file).set_size(ANONYMOUS, 0)).unwrap().status, GRACE);
    assert_eq!(one.call(root()).map(|it| it.status).unwrap_or_default(), 0, "the first server");
    let mut one = Session::begin_reclaiming(serve(), b"one", 1).unwrap();
    let reclaimed = one.must(ops().put(&file).reclaim_open((BOTH, 0), b"program")).unwrap();
    let mut reader = reclaimed.reader();
    for _ in 0..2 {
        reader.next_result().unwrap();
    }
    let opened = reader.stateid().unwrap();
    assert_eq!(other.call(opens()).unwrap().status, GRACE);
    one.must(ops().put(&file).reclaim_lock(EXCLUSIVE, WHOLE, opened, b"owner").reclaim_complete()).unwrap();
    let (_, handle) = open(&mut other, (BOTH, 0), b"program", b"file");
    assert_eq!(other.call(ops().put(&handle).test_lock(SHARED, WHOLE, b"o")).unwrap().status, status::DENIED);
    // Nobody asks twice, and nobody who had nothing.
    assert_eq!(one.call(ops().put(&file).reclaim_open((BOTH, 0), b"program")).unwrap().status, NO_GRACE);
    let mut stranger = Session::begin_reclaiming(serve(), b"stranger", 1).unwrap();
    assert_eq!(stranger.call(ops().put(&file).reclaim_open((BOTH, 0), b"program")).unwrap().status, NO_GRACE);
    assert_eq!(names().len(), 2, "one and other");
}

/// Calls with a compound.
fn of(peer: &mut Peer, compound: &Compound) -> Outcome {
    Outcome::read(&peer.call(NFS_4, 1, &compound.arguments(1))).unwrap()
}

/// Begins a session of some slots.
fn begin_session(peer: &mut Peer, name: &[u8], verifier: [u8; 8]) -> [u8; 16] {
    let known = of(peer, &ops().exchange_id(name, verifier, 0));
    let mut reader = known.reader();
    reader.next_result().unwrap();
    let made = of(peer, &ops().create_session(reader.u64().unwrap(), reader.u32().unwrap(), 16, 8));
    *made.results[8..].first_chunk().unwrap()
}

// rule: a machine may ask for what it had of an earlier server from another address, and no other machine of its name
// may ask for it
#[test]
fn a_moved_machine_asks_a_later_server_for_what_it_had_and_another_of_its_name_gets_nothing() {
    const NO_GRACE: u32 = 10_033;
    let list = Arc::new(List::default());
    let mut world = World::new();
    world.server.offer_version_4(ClientMemory { list: Some(Arc::clone(&list) as _), ..ClientMemory::default() });
    let begin = |peer: &mut Peer, verifier| begin_session(peer, b"laptop", verifier);
    let mut laptop = Peer::new(&world, CLIENT);
    let id = begin(&mut laptop, *b"run one!");
    assert_eq!(of(&mut laptop, &ops().sequence(id, 1, 0, false).reclaim_complete()).status, 0);
    let opens = ops().sequence(id, 2, 0, false).put_root().open((BOTH, 0), b"program", b"file", true).get_handle();
    let opened = of(&mut laptop, &opens);
    assert_eq!(opened.status, 0);
    let at = opened.results.windows(8).rposition(|bytes| bytes == [0, 0, 0, 10, 0, 0, 0, 0]).unwrap() + 8;
    let file = &opened.results[at + 4..][..usize::from(opened.results[at + 3])];

    let left = list.0.lock().unwrap().clone();
    assert_eq!(left.len(), 1);
    drop(laptop);
    world.server = afflux_nfs::Server::new(Arc::clone(&world.volume), afflux_nfs::AdmittedPeers::AnyPeer);
    world.server.offer_version_4(ClientMemory { previous_names: left, ..ClientMemory::default() });
    let reclaims = |id| ops().sequence(id, 1, 0, false).put(file).reclaim_open((BOTH, 0), b"program");
    let mut namesake = Peer::new(&world, Ipv4Addr::new(192, 0, 2, 10));
    let id = begin(&mut namesake, *b"run two!");
    assert_eq!(of(&mut namesake, &reclaims(id)).status, NO_GRACE);
    let mut moved = Peer::new(&world, Ipv4Addr::new(192, 0, 2, 9));
    let id = begin(&mut moved, *b"run one!");
    assert_eq!(of(&mut moved, &reclaims(id)).status, 0);
}

/// A list on a disk that fails, stands still, or works.
#[derive(Default)]
struct SlowList {
    fails: std::sync::atomic::AtomicBool,
    stands: std::sync::atomic::AtomicBool,
    list: std::sync::Mutex<Vec<u64>>,
    /// The list on the disk.
    kept: std::sync::Mutex<Vec<u64>>,
    tries: std::sync::atomic::AtomicU64,
    waiting: std::sync::Mutex<Vec<futures_channel::oneshot::Sender<bool>>>,
}

impl SlowList {
    fn set(&self, fails: bool, stands: bool) {
        self.fails.store(fails, std::sync::atomic::Ordering::SeqCst);
        self.stands.store(stands, std::sync::atomic::Ordering::SeqCst);
        if !stands {
            self.waiting.lock().unwrap().drain(..).for_each(|waiting| _ = waiting.send(!fails));
        }
    }

    fn tries(&self) -> u64 {
        self.tries.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl afflux_nfs::ClientList for SlowList {
    fn change(&self, names: ListChange) -> futures_util::future::BoxFuture<'static, bool> {
        self.tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let fails = self.fails.load(std::sync::atomic::Ordering::SeqCst);
        let mut list = self.list.lock().unwrap();
        change_list(&mut list, names);
        if !fails {
            *self.kept.lock().unwrap() = list.clone();
        }
        if !self.stands.load(std::sync::atomic::Ordering::SeqCst) {
            return Box::pin(std::future::ready(!fails));
        }
        let (done, kept) = futures_channel::oneshot::channel();
        self.waiting.lock().unwrap().push(done);
        Box::pin(async move { kept.await.unwrap_or(false) })
    }
}

// rule: a client has no open before a later server would know the client, over whichever slot it asks
// kept in: `product/nfs/src/v4/grace.rs`
#[test]
fn an_open_beside_the_first_one_waits_for_the_list_of_clients_too() {
    let list = Arc::new(SlowList::default());
    let world = World::new();
    world.server.offer_version_4(ClientMemory { list: Some(Arc::clone(&list) as _), ..ClientMemory::default() });
    let mut peer = Peer::new(&world, CLIENT);
    let id = begin_session(&mut peer, b"client", *b"run one!");
    assert_eq!(of(&mut peer, &ops().sequence(id, 1, 0, false).reclaim_complete()).status, 0);
    for (sequenceid, denied, slots) in [(1, 0, 1..3), (2, WRITE, 1..3)] {
        list.set(false, true);
        let before = list.tries();
        for slot in slots.clone() {
            let file = [b'0' + slot as u8];
            let opens = ops().sequence(id, sequenceid, slot, false).put_root().open((BOTH, denied), b"me", &file, true);
            peer.send(&marked(&call_record(slot, NFS_4, 1, &opens.arguments(1)))).unwrap();
        }
        peer.poll_until(|output, _| {
            assert!(output.is_empty(), "an open before the list is durable");
            list.tries() == before + slots.len() as u64
        });
        list.set(false, false);
        for reply in peer.replies(slots.len()) {
            assert_eq!(Outcome::read(&accepted(&reply).1).unwrap().status, 0);
        }
    }
    let before = list.tries();
    let opens = ops().sequence(id, 3, 1, false).put_root().open((BOTH, WRITE), b"me", b"1", false);
    assert_eq!((of(&mut peer, &opens).status, list.tries()), (0, before), "a client on the list writes it no more");
}

// rule: nobody gets the lock of a client that has lost it before the loss is on stable storage
#[test]
fn a_lost_lock_is_given_to_another_only_once_a_later_server_would_know_of_the_loss() {
    const DELAY: u32 = 10_008;
    for fails in [false, true] {
        let list = Arc::new(SlowList::default());
        let world = World::new();
        world.server.offer_version_4(ClientMemory { list: Some(Arc::clone(&list) as _), ..ClientMemory::default() });
        let mut one = Session::begin(Client::connect(world.serve()).unwrap(), b"one", 1).unwrap();
        let (by_one, file) = open(&mut one, (BOTH, WRITE), b"program", b"file");
        one.must(ops().put(&file).lock(EXCLUSIVE, WHOLE, by_one, b"owner")).unwrap();
        // The client loses this second file as well. The third file has no open of the client.
        let (_, other_file) = open(&mut one, (READ, WRITE), b"program", b"other");
        let mut two = second(&world);
        let (by_two, free) = open(&mut two, (BOTH, 0), b"program", b"free");
        let holder = world.volume.locks().held()[0].holder;
        list.set(fails, !fails);
        let before = list.tries();
        assert!(world.server.try_end_client(world.server.clients()[0].id));
        afflux_scratch::eventually("the list is on its way", || list.tries() > before);
        // The disk of the list holds up neither other files nor other clients.
        two.must(ops().put(&free).lock(EXCLUSIVE, WHOLE, by_two, b"owner")).unwrap();
        let has = || world.volume.locks().held().iter().any(|it| it.holder == holder && it.ranges == 1);
        assert!(has());
        let refused = two.call(root().open((BOTH, 0), b"program", b"file", false)).unwrap();
        assert_eq!(refused.status, DELAY);
        assert_eq!(two.call(ops().put(&other_file).write(ANONYMOUS, 0, 0, b"x")).unwrap().status, DELAY);
        assert!(has());
        // A client that comes meanwhile is on the list of the next try, too.
        let mut three = Session::begin(Client::connect(world.serve()).unwrap(), b"three", 1).unwrap();
        if fails {
            open(&mut three, (BOTH, 0), b"program", b"free");
        }
        list.set(false, false);
        loop {
            let outcome = two.call(root().open((BOTH, 0), b"program", b"file", false).get_handle()).unwrap();
            match outcome.status {
                DELAY => {}
                status => {
                    assert_eq!(status, 0);
                    break;
                }
            }
        }
        assert!(!has());
        let kept = list.kept.lock().unwrap().iter().filter(|name| **name != u64::MAX).count();
        assert_eq!(kept, 1 + usize::from(fails), "two, and three if it has come");
    }
}

// rule: version 3 waits for clients of an earlier server whose opens may deny its uses, and no longer than they may
// reclaim them
#[test]
fn a_use_by_version_3_waits_for_a_client_that_may_have_denied_it() {
    const DELAY: u32 = 10_008;
    let list = Arc::new(List::default());
    let mut world = World::new();
    world.server.offer_version_4(ClientMemory { list: Some(Arc::clone(&list) as _), ..ClientMemory::default() });
    let mut one = Session::begin(Client::connect(world.serve()).unwrap(), b"one", 1).unwrap();
    let (_, file) = open(&mut one, (BOTH, 0), b"program", b"file");
    let undenied = list.0.lock().unwrap().clone();
    open(&mut one, (BOTH, WRITE), b"program", b"other");
    let denied = list.0.lock().unwrap().clone();
    assert_eq!((undenied.len(), denied.len()), (1, 2));
    for (left, status) in [(undenied, 0), (denied, DELAY)] {
        let held = world.volume.locks().held();
        held.iter().for_each(|it| world.volume.locks().release_holder(it.holder, Nanos(0)));
        world.volume.locks().end_grace(Nanos(0));
        world.server = afflux_nfs::Server::new(Arc::clone(&world.volume), afflux_nfs::AdmittedPeers::AnyPeer);
        world.server.offer_version_4(ClientMemory {
            previous_names: left,
            list: Some(Arc::clone(&list) as _),
            ..Default::default()
        });
        assert_eq!(world.server.missing_clients(), 1);
        let mut peer = Client::connect(world.serve()).unwrap();
        let mut write = || peer.write(&file, 0, b"x", afflux_nfs_client::stable_how::UNSTABLE);
        assert_eq!(write().map_or_else(|error| error.status().unwrap(), |_| 0), status);
        // It is back, and wants nothing.
        let mut one = Session::begin_reclaiming(Client::connect(world.serve()).unwrap(), b"one", 1).unwrap();
        one.must(ops().reclaim_complete()).unwrap();
        assert_eq!(write().map_or_else(|error| error.status().unwrap(), |_| 0), 0);
    }
}
