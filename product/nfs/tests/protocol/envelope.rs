//! Refusals before any procedure; records; repetition; bounds on the calls in progress.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use afflux_frontend::{Origin, ProtocolMachine, Segment, UserGroups};
use afflux_nfs::{NfsKnob, Rules, Squash};
use nfs3_types::mount::dirpath;
use nfs3_types::nfs3::*;
use nfs3_types::xdr_codec::{Opaque, Pack};

use crate::peer::{MOUNT, NFS, Peer, accepted, call_record, flat, marked, packed, unpacked};
use crate::world::{CLIENT, World};

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn count_of(world: &World, name: &str) -> u64 {
    world.server.calls().iter().find(|row| row.name == name).unwrap().count
}

#[test]
fn refuses_what_it_does_not_serve_and_goes_on() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let call = |program: u32, version: u32, procedure: u32| words(&[1, 0, 2, program, version, procedure, 0, 0, 0, 0]);
    let table: [(Vec<u8>, &[u32]); 16] = [
        (call(100_000, 2, 0), &[0, 0, 0, 1]),
        (call(100_227, 3, 0), &[0, 0, 0, 1]),
        (call(100_021, 3, 2), &[0, 0, 0, 2, 4, 4]),
        // Its reply would be a call to the client.
        (call(100_021, 4, 7), &[0, 0, 0, 3]),
        (call(100_003, 2, 0), &[0, 0, 0, 2, 3, 3]),
        (call(100_003, 4, 1), &[0, 0, 0, 2, 3, 3]),
        (call(100_005, 4, 0), &[0, 0, 0, 2, 1, 3]),
        (call(100_003, 3, 22), &[0, 0, 0, 3]),
        (call(100_003, 3, u32::MAX), &[0, 0, 0, 3]),
        (call(100_005, 3, 6), &[0, 0, 0, 3]),
        // No procedure here accepts the handles of MNT in version 1.
        (call(100_005, 1, 1), &[0, 0, 0, 3]),
        (call(100_003, 3, 1), &[0, 0, 0, 4]),
        (call(100_021, 4, 2), &[0, 0, 0, 4]),
        (call(100_005, 3, 1), &[0, 0, 0, 4]),
        (words(&[1, 0, 3, 100_003, 3, 0, 0, 0, 0, 0]), &[1, 0, 2, 2]),
        (words(&[1, 0, 2, 100_003, 3, 0, 6, 0, 0, 0]), &[1, 1, 2]),
    ];
    for (record, expected) in table {
        peer.send(&marked(&record)).unwrap();
        let reply = peer.replies(1).remove(0);
        assert_eq!(reply, [words(&[1, 1]), words(expected)].concat(), "{record:?}");
    }
    assert!(peer.call(NFS, 0, &[]).is_empty());
    assert!(peer.call((100_005, 1), 0, &[]).is_empty());
    // DUMP and EXPORT are alike in all versions.
    assert_eq!(peer.call((100_005, 1), 5, &[]), peer.call(MOUNT, 5, &[]));
    for (name, expected) in [
        ("rpc_prog_unavail", 2),
        ("rpc_prog_mismatch", 4),
        ("rpc_proc_unavail", 5),
        ("rpc_garbage_args", 3),
        ("rpc_mismatch", 1),
        ("rpc_auth_rejected", 1),
        ("nfs_null", 1),
        ("mount_export", 2),
        ("rpc_connections", 1),
    ] {
        assert_eq!(count_of(&world, name), expected, "{name}");
    }
}

#[test]
fn who_asks_for_a_lock_of_version_3_hears_at_once_that_there_are_none() {
    const NLM: (u32, u32) = (100_021, 4);
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let cookie = [&5_u32.to_be_bytes()[..], b"cooki\0\0\0"].concat();
    // The cookie, whether it may wait and excludes others; the client, the file, the owner, the range.
    let arguments = [&cookie[..], &words(&[1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])].concat();
    let (granted, none) = (&[0][..], &[2][..]);
    let table = [(1, none), (2, none), (3, granted), (4, granted), (20, &[2, 0][..]), (21, &[0, 0][..]), (22, none)];
    for (procedure, expected) in table {
        assert_eq!(peer.call(NLM, procedure, &arguments), [&cookie[..], &words(expected)].concat(), "{procedure}");
    }
    assert!(peer.call(NLM, 23, &arguments).is_empty());
    assert!(peer.call(NLM, 0, &[]).is_empty());
    assert_eq!(count_of(&world, "nlm_calls"), 9);
}

