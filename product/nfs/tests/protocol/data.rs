//! READ, WRITE, COMMIT.

use afflux_nfs::ClientMemory;
use afflux_nfs_client::Client;
use afflux_nfs_client::sessions::Session;
use nfs3_types::nfs3::*;
use nfs3_types::xdr_codec::Opaque;

use crate::compounds::{BOTH, open, ops};
use crate::peer::{NFS, Peer, accepted, call_record, marked, packed, unpacked};
use crate::world::{CLIENT, World};

fn write(peer: &mut Peer, file: &nfs_fh3, offset: u64, data: &[u8], stable: stable_how) -> WRITE3res {
    let count = data.len() as u32;
    let data = Opaque::borrowed(data);
    peer.nfs(7, &WRITE3args { file: file.clone(), offset, count, stable, data })
}

fn read(peer: &mut Peer, file: &nfs_fh3, offset: u64, count: u32) -> (Vec<u8>, bool) {
    match peer.nfs(6, &READ3args { file: file.clone(), offset, count }) {
        READ3res::Ok(ok) => {
            assert_eq!(ok.count as usize, ok.data.len());
            assert!(ok.file_attributes.is_some());
            (ok.data.to_vec(), ok.eof)
        }
        READ3res::Err((status, _)) => panic!("{status}"),
    }
}

fn commit(peer: &mut Peer, file: &nfs_fh3, offset: u64, count: u32) -> COMMIT3res {
    peer.nfs(21, &COMMIT3args { file: file.clone(), offset, count })
}

#[test]
fn what_was_written_is_read_and_what_was_committed_is_on_the_host() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    let data: Vec<u8> = (0..300_000_u32).map(|at| ((at * 7) >> 3) as u8).collect();
    let mut verifiers = Vec::new();
    let mut last: Option<fattr3> = None;
    // Pieces of odd sizes at odd places; the second round writes over dirty pages.
    for round in 0..2 {
        for (number, piece) in data.chunks(33_333).enumerate() {
            let offset = number as u64 * 33_333;
            let WRITE3res::Ok(done) = write(&mut peer, &file, offset, piece, stable_how::UNSTABLE) else { panic!() };
            assert_eq!((done.count as usize, done.committed), (piece.len(), stable_how::UNSTABLE));
            let (before, after) = (done.file_wcc.before.unwrap(), done.file_wcc.after.unwrap());
            if let Some(last) = last {
                assert_eq!((before.size, before.mtime, before.ctime), (last.size, last.mtime, last.ctime));
            }
            let size = if round == 0 { offset + piece.len() as u64 } else { data.len() as u64 };
            assert_eq!(after.size, size);
            last = Some(after);
            verifiers.push(done.verf);
        }
    }
    for (offset, count) in [(0, 300_000), (1, 1), (4095, 2), (65_536, 8192), (299_999, 1), (123_457, 99_991)] {
        let (got, eof) = read(&mut peer, &file, offset, count);
        assert!(got == data[offset as usize..][..count as usize], "{offset} {count}");
        assert_eq!(eof, offset + u64::from(count) == 300_000);
    }
    let COMMIT3res::Ok(done) = commit(&mut peer, &file, 0, 0) else { panic!() };
    assert!(verifiers.iter().all(|verifier| *verifier == done.verf));
    assert_eq!(done.file_wcc.after.unwrap().size, 300_000);
    assert!(std::fs::read(world.path.join("file")).unwrap() == data);
}

#[test]
fn stable_writes_are_on_the_host_when_answered() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    for (number, stable) in [stable_how::DATA_SYNC, stable_how::FILE_SYNC].into_iter().enumerate() {
        let data = [number as u8 + 1; 5000];
        let WRITE3res::Ok(done) = write(&mut peer, &file, 5000 * number as u64, &data, stable) else { panic!() };
        assert_eq!((done.count, done.committed), (5000, stable));
        assert!(done.file_wcc.before.is_some() && done.file_wcc.after.is_some());
        let host = std::fs::read(world.path.join("file")).unwrap();
        assert!(host[5000 * number..] == data);
    }
}

