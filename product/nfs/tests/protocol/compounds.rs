//! Version 4 over sockets and over machines: the effects of operations, and the errors for bad input.

use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use afflux_frontend::UserGroups;
use afflux_nfs::{ClientMemory, Rules, Squash};
use afflux_nfs_client::sessions::{ANONYMOUS, CURRENT, Compound, NFS_4, Outcome, Session, Stateid, compound};
use afflux_nfs_client::{Client, Error, User};

use crate::peer::{Peer, accepted, call_record, marked};
use crate::world::{CLIENT, World};

pub(crate) const READ: u32 = 1;
pub(crate) const WRITE: u32 = 2;
pub(crate) const BOTH: u32 = 3;

/// Statuses by their names in RFC 8881.
pub(crate) mod status {
    pub(crate) const NOENT: u32 = 2;
    pub(crate) const EXIST: u32 = 17;
    pub(crate) const ISDIR: u32 = 21;
    pub(crate) const INVAL: u32 = 22;
    pub(crate) const NAMETOOLONG: u32 = 63;
    pub(crate) const BADHANDLE: u32 = 10_001;
    pub(crate) const NOTSUPP: u32 = 10_004;
    pub(crate) const SERVERFAULT: u32 = 10_006;
    pub(crate) const DELAY: u32 = 10_008;
    pub(crate) const DENIED: u32 = 10_010;
    pub(crate) const LOCKED: u32 = 10_012;
    pub(crate) const SHARE_DENIED: u32 = 10_015;
    pub(crate) const NOFILEHANDLE: u32 = 10_020;
    pub(crate) const MINOR_VERS_MISMATCH: u32 = 10_021;
    pub(crate) const STALE_CLIENTID: u32 = 10_022;
    pub(crate) const OLD_STATEID: u32 = 10_024;
    pub(crate) const BAD_STATEID: u32 = 10_025;
    pub(crate) const LOCKS_HELD: u32 = 10_037;
    pub(crate) const OPENMODE: u32 = 10_038;
    pub(crate) const BADXDR: u32 = 10_036;
    pub(crate) const BADNAME: u32 = 10_041;
    pub(crate) const OP_ILLEGAL: u32 = 10_044;
    pub(crate) const BADSESSION: u32 = 10_052;
    pub(crate) const BADSLOT: u32 = 10_053;
    pub(crate) const SEQ_MISORDERED: u32 = 10_063;
    pub(crate) const SEQUENCE_POS: u32 = 10_064;
    pub(crate) const TOO_MANY_OPS: u32 = 10_070;
    pub(crate) const OP_NOT_IN_SESSION: u32 = 10_071;
    pub(crate) const SEQ_FALSE_RETRY: u32 = 10_076;
    pub(crate) const BAD_HIGH_SLOT: u32 = 10_077;
    pub(crate) const NOT_ONLY_OP: u32 = 10_081;
}

pub(crate) fn ops() -> Compound {
    Compound::default()
}

pub(crate) fn root() -> Compound {
    ops().put_root()
}

/// A world that offers version 4, and a session over a socket.
pub(crate) fn begun(minor: u32) -> (World, Session) {
    let world = World::new();
    world.server.offer_version_4(ClientMemory::default());
    let client = Client::connect(world.serve()).unwrap();
    let session = Session::begin(client, b"test", minor).unwrap();
    (world, session)
}

/// Opens a file in the root, and makes it. Returns the stateid and the handle.
pub(crate) fn open(session: &mut Session, rights: (u32, u32), owner: &[u8], name: &[u8]) -> (Stateid, Vec<u8>) {
    let opened = session.must(root().open(rights, owner, name, true).get_handle()).unwrap();
    let mut reader = opened.reader();
    assert_eq!(reader.next_result(), Ok((24, 0)));
    assert_eq!(reader.next_result(), Ok((18, 0)));
    let stateid = reader.stateid().unwrap();
    reader.skip_open().unwrap();
    assert_eq!(reader.next_result(), Ok((10, 0)));
    let handle = reader.opaque().unwrap().to_vec();
    reader.end().unwrap();
    (stateid, handle)
}

