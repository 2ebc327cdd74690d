//! Streams cut anywhere, and bytes that are no calls: the same replies, or none; no panic, no hang.

use std::task::{Context, Waker};

use afflux_frontend::{ProtocolMachine, Segment};
use afflux_volume::VolumeKnob;
use bytes::Bytes;
use nfs3_types::nfs3::*;
use nfs3_types::xdr_codec::Opaque;

use crate::peer::{MOUNT, NFS, Peer, call_record, marked, packed};
use crate::world::{CLIENT, World};

/// A small generator; a failing test prints its seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Calls of every procedure without side effects, so that they can be repeated: records without marks.
fn harmless(peer: &mut Peer, world: &World) -> Vec<Vec<u8>> {
    let root = peer.root();
    let file = world.lookup(peer, &root, b"file");
    let link = world.lookup(peer, &root, b"link");
    let place = |name: &'static [u8]| diropargs3 { dir: root.clone(), name: name.into() };
    let object = || GETATTR3args { object: file.clone() };
    let cookieverf = cookieverf3([0; 8]);
    let arguments: Vec<(u32, Vec<u8>)> = vec![
        (0, vec![]),
        (1, packed(&object())),
        (
            2,
            packed(&SETATTR3args {
                object: file.clone(),
                new_attributes: sattr3 { mode: Nfs3Option::Some(0o600), ..sattr3::default() },
                guard: Nfs3Option::Some(nfstime3 { seconds: 1, nseconds: 1 }),
            }),
        ),
        (3, packed(&LOOKUP3args { what: place(b"file") })),
        (4, packed(&ACCESS3args { object: file.clone(), access: 0x3f })),
        (5, packed(&READLINK3args { symlink: link })),
        (6, packed(&READ3args { file: file.clone(), offset: 1, count: 70 })),
        (
            7,
            packed(&WRITE3args {
                file: root.clone(),
                offset: 0,
                count: 5,
                stable: stable_how::UNSTABLE,
                data: Opaque::borrowed(b"bytes"),
            }),
        ),
        (8, packed(&CREATE3args { where_: place(b"file"), how: createhow3::GUARDED(sattr3::default()) })),
        (9, packed(&MKDIR3args { where_: place(b"file"), attributes: sattr3::default() })),
        (
            10,
            packed(&SYMLINK3args {
                where_: place(b"file"),
                symlink: symlinkdata3 {
                    symlink_attributes: sattr3::default(),
                    symlink_data: nfspath3::from(&b"x"[..]),
                },
            }),
        ),
        (11, packed(&MKNOD3args { where_: place(b"file"), what: mknoddata3::NF3FIFO(sattr3::default()) })),
        (12, packed(&REMOVE3args { object: place(b"none") })),
        (13, packed(&RMDIR3args { object: place(b"none") })),
        (14, packed(&RENAME3args { from: place(b"none"), to: place(b"other") })),
        (15, packed(&LINK3args { file: file.clone(), link: place(b"link") })),
        (16, packed(&READDIR3args { dir: root.clone(), cookie: 0, cookieverf, count: 4096 })),
        (17, packed(&READDIRPLUS3args { dir: root.clone(), cookie: 0, cookieverf, dircount: 999, maxcount: 4096 })),
        (18, packed(&FSSTAT3args { fsroot: nfs_fh3::default() })),
        (19, packed(&FSINFO3args { fsroot: root.clone() })),
        (20, packed(&PATHCONF3args { object: root.clone() })),
        (21, packed(&COMMIT3args { file: file.clone(), offset: 0, count: 0 })),
    ];
    let nfs = arguments.into_iter().map(|(procedure, bytes)| call_record(procedure, NFS, procedure, &bytes));
    let mount = [0, 2, 3, 5].map(|procedure| {
        let path = if procedure == 3 { packed(&Opaque::borrowed(b"/none")) } else { vec![] };
        call_record(100 + procedure, MOUNT, procedure, &path)
    });
    nfs.chain(mount).collect()
}

fn prepared() -> World {
    let world = World::over(|path| {
        std::fs::write(path.join("file"), [7; 100]).unwrap();
        std::os::unix::fs::symlink("file", path.join("link")).unwrap();
    });
    // The server does not ask the host again, since the host moves access times at will.
    world.volume.engine().set_knob(VolumeKnob::AttributesIdleCentisecs, 360_000).unwrap();
    world
}

fn by_xid(mut replies: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    replies.sort();
    replies
}

