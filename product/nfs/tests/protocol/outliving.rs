//! Replies that outlive a killed server. A later server is one over the same words, with nothing else of the first.
//!
//! rule: a call that changes something, and that a client repeats after a kill, is done once and gets its first reply
//! kept in: `product/frontend/src/journal.rs`, `product/volume/src/names/repeated.rs`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frontend::{PersistedWords, words_checksum};
use afflux_nfs::{AdmittedPeers, Server};
use nfs3_types::nfs3::{
    CREATE3args, GETATTR3args, GETATTR3res, LINK3args, MKDIR3args, MKNOD3args, Nfs3Option, REMOVE3args, RENAME3args,
    RMDIR3args, SETATTR3args, SYMLINK3args, createhow3, diropargs3, mknoddata3, nfs_fh3, nfspath3, sattr3,
    symlinkdata3,
};
use nfs3_types::xdr_codec::Opaque;

use crate::peer::{NFS, Peer, accepted, call_record, marked, packed};
use crate::world::{CLIENT, World};

const ENTRY_WORDS: usize = 64;
/// Indices of words in an entry: the first of the call's key, the object, and the mark of a reply.
const KEY: usize = 1;
const OBJECT: usize = 5;
const ANSWERED: usize = 6;

const NOENT: u32 = 2;
const EXIST: u32 = 17;
const STALE: u32 = 70;
const NOT_SYNC: u32 = 10_002;

fn memory() -> PersistedWords {
    Arc::new((0..64 * ENTRY_WORDS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>())
}

/// How far the server was with its last call when it was killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Killed {
    /// It had the reply.
    Answered,
    /// The host had carried out the change.
    Done,
    /// The host was asked, and nothing is noted of its answer.
    Begun,
}

/// The words as a kill leaves them.
fn after_kill(words: &PersistedWords, at: Killed) -> PersistedWords {
    let mut words: Vec<u64> = (**words).as_ref().iter().map(|word| word.load(Ordering::Relaxed)).collect();
    for entry in words.chunks_mut(ENTRY_WORDS).filter(|entry| entry[0] != 0) {
        if at != Killed::Answered {
            entry[ANSWERED] = 0;
        }
        if at == Killed::Begun {
            entry[OBJECT] = 0;
            entry[0] = words_checksum(entry[KEY..ANSWERED].iter().copied());
        }
    }
    Arc::new(words.into_iter().map(AtomicU64::new).collect::<Vec<_>>())
}

fn place(dir: &nfs_fh3, name: &[u8]) -> diropargs3<'static> {
    diropargs3 { dir: nfs_fh3 { data: Opaque::owned(dir.data.to_vec()) }, name: name.to_vec().into() }
}

/// Sends a record to a new server over these words. Returns the reply.
fn answered(world: &mut World, words: &PersistedWords, record: &[u8]) -> Vec<u8> {
    world.server = Server::keeping(Arc::clone(&world.volume), AdmittedPeers::AnyPeer, Some(Arc::clone(words)));
    let mut peer = Peer::new(world, CLIENT);
    peer.send(record).unwrap();
    peer.replies(1).remove(0)
}

fn status(reply: &[u8]) -> u32 {
    u32::from_be_bytes(*accepted(reply).1.first_chunk().unwrap())
}

/// The procedures with their arguments, in an order in which each succeeds.
fn changes(world: &World, peer: &mut Peer, root: &nfs_fh3) -> Vec<(u32, Vec<u8>)> {
    let file = world.create(peer, root, b"file");
    let GETATTR3res::Ok(found) = peer.nfs(1, &GETATTR3args { object: file.clone() }) else { panic!("no attributes") };
    let (guard, mode) = (Nfs3Option::Some(found.obj_attributes.ctime), Nfs3Option::Some(0o640));
    let new_attributes = sattr3 { mode, ..sattr3::default() };
    let symlink =
        symlinkdata3 { symlink_attributes: sattr3::default(), symlink_data: nfspath3(Opaque::borrowed(b"target")) };
    vec![
        (2, packed(&SETATTR3args { object: file.clone(), new_attributes, guard })),
        (8, packed(&CREATE3args { where_: place(root, b"new"), how: createhow3::GUARDED(sattr3::default()) })),
        (9, packed(&MKDIR3args { where_: place(root, b"directory"), attributes: sattr3::default() })),
        (10, packed(&SYMLINK3args { where_: place(root, b"symlink"), symlink })),
        (11, packed(&MKNOD3args { where_: place(root, b"pipe"), what: mknoddata3::NF3FIFO(sattr3::default()) })),
        (15, packed(&LINK3args { file, link: place(root, b"link") })),
        (14, packed(&RENAME3args { from: place(root, b"new"), to: place(root, b"renamed") })),
        (12, packed(&REMOVE3args { object: place(root, b"symlink") })),
        (13, packed(&RMDIR3args { object: place(root, b"directory") })),
    ]
}