#[test]
fn a_file_is_made_written_read_and_closed_in_a_session() {
    for minor in [1, 2] {
        let (world, mut session) = begun(minor);
        let (stateid, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
        let data: Vec<u8> = (0..9001_u32).map(|at| at as u8).collect();
        session.must(ops().put(&file).write(stateid, 0, 0, &data).commit()).unwrap();
        // A READ in the middle of a compound: its bytes stand between results.
        let read = session.must(ops().put(&file).read(stateid, 1, 9000).attributes(&[1 << 4 | 1 << 20])).is_ok();
        assert!(!read, "a reply of 9,000 bytes is not kept, and this one was to be");
        session.keeps = false;
        let read = session.must(ops().put(&file).read(stateid, 1, 9000).attributes(&[1 << 4 | 1 << 20])).unwrap();
        let mut reader = read.reader();
        assert_eq!(reader.next_result(), Ok((22, 0)));
        assert_eq!((reader.next_result(), reader.u32()), (Ok((25, 0)), Ok(1)));
        assert_eq!(reader.opaque(), Ok(&data[1..]));
        assert_eq!(reader.next_result(), Ok((9, 0)));
        let (words, values) = reader.attributes().unwrap();
        let inode = std::fs::metadata(world.path.join("file")).unwrap().ino();
        assert_eq!(words, [1 << 4 | 1 << 20]);
        assert_eq!(values, [9001_u64.to_be_bytes(), inode.to_be_bytes()].concat());
        reader.end().unwrap();
        session.must(ops().put(&file).close(stateid)).unwrap();
        assert_eq!(std::fs::read(world.path.join("file")).unwrap(), data);
        assert_eq!(session.call(ops().put(&file).read(stateid, 0, 1)).unwrap().status, status::BAD_STATEID);
    }
}

/// A machine with a session of some slots.
struct Machine {
    peer: Peer,
    session: [u8; 16],
    /// The last number of each slot.
    numbers: [u32; 5],
}

impl Machine {
    fn begin(world: &World) -> Self {
        world.server.offer_version_4(ClientMemory::default());
        let mut peer = Peer::new(world, CLIENT);
        let mut call = |it: Compound| Outcome::read(&peer.call(NFS_4, 1, &it.arguments(1))).unwrap().results;
        let client = call(ops().exchange_id(b"machine", [7; 8], 0))[8..16].try_into().unwrap();
        let made = call(ops().create_session(u64::from_be_bytes(client), 1, 16, 5));
        let mut machine = Self { peer, session: made[8..24].try_into().unwrap(), numbers: [0; 5] };
        machine.together(&[ops().reclaim_complete()]);
        machine
    }

    /// Sends calls together, each on a slot of its own.
    fn send(&mut self, calls: &[Compound]) {
        let slots = (0..).zip(&mut self.numbers).zip(calls);
        let records = slots.map(|((slot, number), operations)| {
            *number += 1;
            let compound = ops().sequence(self.session, *number, slot, false).followed_by(operations);
            marked(&call_record(slot, NFS_4, 1, &compound.arguments(2)))
        });
        let records: Vec<Vec<u8>> = records.collect();
        self.peer.send(&records.concat()).unwrap();
    }

    /// The outcomes of calls that reach the server together.
    fn together(&mut self, calls: &[Compound]) -> Vec<Outcome> {
        self.send(calls);
        let mut replies: Vec<_> = self.peer.replies(calls.len()).iter().map(|reply| accepted(reply)).collect();
        replies.sort();
        replies.iter().map(|(_, results)| Outcome::read(results).unwrap()).collect()
    }
}

#[test]
fn calls_that_come_together_have_each_their_own_object() {
    const FILEID: [u32; 1] = [1 << 20];
    let (world, [a, b]) = with_files();
    let mut machine = Machine::begin(&world);
    let get = |file: &[u8]| ops().put(file).attributes(&FILEID);
    machine.together(&[get(&a), get(&b)]);
    let outcomes = machine.together(&[get(&a), get(&a), get(&b), ops().attributes(&FILEID), get(&a)]);
    let found = outcomes.iter().map(|it| (it.status, it.results.last_chunk().copied().map_or(0, u64::from_be_bytes)));
    let [of_a, of_b] = ["a", "b"].map(|name| (0, std::fs::metadata(world.path.join(name)).unwrap().ino()));
    let mut found: Vec<_> = found.collect();
    assert_eq!(found.remove(3).0, status::NOFILEHANDLE, "the object of another call");
    assert_eq!(found, [of_a, of_a, of_b, of_a]);
}

#[test]
fn a_connection_holds_no_file_between_its_calls() {
    let (world, [a, _]) = with_files();
    let mut machine = Machine::begin(&world);
    let holders = || Arc::strong_count(&world.volume.try_resolve(&a).unwrap());
    let before = holders();
    let outcomes = machine.together(&[ops().put(&a).attributes(&[1 << 4]), ops().put(&a).save()]);
    assert_eq!(outcomes.iter().map(|it| it.status).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(holders(), before);
}

/// A world with two files, and their handles.
fn with_files() -> (World, [Vec<u8>; 2]) {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let files = [&b"a"[..], b"b"].map(|name| world.create(&mut peer, &root, name).data.to_vec());
    (world, files)
}

#[test]
fn several_reads_of_one_compound_stand_in_their_places() {
    let (_world, mut session) = begun(1);
    let (stateid, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    let data: Vec<u8> = (0..40_000_u32).map(|at| (at / 7) as u8).collect();
    session.must(ops().put(&file).write(stateid, 0, 2, &data)).unwrap();
    session.keeps = false;
    let reads = ops().put(&file).read(stateid, 0, 4096).read(stateid, 5, 3).read(stateid, 8192, 20_001).get_handle();
    let read = session.must(reads).unwrap();
    let mut reader = read.reader();
    reader.next_result().unwrap();
    for range in [0..4096, 5..8, 8192..28_193] {
        assert_eq!((reader.next_result(), reader.u32()), (Ok((25, 0)), Ok(0)));
        assert_eq!(reader.opaque(), Ok(&data[range]));
    }
    assert_eq!((reader.next_result(), reader.opaque()), (Ok((10, 0)), Ok(&file[..])));
    reader.end().unwrap();
}

#[test]
fn names_are_made_renamed_linked_listed_and_removed() {
    let (world, mut session) = begun(1);
    session.must(root().make_directory(b"d").make_link(b"x", b"y")).unwrap();
    let (_, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    session.must(ops().put(&file).save().put_root().lookup(b"d").link(b"hard")).unwrap();
    session.must(root().save().lookup(b"d").rename(b"file", b"moved")).unwrap();
    let mut names: Vec<_> =
        std::fs::read_dir(world.path.join("d")).unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["hard", "moved", "x"]);
    let listed = session.must(root().lookup(b"d").list(0, 4096, &[1 << 20])).unwrap();
    let mut reader = listed.reader();
    reader.next_result().unwrap();
    reader.next_result().unwrap();
    assert_eq!(reader.next_result(), Ok((26, 0)));
    reader.skip(8).unwrap();
    let (mut listed, mut cookies) = (Vec::new(), Vec::new());
    while reader.u32() == Ok(1) {
        cookies.push(reader.u64().unwrap());
        listed.push(reader.opaque().unwrap().to_vec());
        let (_, fileid) = reader.attributes().unwrap();
        assert_ne!(fileid, [0; 8]);
    }
    assert_eq!(reader.u32(), Ok(1), "the end");
    listed.sort();
    assert_eq!(listed, [b"hard".to_vec(), b"moved".to_vec(), b"x".to_vec()]);
    assert!(cookies.iter().all(|cookie| *cookie > 2));
    session.must(root().lookup(b"d").remove(b"hard").remove(b"moved").remove(b"x").put_root().remove(b"d")).unwrap();
    assert!(!world.path.join("d").exists());
    // A rename to another name of the same object does nothing.
    let (_, file) = open(&mut session, (BOTH, 0), b"owner", b"one");
    session.must(ops().put(&file).save().put_root().link(b"two").save().rename(b"one", b"two")).unwrap();
    assert!(world.path.join("one").exists() && world.path.join("two").exists());
}

#[test]
fn a_compound_that_waits_goes_on_where_it_was() {
    let (_world, mut session) = begun(1);
    // Each CREATE waits for the host; the one after it goes on from there, and none runs twice.
    let made =
        session.must(root().make_directory(b"a").make_directory(b"b").make_directory(b"c").get_handle()).unwrap();
    assert_eq!(made.count, 6);
    let failed =
        session.call(root().make_directory(b"d").put_root().make_directory(b"a").make_directory(b"e")).unwrap();
    assert_eq!((failed.status, failed.count), (status::EXIST, 5));
    session.must(root().lookup(b"d")).unwrap();
    assert_eq!(session.call(root().lookup(b"e")).unwrap().status, status::NOENT);
}

#[test]
fn a_repeated_call_gets_its_first_reply_also_over_another_connection() {
    let (world, mut session) = begun(1);
    let make = || root().make_directory(b"once");
    let first = session.call(make()).unwrap();
    assert_eq!(first.status, 0);
    assert_eq!(session.again(make()).unwrap(), first);
    session.client = Client::connect(world.serve()).unwrap();
    assert_eq!(session.again(make()).unwrap(), first);
    // Another call with its number is none of it.
    assert_eq!(session.again(root().make_directory(b"twice")).unwrap().status, status::SEQ_FALSE_RETRY);
    assert_eq!(session.call(make()).unwrap().status, status::EXIST, "a new call is carried out");
}

#[test]
fn an_open_file_can_be_used_without_its_name_and_against_its_mode() {
    let (_world, mut session) = begun(1);
    let (stateid, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    session.must(ops().put(&file).set_mode(0)).unwrap();
    session.must(ops().put(&file).write(stateid, 0, 2, b"data")).unwrap();
    session.must(root().remove(b"file")).unwrap();
    session.must(ops().put(&file).read(stateid, 0, 4)).unwrap();
    session.must(ops().put(&file).close(stateid)).unwrap();
    assert_ne!(session.call(ops().put(&file).attributes(&[1 << 4])).unwrap().status, 0);
}

#[test]
fn a_file_is_cut_off_only_by_an_open_that_is_granted() {
    if !rustix::process::geteuid().is_root() {
        return afflux_scratch::skipped!("only root can be several users");
    }
    const ACCES: u32 = 13;
    let (world, mut session) = begun(1);
    let rules = Rules::of_callers(Arc::new(|uid| UserGroups { gid: Some(uid), further: Vec::new() }));
    let rules = Rules { networks: vec!["127.0.0.0/8".parse().unwrap()], any_port: true, squash: Squash::None, ..rules };
    world.server.admit(rules.into());
    let (writer, file) = open(&mut session, (BOTH, 0), b"one", b"file");
    session.must(ops().put(&file).write(writer, 0, 2, b"data").close(writer)).unwrap();
    let len = || std::fs::metadata(world.path.join("file")).unwrap().len();
    let of = |session: &mut Session, it| session.call(it).unwrap().status;
    let (reader, _) = open(&mut session, (READ, WRITE), b"one", b"file");
    assert_eq!(of(&mut session, root().open_empty((READ, 0), b"two", b"file")), status::SHARE_DENIED);
    assert_eq!(of(&mut session, ops().put(&file).set_size(ANONYMOUS, 0)), status::LOCKED);
    assert_eq!(len(), 4);
    session.must(ops().put(&file).close(reader)).unwrap();
    // A user who may only read: the file stays, and the OPEN leaves nothing behind, neither rights nor denials.
    let mut client = Client::connect(world.serve()).unwrap();
    client.set_user(Some(User { uid: 4001, gid: 4001 }));
    let mut user = Session::begin(client, b"user", 1).unwrap();
    assert_eq!(of(&mut user, root().open_empty((READ, READ), b"new", b"file")), ACCES);
    session.must(root().open((READ, WRITE), b"two", b"file", false).close(CURRENT)).unwrap();
    let read = user.must(root().open((READ, 0), b"new", b"file", false)).unwrap();
    let mut reader = read.reader();
    (0..2).for_each(|_| assert!(reader.next_result().is_ok()));
    let held = reader.stateid().unwrap();
    assert_eq!(of(&mut user, root().open_empty((READ, READ), b"new", b"file")), ACCES);
    session.must(root().open((READ, 0), b"two", b"file", false).close(CURRENT)).unwrap();
    assert_eq!((held.0, len()), (1, 4));
    user.must(ops().put(&file).read(held, 0, 4).close(held)).unwrap();
    session.must(root().open_empty((READ, 0), b"two", b"file").close(CURRENT)).unwrap();
    assert_eq!(len(), 0);
}

#[test]
fn shares_keep_others_out_and_modes_are_kept() {
    let (_world, mut session) = begun(1);
    let (reader, file) = open(&mut session, (READ, WRITE), b"one", b"file");
    let refused = session.call(root().open((WRITE, 0), b"two", b"file", false)).unwrap();
    assert_eq!(refused.status, status::SHARE_DENIED);
    assert_eq!(session.call(ops().put(&file).write(reader, 0, 0, b"x")).unwrap().status, status::OPENMODE);
    assert_eq!(session.call(ops().put(&file).write(ANONYMOUS, 0, 0, b"x")).unwrap().status, status::LOCKED);
    session.must(ops().put(&file).close(reader)).unwrap();
    session.must(root().open((BOTH, 0), b"two", b"file", false).write(CURRENT, 0, 0, b"x").close(CURRENT)).unwrap();
    session.must(ops().put(&file).write(ANONYMOUS, 0, 0, b"y")).unwrap();
}

#[test]
fn sessions_and_state_of_others_are_unknown() {
    let (world, mut session) = begun(1);
    let (stateid, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    // A machine that knows the number of a session of this host.
    let mut other = Peer::new(&world, CLIENT);
    let outcome = |peer: &mut Peer, ops: &Compound| Outcome::read(&peer.call(NFS_4, 1, &ops.arguments(1))).unwrap();
    let stolen = outcome(&mut other, &ops().sequence(session.id, session.sequence + 1, 0, false));
    assert_eq!((stolen.status, stolen.count), (status::BADSESSION, 1));
    let ended = outcome(&mut other, &ops().raw(44, &session.id));
    assert_eq!(ended.status, status::BADSESSION);
    let ended = outcome(&mut other, &ops().raw(57, &session.number.to_be_bytes()));
    assert_eq!(ended.status, status::STALE_CLIENTID);
    // Another client of the same machine that knows the stateid.
    let mut second = Session::begin(Client::connect(world.serve()).unwrap(), b"second", 1).unwrap();
    assert_eq!(second.call(ops().put(&file).read(stateid, 0, 1)).unwrap().status, status::BAD_STATEID);
    assert_eq!(second.call(ops().put(&file).close(stateid)).unwrap().status, status::BAD_STATEID);
    // Forged ones, and one of an earlier server.
    let (sequence, mut bytes) = stateid;
    bytes[0] ^= 1;
    assert_eq!(session.call(ops().put(&file).read((sequence, bytes), 0, 1)).unwrap().status, status::BAD_STATEID);
    bytes[0] ^= 1;
    bytes[7] ^= 0x40;
    assert_eq!(session.call(ops().put(&file).read((sequence, bytes), 0, 1)).unwrap().status, status::BAD_STATEID);
    assert_eq!(
        session.call(ops().put(&file).read((sequence + 1, stateid.1), 0, 1)).unwrap().status,
        status::BAD_STATEID
    );
    session.must(ops().put(&file).read(stateid, 0, 1)).unwrap();
}

#[test]
fn a_session_that_was_ended_over_another_connection_is_unknown_over_all() {
    let (world, mut session) = begun(1);
    session.must(root()).unwrap();
    let mut other = Client::connect(world.serve()).unwrap();
    assert_eq!(compound(&mut other, 1, &ops().raw(44, &session.id)).unwrap().status, 0);
    for _ in 0..2 {
        assert_eq!(session.call(root()).unwrap().status, status::BADSESSION);
    }
    assert_eq!(compound(&mut other, 1, &ops().raw(44, &session.id)).unwrap().status, status::BADSESSION);
}

#[test]
fn sequences_out_of_order_are_refused_and_take_nothing() {
    let (_world, mut session) = begun(1);
    let id = session.id;
    let client = &mut session.client;
    let mut of = |sequence, slot| compound(client, 1, &ops().sequence(id, sequence, slot, false)).unwrap().status;
    assert_eq!(of(7, 0), status::SEQ_MISORDERED);
    assert_eq!(of(0, 0), status::SEQ_MISORDERED);
    assert_eq!(of(1, 8), status::BADSLOT);
    assert_eq!(of(1, u32::MAX), status::BADSLOT);
    assert_eq!(of(1, 7), 0);
    let high = [&id[..], &2_u32.to_be_bytes(), &7_u32.to_be_bytes(), &8_u32.to_be_bytes(), &[0; 4]].concat();
    assert_eq!(compound(client, 1, &ops().raw(53, &high)).unwrap().status, status::BAD_HIGH_SLOT);
    session.must(root()).unwrap();
}

#[test]
fn bad_compounds_get_the_protocols_errors() {
    let (_world, mut session) = begun(1);
    let client = &mut session.client;
    let mut alone = |minor, ops: &Compound| {
        let outcome = compound(client, minor, ops).unwrap();
        (outcome.status, outcome.count)
    };
    assert_eq!(alone(0, &root()), (status::MINOR_VERS_MISMATCH, 0));
    assert_eq!(alone(3, &root()), (status::MINOR_VERS_MISMATCH, 0));
    assert_eq!(alone(1, &ops()), (0, 0));
    assert_eq!(alone(1, &root()), (status::OP_NOT_IN_SESSION, 1));
    assert_eq!(alone(1, &ops().raw(9999, &[])), (status::OP_ILLEGAL, 1));
    assert_eq!(alone(1, &ops().exchange_id(b"x", [1; 8], 0).put_root()), (status::NOT_ONLY_OP, 1));
    assert_eq!(alone(1, &ops().exchange_id(&[7; 1025], [1; 8], 0)), (status::BADXDR, 1));
    assert_eq!(alone(1, &ops().exchange_id(b"x", [1; 8], 1 << 31)), (status::INVAL, 1));
    assert_eq!(alone(1, &ops().create_session(77, 1, 8, 8)), (status::STALE_CLIENTID, 1));
    let mut of = |ops: Compound| session.call(ops).unwrap().status;
    assert_eq!(of((0..10_000).fold(ops(), |ops, _| ops.put_root())), status::TOO_MANY_OPS);
    session.sequence -= 1;
    let mut of = |ops: Compound| session.call(ops).unwrap().status;
    assert_eq!(of(root().sequence([0; 16], 1, 0, false)), status::SEQUENCE_POS);
    assert_eq!(of(ops().get_handle()), status::NOFILEHANDLE);
    assert_eq!(of(ops().put(b"forged")), status::BADHANDLE);
    assert_eq!(of(root().raw(9, &[0xff; 4])), status::BADXDR);
    assert_eq!(of(root().lookup(b"")), status::INVAL);
    assert_eq!(of(root().lookup(b"..")), status::BADNAME);
    assert_eq!(of(root().lookup(&[b'n'; 256])), status::NAMETOOLONG);
    // READ_PLUS, which 4.1 does not have; LOCK without arguments; named attributes.
    assert_eq!(of(root().raw(68, &[])), status::OP_ILLEGAL);
    assert_eq!(of(root().raw(12, &[])), status::BADXDR);
    assert_eq!(of(root().raw(19, &[])), status::NOTSUPP);
}

#[test]
fn operations_of_4_2_that_are_not_there_are_not_supported() {
    let (_world, mut session) = begun(2);
    for number in (61..=70).filter(|number| ![62, 68, 69].contains(number)) {
        assert_eq!(session.call(root().raw(number, &[])).unwrap().status, status::NOTSUPP, "{number}");
    }
}

#[test]
fn names_that_are_no_text_are_names() {
    let (world, mut session) = begun(1);
    session.must(root().make_directory(b"\xff\xfe")).unwrap();
    session.must(root().lookup(b"\xff\xfe")).unwrap();
    let names: Vec<_> = std::fs::read_dir(&world.path).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names[0].as_encoded_bytes(), b"\xff\xfe");
}

#[test]
fn a_flood_of_introductions_costs_others_nothing() {
    let (world, mut session) = begun(1);
    let mut flood = Peer::new(&world, Ipv4Addr::new(192, 0, 2, 9));
    for at in 0..3_000_u32 {
        let introduced = ops().exchange_id(&at.to_be_bytes(), [0; 8], 0);
        assert_eq!(Outcome::read(&flood.call(NFS_4, 1, &introduced.arguments(1))).unwrap().status, 0);
    }
    let (clients, sessions, _) = world.server.held_by_version_4().unwrap();
    assert!(clients <= 2_049 && sessions == 1, "{clients} clients, {sessions} sessions");
    session.must(root()).unwrap();
}

#[test]
fn without_the_offer_version_4_is_a_version_that_is_not_there() {
    let world = World::new();
    let mut client = Client::connect(world.serve()).unwrap();
    let refused = compound(&mut client, 1, &root());
    assert!(matches!(refused, Err(Error::Refused { ref words }) if words.ends_with(&[2, 3, 3])), "{refused:?}");
}

#[test]
fn a_connection_that_ends_in_the_middle_leaves_the_slot_with_its_reply() {
    let (world, mut session) = begun(1);
    let first = ops().sequence(session.id, session.sequence + 1, 0, true).put_root().make_directory(b"late");
    session.client.send(NFS_4, 1, &first.arguments(1)).unwrap();
    session.client = Client::connect(world.serve()).unwrap();
    // The same call again: it still runs, or it has its reply. It is never carried out a second time, and its slot
    // does not stay taken.
    afflux_scratch::eventually("the slot is free", || {
        let outcome = compound(&mut session.client, 1, &first).unwrap();
        assert!([0, status::DELAY].contains(&outcome.status), "{outcome:?}");
        outcome.status == 0
    });
    assert!(world.path.join("late").exists());
}

#[test]
fn holes_are_found_made_and_filled_and_bytes_copied_in_pieces() {
    const ALLOCATE: u32 = 59;
    const COPY: u32 = 60;
    const DEALLOCATE: u32 = 62;
    const SEEK: u32 = 69;
    const PAST_END: u32 = 6;
    let (world, mut session) = begun(2);
    let (stateid, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    let of = |words: &[u64]| -> Vec<u8> {
        let stateid = [&stateid.0.to_be_bytes()[..], &stateid.1].concat();
        [stateid, words.iter().flat_map(|word| word.to_be_bytes()).collect()].concat()
    };
    session.must(ops().put(&file).write(stateid, 1 << 20, 0, b"far away")).unwrap();
    let mut seek = |offset: u64, what: u32| {
        let seeks = ops().put(&file).raw(SEEK, &[of(&[offset]), what.to_be_bytes().to_vec()].concat());
        let outcome = session.call(seeks).unwrap();
        let mut reader = outcome.reader();
        reader.skip_sequence().unwrap();
        reader.next_result().unwrap();
        assert_eq!(reader.next_result(), Ok((SEEK, outcome.status)));
        (outcome.status == 0).then(|| (reader.u32().unwrap(), reader.u64().unwrap())).ok_or(outcome.status)
    };
    assert_eq!((seek(0, 0), seek(0, 1)), (Ok((0, 1 << 20)), Ok((0, 0))));
    assert_eq!((seek(1 << 20, 1), seek(2 << 20, 0)), (Ok((1, (1 << 20) + 8)), Err(PAST_END)));
    assert_eq!(seek(0, 7), Err(10_090));
    session.must(ops().put(&file).raw(ALLOCATE, &of(&[0, 2 << 20]))).unwrap();
    assert_eq!(std::fs::metadata(world.path.join("file")).unwrap().len(), 2 << 20);
    // Clients send no COMMIT after it: what they wrote there is as durable as the space.
    assert_eq!(std::fs::read(world.path.join("file")).unwrap()[1 << 20..][..8], *b"far away");
    session.must(ops().put(&file).write(stateid, 0, 2, &[7; 8192]).raw(DEALLOCATE, &of(&[0, 4096]))).unwrap();
    session.keeps = false;
    let read = session.must(ops().put(&file).read(stateid, 4095, 2)).unwrap();
    assert_eq!(read.results[read.results.len() - 4..][..2], [0, 7]);
    assert_eq!(session.call(ops().put(&file).raw(ALLOCATE, &of(&[5, 0]))).unwrap().status, status::INVAL);
    // A copy to another file, of all and by parts, and one that overlaps itself.
    let (target, copy) = open(&mut session, (BOTH, 0), b"owner", b"copy");
    let copies = |from: u64, to: u64, count: u64, into: Stateid| {
        let stateid = [&into.0.to_be_bytes()[..], &into.1].concat();
        let places: Vec<u8> = [from, to, count].iter().flat_map(|word| word.to_be_bytes()).collect();
        [of(&[]), stateid, places, [1_u32, 1, 0].iter().flat_map(|word| word.to_be_bytes()).collect()].concat()
    };
    let made = session.must(ops().put(&file).save().put(&copy).raw(COPY, &copies(4096, 10, 0, target))).unwrap();
    let mut reader = made.reader();
    for _ in 0..3 {
        reader.next_result().unwrap();
    }
    assert_eq!(reader.next_result(), Ok((COPY, 0)));
    assert_eq!((reader.u32(), reader.u64(), reader.u32()), (Ok(0), Ok((2 << 20) - 4096), Ok(0)));
    session.must(ops().put(&copy).commit().put(&file).commit()).unwrap();
    let (old, new) = (std::fs::read(world.path.join("file")).unwrap(), std::fs::read(world.path.join("copy")).unwrap());
    assert!(new[10..] == old[4096..] && new[..10] == [0; 10]);
    let overlaps = ops().put(&file).save().raw(COPY, &copies(0, 10, 100, stateid));
    assert_eq!(session.call(overlaps).unwrap().status, status::INVAL);
    assert_eq!(
        session.call(ops().put(&copy).raw(COPY, &copies(0, 0, 1, target))).unwrap().status,
        status::NOFILEHANDLE
    );
    let behind = ops().put(&file).save().put(&copy).raw(COPY, &copies(3 << 20, 0, 1, target));
    assert_eq!(session.call(behind).unwrap().status, status::INVAL);
}

/// The arguments of a CLONE.
fn clones(from: Stateid, to: Stateid, words: [u64; 3]) -> Vec<u8> {
    let words: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    [&from.0.to_be_bytes()[..], &from.1, &to.0.to_be_bytes(), &to.1, &words].concat()
}

#[test]
fn a_clone_is_durable_bytes_of_another_file_or_it_is_refused() {
    const CLONE: u32 = 71;
    const CLONE_BLKSIZE: u32 = 77;
    let (world, mut session) = begun(2);
    let (from, source) = open(&mut session, (BOTH, 0), b"owner", b"source");
    let (to, target) = open(&mut session, (BOTH, 0), b"owner", b"target");
    let bytes: Vec<u8> = (0..10_000_u32).map(|at| at as u8).collect();
    session.must(ops().put(&source).write(from, 0, 0, &bytes)).unwrap();
    let mut clone = |from, to, words| {
        session.call(ops().put(&source).save().put(&target).raw(CLONE, &clones(from, to, words))).unwrap().status
    };
    let is_shared = match clone(from, to, [0, 4096, 0]) {
        0 => true,
        status::NOTSUPP => false,
        other => panic!("status {other}"),
    };
    // Without a COMMIT: a CLONE has no verifier.
    let found = std::fs::read(world.path.join("target")).unwrap();
    assert!(found == if is_shared { [vec![0; 4096], bytes].concat() } else { Vec::new() });
    let refused = if is_shared { status::INVAL } else { status::NOTSUPP };
    assert!([refused, status::INVAL].contains(&clone(from, to, [1, 0, 4096])));
    assert!([refused, status::INVAL].contains(&clone(from, to, [0, 0, 1 << 20])));
    let (reader, _) = open(&mut session, (READ, 0), b"reader", b"target");
    let by_reader = ops().put(&source).save().put(&target).raw(CLONE, &clones(from, reader, [0, 0, 4096]));
    assert_eq!(session.call(by_reader).unwrap().status, status::OPENMODE);
    let alone = ops().put(&target).raw(CLONE, &clones(from, to, [0, 0, 4096]));
    assert_eq!(session.call(alone).unwrap().status, status::NOFILEHANDLE);
    let asked = session.must(ops().put(&target).attributes(&[0, 0, 1 << (CLONE_BLKSIZE - 64)])).unwrap();
    assert_eq!(asked.results[asked.results.len() - 4..], 4096_u32.to_be_bytes());
}

/// The number of READ_PLUS.
pub(crate) const READ_PLUS: u32 = 68;

/// The arguments of a READ.
pub(crate) fn places((sequence, other): Stateid, offset: u64, count: u32) -> Vec<u8> {
    [&sequence.to_be_bytes()[..], &other, &offset.to_be_bytes(), &count.to_be_bytes()].concat()
}

#[test]
fn a_read_plus_is_one_segment_of_data_also_of_a_hole_and_none_at_the_end() {
    let (_world, mut session) = begun(2);
    session.keeps = false;
    let (stateid, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    session.must(ops().put(&file).write(stateid, 10_000, 0, b"far away")).unwrap();
    let mut read = |offset, count| {
        let outcome = session.must(ops().put(&file).raw(READ_PLUS, &places(stateid, offset, count))).unwrap();
        let mut reader = outcome.reader();
        reader.next_result().unwrap();
        assert_eq!(reader.next_result(), Ok((READ_PLUS, 0)));
        let (is_end, segments) = (reader.u32().unwrap() == 1, reader.u32().unwrap());
        let segment = (segments == 1).then(|| {
            assert_eq!((reader.u32(), reader.u64()), (Ok(0), Ok(offset)), "a segment of other bytes");
            reader.opaque().unwrap().to_vec()
        });
        reader.end().unwrap();
        (is_end, segment)
    };
    assert_eq!(read(10_000, 4), (false, Some(b"far ".to_vec())));
    assert_eq!(read(9_999, 100), (true, Some(b"\0far away".to_vec())));
    assert_eq!(read(0, 4096), (false, Some(vec![0; 4096])));
    assert_eq!((read(10_008, 1), read(20_000, 1), read(0, 0)), ((true, None), (true, None), (false, None)));
    let (writer, _) = open(&mut session, (WRITE, 0), b"writer", b"file");
    let of_writer = ops().put(&file).raw(READ_PLUS, &places(writer, 0, 1));
    assert_eq!(session.call(of_writer).unwrap().status, status::OPENMODE);
}

#[test]
fn a_copy_is_cut_so_that_its_slot_is_soon_free() {
    let (world, mut session) = begun(2);
    std::fs::write(world.path.join("large"), vec![9; 20 << 20]).unwrap();
    let (from, large) = open(&mut session, (READ, 0), b"owner", b"large");
    let (to, copy) = open(&mut session, (BOTH, 0), b"owner", b"copy");
    // To a byte inside a block, so that no host shares blocks instead.
    let words: Vec<u8> = [0_u64, 1, 20 << 20].iter().flat_map(|word| word.to_be_bytes()).collect();
    let ids = [&from.0.to_be_bytes()[..], &from.1, &to.0.to_be_bytes(), &to.1].concat();
    let arguments = [ids, words, vec![0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    let made = session.must(ops().put(&large).save().put(&copy).raw(60, &arguments)).unwrap();
    let mut reader = made.reader();
    for _ in 0..4 {
        reader.next_result().unwrap();
    }
    assert_eq!((reader.u32(), reader.u64()), (Ok(0), Ok(16 << 20)));
}

#[test]
fn a_copy_within_a_file_that_would_copy_its_own_bytes_in_a_later_part_is_refused_at_once() {
    let (world, mut session) = begun(2);
    std::fs::File::create(world.path.join("large")).unwrap().set_len(60 << 20).unwrap();
    let (it, large) = open(&mut session, (BOTH, 0), b"owner", b"large");
    let mut copy = |from: u64, to: u64, count: u64| {
        let words: Vec<u8> = [from, to, count].iter().flat_map(|word| word.to_be_bytes()).collect();
        let stateid = [&it.0.to_be_bytes()[..], &it.1].concat();
        let arguments = [stateid.clone(), stateid, words, [0_u32, 1, 0].map(u32::to_be_bytes).concat()].concat();
        session.call(ops().put(&large).save().raw(60, &arguments)).unwrap().status
    };
    for (from, to, count) in [(0, 20 << 20, 30 << 20), (20 << 20, 0, 30 << 20), (0, 20 << 20, 0), (5, 5, 1)] {
        assert_eq!(copy(from, to, count), status::INVAL, "{from} {to} {count}");
    }
    assert_eq!((copy(0, 30 << 20, 30 << 20), copy(30 << 20, 0, 0)), (0, 0));
}

// rule: no call of version 4 keeps its thread for long: a COPY goes on in pieces, and not all calls go on in one poll
// kept in: `product/nfs/src/v4/operations/data.rs`, `product/nfs/src/workers.rs`
#[test]
fn copies_go_on_in_pieces_and_leave_turns_to_other_connections() {
    const BYTES: u64 = 2 << 20;
    const PIECE: u64 = 64 << 10;
    let (world, [from, to]) = with_files();
    let mut machine = Machine::begin(&world);
    // All of it is in the cache.
    let data = vec![7; BYTES as usize / 2];
    for offset in [0, BYTES / 2] {
        let written = machine.together(&[ops().put(&from).write(ANONYMOUS, offset, 0, &data)]);
        assert_eq!(written[0].status, 0);
    }
    let copy = |to_offset: u64| {
        let numbers = [&[0; 32][..], &[0; 8], &to_offset.to_be_bytes(), &BYTES.to_be_bytes()].concat();
        let arguments = [&numbers[..], &[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]].concat();
        ops().put(&from).save().put(&to).raw(60, &arguments)
    };
    for count in [1, 4] {
        let copies: Vec<Compound> = (0..count).map(|number| copy(number * BYTES)).collect();
        machine.send(&copies);
        let (mut polls, mut replies) = (0, 0);
        machine.peer.poll_until(|output, _| {
            polls += 1;
            replies = output.windows(4).filter(|words| *words == 60_u32.to_be_bytes()).count() as u64;
            replies == count
        });
        assert!(polls >= BYTES / PIECE, "{count} copies in {polls} polls");
        machine.peer.replies(count as usize);
    }
}