#[test]
fn commits_ranges_and_what_lies_past_the_end() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    assert!(matches!(write(&mut peer, &file, 0, &[1; 8192], stable_how::UNSTABLE), WRITE3res::Ok(_)));
    for (offset, count) in [
        (4096, 4096),
        (0, 1),
        (8192, 0),
        (1 << 40, 5),
        (u64::MAX, u32::MAX),
        ((1 << 63) - 1, 0),
        (1 << 63, 1),
        (0, u32::MAX),
    ] {
        match commit(&mut peer, &file, offset, count) {
            COMMIT3res::Ok(done) => assert!(done.file_wcc.after.is_some()),
            COMMIT3res::Err((status, _)) => panic!("{offset} {count}: {status}"),
        }
    }
    assert!(std::fs::read(world.path.join("file")).unwrap() == [1; 8192]);
    assert!(matches!(commit(&mut peer, &root, 0, 0), COMMIT3res::Err((nfsstat3::NFS3ERR_ISDIR, _))));
}

#[test]
fn reads_end_at_the_end() {
    let world = World::new();
    std::fs::write(world.path.join("file"), [9; 5001]).unwrap();
    std::fs::write(world.path.join("empty"), []).unwrap();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.lookup(&mut peer, &root, b"file");
    let empty = world.lookup(&mut peer, &root, b"empty");
    // The first READ comes from the host, the second from the cache.
    for _ in 0..2 {
        assert_eq!(read(&mut peer, &file, 0, 5000), (vec![9; 5000], false));
        assert_eq!(read(&mut peer, &file, 0, 5001), (vec![9; 5001], true));
        assert_eq!(read(&mut peer, &file, 4000, 1 << 20), (vec![9; 1001], true));
        assert_eq!(read(&mut peer, &file, 4000, u32::MAX), (vec![9; 1001], true));
        assert_eq!(read(&mut peer, &file, 10, 0), (vec![], false));
        assert_eq!(read(&mut peer, &file, 5001, 0), (vec![], true));
        for offset in [5001, 5002, 1 << 40, (1 << 63) - 1, 1 << 63, u64::MAX] {
            assert_eq!(read(&mut peer, &file, offset, 4096), (vec![], true), "{offset}");
        }
        assert_eq!(read(&mut peer, &empty, 0, 4096), (vec![], true));
    }
}

#[test]
fn reads_are_clamped_to_what_was_announced() {
    let world = World::new();
    std::fs::write(world.path.join("file"), vec![5; 3 << 20]).unwrap();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.lookup(&mut peer, &root, b"file");
    for _ in 0..2 {
        let (data, eof) = read(&mut peer, &file, 100, u32::MAX);
        assert_eq!((data.len(), eof), (1 << 20, false));
    }
}

#[test]
fn writes_stay_within_the_limits() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    for offset in [u64::MAX, u64::MAX - 3, (1 << 63) - 3, 1 << 63] {
        match write(&mut peer, &file, offset, b"data", stable_how::UNSTABLE) {
            WRITE3res::Err((nfsstat3::NFS3ERR_FBIG, fail)) => assert!(fail.file_wcc.after.is_some()),
            other => panic!("{offset}: {other:?}"),
        }
    }
    let WRITE3res::Ok(done) = write(&mut peer, &file, 77, b"", stable_how::FILE_SYNC) else { panic!() };
    assert_eq!((done.count, done.file_wcc.after.unwrap().size), (0, 0));
    // The largest WRITE, and one that is longer than announced but fits a record: it is cut short, and the count says
    // so.
    let largest = vec![3; 1 << 20];
    let WRITE3res::Ok(done) = write(&mut peer, &file, 0, &largest, stable_how::UNSTABLE) else { panic!() };
    assert_eq!(done.count, 1 << 20);
    let longer = vec![4; (1 << 20) + 100];
    let WRITE3res::Ok(done) = write(&mut peer, &file, 0, &longer, stable_how::UNSTABLE) else { panic!() };
    assert_eq!((done.count, done.file_wcc.after.unwrap().size), (1 << 20, 1 << 20));
}