#[test]
fn ignores_replies_and_closes_on_what_is_no_stream() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    peer.send(&marked(&words(&[9, 1, 0, 0, 0, 0]))).unwrap();
    peer.send(&marked(&words(&[9]))).unwrap();
    assert!(peer.drain().is_empty());
    assert_eq!(count_of(&world, "rpc_stray_reply"), 2);
    // More of them than one poll looks at, followed by a call.
    peer.send(&marked(&words(&[9, 1, 0, 0, 0, 0])).repeat(1000)).unwrap();
    assert!(peer.call(NFS, 0, &[]).is_empty());
    assert_eq!(count_of(&world, "rpc_stray_reply"), 1002);
    let error = peer.send(b"SSH-2.0-OpenSSH_9.2\r\n").unwrap_err();
    assert!(error.reason.contains("at most 67108864"), "{error}");
}

#[test]
fn takes_records_in_fragments() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    let data: Vec<u8> = (0..100_000_u32).map(|at| (at >> 2) as u8).collect();
    let arguments = WRITE3args {
        file: file.clone(),
        offset: 0,
        count: data.len() as u32,
        stable: stable_how::FILE_SYNC,
        data: Opaque::borrowed(&data),
    };
    let record = call_record(5, NFS, 7, &packed(&arguments));
    for size in [1000, 4000, 65_536] {
        let count = record.len().div_ceil(size);
        for (number, piece) in record.chunks(size).enumerate() {
            let last = if number + 1 == count { 1 << 31 } else { 0 };
            peer.send(&[&(piece.len() as u32 | last).to_be_bytes(), piece].concat()).unwrap();
        }
        let (xid, results) = accepted(&peer.replies(1)[0]);
        assert_eq!(xid, 5);
        assert!(matches!(unpacked(&results), WRITE3res::Ok(WRITE3resok { count: 100_000, .. })));
    }
    assert!(std::fs::read(world.path.join("file")).unwrap() == data);
}

fn remove_record(xid: u32, dir: &nfs_fh3, name: &[u8]) -> Vec<u8> {
    let object = diropargs3 { dir: dir.clone(), name: name.to_vec().into() };
    marked(&call_record(xid, NFS, 12, &packed(&REMOVE3args { object })))
}

fn status(reply: &[u8]) -> (u32, u32) {
    let (xid, results) = accepted(reply);
    (xid, u32::from_be_bytes(results[..4].try_into().unwrap()))
}

#[test]
fn a_call_sent_again_is_not_run_again() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    for name in ["a", "b", "c"] {
        std::fs::write(world.path.join(name), b"x").unwrap();
    }
    peer.send(&remove_record(70, &root, b"a")).unwrap();
    let first = peer.replies(1).remove(0);
    assert_eq!(status(&first), (70, 0));
    // Over the same connection, and over another from the same host.
    peer.send(&remove_record(70, &root, b"a")).unwrap();
    assert_eq!(peer.replies(1), std::slice::from_ref(&first));
    let mut second = Peer::new(&world, CLIENT);
    second.send(&remove_record(70, &root, b"a")).unwrap();
    assert_eq!(second.replies(1), [first]);
    assert_eq!(count_of(&world, "rpc_duplicate_call"), 2);
    // A new number, a new client, or new arguments make a new call.
    second.send(&remove_record(71, &root, b"a")).unwrap();
    assert_eq!(status(&second.replies(1)[0]), (71, 2));
    let mut stranger = Peer::new(&world, [127, 0, 0, 99]);
    stranger.send(&remove_record(70, &root, b"a")).unwrap();
    assert_eq!(status(&stranger.replies(1)[0]), (70, 2));
    second.send(&remove_record(70, &root, b"b")).unwrap();
    assert_eq!(status(&second.replies(1)[0]), (70, 0));
    assert!(!world.path.join("b").exists());
    // Two at once run once.
    second.send(&remove_record(72, &root, b"c").repeat(2)).unwrap();
    let replies = second.replies(2);
    assert_eq!(status(&replies[0]), (72, 0));
    assert_eq!(replies[0], replies[1]);
}