#[test]
fn a_call_repeated_after_a_kill_is_done_once() {
    let mut world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let mut words = memory();
    for (procedure, arguments) in changes(&world, &mut peer, &root) {
        let record = marked(&call_record(500 + procedure, NFS, procedure, &arguments));
        let first = answered(&mut world, &words, &record);
        assert_eq!(status(&first), 0, "procedure {procedure}");
        words = after_kill(&words, Killed::Answered);
        assert_eq!(answered(&mut world, &words, &record), first, "procedure {procedure}: the first reply");
        for _ in 0..2 {
            words = after_kill(&words, Killed::Done);
            let again = answered(&mut world, &words, &record);
            assert_eq!(status(&again), 0, "procedure {procedure} had no reply");
        }
        let unknown = status(&answered(&mut world, &after_kill(&words, Killed::Begun), &record));
        let refusals: &[u32] = if procedure == 2 { &[NOT_SYNC] } else { &[EXIST, NOENT] };
        assert!(refusals.contains(&unknown), "procedure {procedure} is not known to be done: {unknown}");
        assert_ne!(status(&answered(&mut world, &memory(), &record)), 0, "procedure {procedure} as a new call");
    }
    let mut names: Vec<_> = std::fs::read_dir(&world.path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["file", "link", "pipe", "renamed"]);
}

#[test]
fn a_repeated_rename_does_not_move_another_object() {
    let mut world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    std::fs::write(world.path.join("old"), "moved").unwrap();
    let arguments = packed(&RENAME3args { from: place(&root, b"old"), to: place(&root, b"new") });
    let (record, words) = (marked(&call_record(600, NFS, 14, &arguments)), memory());
    assert_eq!(status(&answered(&mut world, &words, &record)), 0);
    world.create(&mut peer, &root, b"old");
    assert_eq!(status(&answered(&mut world, &after_kill(&words, Killed::Done), &record)), 0);
    assert_eq!(std::fs::read(world.path.join("new")).unwrap(), b"moved");
    assert!(world.path.join("old").exists());
}

/// The call of another client in between, and the state that it makes of the same name.
fn others(world: &World, procedure: u32, name: &str) {
    let path = world.path.join(name);
    match procedure {
        8 => std::fs::write(path, "theirs").unwrap(),
        9 => std::fs::create_dir(path).unwrap(),
        10 => std::os::unix::fs::symlink("theirs", path).unwrap(),
        11 => std::fs::write(path, "").unwrap(),
        15 => std::fs::hard_link(world.path.join("file"), path).unwrap(),
        12 | 14 => std::fs::remove_file(path).unwrap(),
        _ => std::fs::remove_dir(path).unwrap(),
    }
}

// rule: a change of another client is no success of a call that a kill cut off
// kept in: `product/volume/src/names/repeated.rs`
#[test]
fn a_change_of_another_client_is_no_success_of_a_call_that_a_kill_cut_off() {
    let names =
        [(8, "new"), (9, "directory"), (10, "symlink"), (11, "pipe"), (15, "link"), (14, "new"), (12, "symlink")];
    for is_begun in [false, true] {
        let mut world = World::new();
        let mut peer = Peer::new(&world, CLIENT);
        let root = peer.root();
        let mut changes = changes(&world, &mut peer, &root);
        for (procedure, name) in names.into_iter().chain([(13, "directory")]) {
            let at = changes.iter().position(|(number, _)| *number == procedure).unwrap();
            let record = marked(&call_record(800 + procedure, NFS, procedure, &changes.remove(at).1));
            // The call began in vain: another client was faster. Or it only left its beginning.
            others(&world, procedure, name);
            let words = memory();
            let refused = answered(&mut world, &words, &record);
            assert!([EXIST, NOENT].contains(&status(&refused)), "procedure {procedure}");
            std::fs::write(world.path.join("changes the directory"), procedure.to_string()).unwrap();
            let words = after_kill(&words, if is_begun { Killed::Begun } else { Killed::Answered });
            assert_eq!(status(&answered(&mut world, &words, &record)), status(&refused), "procedure {procedure}");
        }
    }
}