#[test]
fn writes_of_any_length_are_answered() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    let data: Vec<u8> = (0..5 << 20).map(|at: u32| (at >> 10) as u8 ^ at as u8).collect();
    // A client that does not know the limit sends the rest again, until all is written.
    let (mut at, mut calls) = (0, 0);
    while at < data.len() {
        let WRITE3res::Ok(done) = write(&mut peer, &file, at as u64, &data[at..], stable_how::UNSTABLE) else {
            panic!()
        };
        assert!(0 < done.count && done.count <= 1 << 20);
        at += done.count as usize;
        calls += 1;
    }
    assert_eq!(calls, 5);
    let COMMIT3res::Ok(_) = commit(&mut peer, &file, 0, 0) else { panic!() };
    assert!(std::fs::read(world.path.join("file")).unwrap() == data);
}

#[test]
fn a_write_is_of_its_count() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    let mut write = |count| {
        let data = Opaque::borrowed(b"data");
        peer.nfs(7, &WRITE3args { file: file.clone(), offset: 0, count, stable: stable_how::FILE_SYNC, data })
    };
    // nfs-ganesha answers in this way; knfsd refuses both as garbage.
    let WRITE3res::Ok(done) = write(3) else { panic!() };
    assert_eq!((done.count, done.file_wcc.after.unwrap().size), (3, 3));
    match write(5) {
        WRITE3res::Err((nfsstat3::NFS3ERR_INVAL, fail)) => assert_eq!(fail.file_wcc.after.unwrap().size, 3),
        other => panic!("{other:?}"),
    }
    assert_eq!(std::fs::read(world.path.join("file")).unwrap(), b"dat");
}

#[test]
fn data_is_for_regular_files() {
    let world = World::new();
    std::os::unix::fs::symlink("target", world.path.join("link")).unwrap();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let link = world.lookup(&mut peer, &root, b"link");
    for (object, expected) in [(&root, nfsstat3::NFS3ERR_ISDIR), (&link, nfsstat3::NFS3ERR_INVAL)] {
        match peer.nfs(6, &READ3args { file: object.clone(), offset: 0, count: 10 }) {
            READ3res::Err((status, fail)) => {
                assert_eq!(status, expected);
                assert!(fail.file_attributes.is_some());
            }
            READ3res::Ok(_) => panic!(),
        }
        match write(&mut peer, object, 0, b"data", stable_how::UNSTABLE) {
            WRITE3res::Err((status, fail)) => {
                assert_eq!(status, expected);
                assert!(fail.file_wcc.after.is_some());
            }
            WRITE3res::Ok(_) => panic!(),
        }
    }
    // Whether they were answered at once or after waiting.
    let counted = |name: &str| world.server.calls().into_iter().find(|row| row.name == name).unwrap().count;
    assert_eq!(["nfs_read", "nfs_write", "nfserr_isdir", "nfserr_inval"].map(counted), [2; 4]);
}

