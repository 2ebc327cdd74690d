//! Hostile or faulty clients of version 4 get the protocol's errors, and other clients go on.

use std::net::Ipv4Addr;

use afflux_nfs_client::Client;
use afflux_nfs_client::sessions::{CURRENT, Compound, NFS_4, Outcome, OutcomeReader, Session, Stateid, compound};

use crate::compounds::{BOTH, begun, open, ops, root, status};
use crate::peer::Peer;
use crate::world::World;

const SHARED: u32 = 1;
const EXCLUSIVE: u32 = 2;
const EXCLUSIVE_WAITING: u32 = 4;
const WHOLE: (u64, u64) = (0, u64::MAX);
const NOT_SAME: u32 = 10_027;
const BAD_COOKIE: u32 = 10_003;

/// A client of another machine, over a machine of the protocol.
struct Stranger {
    peer: Peer,
    session: [u8; 16],
    sequence: u32,
}

impl Stranger {
    fn begin(world: &World, flags: u32) -> Self {
        let mut peer = Peer::new(world, Ipv4Addr::new(192, 0, 2, 66));
        let known = of(&mut peer, &ops().exchange_id(b"stranger", *b"verifier", 0));
        let (number, sequence) = (word64(&known.results[8..]), word(&known.results[16..]));
        let made = of(&mut peer, &ops().create_session_with(number, sequence, 64, 8, flags));
        let session = *made.results[8..].first_chunk().unwrap();
        let mut stranger = Self { peer, session, sequence: 0 };
        assert_eq!(stranger.call(&ops().reclaim_complete()).status, 0);
        stranger
    }

    fn call(&mut self, operations: &Compound) -> Outcome {
        self.sequence += 1;
        let first = ops().sequence(self.session, self.sequence, 0, false);
        of(&mut self.peer, &first.followed_by(operations))
    }
}

fn of(peer: &mut Peer, operations: &Compound) -> Outcome {
    Outcome::read(&peer.call(NFS_4, 1, &operations.arguments(1))).unwrap()
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(*bytes.first_chunk().unwrap())
}

fn word64(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(*bytes.first_chunk().unwrap())
}

/// The stateid of an OPEN behind a SEQUENCE and another operation, and the rest of its result.
fn read_open(outcome: &Outcome) -> (Stateid, OutcomeReader<'_>) {
    let mut reader = outcome.reader();
    reader.skip_sequence().unwrap();
    reader.next_result().unwrap();
    assert_eq!(reader.next_result(), Ok((18, 0)));
    (reader.stateid().unwrap(), reader)
}

/// The stateid of an operation that begins so many bytes before the end of the results.
fn stateid_before_end(outcome: &Outcome, bytes: usize) -> Stateid {
    let at = &outcome.results[outcome.results.len() - bytes..];
    (word(at), *at[4..].first_chunk().unwrap())
}

#[test]
fn forged_sessions_verifiers_and_cookies_are_refused() {
    let (_world, mut session) = begun(1);
    let (id, number) = (session.id, session.number);
    let mut forged = id;
    forged[15] ^= 1;
    let client = &mut session.client;
    let mut alone = |operations: Compound| compound(client, 1, &operations).unwrap().status;
    assert_eq!(alone(ops().sequence(forged, 2, 0, false).put_root()), status::BADSESSION);
    assert_eq!(alone(ops().raw(44, &forged)), status::BADSESSION);
    const BOTH_WAYS: [u8; 8] = [0, 0, 0, 3, 0, 0, 0, 0];
    assert_eq!(alone(ops().raw(41, &[&forged[..], &BOTH_WAYS].concat())), status::BADSESSION);
    // A client's second session has the next number, and only that.
    assert_eq!(alone(ops().create_session(number, 77, 16, 8)), status::SEQ_MISORDERED);
    assert_eq!(alone(ops().create_session(number ^ 1 << 40, 2, 16, 8)), status::STALE_CLIENTID);
    // An update of a client that claims to be the same run, but is not.
    const UPDATE: u32 = 0x4000_0000;
    assert_eq!(alone(ops().exchange_id(b"test", *b"forged!!", UPDATE)), NOT_SAME);
    session.must(root().make_directory(b"d")).unwrap();
    assert_eq!(session.call(root().list(1 << 60, 4096, &[])).unwrap().status, BAD_COOKIE);
    session.must(root().list(0, 4096, &[])).unwrap();
}

