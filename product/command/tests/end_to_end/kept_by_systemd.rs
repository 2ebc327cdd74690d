//! A cache and a socket that the service manager stores (`--arena systemd`). The test is the service manager.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::{MemfdFlags, Mode, SealFlags, fchmod, fchown, fcntl_add_seals, fstat, memfd_create};
use rustix::process::Signal;

use crate::arenas::Place;
use crate::client::Client;
use crate::scratch::Bytes;
use crate::server::{LAZY, Server, afflux, eventually, text};
use crate::systemd::{Systemd, first_bytes};

const RESERVE: [&str; 2] = ["--arena", "systemd"];
/// NFS3ERR_NOENT, NFS3ERR_EXIST.
const NOENT: u32 = 2;
const EXIST: u32 = 17;

fn lazy() -> Vec<&'static str> {
    [&RESERVE[..], &LAZY].concat()
}

fn begin() -> Option<(Place, Systemd)> {
    let place = Place::new()?;
    let manager = Systemd::new(place.scratch.path());
    Some((place, manager))
}

/// Kills a server, and waits for its end.
fn kill(server: Server) {
    server.signal(Signal::KILL);
    assert_eq!(server.wait().signal, Some(9));
}

/// Connects again and again, and counts refused connections.
struct Caller {
    calls: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    thread: thread::JoinHandle<usize>,
}

impl Caller {
    fn start(port: u16) -> Self {
        let (calls, ended) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (made, is_over) = (Arc::clone(&calls), Arc::clone(&ended));
        let thread = thread::spawn(move || {
            let mut refused = 0;
            while !is_over.load(Ordering::Relaxed) {
                refused += usize::from(TcpStream::connect(("127.0.0.1", port)).is_err());
                made.fetch_add(1, Ordering::Relaxed);
                thread::park_timeout(Duration::from_millis(1));
            }
            refused
        });
        Self { calls, ended, thread }
    }