#[test]
fn the_same_bytes_from_two_users_of_a_host_are_two_calls() {
    let world = World::new();
    let root = Peer::new(&world, CLIENT).root();
    world.server.admit(Rules::of_callers(Arc::new(|uid| UserGroups { gid: Some(uid), further: Vec::new() })).into());
    for (user, duplicates) in [(1001, 0), (1002, 0), (1001, 1)] {
        let known = afflux_frontend::Peer { origin: Origin::User(user), ..IpAddr::from(CLIENT).into() };
        let mut peer = Peer::known(&world, known);
        peer.send(&remove_record(70, &root, b"none")).unwrap();
        peer.replies(1);
        assert_eq!(count_of(&world, "rpc_duplicate_call"), duplicates, "as user {user}");
    }
}

#[test]
fn an_allowed_machine_mounts_as_whom_it_is_taken_for() {
    if !rustix::process::geteuid().is_root() {
        afflux_scratch::skipped!("it takes root to act as several users");
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let world = World::over(|path| {
        std::fs::create_dir_all(path.join("private/inner")).unwrap();
        std::fs::set_permissions(path.join("private"), std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    });
    const ACCES: u32 = 13;
    let rules = Rules::of_callers(Arc::new(|uid| UserGroups { gid: Some(uid), further: Vec::new() }));
    let rules = Rules { networks: vec!["192.0.2.0/24".parse().unwrap()], any_port: true, ..rules };
    for (squash, expected) in [(Squash::Root, ACCES), (Squash::All, ACCES), (Squash::None, 0)] {
        world.server.admit(Rules { squash, ..rules.clone() }.into());
        let mut root_there = Peer::new(&world, [192, 0, 2, 7]);
        let mut mount = |path: &'static str| {
            let results = root_there.call(MOUNT, 1, &packed(&dirpath(Opaque::borrowed(path.as_bytes()))));
            u32::from_be_bytes(results[..4].try_into().unwrap())
        };
        assert_eq!([mount("/"), mount("/private")], [0, 0], "{squash:?}");
        assert_eq!(mount("/private/inner"), expected, "{squash:?}");
        let absent = if expected == 0 { 2 } else { ACCES };
        assert_eq!(mount("/private/absent"), absent, "{squash:?}");
    }
}

#[test]
fn a_change_goes_on_when_its_connection_is_gone() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let names: Vec<String> = (0..50).map(|number| format!("f{number}")).collect();
    for name in &names {
        std::fs::write(world.path.join(name), b"x").unwrap();
    }
    let calls: Vec<u8> =
        names.iter().enumerate().flat_map(|(at, name)| remove_record(at as u32, &root, name.as_bytes())).collect();
    peer.send(&calls).unwrap();
    // They have started, some may have ended, and no reply was taken.
    let mut cx = Context::from_waker(Waker::noop());
    let _ = peer.connection.poll_output(&mut cx, &mut Vec::new());
    drop(peer);
    let mut again = Peer::new(&world, CLIENT);
    again.send(&calls).unwrap();
    for reply in again.replies(names.len()) {
        assert_eq!(status(&reply).1, 0);
    }
    assert!(names.iter().all(|name| !world.path.join(name).exists()));
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn wants_no_input_while_the_world_holds_too_much_output() {
    let world = World::new();
    world.volume.engine().set_knob(NfsKnob::InflightBytes, 1 << 20).unwrap();
    std::fs::write(world.path.join("file"), vec![5; 4 << 20]).unwrap();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.lookup(&mut peer, &root, b"file");
    // Reads all of it into the cache, so that the later reads need not wait.
    for megabyte in 0..4 {
        let arguments = READ3args { file: file.clone(), offset: megabyte << 20, count: 1 << 20 };
        let _: READ3res<'_> = peer.nfs(6, &arguments);
    }
    let count = 32_u32;
    let calls: Vec<u8> = (0..count)
        .flat_map(|xid| {
            let offset = u64::from(xid % 16) * (256 << 10);
            let arguments = READ3args { file: file.clone(), offset, count: 256 << 10 };
            marked(&call_record(xid, NFS, 6, &packed(&arguments)))
        })
        .collect();
    assert!(peer.connection.needs_input());
    peer.send(&calls).unwrap();
    let woken = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    // The output is held instead of sent: it stops at the bound.
    let mut held: Vec<Segment> = Vec::new();
    let (mut rounds, mut sent) = (0, 0);
    while sent < count {
        while peer.connection.poll_output(&mut cx, &mut held).is_ready() {}
        let bytes: usize = held.iter().map(Segment::len).sum();
        assert!(bytes <= (1 << 20) + 2 * (257 << 10), "{bytes} bytes held");
        assert!(sent + 3 <= count || !peer.connection.needs_input() || held.len() < 4);
        let records = flat(&held).len() / (256 << 10);
        assert!(records > 0, "no progress");
        if peer.connection.calls_in_progress() > 0 {
            assert!(!peer.connection.needs_input());
            let before = woken.0.load(Ordering::SeqCst);
            held.clear();
            assert!(woken.0.load(Ordering::SeqCst) > before, "nobody would poll again");
        } else {
            held.clear();
        }
        sent += records as u32;
        rounds += 1;
    }
    assert!(rounds >= 8, "{rounds}");
    assert!(peer.connection.needs_input());
    assert_eq!(peer.connection.calls_in_progress(), 0);
}

#[test]
fn expected_replies_count_as_in_progress() {
    let world = World::over(|path| std::fs::write(path.join("file"), vec![5; 8 << 20]).unwrap());
    world.volume.engine().set_knob(NfsKnob::InflightBytes, 1 << 20).unwrap();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.lookup(&mut peer, &root, b"file");
    // The file is not cached: each of these waits for the device.
    let count = 32_u32;
    let calls: Vec<u8> = (0..count)
        .flat_map(|xid| {
            let arguments = READ3args { file: file.clone(), offset: u64::from(xid) << 18, count: 1 << 18 };
            marked(&call_record(xid, NFS, 6, &packed(&arguments)))
        })
        .collect();
    peer.send(&calls).unwrap();
    let mut early = Vec::new();
    for _ in 0..10 {
        let _ = peer.connection.poll_output(&mut Context::from_waker(Waker::noop()), &mut early);
        let (started, waiting) = (count_of(&world, "nfs_read"), peer.connection.calls_in_progress() as u64);
        let running = started + waiting - u64::from(count);
        assert!(running <= 5, "{running} calls for 256 KiB each, where 1 MiB may be in progress");
        assert!(!peer.connection.needs_input());
    }
    peer.took(&flat(&early));
    drop(early);
    assert_eq!(peer.replies(count as usize).len(), count as usize);
}

#[test]
fn calls_without_room_wait_or_are_answered_with_less() {
    let world = World::over(|path| std::fs::write(path.join("file"), vec![5; 8 << 20]).unwrap());
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.lookup(&mut peer, &root, b"file");
    let count = 32_u32;
    let room = 48 << 10;
    // First from the device, then from the cache; then with unlimited room.
    for (room, bytes) in [(room, 16 << 10..=room), (room, 16 << 10..=room), (u64::MAX, 1 << 18..=1 << 18)] {
        let calls: Vec<u8> = (0..count)
            .flat_map(|xid| {
                let arguments = READ3args { file: file.clone(), offset: u64::from(xid) << 18, count: 1 << 18 };
                marked(&call_record(xid, NFS, 6, &packed(&arguments)))
            })
            .collect();
        peer.send(&calls).unwrap();
        peer.connection.set_quota(room);
        peer.poll_until(|_, connection| {
            let held = connection.held_bytes();
            assert!(held <= room, "{held} bytes of {room} are held");
            connection.calls_in_progress() == 0
        });
        for reply in peer.replies(count as usize) {
            let READ3res::Ok(read) = unpacked(&accepted(&reply).1) else { panic!("a READ failed") };
            assert!(bytes.contains(&u64::from(read.count)), "{} bytes", read.count);
            assert!(read.data.iter().all(|&byte| byte == 5) && read.data.len() == read.count as usize);
        }
    }
}

#[test]
fn a_call_that_is_alone_is_answered_whatever_the_room() {
    let world = World::over(|path| std::fs::write(path.join("file"), vec![5; 1 << 18]).unwrap());
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.lookup(&mut peer, &root, b"file");
    peer.connection.set_quota(1);
    // First from the device, then from the cache.
    for _ in 0..2 {
        let arguments = READ3args { file: file.clone(), offset: 0, count: 1 << 18 };
        let READ3res::Ok(read) = peer.nfs(6, &arguments) else { panic!("a READ failed") };
        assert_eq!(read.count, 16 << 10, "what a reply may have in any case");
    }
}

#[test]
fn replies_that_are_not_sent_count_for_the_client_and_who_waits_for_it_is_woken() {
    let world = World::over(|path| std::fs::write(path.join("file"), vec![5; 1 << 20]).unwrap());
    world.volume.engine().set_knob(NfsKnob::InflightBytes, 1 << 20).unwrap();
    // A party has four times as much as a connection: these hold three parts of it.
    let mut full: Vec<Peer> = (0..3).map(|_| Peer::new(&world, CLIENT)).collect();
    let mut peers = [Peer::new(&world, CLIENT), Peer::new(&world, CLIENT)];
    let root = peers[0].root();
    let file = world.lookup(&mut peers[0], &root, b"file");
    let read =
        |xid, count| marked(&call_record(xid, NFS, 6, &packed(&READ3args { file: file.clone(), offset: 0, count })));
    peers[0].send(&read(1, 1 << 20)).unwrap();
    peers[0].replies(1);
    let mut held: Vec<Segment> = Vec::new();
    for peer in &mut full {
        peer.send(&read(1, 1 << 20)).unwrap();
        assert!(peer.connection.poll_output(&mut Context::from_waker(Waker::noop()), &mut held).is_ready());
    }
    let woken = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    // These are answered from the cache; the world holds the output that it has not sent.
    let [first, second] = &mut peers;
    let (mut unsent, mut other_unsent): (Vec<Segment>, Vec<Segment>) = (Vec::new(), Vec::new());
    first.send(&read(2, 1 << 20)).unwrap();
    assert!(first.connection.poll_output(&mut Context::from_waker(Waker::noop()), &mut unsent).is_ready());
    assert!(second.connection.needs_input(), "it holds nothing: one call is always taken");
    // The call comes in two fragments.
    let call = read(3, 4096);
    second.send(&[&8_u32.to_be_bytes()[..], &call[4..12]].concat()).unwrap();
    assert!(second.connection.needs_input(), "the rest of the call is received");
    second.send(&marked(&call[12..])).unwrap();
    assert!(second.connection.poll_output(&mut cx, &mut other_unsent).is_ready());
    other_unsent.clear();
    second.send(&read(3, 4096)).unwrap();
    assert!(second.connection.poll_output(&mut cx, &mut other_unsent).is_ready());
    assert!(!second.connection.needs_input(), "beside what the first one holds");
    assert!(second.connection.poll_output(&mut cx, &mut other_unsent).is_pending());
    let before = woken.0.load(Ordering::SeqCst);
    unsent.clear();
    assert!(first.connection.poll_output(&mut Context::from_waker(Waker::noop()), &mut unsent).is_pending());
    assert!(woken.0.load(Ordering::SeqCst) > before, "nobody would look at the second one again");
    assert!(second.connection.needs_input());
}

/// A READ opens its file, and other READs wait for that; a REMOVE has its reply in the reply cache.
#[test]
fn a_call_goes_on_while_its_client_takes_no_replies() {
    const FILES: u32 = 16;
    let world = World::over(|path| {
        (0..FILES).for_each(|file| std::fs::write(path.join(file.to_string()), [5; 4096]).unwrap());
    });
    let mut peers = [Peer::new(&world, CLIENT), Peer::new(&world, CLIENT)];
    let root = peers[0].root();
    let name = |file: u32| filename3(Opaque::owned(file.to_string().into_bytes()));
    let mut cx = Context::from_waker(Waker::noop());
    // A file that takes the host longer to open than one poll.
    let waits = (0..FILES).step_by(2).find_map(|file| {
        let handle = world.lookup(&mut peers[0], &root, file.to_string().as_bytes());
        let read = move |xid| {
            let arguments = READ3args { file: handle.clone(), offset: 0, count: 4096 };
            marked(&call_record(xid, NFS, 6, &packed(&arguments)))
        };
        let first = &mut peers[0];
        first.send(&read(1)).unwrap();
        let object = diropargs3 { dir: root.clone(), name: name(file + 1) };
        first.send(&marked(&call_record(2, NFS, 12, &packed(&REMOVE3args { object })))).unwrap();
        let mut early = Vec::new();
        let waits = first.connection.poll_output(&mut cx, &mut early).is_pending();
        first.took(&flat(&early));
        if !waits {
            first.drain();
        }
        waits.then_some(read)
    });
    let read = waits.expect("a call that waits");
    let [first, second] = &mut peers;
    second.send(&read(3)).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while second.connection.poll_output(&mut cx, &mut Vec::new()).is_pending() {
        first.connection.poll_calls(&mut cx);
        assert!(Instant::now() < until, "the second client's call waits for the first one's");
        std::thread::yield_now();
    }
    assert_eq!(first.connection.calls_in_progress(), 2, "nobody took the replies");
    assert_eq!(first.replies(2).len(), 2);
}

#[test]
fn lists_of_mounts_count_as_held() {
    let world = World::new();
    let mount = packed(&nfs3_types::mount::dirpath(Opaque::borrowed(b"/")));
    for client in 0..afflux_nfs::MOUNTS_MAX {
        let address = std::net::Ipv6Addr::from_bits(u128::MAX - client as u128);
        let mut peer = Peer::new(&world, address);
        peer.send(&marked(&call_record(1, MOUNT, 1, &mount))).unwrap();
        peer.replies(1);
    }
    let mut peer = Peer::new(&world, CLIENT);
    let calls: Vec<u8> = (0..20).flat_map(|xid| marked(&call_record(xid, MOUNT, 2, &[]))).collect();
    peer.send(&calls).unwrap();
    let room = 64 << 10;
    peer.connection.set_quota(room);
    let mut cx = Context::from_waker(Waker::noop());
    let mut unsent: Vec<Segment> = Vec::new();
    while peer.connection.calls_in_progress() > 0 {
        while peer.connection.poll_output(&mut cx, &mut unsent).is_ready() {
            let held = peer.connection.held_bytes();
            assert!(held <= room && held >= flat(&unsent).len() as u64, "{held} bytes of {room} are held");
        }
        assert!(peer.connection.is_short_of_quota() || peer.connection.calls_in_progress() == 0);
        peer.took(&flat(&unsent));
        unsent.clear();
    }
    assert_eq!(peer.connection.held_bytes(), 0, "everything is answered and taken");
    let replies = peer.replies(20);
    // The whole list fits into the size that a reply may always have.
    assert!(replies.iter().all(|reply| reply.len() == replies[0].len() && reply.len() > 12 << 10));
}

#[test]
fn runs_a_bounded_number_of_calls() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    // PATHCONF always asks the volume, so each call is in progress for a while.
    let call = |xid| marked(&call_record(xid, NFS, 20, &packed(&PATHCONF3args { object: root.clone() })));
    let count = 3000;
    let calls: Vec<u8> = (0..count).flat_map(call).collect();
    peer.send(&calls).unwrap();
    assert!(!peer.connection.needs_input());
    assert_eq!(peer.connection.calls_in_progress(), count as usize);
    // Many polls, while only the host's threads finish calls, start no more calls than may run.
    let mut early = Vec::new();
    for _ in 0..100 {
        let _ = peer.connection.poll_output(&mut Context::from_waker(Waker::noop()), &mut early);
        let (started, waiting) = (count_of(&world, "nfs_pathconf"), peer.connection.calls_in_progress() as u64);
        let answered = u64::from(count) - waiting;
        assert!(started - answered <= afflux_nfs::limits::CALLS_MAX as u64, "{started} {answered}");
    }
    peer.took(&flat(&early));
    let mut seen = vec![false; count as usize];
    for reply in peer.replies(count as usize) {
        let (xid, status) = status(&reply);
        assert!(status == 0 && !std::mem::replace(&mut seen[xid as usize], true));
    }
    assert!(peer.connection.needs_input());
}

#[test]
fn a_poll_without_work_is_pending_and_silent() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let woken = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut output = Vec::new();
    for _ in 0..3 {
        let poll = peer.connection.poll_output(&mut Context::from_waker(&waker), &mut output);
        assert_eq!(poll, Poll::Pending);
    }
    assert!(output.is_empty() && woken.0.load(Ordering::SeqCst) == 0);
    assert_eq!(peer.connection.input_hint(&peer.input), 4);
    assert!(GETATTR3args { object: nfs_fh3::default() }.packed_size() == 4);
}