#[test]
fn a_stream_cut_anywhere_gives_the_same_replies() {
    let world = prepared();
    let mut peer = Peer::new(&world, CLIENT);
    let calls = harmless(&mut peer, &world);
    let stream: Vec<u8> = calls.iter().flat_map(|call| marked(call)).collect();
    // The first run fills the cache and settles the times, the second is the model.
    peer.send(&stream).unwrap();
    peer.replies(calls.len());
    peer.send(&stream).unwrap();
    let whole = by_xid(peer.replies(calls.len()));
    // Byte by byte.
    for byte in &stream {
        peer.send(&[*byte]).unwrap();
    }
    assert!(by_xid(peer.replies(calls.len())) == whole);
    // In two pieces, cut at every place.
    for cut in 1..stream.len() {
        peer.send(&stream[..cut]).unwrap();
        let hint = peer.connection.input_hint(&peer.input);
        assert!((1..=1 << 21).contains(&hint), "{hint}");
        peer.send(&stream[cut..]).unwrap();
        assert!(peer.input.is_empty());
        assert!(by_xid(peer.replies(calls.len())) == whole, "cut at {cut}");
    }
    // At random places, with polls in between.
    for seed in 0..200 {
        let mut random = Random(seed);
        let mut replies = Vec::new();
        let mut at = 0;
        while at < stream.len() {
            let end = stream.len().min(at + 1 + random.below(400));
            peer.send(&stream[at..end]).unwrap();
            at = end;
            if random.below(3) == 0 {
                replies.extend(peer.drain());
            }
        }
        replies.extend(peer.drain());
        assert!(by_xid(replies) == whole, "seed {seed}");
    }
}

/// Polls until nothing is in progress. Returns the number of reply bytes.
fn settle(peer: &mut Peer) -> usize {
    peer.drain().len()
}

#[test]
fn changed_calls_are_answered_or_refused() {
    let world = prepared();
    let mut peer = Peer::new(&world, CLIENT);
    let calls = harmless(&mut peer, &world);
    for seed in 0..3000 {
        let mut random = Random(seed);
        let mut record = calls[random.below(calls.len())].clone();
        for _ in 0..1 + random.below(4) {
            match random.below(4) {
                0 => {
                    let at = random.below(record.len());
                    record[at] = random.next() as u8;
                }
                1 if record.len() >= 4 => {
                    let at = random.below(record.len() / 4) * 4;
                    let values = [0, 1, 2, 3, 0x7fff_ffff, 0x8000_0000, u32::MAX - 3, u32::MAX];
                    record[at..at + 4].copy_from_slice(&values[random.below(values.len())].to_be_bytes());
                }
                2 => record.truncate(1 + random.below(record.len())),
                _ => {
                    let at = random.below(record.len());
                    record.extend_from_within(at..);
                }
            }
        }
        // The record may still be a valid call with an effect, which is allowed.
        let is_call = record.len() >= 8 && record[4..8] == [0; 4];
        let _ = afflux_nfs::is_decodable(&Bytes::from(record.clone()));
        peer.send(&marked(&record)).unwrap();
        assert_eq!(settle(&mut peer), usize::from(is_call), "seed {seed}");
        if seed % 100 == 0 {
            assert!(peer.call(NFS, 0, &[]).is_empty(), "seed {seed}");
        }
    }
}

#[test]
fn random_bytes_close_the_connection_at_worst() {
    let world = World::new();
    let mut closed = 0;
    for seed in 0..2000 {
        let mut random = Random(seed);
        let mut peer = Peer::new(&world, CLIENT);
        let mut bytes: Vec<u8> = (0..random.below(600)).map(|_| random.next() as u8).collect();
        if random.below(2) == 0 && bytes.len() >= 4 {
            // A mark that makes the other bytes a record.
            let len = random.below(bytes.len()) as u32;
            bytes[..4].copy_from_slice(&(len | 1 << 31).to_be_bytes());
        }
        let _ = afflux_nfs::is_decodable(&Bytes::from(bytes.clone()));
        match peer.send(&bytes) {
            Ok(()) => {
                settle(&mut peer);
                assert!(peer.connection.calls_in_progress() == 0);
            }
            Err(error) => {
                assert!(!error.reason.is_empty());
                closed += 1;
            }
        }
        assert!(peer.input.capacity() <= 1 << 16, "seed {seed}");
    }
    assert!(closed > 100);
}

#[test]
fn a_record_that_never_ends_takes_no_room_of_its_own() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    // A mark of the largest record, then a byte now and then.
    peer.send(&(afflux_nfs::RECORD_BYTES_MAX as u32 | 1 << 31).to_be_bytes()).unwrap();
    for _ in 0..1000 {
        peer.send(&[0]).unwrap();
    }
    assert!(peer.input.capacity() < 1 << 16);
    let mut segments: Vec<Segment> = Vec::new();
    assert!(peer.connection.poll_output(&mut Context::from_waker(Waker::noop()), &mut segments).is_pending());
    assert_eq!(peer.connection.input_hint(&peer.input), afflux_nfs::RECORD_BYTES_MAX - 1000);
    assert!(peer.connection.needs_input());
}
