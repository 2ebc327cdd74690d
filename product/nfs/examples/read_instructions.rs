//! `read_instructions KIND TOGETHER COUNT`: cached READs of 4 KiB, for callgrind to count.
//!
//! KIND is `plain` or `recorded`: without or with a recording of the calls. COUNT times, a connection's protocol
//! machine gets TOGETHER calls as bytes, and is asked for the replies. The count that matters is that of [`batches`],
//! on its thread: no socket takes part, no page is dirty by then, and the work of other threads depends on the time.
#![allow(clippy::unwrap_used, missing_docs, dead_code, reason = "a measured program, and modules of a test")]

#[path = "../tests/protocol/peer.rs"]
mod peer;
#[path = "../tests/protocol/world.rs"]
mod world;

use std::task::{Context, Waker};

use afflux_frontend::{ProtocolMachine, Segment};
use afflux_linux::IoChoice;
use nfs3_types::nfs3::{COMMIT3args, COMMIT3res, READ3args, WRITE3args, WRITE3res, stable_how};
use nfs3_types::xdr_codec::Opaque;

const PAGE: u32 = 4096;
const PAGES: u32 = 64;
/// Batches before the count, in which buffers are made and pages come to count as often used.
const UNCOUNTED: u64 = 16;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, kind, together, count] = &arguments[..] else { panic!("read_instructions plain|recorded TOGETHER COUNT") };
    let (together, count): (u32, u64) = (together.parse().unwrap(), count.parse().unwrap());
    // System calls instead of a ring: valgrind knows them all.
    let world = world::World::on(IoChoice::Syscalls, |_| {});
    let mut peer = peer::Peer::new(&world, world::CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    for page in 0..PAGES {
        let offset = u64::from(page * PAGE);
        let data = Opaque::owned(vec![page as u8; PAGE as usize]);
        let write = WRITE3args { file: file.clone(), offset, count: PAGE, stable: stable_how::UNSTABLE, data };
        assert!(matches!(peer.nfs(7, &write), WRITE3res::Ok(_)));
    }
    assert!(matches!(peer.nfs(21, &COMMIT3args { file: file.clone(), offset: 0, count: 0 }), COMMIT3res::Ok(_)));
    let calls = (0..together).flat_map(|call| {
        let offset = u64::from(call % PAGES * PAGE);
        let read = peer::packed(&READ3args { file: file.clone(), offset, count: PAGE });
        peer::marked(&peer::call_record(call, peer::NFS, 6, &read))
    });
    let calls: Vec<u8> = calls.collect();
    let mut reader = (kind == "recorded").then(|| world.server.recording().read().unwrap());
    for _ in 0..UNCOUNTED {
        batch(&mut peer, &calls, together);
    }
    batches(&mut peer, &calls, together, count);
    if let Some(reader) = &mut reader {
        // In a server another thread takes the recorded calls.
        assert_eq!(reader.take(usize::MAX).0.len() as u64, (UNCOUNTED + count) * u64::from(together));
    }
}

/// Never inlined, so that it has a name that can be counted.
#[inline(never)]
fn batches(peer: &mut peer::Peer, calls: &[u8], together: u32, count: u64) {
    for _ in 0..count {
        batch(peer, calls, together);
    }
}

fn batch(peer: &mut peer::Peer, calls: &[u8], together: u32) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut replies = Vec::<Segment>::new();
    peer.send(calls).unwrap();
    assert!(peer.connection.poll_output(&mut cx, &mut replies).is_ready());
    let bytes = replies.iter().map(Segment::len).sum::<usize>();
    assert!(bytes > (together * PAGE) as usize, "not all are answered by one poll");
}