#[test]
fn a_client_that_fills_the_tables_of_locks_and_opens_gets_an_error_that_ends_its_call_and_others_go_on() {
    const A_COMPOUND: u64 = 60;
    const LOCKS_OF_A_FILE: u64 = 65_536 / 4;
    const OPENS_OF_A_PARTY: u64 = 65_536 / 2;
    let (world, mut session) = begun(1);
    std::fs::write(world.path.join("full"), "bytes").unwrap();
    let mut stranger = Stranger::begin(&world, 0);
    let opens = |owner: &[u8]| root().open((BOTH, 0), owner, b"file", true);
    let opened = stranger.call(&opens(b"first").get_handle());
    let (stateid, mut reader) = read_open(&opened);
    reader.skip_open().unwrap();
    reader.next_result().unwrap();
    let file = reader.opaque().unwrap().to_vec();
    // Every second byte: no two locks are joined.
    let first = stranger.call(&ops().put(&file).lock(SHARED, (0, 1), stateid, b"owner"));
    let mut locker = stateid_before_end(&first, 16);
    let (mut locks, mut last) = (1, 0);
    while last == 0 {
        assert!(locks <= LOCKS_OF_A_FILE, "{locks} locks of one file");
        let more = (locks..locks + A_COMPOUND).fold(ops().put(&file), |ops, at| {
            let step = (at - locks) as u32;
            ops.lock_more(SHARED, (at * 2, 1), (locker.0 + step, locker.1))
        });
        let outcome = stranger.call(&more);
        let done = u64::from(outcome.count) - 2 - u64::from(outcome.status != 0);
        (locks, last, locker.0) = (locks + done, outcome.status, locker.0 + done as u32);
    }
    assert_eq!((locks, last), (LOCKS_OF_A_FILE, status::SERVERFAULT));
    // OPEN by the current file's handle, each by another owner.
    let mut opened = 1;
    last = 0;
    while last == 0 {
        assert!(opened <= OPENS_OF_A_PARTY, "{opened} opens");
        let more = (opened..opened + A_COMPOUND).fold(ops().put(&file), |ops, owner| {
            let head = [0, 1, 0, 0, 0, 8_u32].map(u32::to_be_bytes).concat();
            ops.raw(18, &[&head[..], &owner.to_be_bytes(), &0_u32.to_be_bytes(), &4_u32.to_be_bytes()].concat())
        });
        let outcome = stranger.call(&more);
        opened += u64::from(outcome.count) - 2 - u64::from(outcome.status != 0);
        last = outcome.status;
    }
    assert_eq!((opened, last), (OPENS_OF_A_PARTY, status::SERVERFAULT));
    // Its OPEN that would cut a file off leaves the bytes as they are.
    assert_eq!(stranger.call(&root().open_empty((BOTH, 0), b"cuts", b"full")).status, status::SERVERFAULT);
    assert_eq!(std::fs::read(world.path.join("full")).unwrap(), b"bytes");
    // Others open and lock, also that file's other bytes.
    let (stateid, handle) = open(&mut session, (BOTH, 0), b"owner", b"other");
    session.must(ops().put(&handle).lock(EXCLUSIVE, WHOLE, stateid, b"owner")).unwrap();
    session.must(opens(b"owner").read(CURRENT, 0, 1)).unwrap();
    // The other bytes of the file that the stranger has filled with locks are free.
    let (stateid, _) = open(&mut session, (BOTH, 0), b"owner", b"file");
    session.must(ops().put(&file).lock(EXCLUSIVE, (1, 1), stateid, b"owner")).unwrap();
}

#[test]
fn a_client_that_wants_all_sessions_gets_an_error_that_ends_its_call_and_others_go_on() {
    const SESSIONS_OF_A_PARTY: usize = 1024 / 2;
    let (world, mut session) = begun(1);
    let mut stranger = Stranger::begin(&world, 0);
    let known = of(&mut stranger.peer, &ops().exchange_id(b"stranger", *b"verifier", 0));
    let (number, mut sequence) = (word64(&known.results[8..]), word(&known.results[16..]));
    let last = loop {
        let made = of(&mut stranger.peer, &ops().create_session(number, sequence, 64, 1));
        if made.status != 0 {
            break made.status;
        }
        sequence += 1;
    };
    // The first is that of the beginning, with the number 1.
    assert_eq!((sequence as usize - 1, last), (SESSIONS_OF_A_PARTY, status::SERVERFAULT));
    session.must(root()).unwrap();
    Session::begin(Client::connect(world.serve()).unwrap(), b"another", 1).unwrap();
    assert_eq!(stranger.call(&root()).status, 0);
}

#[test]
fn a_client_that_never_answers_on_the_back_channel_loses_its_turn_and_holds_nobody_up() {
    const BACK_CHANNEL: u32 = 2;
    let (world, mut holder) = begun(1);
    let (held, file) = open(&mut holder, (BOTH, 0), b"owner", b"file");
    holder.must(ops().put(&file).lock(EXCLUSIVE, WHOLE, held, b"owner")).unwrap();
    let mut silent = Stranger::begin(&world, BACK_CHANNEL);
    let opened = silent.call(&root().open((BOTH, 0), b"silent", b"file", false));
    let (stateid, _) = read_open(&opened);
    for owner in 0..100_u32 {
        let wanted = ops().put(&file).lock(EXCLUSIVE_WAITING, (owner.into(), 1), stateid, &owner.to_be_bytes());
        assert_eq!(silent.call(&wanted).status, status::DENIED);
    }
    holder.must(ops().put(&file).close(held)).unwrap();
    // One call came, and gets no answer. The others wait for it.
    assert_eq!(silent.peer.replies(1).len(), 1);
    let mut other = Session::begin(Client::connect(world.serve()).unwrap(), b"other", 1).unwrap();
    let (stateid, _) = open(&mut other, (BOTH, 0), b"owner", b"file");
    afflux_scratch::eventually("the turns of the silent client are over", || {
        other.call(ops().put(&file).lock(EXCLUSIVE, WHOLE, stateid, b"owner")).unwrap().status == 0
    });
    // Its own calls go on as well.
    assert_eq!(silent.call(&root()).status, 0);
}