#[test]
fn a_made_object_that_another_one_has_replaced_is_no_success() {
    let mut world = World::new();
    let root = Peer::new(&world, CLIENT).root();
    let make = packed(&MKDIR3args { where_: place(&root, b"made"), attributes: sattr3::default() });
    let (record, words) = (marked(&call_record(900, NFS, 9, &make)), memory());
    assert_eq!(status(&answered(&mut world, &words, &record)), 0);
    std::fs::rename(world.path.join("made"), world.path.join("moved")).unwrap();
    let done = after_kill(&words, Killed::Done);
    assert_eq!(status(&answered(&mut world, &done, &record)), STALE, "it is not made again");
    std::fs::create_dir(world.path.join("made")).unwrap();
    let done = after_kill(&words, Killed::Done);
    assert_eq!(status(&answered(&mut world, &done, &record)), EXIST, "it is another's");
}

#[test]
fn a_removal_that_is_done_takes_no_later_object_away() {
    let mut world = World::new();
    let root = Peer::new(&world, CLIENT).root();
    std::fs::write(world.path.join("file"), "").unwrap();
    let remove = packed(&REMOVE3args { object: place(&root, b"file") });
    let (record, words) = (marked(&call_record(901, NFS, 12, &remove)), memory());
    assert_eq!(status(&answered(&mut world, &words, &record)), 0);
    std::fs::write(world.path.join("file"), "theirs").unwrap();
    assert_eq!(status(&answered(&mut world, &after_kill(&words, Killed::Done), &record)), 0);
    assert_eq!(std::fs::read(world.path.join("file")).unwrap(), b"theirs");
}

#[test]
fn other_calls_and_other_clients_get_no_kept_reply() {
    let mut world = World::new();
    let root = Peer::new(&world, CLIENT).root();
    let record = |xid| marked(&call_record(xid, NFS, 12, &packed(&REMOVE3args { object: place(&root, b"file") })));
    std::fs::write(world.path.join("file"), "").unwrap();
    let words = memory();
    let first = answered(&mut world, &words, &record(700));
    assert_eq!(status(&first), 0);
    let words = after_kill(&words, Killed::Answered);
    assert_eq!(status(&answered(&mut world, &words, &record(701))), 2);
    world.server = Server::keeping(Arc::clone(&world.volume), AdmittedPeers::AnyPeer, Some(Arc::clone(&words)));
    let mut stranger = Peer::new(&world, [127, 0, 0, 99]);
    stranger.send(&record(700)).unwrap();
    assert_eq!(status(&stranger.replies(1)[0]), 2);
    assert_eq!(answered(&mut world, &words, &record(700)), first);
}

// rule: a client that calls often evicts no other client's cached reply, before a kill or after it
// kept in: `product/frontend/src/journal.rs`, `product/nfs/src/v3/reply_cache.rs`
#[test]
fn a_busy_client_takes_no_reply_of_another_over_a_kill() {
    let mut world = World::new();
    let root = Peer::new(&world, CLIENT).root();
    std::fs::write(world.path.join("file"), "").unwrap();
    let record = marked(&call_record(700, NFS, 12, &packed(&REMOVE3args { object: place(&root, b"file") })));
    let mut words = memory();
    let first = answered(&mut world, &words, &record);
    assert_eq!(status(&first), 0);
    for kill in 0..2 {
        let mut busy = Peer::new(&world, [127, 0, 0, 99]);
        for number in 0..100 {
            let where_ = place(&root, format!("{kill}.{number}").as_bytes());
            let make = packed(&MKDIR3args { where_, attributes: sattr3::default() });
            busy.send(&marked(&call_record(1000 + number, NFS, 9, &make))).unwrap();
            assert_eq!(status(&busy.replies(1)[0]), 0);
        }
        words = after_kill(&words, Killed::Answered);
        world.server = Server::keeping(Arc::clone(&world.volume), AdmittedPeers::AnyPeer, Some(Arc::clone(&words)));
    }
    assert_eq!(answered(&mut world, &words, &record), first);
}
