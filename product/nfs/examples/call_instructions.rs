//! `call_instructions KIND TOGETHER COUNT`: calls on cached data, for callgrind to count.
//!
//! KIND is `get`, `read` or `write`, with the version: `read3`, `read4`. `recorded3` is `read3` with a recording of the
//! calls. `lock4` is LOCK and LOCKU in turn. COUNT times, a connection's protocol machine gets TOGETHER calls as bytes,
//! and is asked for the replies. Data are of 4 KiB. The count that matters is that of [`counted`], on its thread: no
//! socket takes part, the client's bytes are there before, and the work of other threads depends on the time.
#![allow(clippy::unwrap_used, missing_docs, dead_code, reason = "a measured program, and modules of a test")]

#[path = "../tests/protocol/peer.rs"]
mod peer;
#[path = "../tests/protocol/world.rs"]
mod world;

use std::task::{Context, Waker};

use afflux_frontend::{ProtocolMachine, Segment};
use afflux_linux_device::IoChoice;
use afflux_nfs_client::sessions::{ANONYMOUS, Compound, NFS_4, Outcome};
use bytes::BytesMut;
use nfs3_types::nfs3::{COMMIT3args, COMMIT3res, GETATTR3args, READ3args, WRITE3args, WRITE3res, nfs_fh3, stable_how};
use nfs3_types::xdr_codec::Opaque;

const PAGE: u32 = 4096;
const PAGES: u32 = 64;
/// The longest time for which attributes count without a look at the host, in hundredths of a second.
const ATTRIBUTES_IDLE_MAX: u64 = 360_000;
/// Calls on the first slot before the batches.
const USED: u32 = 4;
/// Batches before the count, in which buffers are made and pages come to count as often used.
const UNCOUNTED: u64 = 16;
/// The attributes that Linux's client asks for with a GETATTR, and with a WRITE.
const ALL: [u32; 2] = [0x0010_011a, 0x00b0_a23a];
const OF_WRITE: [u32; 2] = [0x0000_0018, 0x0030_0000];
/// The kind of a lock.
const EXCLUSIVE: u32 = 2;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, kind, together, count] = &arguments[..] else { panic!("call_instructions KIND TOGETHER COUNT") };
    let (together, count): (u32, u64) = (together.parse().unwrap(), count.parse().unwrap());
    let (kind, version) = kind.split_at(kind.len() - 1);
    // System calls instead of a ring: valgrind knows them all.
    let world = world::World::on(IoChoice::Syscalls, |_| {});
    world.server.offer_version_4(afflux_nfs::ClientMemory::default());
    // The host is not asked again in the middle of the count.
    let engine = world.volume.engine();
    engine.set_knob(engine.settings().named("attributes_idle_centisecs").unwrap(), ATTRIBUTES_IDLE_MAX).unwrap();
    let mut peer = peer::Peer::new(&world, world::CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    for page in 0..PAGES {
        assert!(matches!(peer.nfs(7, &write(&file, page)), WRITE3res::Ok(_)));
    }
    assert!(matches!(peer.nfs(21, &COMMIT3args { file: file.clone(), offset: 0, count: 0 }), COMMIT3res::Ok(_)));
    let mut calls = match version {
        "3" => Calls::of_version_3(kind, &file, together),
        _ => Calls::of_version_4(kind, &mut peer, together),
    };
    let mut reader = (kind == "recorded").then(|| world.server.recording().read().unwrap());
    for at in 0..UNCOUNTED + count {
        calls.advance_sequenceids();
        let one = if at < UNCOUNTED { batch } else { counted };
        let mut input = BytesMut::from(&calls.bytes[..]);
        one(&mut peer, &mut input, calls.reply_bytes_min);
    }
    let failed =
        world.server.calls().into_iter().find(|row| row.kind == afflux_frontend::RowKind::Failure && row.count > 0);
    assert_eq!(failed, None, "calls that fail cost less");
    if let Some(reader) = &mut reader {
        // In a server another thread takes the recorded calls.
        assert_eq!(reader.take(usize::MAX).0.len() as u64, (UNCOUNTED + count) * u64::from(together));
    }
}

fn write(file: &nfs_fh3, page: u32) -> WRITE3args<'static> {
    let data = Opaque::owned(vec![page as u8; PAGE as usize]);
    let offset = u64::from(page * PAGE);
    WRITE3args { file: file.clone(), offset, count: PAGE, stable: stable_how::UNSTABLE, data }
}

/// The calls of a batch.
struct Calls {
    bytes: Vec<u8>,
    /// Where each call of version 4 has the number of its SEQUENCE.
    sequenceids_at: Vec<usize>,
    sequenceid: u32,
    reply_bytes_min: usize,
}

