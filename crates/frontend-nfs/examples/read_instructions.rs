//! `read_instructions KIND COUNT`: cached READs of 4 KiB, for callgrind to count.
//!
//! KIND is `plain` or `recorded`: whether somebody records the calls. COUNT batches of 64 calls each go through a
//! connection's protocol machine; counting two runs and dividing the difference leaves start and end out.
#![allow(clippy::unwrap_used, missing_docs, dead_code, reason = "a measured program, and modules of a test")]

#[path = "../tests/protocol/peer.rs"]
mod peer;
#[path = "../tests/protocol/world.rs"]
mod world;

use std::task::{Context, Waker};

use frontend::{Machine, Segment};
use nfs3_types::nfs3::{READ3args, WRITE3args, WRITE3res, stable_how};
use nfs3_types::xdr_codec::Opaque;
use platform_linux::IoChoice;

const PAGE: u32 = 4096;
const BATCH: u32 = 64;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, kind, count] = &arguments[..] else { panic!("read_instructions plain|recorded COUNT") };
    // System calls instead of a ring: valgrind knows them all.
    let world = world::World::on(IoChoice::Syscalls, |_| {});
    let mut peer = peer::Peer::new(&world, world::CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    let mut batch = Vec::new();
    for page in 0..BATCH {
        let offset = u64::from(page * PAGE);
        let data = Opaque::owned(vec![page as u8; PAGE as usize]);
        let write = WRITE3args { file: file.clone(), offset, count: PAGE, stable: stable_how::UNSTABLE, data };
        assert!(matches!(peer.nfs(7, &write), WRITE3res::Ok(_)));
        let read = peer::packed(&READ3args { file: file.clone(), offset, count: PAGE });
        batch.extend(peer::marked(&peer::call_record(page, peer::NFS, 6, &read)));
    }
    let mut reader = (kind == "recorded").then(|| world.server.recording().read().unwrap());
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..count.parse::<u64>().unwrap() {
        peer.send(&batch).unwrap();
        let (mut replies, mut bytes) = (Vec::<Segment>::new(), 0);
        while bytes < (BATCH * PAGE) as usize {
            assert!(peer.connection.poll_output(&mut cx, &mut replies).is_ready());
            bytes += replies.drain(..).map(|segment| segment.len()).sum::<usize>();
        }
    }
    if let Some(reader) = &mut reader {
        // To take them all is another thread's work.
        assert_eq!(reader.take(1).0.len(), 1);
    }
}
