//! A disk that hangs, for real: a frozen file system.

//! rule: 6: a device that hangs refuses its own writers alone, after the time of its knob, and loses nothing

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use afflux_disk::Rates;
use afflux_nfs_client::{Call, Change, stable_how};
use afflux_scratch::within;
use rustix::fs::{FallocateFlags, fallocate};
use serde_json::Value;

use crate::client::Client;
use crate::mount_shares::slow_disk;
use crate::scratch::{Bytes, Mount, Scratch};
use crate::server::{Server, eventually, text};

/// Otherwise each write on a small disk first asks it for its free space, and that call hangs, too.
pub(crate) const NO_RESERVE: &str = "reserve_below_bytes=0";

/// NFS3ERR_IO.
const IO: u32 = 5;

/// A file system whose writes wait until this is dropped.
pub(crate) struct Frozen<'a>(&'a Path);

impl<'a> Frozen<'a> {
    /// Freezes it; none, with a message, if that is not allowed.
    pub(crate) fn freeze(point: &'a Path) -> Option<Self> {
        match Command::new("fsfreeze").arg("-f").arg(point).output() {
            Ok(output) if output.status.success() => Some(Self(point)),
            Ok(output) => {
                afflux_scratch::skipped!("fsfreeze: {}", text(&output));
                None
            }
            Err(error) => {
                afflux_scratch::skipped!("fsfreeze: {error}");
                None
            }
        }
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").arg("-u").arg(self.0).output();
    }
}