    /// Ends it after more than ten calls. Returns how many were refused.
    fn end(self) -> usize {
        eventually("the caller calls", || self.calls.load(Ordering::Relaxed) > 10);
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Changes names, and repeats a call with its number until it is answered.
struct Repeater {
    calls: Arc<AtomicU64>,
    has_ended: Arc<AtomicBool>,
    thread: thread::JoinHandle<Rounds>,
}

/// The rounds of a [`Repeater`].
struct Rounds {
    ended: u64,
    /// Repetitions whose answer was only that the name was taken or gone. After a kill between the host's call and its
    /// note, the next server knows nothing of the change.
    without_note: u64,
}

impl Repeater {
    fn start(port: u16) -> Self {
        let (calls, has_ended) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (made, is_over) = (Arc::clone(&calls), Arc::clone(&has_ended));
        let thread = thread::spawn(move || {
            let mut connection = Connection::to(port);
            let mut rounds = 0;
            while !is_over.load(Ordering::Relaxed) {
                connection.round(rounds, &made);
                rounds += 1;
            }
            Rounds { ended: rounds, without_note: connection.without_note }
        });
        Self { calls, has_ended, thread }
    }

    fn goes_on(&self, calls: u64) {
        let wanted = self.calls.load(Ordering::Relaxed) + calls;
        eventually("calls are answered", || self.thread.is_finished() || self.calls.load(Ordering::Relaxed) >= wanted);
    }

    fn end(self) -> Rounds {
        self.has_ended.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

struct Connection {
    port: u16,
    xid: u32,
    client: afflux_nfs_client::Client,
    root: Vec<u8>,
    without_note: u64,
}

impl Connection {
    fn to(port: u16) -> Self {
        let mut client = afflux_nfs_client::Client::connect(("127.0.0.1", port)).unwrap();
        let root = client.mount("/").unwrap().to_vec();
        Self { port, xid: 1000, client, root, without_note: 0 }
    }

    /// Makes a call until it has a reply. The first try must succeed, and a repetition must find the change done.
    fn call(
        &mut self,
        made: &AtomicU64,
        mut call: impl FnMut(&mut afflux_nfs_client::Client, &[u8]) -> Result<(), afflux_nfs_client::Error>,
    ) {
        self.xid += 1;
        let mut is_repeated = false;
        loop {
            self.client.set_next_xid(self.xid);
            match call(&mut self.client, &self.root) {
                Ok(()) => break,
                Err(error) if is_repeated && matches!(error.status(), Some(NOENT | EXIST)) => {
                    self.without_note += 1;
                    break;
                }
                Err(error) if error.status().is_some() => panic!("{error}"),
                Err(_) => self.client = afflux_nfs_client::Client::connect(("127.0.0.1", self.port)).unwrap(),
            }
            is_repeated = true;
        }
        made.fetch_add(1, Ordering::Relaxed);
    }

    /// Changes after which the directory `kept` with this number is there, and nothing else of the round.
    fn round(&mut self, round: u64, made: &AtomicU64) {
        let name = |of: &str| format!("{of}{round}").into_bytes();
        let change = afflux_nfs_client::Change::default();
        self.call(made, |client, root| client.mkdir(root, &name("made"), change).map(drop));
        self.call(made, |client, root| client.rename((root, &name("made")), (root, &name("kept"))).map(drop));
        self.call(made, |client, root| client.symlink(root, &name("link"), b"target", change).map(drop));
        self.call(made, |client, root| client.remove(root, &name("link")).map(drop));
        self.call(made, |client, root| client.mkdir(root, &name("gone"), change).map(drop));
        self.call(made, |client, root| client.rmdir(root, &name("gone")).map(drop));
    }
}

// rule: an NFS call that changes names, and that a client repeats after a kill, is done once
// kept in: `product/frontend/src/journal.rs`, `product/volume/src/names/repeated.rs`
#[test]
fn calls_repeated_over_kills_are_done_once() {
    const KILLS: u64 = 12;
    let Some((place, manager)) = begin() else { return };
    let mut server = manager.start(&place.data, &RESERVE);
    manager.has(1, 1);
    let repeater = Repeater::start(server.port());
    for number in 0..KILLS {
        repeater.goes_on(10 + number * 7 % 13);
        kill(server);
        server = manager.start(&place.data, &RESERVE);
    }
    repeater.goes_on(10);
    let rounds = repeater.end();
    // Nearly all of a call's time comes after the note, when the change is made durable.
    let without_note = rounds.without_note;
    assert!(without_note * 2 <= KILLS, "{without_note} of {KILLS} kills left a change without its note");
    let mut names: Vec<_> = fs::read_dir(&place.data).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let mut wanted: Vec<_> = (0..rounds.ended).map(|round| std::ffi::OsString::from(format!("kept{round}"))).collect();
    wanted.sort();
    assert_eq!(names, wanted);
    server.stop();
}

#[test]
fn a_call_answered_before_a_kill_gets_its_first_reply() {
    let Some((place, manager)) = begin() else { return };
    fs::write(place.data.join("file"), "").unwrap();
    let server = manager.start(&place.data, &RESERVE);
    manager.has(1, 1);
    let made = AtomicU64::new(0);
    let mut connection = Connection::to(server.port());
    connection.call(&made, |client, root| client.remove(root, b"file").map(drop));
    kill(server);
    let server = manager.start(&place.data, &RESERVE);
    // Others have made the file anew meanwhile.
    fs::write(place.data.join("file"), "new").unwrap();
    connection.xid -= 1;
    connection.call(&made, |client, root| client.remove(root, b"file").map(drop));
    assert_eq!(fs::read(place.data.join("file")).unwrap(), b"new");
    connection.call(&made, |client, root| client.remove(root, b"file").map(drop));
    assert!(!place.data.join("file").exists());
    server.stop();
}

// rule: with `--arena systemd` a killed server's successor has its data, its verifier and its socket kept in:
// `product/linux-server/src/descriptor_store.rs`, `product/linux-server/src/arena_file.rs`,
// `product/command/src/serve/front/listening.rs`
#[test]
fn memory_and_socket_outlive_a_killed_server() {
    let Some((place, manager)) = begin() else { return };
    let mut server = manager.start(&place.data, &lazy());
    let port = server.port();
    manager.has(1, 1);
    let mut client = Client::mount(&server);
    let root = client.root();
    let bytes = Bytes::new(3).vec(1 << 20);
    let file = client.write_file_uncommitted(&root, "f", &bytes);
    let verifier = client.verifier();
    for _ in 0..3 {
        let caller = Caller::start(port);
        kill(server);
        assert_eq!(fs::read(place.data.join("f")).unwrap().len(), 0, "nothing was written");
        server = manager.start(&place.data, &lazy());
        assert_eq!(caller.end(), 0, "connections were refused");
        assert_eq!(server.port(), port);
        assert!(Client::mount(&server).read_file(&root, "f") == bytes);
    }
    let mut client = Client::mount(&server);
    client.try_write_at(&file, 0, &bytes[..1000]).unwrap();
    client.commit(&file);
    assert_eq!(client.verifier(), verifier, "nothing was lost");
    assert!(fs::read(place.data.join("f")).unwrap() == bytes, "the client sent nothing again");
    assert!(manager.removals().is_empty(), "{}", manager.log());
    server.stop();
    manager.has(0, 0);
}

/// A call that came while nobody served is answered by the successor.
#[test]
fn a_call_waits_for_the_successor() {
    let Some((place, manager)) = begin() else { return };
    let server = manager.start(&place.data, &RESERVE);
    let port = server.port();
    manager.has(1, 1);
    kill(server);
    let mut early = afflux_nfs_client::Client::connect(("127.0.0.1", port)).unwrap();
    let called = thread::spawn(move || early.null());
    let server = manager.start(&place.data, &RESERVE);
    called.join().unwrap().unwrap();
    assert_eq!(server.stat()["cache"]["arena"], "systemd");
    server.stop();
}

/// The bytes that a client sends to make a file.
fn bytes_of_create(root: &[u8], name: &str) -> Vec<u8> {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = afflux_nfs_client::Client::connect(server.local_addr().unwrap()).unwrap();
    client.set_timeout(Some(Duration::from_millis(100))).unwrap();
    assert_eq!(client.create_empty(root, name.as_bytes()).unwrap_err().status(), None, "nobody answers");
    drop(client);
    let mut bytes = Vec::new();
    server.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
    bytes
}

/// A client that has gone may have repeated its call elsewhere, and written more since.
// rule: a call of a client that has gone before a server took its connection is not carried out
// kept in: `product/linux-server/src/net/listener.rs`
#[test]
fn a_call_of_a_client_that_has_gone_is_not_carried_out() {
    let Some((place, manager)) = begin() else { return };
    let server = manager.start(&place.data, &RESERVE);
    let port = server.port();
    let root = Client::mount(&server).root();
    manager.has(1, 1);
    kill(server);
    let call = |name: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(&bytes_of_create(&root, name)).unwrap();
        stream
    };
    let (gone, _waits) = (call("gone"), call("waits"));
    // Without its socket, a client on this machine would have no known owner.
    gone.shutdown(Shutdown::Write).unwrap();
    let server = manager.start(&place.data, &RESERVE);
    eventually("the call that waits is carried out", || place.data.join("waits").exists());
    server.stop();
    assert!(!place.data.join("gone").exists());
}

/// A forged descriptor, and the reason for which it is not used.
type Forged<'a> = (&'a str, OwnedFd);

fn sealed(bytes: &[u8], length: u64) -> OwnedFd {
    let memory = memfd_create("forged", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    fchmod(&memory, Mode::RUSR | Mode::WUSR).unwrap();
    let file = File::from(memory);
    file.set_len(length).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL).unwrap();
    file.into()
}

fn forged_memories(place: &Place, header: &[u8], length: u64) -> Vec<Forged<'static>> {
    fs::write(place.arena(), header).unwrap();
    let plain = File::options().read(true).write(true).open(place.arena()).unwrap();
    plain.set_len(length).unwrap();
    plain.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let open = memfd_create("forged", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    let unsealed = open.try_clone().unwrap();
    fchmod(&unsealed, Mode::RUSR | Mode::WUSR).unwrap();
    let for_all = memfd_create("forged", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    fchmod(&for_all, Mode::from_raw_mode(0o666)).unwrap();
    let foreign = sealed(header, length);
    fchown(&foreign, Some(rustix::fs::Uid::from_raw(65534)), None).unwrap();
    vec![
        ("its size is not sealed", plain.into()),
        ("its size is not sealed", unsealed),
        ("its mode is 666", for_all),
        ("it belongs to user 65534", foreign),
        ("bytes, and its header says", sealed(header, length - 4096)),
        ("it is no arena of this program", sealed(&Bytes::new(1).vec(1 << 20), length)),
        ("it is no regular file", std::os::unix::net::UnixDatagram::unbound().unwrap().into()),
    ]
}

// rule: a descriptor in the manager's store that this program did not leave is not used
// kept in: `product/linux-server/src/arena_file.rs`, `product/linux-server/src/arena_file/backing_file.rs`
#[test]
fn forged_memory_is_made_anew_with_one_line() {
    let Some((place, manager)) = begin() else { return };
    kill(manager.start(&place.data, &RESERVE));
    manager.has(1, 1);
    let own = manager.stored("arena").remove(0);
    let length = fstat(&own).unwrap().st_size as u64;
    let header = first_bytes(&own, 4096);
    for (reason, forged) in forged_memories(&place, &header, length) {
        manager.put("arena", forged.try_clone().unwrap());
        let (said, removals) = (manager.log().len(), manager.removals().len());
        let server = manager.start(&place.data, &RESERVE);
        let lines = manager.log()[said..].lines().filter(|line| line.contains("made anew")).count();
        let log = manager.log()[said..].to_owned();
        assert!(lines == 1 && log.contains(reason), "{reason}: {log}");
        assert_eq!(manager.removals()[removals..], ["arena"], "{log}");
        manager.has(1, 1);
        let new = fstat(&manager.stored("arena")[0]).unwrap();
        let old = fstat(&forged).unwrap();
        assert!(new.st_size as u64 == length && new.st_ino != old.st_ino, "{reason}");
        let mut client = Client::mount(&server);
        let root = client.root();
        client.write_file_uncommitted(&root, "f", b"bytes");
        kill(server);
    }
    manager.start(&place.data, &RESERVE).stop();
    assert_eq!(fs::read(place.data.join("f")).unwrap(), b"bytes");
}

// rule: memory that another version left with the service manager is not dropped: the server does not start, and takes
// its time
// kept in: `product/linux-server/src/arena_file/backing_file.rs`, `product/command/src/serve/persisted/arena.rs`
#[test]
fn memory_of_another_version_is_left_to_it() {
    let Some((place, manager)) = begin() else { return };
    let server = manager.start(&place.data, &lazy());
    manager.has(1, 1);
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file_uncommitted(&root, "f", b"accepted");
    kill(server);
    let memory = File::from(manager.stored("arena").remove(0));
    let own = first_bytes(&manager.stored("arena")[0], 56);
    // The form is the second word, and the checksum of the words before it the seventh.
    let mut later = own.clone();
    later[8] += 1;
    let check = u64::from(crc32c::crc32c(&later[..48]));
    later[48..].copy_from_slice(&check.to_le_bytes());
    memory.write_all_at(&later, 0).unwrap();
    let removals = manager.removals().len();
    manager.refused(&place.data, &RESERVE);
    let log = manager.log();
    assert!(log.contains("and this version reads form") && log.contains("this one ends in"), "{log}");
    assert_eq!(manager.removals().len(), removals, "{log}");
    memory.write_all_at(&own, 0).unwrap();
    manager.start(&place.data, &RESERVE).stop();
    assert_eq!(fs::read(place.data.join("f")).unwrap(), b"accepted", "{}", manager.log());
}

#[test]
fn a_socket_that_does_not_fit_is_made_anew_with_one_line() {
    let Some((place, manager)) = begin() else { return };
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    let unlistening =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
    rustix::net::bind(&unlistening, &any).unwrap();
    let cases: [Forged<'_>; 5] = [
        ("it is no socket", File::open("/dev/null").unwrap().into()),
        ("it is not for TCP", UdpSocket::bind("127.0.0.1:0").unwrap().into()),
        ("it is not for TCP", std::os::unix::net::UnixDatagram::unbound().unwrap().into()),
        ("it has another address", TcpListener::bind("127.0.0.2:0").unwrap().into()),
        ("it does not listen", unlistening),
    ];
    for (reason, forged) in cases {
        manager.put("listen", forged);
        let said = manager.log().len();
        let server = manager.start(&place.data, &RESERVE);
        let log = manager.log()[said..].to_owned();
        assert!(log.contains(reason) && log.contains("it is made anew"), "{reason}: {log}");
        Client::mount(&server);
        manager.has(1, 1);
        server.stop();
        manager.has(0, 0);
    }
    // The one that was configured before, at an address that no other test uses.
    let server = manager.start(&place.data, &[&RESERVE[..], &["--listen", "127.0.0.3:0"]].concat());
    manager.has(1, 1);
    let port = server.port();
    kill(server);
    let server = manager.start(&place.data, &[&RESERVE[..], &["--listen", "127.0.0.2:0"]].concat());
    // The manager closes the one that it stored after the server has said so.
    eventually("the kept socket is closed", || TcpStream::connect(("127.0.0.3", port)).is_err());
    server.stop();
}

// rule: two servers never write from one memory that the service manager stores
// kept in: `product/linux-server/src/arena_file.rs`
#[test]
fn a_second_server_is_refused_and_a_frozen_one_ended() {
    let Some((place, manager)) = begin() else { return };
    let first = manager.start(&place.data, &RESERVE);
    manager.has(1, 1);
    manager.refused(&place.data, &[&RESERVE[..], &["--shared"]].concat());
    assert!(manager.log().contains(&format!("process {} uses it", first.process())), "{}", manager.log());
    let mut client = Client::mount(&first);
    let root = client.root();
    let bytes = Bytes::new(8).vec(200_000);
    client.write_file_uncommitted(&root, "f", &bytes);
    first.freeze();
    let second = manager.start(&place.data, &RESERVE);
    assert_eq!(first.wait().signal, Some(Signal::KILL.as_raw()));
    assert!(Client::mount(&second).read_file(&root, "f") == bytes);
    second.stop();
    manager.has(0, 0);
}

#[test]
fn a_start_that_fails_leaves_what_the_manager_has() {
    let Some((place, manager)) = begin() else { return };
    let gone = place.scratch.path().join("gone");
    manager.refused(&gone, &RESERVE);
    manager.has(0, 0);
    let server = manager.start(&place.data, &RESERVE);
    manager.has(1, 1);
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file_uncommitted(&root, "f", b"accepted");
    let port = server.port();
    kill(server);
    let removals = manager.removals().len();
    manager.refused(&gone, &RESERVE);
    assert!(manager.log().contains("systemd keeps unwritten data for the next server"), "{}", manager.log());
    assert_eq!(manager.removals().len(), removals);
    TcpStream::connect(("127.0.0.1", port)).expect("clients still wait");
    // This start has the socket when it fails.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let metrics = taken.local_addr().unwrap().to_string();
    manager.refused(&place.data, &[&RESERVE[..], &["--metrics", &metrics]].concat());
    assert!(manager.log().contains(&metrics) && manager.removals().len() == removals, "{}", manager.log());
    TcpStream::connect(("127.0.0.1", port)).expect("clients still wait");
    manager.start(&place.data, &RESERVE).stop();
    assert_eq!(fs::read(place.data.join("f")).unwrap(), b"accepted");
}

#[test]
fn other_settings_drop_what_the_manager_has() {
    let Some((place, manager)) = begin() else { return };
    // At an address that no other test uses.
    let server = manager.start(&place.data, &[&RESERVE[..], &["--listen", "127.0.0.4:0"]].concat());
    manager.has(1, 1);
    let port = server.port();
    kill(server);
    let server = manager.start(&place.data, &[]);
    manager.has(0, 0);
    assert!(
        manager.log().contains("systemd has the cache of an earlier server, which is dropped"),
        "{}",
        manager.log()
    );
    eventually("the kept socket is closed", || TcpStream::connect(("127.0.0.4", port)).is_err());
    server.stop();
}

#[test]
fn a_server_without_a_manager_or_a_store_is_refused() {
    let Some((place, manager)) = begin() else { return };
    let refused = |variables: &[(&str, &str)]| {
        let mut command = afflux(place.scratch.path());
        command.env_remove("NOTIFY_SOCKET").envs(variables.iter().copied()).arg("serve").arg(&place.data);
        let output = command.args(["--cache", "64MiB", "--listen", "127.0.0.1:0"]).args(RESERVE).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        text(&output)
    };
    assert!(refused(&[]).contains("not run by systemd (NOTIFY_SOCKET is not set), or name a file"));
    let socket = place.scratch.path().join("notify");
    let said = refused(&[("NOTIFY_SOCKET", socket.to_str().unwrap()), ("FDSTORE", "0")]);
    assert!(said.contains("the unit may store 0 descriptors, and the server needs 2"), "{said}");
    drop(manager);
}