#[test]
fn many_calls_run_at_once_and_each_gets_its_own_reply() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    let count = 700_u32;
    let page = |number: u32| (0..4096_u32).map(|at| (at + number * 31) as u8).collect::<Vec<_>>();
    let mut stream = Vec::new();
    for number in 0..count {
        let data = page(number);
        let arguments = WRITE3args {
            file: file.clone(),
            offset: u64::from(number) * 4096,
            count: 4096,
            stable: if number % 50 == 49 { stable_how::FILE_SYNC } else { stable_how::UNSTABLE },
            data: Opaque::borrowed(&data),
        };
        stream.extend(marked(&call_record(number, NFS, 7, &packed(&arguments))));
    }
    peer.send(&stream).unwrap();
    let mut seen = vec![false; count as usize];
    for reply in peer.replies(count as usize) {
        let (xid, results) = accepted(&reply);
        let WRITE3res::Ok(done) = unpacked(&results) else { panic!() };
        assert_eq!(done.count, 4096);
        assert!(!std::mem::replace(&mut seen[xid as usize], true));
    }
    let reads = (0..count).map(|number| {
        let arguments = READ3args { file: file.clone(), offset: u64::from(number) * 4096, count: 4096 };
        marked(&call_record(number, NFS, 6, &packed(&arguments)))
    });
    let stream: Vec<u8> = reads.flatten().collect();
    peer.send(&stream).unwrap();
    for reply in peer.replies(count as usize) {
        let (xid, results) = accepted(&reply);
        let READ3res::Ok(done) = unpacked(&results) else { panic!() };
        assert!(done.data.as_ref() == page(xid), "{xid}");
    }
}

/// The time of a change: the change times right before it and right after.
type Span = ((u32, u32), (u32, u32));

fn span(wcc: &wcc_data) -> Option<Span> {
    let time = |time: &nfstime3| (time.seconds, time.nseconds);
    match (&wcc.before, &wcc.after) {
        (Nfs3Option::Some(before), Nfs3Option::Some(after)) => Some((time(&before.ctime), time(&after.ctime))),
        _ => None,
    }
}