#[test]
fn a_disk_that_hangs_is_told_refuses_by_its_knob_and_loses_nothing() {
    let scratch = Scratch::new();
    let (data, well) = (scratch.directory("data"), scratch.directory("well"));
    let Some(_mount) = Mount::ext4(&scratch.path().join("image"), &data, 64 << 20) else { return };
    let server = Server::start(scratch.path(), &[&data, &well], &["--set", "hang_error_ms=10000", "--set", NO_RESERVE]);
    let mut client = Client::mount_export(&server, "/data");
    let root = client.root();
    let bytes = Bytes::new(1).vec(1 << 20);
    let file = client.create(&root, "a");
    client.write_at(&file, 0, &bytes);
    client.commit(&file);
    let frozen = Frozen::freeze(&data);
    if frozen.is_none() {
        return;
    }
    client.try_write_at(&file, 1 << 20, &bytes).expect("there is room for it");
    assert_eq!(client.try_commit(&file), Err(IO), "after ten seconds");
    let of_data = |server: &Server| {
        let devices = server.stat()["devices"].clone();
        devices.as_array().unwrap().iter().find(|device| device["refuses"] == true).cloned()
    };
    let device = of_data(&server).expect("one device refuses");
    assert!(device["stalled_ns"].as_u64().unwrap() >= 10_000_000_000, "{device}");
    assert!(text(&server.ask(&["stat", "--verbose"])).contains("HANGS: has completed nothing for "));
    assert!(text(&server.ask(&["stat"])).contains("nothing done for "));
    let said = text(&server.ask(&["delays"]));
    assert!(said.lines().next().unwrap().contains(" is the cause: it hangs, "), "{said}");
    assert_eq!(client.try_write_at(&file, 2 << 20, &bytes), Err(IO), "at once");
    let mut other = Client::mount_export(&server, "/well");
    let root = other.root();
    other.write_file(&root, "b", &bytes);
    drop(frozen);
    eventually("it goes on", || of_data(&server).is_none());
    client.write_at(&file, 2 << 20, &bytes);
    client.commit(&file);
    let ended = server.stop();
    for said in [" has completed nothing for ", "its writers and syncs are refused (hang_error_ms)", " goes on"] {
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
    let there = fs::read(data.join("a")).unwrap();
    assert!(there.len() == 3 << 20 && there.chunks(1 << 20).all(|chunk| chunk == bytes));
}

/// No data request shows that a device hangs while clients ask it for names only.
// rule: 6: a device that hangs for names alone is named, although nothing on it is dirty
// kept in: `product/linux-device/src/pool.rs`
#[test]
fn a_disk_that_hangs_for_names_alone_is_told_by_name() {
    const CREATE: u32 = 8;
    let scratch = Scratch::new();
    let (data, well) = (scratch.directory("data"), scratch.directory("well"));
    let Some(mount) = Mount::ext4(&scratch.path().join("image"), &data, 64 << 20) else { return };
    let server = Server::start(scratch.path(), &[&data, &well], &[]);
    let mut client = afflux_nfs_client::Client::connect(("127.0.0.1", server.port())).unwrap();
    let (hanging, working) = (client.mount("/data").unwrap(), client.mount("/well").unwrap());
    let Some(frozen) = Frozen::freeze(&data) else { return };
    let call = Call::Create { directory: hanging, name: b"a".to_vec() };
    let created = client.send(afflux_nfs_client::NFS, CREATE, &call.arguments()).unwrap();
    let hung = || {
        let is_hung = |device: &Value| device["names_stalled_ns"].as_u64().is_some_and(|ns| ns >= 5_000_000_000);
        let devices = server.stat()["devices"].as_array().unwrap().clone();
        devices.into_iter().filter(is_hung).map(|device| device["name"].clone()).collect::<Vec<_>>()
    };
    eventually("a device hangs for names", || !hung().is_empty());
    let name = mount.device().trim_start_matches("/dev/");
    assert_eq!(hung(), [name], "and no other device");
    let stat = text(&server.ask(&["stat", "--verbose"]));
    assert!(stat.contains("HANGS: a call for names or attributes has not ended for "), "{stat}");
    let first = text(&server.ask(&["delays"])).lines().next().unwrap().to_owned();
    assert!(first.starts_with(&format!("The disk {name} is the cause: it hangs, and a call for names")), "{first}");
    client.create_empty(&working, b"b").unwrap();
    drop(frozen);
    let reply = client.receive().unwrap();
    assert_eq!((reply.xid, &reply.results[..4]), (created, &[0; 4][..]));
    eventually("it goes on", || hung().is_empty());
    let ended = server.stop();
    for said in [" has not ended a call for names or attributes for ", " ends calls for names again"] {
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
}

/// The arguments of a WRITE that is answered once durable.
fn stable_write(file: &[u8], offset: u64, data: &[u8]) -> Vec<u8> {
    Call::Write { file: file.to_vec(), offset, data: data.to_vec(), stability: stable_how::FILE_SYNC }.arguments()
}

const READ: u32 = 6;

/// The arguments of a READ of 4 KiB.
fn page_read(file: &[u8], offset: u64) -> Vec<u8> {
    Call::Read { file: file.to_vec(), offset, count: 4096 }.arguments()
}

#[test]
fn what_waits_for_a_disk_that_hangs_is_parked_and_the_rest_of_its_connection_goes_on() {
    const WRITE: u32 = 7;
    const PARKED: u64 = 12;
    let scratch = Scratch::new();
    let (data, well) = (scratch.directory("data"), scratch.directory("well"));
    let Some(_mount) = Mount::ext4(&scratch.path().join("image"), &data, 64 << 20) else { return };
    let server = Server::start(scratch.path(), &[&data, &well], &["--set", NO_RESERVE]);
    let mut client = afflux_nfs_client::Client::connect(("127.0.0.1", server.port())).unwrap();
    let (hanging, working) = (client.mount("/data").unwrap(), client.mount("/well").unwrap());
    let parked = client.create_empty(&hanging, b"a").unwrap();
    let other = client.create_empty(&working, b"b").unwrap();
    let bytes = Bytes::new(3).vec(1 << 20);
    let Some(frozen) = Frozen::freeze(&data) else { return };
    let mut calls: Vec<_> = (0..PARKED)
        .map(|number| client.send(afflux_nfs_client::NFS, WRITE, &stable_write(&parked, number << 20, &bytes)).unwrap())
        .collect();
    // Each of these is answered before any of the former.
    client.getattr(&parked).unwrap();
    client.write(&other, 0, &bytes[..4096], afflux_nfs_client::stable_how::UNSTABLE).unwrap();
    client.commit(&other, 0, 0).unwrap();
    assert!(client.read(&other, 0, 4096).unwrap().data == bytes[..4096]);
    client.create_empty(&working, b"c").unwrap();
    assert_eq!(fs::read(well.join("b")).unwrap(), bytes[..4096]);
    drop(frozen);
    let mut answered = Vec::new();
    for _ in 0..PARKED {
        let reply = client.receive().unwrap();
        assert_eq!(reply.results[..4], [0; 4], "the status: no error, and not to come again later");
        answered.push(reply.xid);
    }
    calls.sort_unstable();
    answered.sort_unstable();
    assert_eq!(answered, calls);
    server.stop();
}

const OTHERS: usize = 8;

/// Connections that ask for nothing of the disk that hangs.
fn others(server: &Server) -> Vec<afflux_nfs_client::Client> {
    let connect = |_| afflux_nfs_client::Client::connect(("127.0.0.1", server.port())).unwrap();
    (0..OTHERS).map(connect).collect()
}

/// How many of them get an answer.
fn answering(others: &mut [afflux_nfs_client::Client]) -> usize {
    let mut count = 0;
    for other in others {
        other.set_timeout(Some(Duration::from_secs(10))).unwrap();
        count += usize::from(other.null().is_ok());
    }
    count
}

/// The longest wait for a thread of the server to come to the disk that hangs. Meanwhile nothing may panic: the disk
/// goes on first.
const COMES_WITHIN: Duration = Duration::from_secs(60);

/// Whether a thread of the process waits in the kernel, where no signal ends the wait.
fn waits_in_the_kernel(process: u32, is_meant: impl Fn(&str) -> bool) -> bool {
    let mut tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    tasks.any(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let (before, state) = stat.rsplit_once(") ").unwrap_or_default();
        state.starts_with('D') && before.split_once(" (").is_some_and(|(_, name)| is_meant(name))
    })
}

/// Whether a call of the server waits for a disk: a thread of it is in the kernel, or a request is in flight.
pub(crate) fn waits_for_the_disk(server: &Server, mount: &str) -> bool {
    let devices = server.stat()["devices"].as_array().unwrap().clone();
    let is_on_its_way = |device: &Value| device["name"] == mount && device["in_flight"].as_u64() > Some(0);
    waits_in_the_kernel(server.process(), |_| true) || devices.iter().any(is_on_its_way)
}

/// Writes and commits a file of `/data` until the end. The syncs of a file that grows are commits of the host's
/// journal. In another file the same bytes are written again and again. `durable` counts the calls that end on the
/// disk.
fn write_and_commit(port: u16, name: &[u8], grows: bool, ended: &AtomicBool, calls: &AtomicU64, durable: &AtomicUsize) {
    let mut client = afflux_nfs_client::Client::connect(("127.0.0.1", port)).unwrap();
    let root = client.mount("/data").unwrap();
    let file = client.create_empty(&root, name).unwrap();
    let bytes = [1; 8192];
    let blocks = if grows { 1024 } else { 8 };
    for at in (0..blocks).cycle().take_while(|_| !ended.load(Ordering::Relaxed)) {
        if at == 0 && grows {
            durable.fetch_add(1, Ordering::SeqCst);
            client.setattr(&file, Change { size: Some(0), ..Change::default() }, None).unwrap();
            durable.fetch_sub(1, Ordering::SeqCst);
        }
        client.write(&file, at * bytes.len() as u64, &bytes, stable_how::UNSTABLE).unwrap();
        if at % 4 == 3 {
            durable.fetch_add(1, Ordering::SeqCst);
            client.commit(&file, 0, 0).unwrap();
            durable.fetch_sub(1, Ordering::SeqCst);
        }
        calls.fetch_add(1, Ordering::Relaxed);
    }
}

/// A write on the host may wait for the journal of its file system. The journal waits for the disk.
// rule: 6: a disk that hangs beside syncs holds up no connection that asks for others
// kept in: `product/linux-device/src/device/core.rs`
#[test]
fn a_disk_that_hangs_beside_syncs_holds_up_no_other_connection() {
    const ROUNDS: u64 = 20;
    const CALLS_A_ROUND: u64 = 20;
    const CLIENTS: [(&[u8], bool); 4] = [(b"a", true), (b"b", false), (b"c", true), (b"d", false)];
    let scratch = Scratch::new();
    let (data, well) = (scratch.directory("data"), scratch.directory("well"));
    let Some(slow) = slow_disk(&scratch, &data, 50_000_000) else { return };
    let disk = &slow.1;
    // So commits of the journal are under way most of the time.
    disk.set_rates(Rates { latency: Duration::from_millis(5), ..Rates::default() });
    let server = Server::start(scratch.path(), &[&data, &well], &["--set", NO_RESERVE]);
    let (ended, calls, durable) = (AtomicBool::new(false), AtomicU64::new(0), AtomicUsize::new(0));
    let (mut answered, mut held) = (0, 0);
    thread::scope(|threads| {
        for (name, grows) in CLIENTS {
            let (port, ended, calls, durable) = (server.port(), &ended, &calls, &durable);
            threads.spawn(move || write_and_commit(port, name, grows, ended, calls, durable));
        }
        let mut others = others(&server);
        for round in 1..=ROUNDS {
            eventually("the clients have made their calls", || calls.load(Ordering::Relaxed) >= round * CALLS_A_ROUND);
            disk.hang();
            // Each client has written what it writes before its next commit, and the host holds the server's thread.
            let are_held =
                || durable.load(Ordering::SeqCst) == CLIENTS.len() && waits_in_the_kernel(server.process(), |_| true);
            held += u64::from(within(COMES_WITHIN, are_held));
            answered += answering(&mut others);
            disk.go_on();
        }
        ended.store(true, Ordering::Relaxed);
    });
    assert_eq!(answered, ROUNDS as usize * OTHERS, "calls beside the disk that hung");
    assert_eq!(held, ROUNDS, "rounds in which each client waited for the disk");
    server.stop();
}

/// Changes and syncs files until the end, and counts the syncs.
fn change_and_sync(files: &[fs::File; 2], ended: &AtomicBool, syncs: &AtomicU64) {
    while !ended.load(Ordering::Relaxed) {
        files.iter().for_each(|file| file.set_modified(SystemTime::now()).unwrap());
        files[0].sync_all().unwrap();
        syncs.fetch_add(1, Ordering::Relaxed);
    }
}

/// A write on the host may wait for a commit of the journal, which another program has caused. So may the first read
/// after a write, or after the other program has changed the file's attributes.
// rule: 6: a disk that hangs beside another program's syncs holds up no connection that asks for others
// kept in: `product/linux-device/src/reactor/ring.rs`
#[test]
fn a_disk_that_hangs_beside_another_programs_syncs_holds_up_no_other_connection() {
    const ROUNDS: u64 = 21;
    let scratch = Scratch::new();
    let (data, well) = (scratch.directory("data"), scratch.directory("well"));
    let Some(slow) = slow_disk(&scratch, &data, 50_000_000) else { return };
    let disk = &slow.1;
    // A block of inodes has our file and one of the others at least.
    let created = ["before", "ours", "behind"].map(|name| fs::File::create(data.join(name)).unwrap());
    fs::write(data.join("ours"), vec![1; 4 << 20]).unwrap();
    created[1].sync_all().unwrap();
    let [before, _, behind] = created;
    let theirs = [before, behind];
    disk.set_rates(Rates { latency: Duration::from_millis(5), ..Rates::default() });
    let server = Server::start(scratch.path(), &[&data, &well], &["--set", NO_RESERVE]);
    let mut client = afflux_nfs_client::Client::connect(("127.0.0.1", server.port())).unwrap();
    let root = client.mount("/data").unwrap();
    let (ours, _) = client.lookup(&root, b"ours").unwrap();
    let (ended, syncs) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut answered, mut held) = (0, 0);
    let name = slow.1.device().trim_start_matches("/dev/").to_owned();
    thread::scope(|threads| {
        threads.spawn(|| change_and_sync(&theirs, &ended, &syncs));
        let mut others = others(&server);
        for round in 0..ROUNDS {
            // The file's descriptors are open.
            client.write(&ours, 0, &[2; 8192], stable_how::UNSTABLE).unwrap();
            client.commit(&ours, 0, 0).unwrap();
            let (offset, is_write) = ((1 << 20) + (round << 16), round % 3 == 1);
            if round % 3 == 2 {
                client.read(&ours, offset + (1 << 15), 4096).unwrap();
                fs::set_permissions(data.join("ours"), fs::Permissions::from_mode(0o644)).unwrap();
            }
            let before = syncs.load(Ordering::Relaxed);
            eventually("the other program syncs", || syncs.load(Ordering::Relaxed) >= before + 3);
            disk.hang();
            if !is_write {
                client.send(afflux_nfs_client::NFS, READ, &page_read(&ours, offset)).unwrap();
            } else {
                client.write(&ours, 0, &[3; 8192], stable_how::UNSTABLE).unwrap();
            }
            // Of a write, that is the flusher's.
            held += u64::from(within(COMES_WITHIN, || waits_for_the_disk(&server, &name)));
            answered += answering(&mut others);
            disk.go_on();
            if !is_write {
                assert_eq!(client.receive().unwrap().results[..4], [0; 4]);
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
    assert_eq!(answered, ROUNDS as usize * OTHERS, "calls beside the disk that hung");
    // The host decides which block its journal holds: some rounds meet another one.
    assert!(held * 2 > ROUNDS, "the server waited for the disk in {held} rounds of {ROUNDS}");
    server.stop();
}

/// Gives a file a megabyte and takes it back, and counts the syncs, until the end. So commits of the journal contain
/// the bitmap of free blocks.
fn allocate_and_free(file: &fs::File, ended: &AtomicBool, syncs: &AtomicU64) {
    const BYTES: u64 = 1 << 20;
    let punch = FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE;
    while !ended.load(Ordering::Relaxed) {
        for how in [FallocateFlags::empty(), punch] {
            fallocate(file, how, 0, BYTES).unwrap();
            file.sync_all().unwrap();
        }
        syncs.fetch_add(1, Ordering::Relaxed);
    }
}

/// The last close of an object without a name frees its blocks. The host may block the closing thread until a commit of
/// the journal ends.
// rule: 6: an object that was removed from a disk that hangs holds up no connection that asks for others
// kept in: `product/linux-server/src/host/node.rs`
#[test]
fn an_object_removed_from_a_disk_that_hangs_holds_up_no_other_connection() {
    const KINDS: usize = 3;
    const ROUNDS: usize = 5 * KINDS;
    const REMOVE: u32 = 12;
    const RMDIR: u32 = 13;
    let scratch = Scratch::new();
    let (data, well) = (scratch.directory("data"), scratch.directory("well"));
    let Some(slow) = slow_disk(&scratch, &data, 50_000_000) else { return };
    let disk = &slow.1;
    let theirs = fs::File::create(data.join("theirs")).unwrap();
    // A block of inodes with none of ours.
    (0..32).for_each(|number| drop(fs::File::create(data.join(format!("between{number}"))).unwrap()));
    disk.set_rates(Rates { latency: Duration::from_millis(5), ..Rates::default() });
    let server = Server::start(scratch.path(), &[&data, &well], &["--set", NO_RESERVE]);
    let mut client = afflux_nfs_client::Client::connect(("127.0.0.1", server.port())).unwrap();
    let root = client.mount("/data").unwrap();
    for round in 0..ROUNDS {
        let name = format!("ours{round}").into_bytes();
        match round % KINDS {
            0 => {
                let file = client.create_empty(&root, &name).unwrap();
                client.write(&file, 0, &[1; 65536], stable_how::FILE_SYNC).unwrap();
            }
            1 => drop(client.mkdir(&root, &name, Change::default()).unwrap()),
            _ => drop(client.symlink(&root, &name, &[b'a'; 200], Change::default()).unwrap()),
        }
    }
    let (ended, syncs) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut answered, mut held) = (0, 0);
    thread::scope(|threads| {
        threads.spawn(|| allocate_and_free(&theirs, &ended, &syncs));
        let mut others = others(&server);
        for round in 0..ROUNDS {
            let before = syncs.load(Ordering::Relaxed);
            eventually("the other program syncs", || syncs.load(Ordering::Relaxed) >= before + 3);
            disk.hang();
            let remove = Call::Remove { directory: root.clone(), name: format!("ours{round}").into_bytes() };
            let procedure = if round % KINDS == 1 { RMDIR } else { REMOVE };
            client.send(afflux_nfs_client::NFS, procedure, &remove.arguments()).unwrap();
            held += usize::from(within(COMES_WITHIN, || waits_in_the_kernel(server.process(), |_| true)));
            answered += answering(&mut others);
            disk.go_on();
            assert_eq!(client.receive().unwrap().results[..4], [0; 4]);
        }
        ended.store(true, Ordering::Relaxed);
    });
    assert_eq!(answered, ROUNDS * OTHERS, "calls beside the disk that hung");
    assert_eq!(held, ROUNDS, "rounds in which the removal waited for the disk");
    server.stop();
}

/// The server makes a file without a name when it first opens a file system, to find out what that can do. On a frozen
/// file system this call waits.
// rule: 6: a file system below an export that hangs when it is first opened holds up no connection that asks for others
// kept in: `product/volume/src/objects/devices.rs`
#[test]
fn a_file_system_that_hangs_at_its_first_opening_holds_up_no_other_connection() {
    const FSINFO: u32 = 19;
    const FIRST_OPENINGS: usize = 8;
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let below = scratch.directory("data/below");
    let Some(mount) = Mount::ext4(&scratch.path().join("image"), &below, 64 << 20) else { return };
    fs::write(below.join("file"), b"bytes").unwrap();
    let server = Server::start(scratch.path(), &[&data], &[]);
    let connect = || afflux_nfs_client::Client::connect(("127.0.0.1", server.port())).unwrap();
    let mut first = connect();
    let root = first.mount("/").unwrap();
    // Names are found on a frozen file system, too; nothing has opened it before.
    let Some(frozen) = Frozen::freeze(&below) else { return };
    let (directory, _) = first.lookup(&root, b"below").unwrap();
    let (file, _) = first.lookup(&directory, b"file").unwrap();
    let read = page_read(&file, 0);
    // As of GETATTR.
    let handle = Call::GetAttributes { object: directory }.arguments();
    let mut others = others(&server);
    let mut openers: Vec<_> = (0..FIRST_OPENINGS).map(|_| connect()).collect();
    for opener in &mut openers {
        opener.send(afflux_nfs_client::NFS, READ, &read).unwrap();
        opener.send(afflux_nfs_client::NFS, FSINFO, &handle).unwrap();
    }
    let calls = || {
        let calls = server.stat()["nfs"]["calls"].clone();
        ["nfs_read", "nfs_fsinfo"].map(|name| calls[name].as_u64().unwrap_or_default())
    };
    let have_come = || calls() == [FIRST_OPENINGS as u64; 2] && waits_in_the_kernel(server.process(), |_| true);
    let have_come = within(COMES_WITHIN, have_come);
    // The clients of half of the calls go away.
    openers.truncate(FIRST_OPENINGS / 2);
    let answered = answering(&mut others);
    let devices = server.stat()["devices"].as_array().unwrap().len();
    drop(frozen);
    assert_eq!((answered, devices), (OTHERS, 1), "calls beside the file system that hung, and devices");
    assert!(have_come, "the calls have come to the host");
    for opener in &mut openers {
        for _ in 0..2 {
            assert_eq!(opener.receive().unwrap().results[..4], [0; 4]);
        }
    }
    let name = mount.device().trim_start_matches("/dev/");
    let devices = server.stat()["devices"].as_array().unwrap().clone();
    let met: Vec<_> = devices.iter().map(|device| device["name"].as_str().unwrap()).collect();
    assert_eq!(met.len(), 2, "{met:?}");
    assert_eq!(met[1], name);
    server.stop();
}

/// The kernel first waits for its own reads of a file. Then it takes the notice that the file's bytes have changed.
// rule: a mount notifies its kernel of changes to other files while a file that was changed is read from a disk that
// hangs
// kept in: `product/linux-server/src/fuse/session.rs`
#[test]
fn a_disk_that_hangs_under_a_read_holds_up_no_notice_about_others() {
    if !crate::mounted::can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = (scratch.directory("data"), scratch.directory("point"));
    let below = scratch.directory("data/below");
    let Some(slow) = slow_disk(&scratch, &below, 50_000_000) else { return };
    let disk = &slow.1;
    fs::write(below.join("file"), vec![1; 4 << 20]).unwrap();
    fs::File::open(below.join("file")).unwrap().sync_all().unwrap();
    // The kernel caches bytes, and uses names until it is notified.
    let arguments = ["--mount", point.to_str().unwrap(), "--sole", "--kernel-cache", "--set", NO_RESERVE];
    let server = Server::start(scratch.path(), &[&data], &arguments);
    let mut client = Client::mount(&server);
    let root = client.root();
    let directory = client.lookup(&root, "below");
    let file = client.lookup(&directory, "file");
    client.write_at(&file, 0, &[2; 8192]);
    client.commit(&file);
    let opened = fs::File::open(point.join("below/file")).unwrap();
    // The host has changed the access time since the write.
    opened.read_exact_at(&mut [0; 4096], 8192).unwrap();
    let new = point.join("new");
    fs::metadata(&new).unwrap_err();
    let reads = || server.stat()["nfs"]["calls"]["fuse_read"].as_u64().unwrap();
    let before = reads();
    disk.hang();
    let told = thread::scope(|threads| {
        threads.spawn(|| opened.read_exact_at(&mut [0; 4096], 3 << 20).unwrap());
        eventually("a program reads", || reads() > before);
        client.try_write_at(&file, 0, &[3; 8192]).unwrap();
        eventually("a notice waits", || waits_in_the_kernel(server.process(), |name| name == "fuse-notices"));
        client.write_file(&root, "new", b"bytes");
        let told = within(COMES_WITHIN, || fs::metadata(&new).is_ok());
        disk.go_on();
        told
    });
    assert!(told, "the kernel was not told of a name on another disk");
    drop(opened);
    assert!(Command::new("umount").arg(&point).status().unwrap().success());
    server.stop();
}