impl Calls {
    fn of_version_3(kind: &str, file: &nfs_fh3, together: u32) -> Self {
        let arguments = |call: u32| {
            let page = call % PAGES;
            match kind {
                "get" => (1, peer::packed(&GETATTR3args { object: file.clone() })),
                "write" => (7, peer::packed(&write(file, page))),
                _ => {
                    let offset = u64::from(page * PAGE);
                    (6, peer::packed(&READ3args { file: file.clone(), offset, count: PAGE }))
                }
            }
        };
        let records = (0..together).map(|call| {
            let (procedure, arguments) = arguments(call);
            peer::marked(&peer::call_record(call, peer::NFS, procedure, &arguments))
        });
        let bytes = records.collect::<Vec<_>>().concat();
        Self { bytes, sequenceids_at: Vec::new(), sequenceid: 0, reply_bytes_min: reply_bytes_min(kind, together) }
    }

    /// Each call has a slot of its own.
    fn of_version_4(kind: &str, peer: &mut peer::Peer, together: u32) -> Self {
        let mut must = |compound: Compound| {
            let outcome = Outcome::read(&peer.call(NFS_4, 1, &compound.arguments(1))).unwrap();
            assert_eq!(outcome.status, 0);
            outcome.results
        };
        let known = must(Compound::default().exchange_id(b"counted", [7; 8], 0));
        let client = u64::from_be_bytes(known[8..16].try_into().unwrap());
        let session = must(Compound::default().create_session(client, 1, 16, together))[8..24].try_into().unwrap();
        let first = |sequenceid| Compound::default().sequence(session, sequenceid, 0, false);
        must(first(1).reclaim_complete());
        let opened = must(first(2).put_root().open((3, 0), b"owner", b"file", false).get_handle());
        // Behind the results of SEQUENCE and PUTROOTFH, and an operation with its status.
        let stateid = (u32::from_be_bytes(opened[60..64].try_into().unwrap()), opened[64..76].try_into().unwrap());
        assert_ne!(stateid, ANONYMOUS);
        let got = opened.windows(8).rposition(|bytes| bytes == [0, 0, 0, 10, 0, 0, 0, 0]).unwrap() + 12;
        let handle = &opened[got..][..usize::from(opened[got - 1])];
        // The first WRITE of an open looks at the file's mode, and waits for that.
        must(first(3).put(handle).write(stateid, 0, 0, &[0; PAGE as usize]));
        let locked = must(first(4).put(handle).lock(EXCLUSIVE, (0, PAGE.into()), stateid, b"owner"));
        // Behind the results of SEQUENCE and PUTFH, and an operation with its status. 0 stands for its present number.
        let owner = (0, locked[64..76].try_into().unwrap());
        let (mut bytes, mut sequenceids_at) = (Vec::new(), Vec::new());
        for call in 0..together {
            let of_file = Compound::default().sequence(session, 0, call, false).put(handle);
            let offset = u64::from(call % PAGES * PAGE);
            let compound = match kind {
                "get" => of_file.attributes(&ALL),
                "write" => of_file.write(stateid, offset, 0, &vec![call as u8; PAGE as usize]).attributes(&OF_WRITE),
                "lock" if call.is_multiple_of(2) => of_file.unlock((0, PAGE.into()), owner),
                "lock" => of_file.lock_more(EXCLUSIVE, (0, PAGE.into()), owner),
                _ => of_file.read(stateid, offset, PAGE),
            };
            let record = peer::marked(&peer::call_record(call, NFS_4, 1, &compound.arguments(1)));
            let session_at = record.windows(16).position(|bytes| bytes == session).unwrap();
            sequenceids_at.push(bytes.len() + session_at + 16);
            bytes.extend(record);
        }
        Self { bytes, sequenceids_at, sequenceid: USED, reply_bytes_min: reply_bytes_min(kind, together) }
    }

    /// Gives the calls of version 4 their next numbers.
    fn advance_sequenceids(&mut self) {
        self.sequenceid += 1;
        for (slot, at) in self.sequenceids_at.iter().enumerate() {
            let sequenceid = if slot == 0 { self.sequenceid } else { self.sequenceid - USED };
            self.bytes[*at..*at + 4].copy_from_slice(&sequenceid.to_be_bytes());
        }
    }
}

fn reply_bytes_min(kind: &str, together: u32) -> usize {
    let one = if matches!(kind, "read" | "recorded") { PAGE } else { 100 };
    (together * one) as usize
}

/// Never inlined, so that it has a name that can be counted.
#[inline(never)]
fn counted(peer: &mut peer::Peer, calls: &mut BytesMut, reply_bytes_min: usize) {
    batch(peer, calls, reply_bytes_min);
}

fn batch(peer: &mut peer::Peer, calls: &mut BytesMut, reply_bytes_min: usize) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut replies = Vec::<Segment>::new();
    peer.connection.receive(calls).unwrap();
    assert!(peer.connection.poll_output(&mut cx, &mut replies).is_ready());
    let bytes = replies.iter().map(Segment::len).sum::<usize>();
    assert!(bytes > reply_bytes_min, "not all are answered by one poll");
}