#[test]
fn no_reply_hides_another_clients_change_between_its_before_and_after() {
    const ROUNDS: u64 = 60;
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    let client = |number: u64| {
        let mut peer = Peer::new(&world, CLIENT);
        let (file, mut spans) = (file.clone(), Vec::new());
        for round in 0..ROUNDS {
            let stable = [stable_how::FILE_SYNC, stable_how::UNSTABLE, stable_how::DATA_SYNC][(round % 3) as usize];
            let WRITE3res::Ok(done) = write(&mut peer, &file, number * 4096, &[round as u8; 100], stable) else {
                panic!()
            };
            spans.push(span(&done.file_wcc).unwrap());
            let mut new_attributes = sattr3 { mode: Nfs3Option::Some(0o600 | number as u32), ..sattr3::default() };
            if round % 4 == 0 {
                new_attributes.size = Nfs3Option::Some(20_000 + round);
            }
            let arguments = SETATTR3args { object: file.clone(), new_attributes, guard: Nfs3Option::None };
            let SETATTR3res::Ok(done) = peer.nfs(2, &arguments) else { panic!() };
            // If others wrote between the change of size and that of mode, the reply has no "before".
            spans.extend(span(&done.obj_wcc));
            let COMMIT3res::Ok(done) = commit(&mut peer, &file, 0, 0) else { panic!() };
            let (before, after) = span(&done.file_wcc).unwrap();
            assert_eq!(before, after, "a COMMIT changes nothing");
        }
        spans
    };
    let mut spans: Vec<Span> = std::thread::scope(|scope| {
        let clients = [0, 1].map(|number| scope.spawn(move || client(number)));
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    spans.sort_unstable_by_key(|(_, after)| *after);
    assert!(spans.len() as u64 > 3 * ROUNDS, "{} changes", spans.len());
    let hidden = spans.windows(2).filter(|pair| pair[1].0 < pair[0].1).count();
    assert_eq!(hidden, 0, "of {} changes", spans.len());
}

/// As a mount that has the file open, or another client's stable WRITE.
#[test]
fn a_removed_file_takes_writes_as_long_as_it_is_held() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    let inode = world.platform.block_on(world.volume.resolve(&file.data)).unwrap();
    let held = world.volume.hold(&inode).unwrap();
    drop(inode);
    let object = diropargs3 { dir: root, name: b"file".to_vec().into() };
    assert!(matches!(peer.nfs(12, &REMOVE3args { object }), REMOVE3res::Ok(_)));
    for stable in [stable_how::UNSTABLE, stable_how::FILE_SYNC] {
        let WRITE3res::Ok(done) = write(&mut peer, &file, 0, b"bytes", stable) else { panic!("{stable:?}") };
        assert_eq!(done.file_wcc.after.unwrap().size, 5);
    }
    assert_eq!(read(&mut peer, &file, 0, 10), (b"bytes".to_vec(), true));
    drop(held);
    let WRITE3res::Err((status, _)) = write(&mut peer, &file, 0, b"late", stable_how::FILE_SYNC) else { panic!() };
    assert_eq!(status, nfsstat3::NFS3ERR_STALE);
}

// rule: READ, WRITE and a cut by version 3 are refused while an open of version 4 denies them
// kept in: `product/volume/src/data/locking.rs`
#[test]
fn what_an_open_of_version_4_denies_is_denied_to_version_3() {
    let world = World::new();
    world.server.offer_version_4(ClientMemory::default());
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    let other = world.create(&mut peer, &root, b"other");
    // The statuses of READ, WRITE, SETATTR of a size and CREATE with one.
    let tried = |peer: &mut Peer, file: &nfs_fh3, name: &'static [u8]| {
        let read = match peer.nfs(6, &READ3args { file: file.clone(), offset: 0, count: 4 }) {
            READ3res::Ok(_) => None,
            READ3res::Err((status, _)) => Some(status),
        };
        let written = match write(peer, file, 0, b"data", stable_how::UNSTABLE) {
            WRITE3res::Ok(_) => None,
            WRITE3res::Err((status, _)) => Some(status),
        };
        let size = sattr3 { size: Nfs3Option::Some(0), ..sattr3::default() };
        let set = SETATTR3args { object: file.clone(), new_attributes: size.clone(), guard: Nfs3Option::None };
        let set = match peer.nfs(2, &set) {
            SETATTR3res::Ok(_) => None,
            SETATTR3res::Err((status, _)) => Some(status),
        };
        let where_ = diropargs3 { dir: root.clone(), name: name.into() };
        let made = match peer.nfs(8, &CREATE3args { where_, how: createhow3::UNCHECKED(size) }) {
            CREATE3res::Ok(_) => None,
            CREATE3res::Err((status, _)) => Some(status),
        };
        [read, written, set, made]
    };
    const ACCES: Option<nfsstat3> = Some(nfsstat3::NFS3ERR_ACCES);
    let mut session = Session::begin(Client::connect(world.serve()).unwrap(), b"test", 1).unwrap();
    for (deny, expected) in
        [(0, [None; 4]), (1, [ACCES, None, None, None]), (2, [None, ACCES, ACCES, ACCES]), (BOTH, [ACCES; 4])]
    {
        let (stateid, handle) = open(&mut session, (BOTH, deny), b"owner", b"file");
        session.must(ops().put(&handle).write(stateid, 0, 0, b"kept")).unwrap();
        assert_eq!(tried(&mut peer, &file, b"file"), expected, "denied: {deny}");
        let is_kept = session.must(ops().put(&handle).read(stateid, 0, 4)).unwrap().results.ends_with(b"kept");
        assert_eq!(is_kept, deny & 2 != 0, "denied: {deny}");
        assert_eq!(tried(&mut peer, &other, b"other"), [None; 4], "of another file");
        // A mode is no use of the bytes.
        let mode = sattr3 { mode: Nfs3Option::Some(0o600), ..sattr3::default() };
        let set = SETATTR3args { object: file.clone(), new_attributes: mode, guard: Nfs3Option::None };
        assert!(matches!(peer.nfs(2, &set), SETATTR3res::Ok(_)));
        session.must(ops().put(&handle).close(stateid)).unwrap();
        assert_eq!(tried(&mut peer, &file, b"file"), [None; 4], "after the close");
    }
}
