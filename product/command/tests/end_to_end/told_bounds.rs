//! The bounds and sizes that the server reports to clients hold with the smallest cache that the server takes.
//!
//! rule: the bounds and sizes that a client gets hold with the smallest cache

use afflux_nfs_client::sessions::{Compound, NFS_4, Outcome, Session};
use afflux_nfs_client::{Client, stable_how};

use crate::scratch::Scratch;
use crate::server::Server;

const SMALLEST: [&str; 2] = ["--cache", "16MiB"];
const BOTH: (u32, u32) = (3, 0);
const FILE_SYNC: u32 = 2;
/// The error for a party that has its part.
const SERVER_FAULT: u32 = 10_006;
/// The least that a lone party has of 65,536: half of what is not root's alone.
const OPENS_OF_PARTY: u32 = 30_720;
/// The largest READ and WRITE, as attributes and FSINFO tell.
const MIB: u32 = 1 << 20;
const SLOTS: u32 = 64;

fn ops() -> Compound {
    Compound::default()
}

fn connect(server: &Server) -> Client {
    Client::connect(("127.0.0.1", server.port())).unwrap()
}

/// Opens a file in the root and makes it: its stateid, its handle.
fn open(session: &mut Session) -> ((u32, [u8; 12]), Vec<u8>) {
    let opened = session.must(ops().put_root().open(BOTH, b"program", b"file", true).get_handle()).unwrap();
    let mut reader = opened.reader();
    (0..2).for_each(|_| _ = reader.next_result().unwrap());
    let stateid = reader.stateid().unwrap();
    reader.skip_open().unwrap();
    reader.next_result().unwrap();
    (stateid, reader.opaque().unwrap().to_vec())
}

#[test]
fn a_client_gets_the_told_number_of_opens() {
    const A_CALL: u32 = 7;
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &SMALLEST);
    let mut session = Session::begin_with_slots(connect(&server), b"client", 2, 1).unwrap();
    session.must(ops().reclaim_complete()).unwrap();
    open(&mut session);
    session.keeps = false;
    let mut opens = 1;
    loop {
        // Each program has an open of its own.
        let wanted = (opens..opens + A_CALL)
            .fold(ops(), |ops, owner| ops.put_root().open(BOTH, &owner.to_be_bytes(), b"file", false));
        let outcome = session.call(wanted).unwrap();
        // Beside SEQUENCE, two operations for each open.
        opens += (outcome.count - 1) / 2 - u32::from(outcome.status != 0);
        match outcome.status {
            0 => {}
            status => {
                assert_eq!(status, SERVER_FAULT, "after {opens} opens");
                break;
            }
        }
    }
    assert!(opens >= OPENS_OF_PARTY, "{opens}");
    server.stop();
}

#[test]
fn all_slots_write_and_read_the_told_size_at_once() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &SMALLEST);
    let mut session = Session::begin_with_slots(connect(&server), b"client", 2, 2 * SLOTS).unwrap();
    session.must(ops().reclaim_complete()).unwrap();
    let (stateid, file) = open(&mut session);
    let first = session.sequence + 1;
    let mut on_all_slots = |sequence: [u32; 2], operations: &dyn Fn(u32) -> Compound| {
        let mut sent = Vec::new();
        for slot in 0..SLOTS {
            let sequence = if slot == 0 { sequence[0] } else { sequence[1] };
            let call = ops().sequence(session.id, sequence, slot, false).put(&file).followed_by(&operations(slot));
            sent.push((session.client.send(NFS_4, 1, &call.arguments(2)).unwrap(), slot));
        }
        (0..SLOTS)
            .map(|_| {
                let reply = session.client.receive().unwrap();
                let slot = sent.iter().find(|(xid, _)| *xid == reply.xid).unwrap().1;
                (slot, Outcome::read(&reply.results).unwrap())
            })
            .collect::<Vec<_>>()
    };
    let bytes = |slot: u32| vec![slot as u8 + 1; MIB as usize];
    let at = |slot: u32| u64::from(slot) * u64::from(MIB);
    let written = on_all_slots([first, 1], &|slot| ops().write(stateid, at(slot), FILE_SYNC, &bytes(slot)));
    for (slot, outcome) in written {
        assert_eq!(outcome.status, 0, "slot {slot}");
        let mut reader = outcome.reader();
        reader.skip_sequence().unwrap();
        (0..2).for_each(|_| _ = reader.next_result().unwrap());
        assert_eq!(reader.u32(), Ok(MIB), "slot {slot}");
    }
    let read = on_all_slots([first + 1, 2], &|slot| ops().read(stateid, at(slot), MIB));
    for (slot, outcome) in read {
        assert_eq!(outcome.status, 0, "slot {slot}");
        let mut reader = outcome.reader();
        reader.skip_sequence().unwrap();
        (0..2).for_each(|_| _ = reader.next_result().unwrap());
        reader.u32().unwrap();
        assert!(reader.opaque().unwrap() == bytes(slot), "slot {slot}");
    }
    server.stop();
}

#[test]
fn version_3_reads_and_writes_the_sizes_of_fsinfo() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &SMALLEST);
    let mut client = connect(&server);
    let root = client.mount("/").unwrap();
    let told = client.fsinfo(&root).unwrap();
    assert_eq!([told.rtmax, told.wtmax], [MIB; 2]);
    let file = client.create_empty(&root, b"file").unwrap();
    let bytes = vec![7; told.wtmax as usize];
    // More than the cache has.
    for at in 0..32 {
        let offset = at * u64::from(told.wtmax);
        assert_eq!(client.write(&file, offset, &bytes, stable_how::UNSTABLE).unwrap().count, told.wtmax);
        assert_eq!(client.read(&file, offset, told.rtmax).unwrap().data, bytes);
    }
    server.stop();
}
