//! Locks of clients of NFS version 4 and of programs on a mount: shown, freed by a command, and over a kill of the
//! server.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use afflux_nfs_client::Client;
use afflux_nfs_client::sessions::{Compound, Outcome, Session, Stateid};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::Signal;

use crate::arenas::Place;
#[cfg(feature = "object")]
use crate::fake_store::FakeStore;
use crate::mounted::{Mounted, apart, can_mount};
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, text};
#[cfg(feature = "object")]
use crate::store_server;

const EXCLUSIVE: u32 = 2;
const WHOLE: (u64, u64) = (0, u64::MAX);
const BOTH: (u32, u32) = (3, 0);
const DENIED: u32 = 10_010;
const GRACE: u32 = 10_013;
const BADSESSION: u32 = 10_052;

fn ops() -> Compound {
    Compound::default()
}

fn connect(server: &Server) -> Client {
    Client::connect(("127.0.0.1", server.port())).unwrap()
}

/// The stateid of an OPEN that is the second operation.
fn opened(outcome: &Outcome) -> Stateid {
    let mut reader = outcome.reader();
    for _ in 0..2 {
        reader.next_result().unwrap();
    }
    reader.stateid().unwrap()
}

/// Opens a file in the root and makes it: its stateid, its handle.
fn open(session: &mut Session) -> (Stateid, Vec<u8>) {
    let opened = session.must(ops().put_root().open(BOTH, b"program", b"file", true).get_handle()).unwrap();
    let mut reader = opened.reader();
    for _ in 0..2 {
        reader.next_result().unwrap();
    }
    let stateid = reader.stateid().unwrap();
    reader.skip_open().unwrap();
    reader.next_result().unwrap();
    (stateid, reader.opaque().unwrap().to_vec())
}

fn serve(scratch: &Scratch, data: &Path) -> Server {
    Server::start(scratch.path(), &[data], &["--cache", "64MiB", "--nfs", "4"])
}

#[test]
fn a_client_with_locks_is_shown_and_ended_by_hand() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = serve(&scratch, &data);
    let nobody = server.ask(&["unlock", "192.0.2.7"]);
    assert!(text(&nobody).contains("no client '192.0.2.7' of version 4; there is none"), "{}", text(&nobody));
    let mut gone = Session::begin(connect(&server), b"gone client", 1).unwrap();
    let (stateid, file) = open(&mut gone);
    gone.must(ops().put(&file).lock(EXCLUSIVE, WHOLE, stateid, b"owner")).unwrap();
    let figures = &server.stat()["nfs"];
    let held = ["known_clients", "sessions", "open_files", "locked_ranges", "lock_waiters"].map(|name| &figures[name]);
    assert_eq!(held, [1, 1, 1, 1, 0].map(serde_json::Value::from).each_ref());
    let line = text(&server.ask(&["stat", "--verbose"]));
    assert!(line.contains("1 session   1 open file   1 lock"), "{line}");
    let line = text(&server.ask(&["stat"]));
    assert!(line.contains("open 1, locked 1"), "{line}");
    let drained = text(&server.ask(&["drain"]));
    assert!(drained.ends_with(" Clients still have 1 file open.\n"), "{drained}");
    let locker = &server.stat()["nfs"]["lockers"][0];
    assert_eq!((&locker["ranges"], &locker["waiting"]), (&1.into(), &0.into()));
    let number = locker["number"].to_string();
    let shown = text(&server.ask(&["stat", "--verbose"]));
    assert!(
        shown.contains(&format!("client {number} (user ")) && shown.contains("gone client)   1 open file   1 lock"),
        "{shown}"
    );
    let mut other = Session::begin(connect(&server), b"other", 1).unwrap();
    let (stateid, file) = open(&mut other);
    let wanted = || ops().put(&file).lock(EXCLUSIVE, WHOLE, stateid, b"owner");
    assert_eq!(other.call(wanted()).unwrap().status, DENIED);
    let wrong = server.ask(&["unlock", "nobody"]);
    assert!(!wrong.status.success() && text(&wrong).contains("gone client"), "{}", text(&wrong));
    let ended = server.ask(&["unlock", &number]);
    assert!(
        ended.status.success() && text(&ended).contains("gone client), which had 1 open file and 1 lock"),
        "{}",
        text(&ended)
    );
    other.must(wanted()).unwrap();
    assert_eq!(gone.call(ops().put_root()).unwrap().status, BADSESSION);
    server.stop();
}

#[test]
fn clients_are_listed_with_what_they_have_of_each_file_and_an_open_can_be_taken_away() {
    const SHARE_DENIED: u32 = 10_015;
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = serve(&scratch, &data);
    assert_eq!(text(&server.ask(&["clients"])), "no client of version 4\n");
    let mut hoarder = Session::begin(connect(&server), b"hoarder", 2).unwrap();
    let mut other = Session::begin(connect(&server), b"other", 1).unwrap();
    // It has an open that denies reading, and no lock.
    hoarder.must(ops().put_root().open((3, 1), b"program", b"file", true)).unwrap();
    let listed = |words: &[&str]| -> serde_json::Value {
        serde_json::from_str(&text(&server.ask(&[&["clients", "--json"], words].concat()))).unwrap()
    };
    let clients = &listed(&[])["clients"];
    let of = |at: usize| -> serde_json::Value {
        ["name", "version", "status", "opens", "denying", "ranges"]
            .map(|name| clients[at][name].clone())
            .to_vec()
            .into()
    };
    assert_eq!(of(0), serde_json::json!(["hoarder", "4.2", "confirmed", 1, 1, 0]));
    assert_eq!(of(1), serde_json::json!(["other", "4.1", "confirmed", 0, 0, 0]));
    let (lease_ns, user) = (clients[0]["lease_left_ns"].as_u64().unwrap(), rustix::process::geteuid().as_raw());
    assert!(lease_ns > 0 && clients[0]["user"] == user && clients[0]["address"].is_null(), "{clients}");
    let number = clients[0]["number"].to_string();
    let state = &listed(&[&number])["clients"][0]["states"][0];
    let path = data.canonicalize().unwrap().join("file");
    assert_eq!((state["file"].as_str(), &state["access"], &state["deny"]), (path.to_str(), &"rw".into(), &"r".into()));
    let shown = text(&server.ask(&["clients"]));
    assert!(shown.lines().nth(1).unwrap().ends_with("hoarder") && shown.lines().count() == 3, "{shown}");
    let shown = text(&server.ask(&["clients", &number]));
    assert!(shown.contains(&format!("\n  open rw, denies r  {}  by program\n", path.display())), "{shown}");
    let shown = text(&server.ask(&["stat", "--verbose"]));
    assert!(shown.contains("hoarder)   1 open file   1 open file that keep others out"), "{shown}");

    let opens = || ops().put_root().open((1, 0), b"program", b"file", false);
    assert_eq!(other.call(opens()).unwrap().status, SHARE_DENIED);
    let ended = text(&server.ask(&["unlock", &number]));
    assert!(ended.contains("hoarder), which had 1 open file and 0 locks"), "{ended}");
    other.must(opens()).unwrap();
    assert_eq!(listed(&[])["clients"].as_array().unwrap().len(), 1);
    server.stop();
}

#[test]
fn a_lock_outlives_a_kill_of_the_server_until_its_client_has_asked_for_it_again() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = serve(&scratch, &data);
    let mut holder = Session::begin(connect(&server), b"holder", 1).unwrap();
    let (stateid, file) = open(&mut holder);
    holder.must(ops().put(&file).lock(EXCLUSIVE, WHOLE, stateid, b"owner")).unwrap();
    server.kill();
    let server = serve(&scratch, &data);
    let mut other = Session::begin(connect(&server), b"other", 1).unwrap();
    let opens = || ops().put_root().open(BOTH, b"program", b"file", false);
    assert_eq!(other.call(opens()).unwrap().status, GRACE);
    let mut holder = Session::begin_reclaiming(connect(&server), b"holder", 1).unwrap();
    let stateid = opened(&holder.must(ops().put(&file).reclaim_open(BOTH, b"program")).unwrap());
    holder.must(ops().put(&file).reclaim_lock(EXCLUSIVE, WHOLE, stateid, b"owner").reclaim_complete()).unwrap();
    let (_, file) = open(&mut other);
    let tested = other.call(ops().put(&file).test_lock(EXCLUSIVE, WHOLE, b"owner")).unwrap();
    assert_eq!(tested.status, DENIED);
    server.stop();
}

/// An error is no empty list: new clients wait for the unknown clients, which have lost their locks.
#[test]
fn after_a_kill_a_list_of_clients_that_cannot_be_read_counts_as_clients_that_are_missing() {
    if !rustix::process::geteuid().is_root() {
        afflux_scratch::skipped!("only root gives files to another user");
        return;
    }
    let spoil: [fn(&Path); 3] = [
        |list| std::os::unix::fs::chown(list, Some(4711), Some(4711)).unwrap(),
        |list| std::fs::write(list, "no name").unwrap(),
        |list| {
            std::fs::remove_file(list).unwrap();
            std::fs::create_dir(list).unwrap();
        },
    ];
    for spoil in spoil {
        let scratch = Scratch::new();
        let data = scratch.directory("data");
        let server = serve(&scratch, &data);
        let mut holder = Session::begin(connect(&server), b"holder", 1).unwrap();
        let (stateid, file) = open(&mut holder);
        holder.must(ops().put(&file).lock(EXCLUSIVE, WHOLE, stateid, b"owner")).unwrap();
        server.kill();
        spoil(&scratch.path().join("afflux/nfs-clients"));
        let server = serve(&scratch, &data);
        let mut other = Session::begin(connect(&server), b"other", 1).unwrap();
        let opens = || ops().put_root().open(BOTH, b"program", b"file", false);
        assert_eq!(other.call(opens()).unwrap().status, GRACE);
        let mut holder = Session::begin_reclaiming(connect(&server), b"holder", 1).unwrap();
        let reclaims = ops().put(&file).reclaim_open(BOTH, b"program");
        assert_ne!(holder.call(reclaims).unwrap().status, 0);
        server.signal(rustix::process::Signal::KILL);
        let ended = server.wait();
        assert!(ended.stderr.contains("are unknown: they lose their locks"), "{ended:?}");
    }
}

/// The server is replaced: its clients go on as if it had not been, and a new one waits for nobody.
fn go_on_over(server: Server, end: impl FnOnce(Server), start: impl FnOnce() -> Server) {
    let mut holder = Session::begin(connect(&server), b"holder", 1).unwrap();
    let _away = Session::begin(connect(&server), b"away", 1).map(|mut it| open(&mut it)).unwrap();
    let (stateid, file) = open(&mut holder);
    let locks = || ops().put(&file).lock(EXCLUSIVE, WHOLE, stateid, b"owner");
    let locked = holder.call(locks()).unwrap();
    end(server);
    let server = start();
    let mut new = Session::begin(connect(&server), b"new", 1).unwrap();
    let (by_new, _) = open(&mut new);
    let wanted = || ops().put(&file).lock(EXCLUSIVE, WHOLE, by_new, b"owner");
    assert_eq!(new.call(wanted()).unwrap().status, DENIED);
    holder.client = connect(&server);
    assert_eq!(holder.again(locks()).unwrap(), locked, "the first reply");
    holder.must(ops().put(&file).write(stateid, 0, 2, b"bytes").close(stateid)).unwrap();
    new.must(wanted()).unwrap();
    server.stop();
}

#[test]
fn with_an_arena_clients_of_a_killed_server_go_on_and_a_new_one_waits_for_nobody() {
    let Some(place) = Place::new() else { return };
    go_on_over(place.start(), Server::kill, || place.start());
}

// rule: after a kill with an arena a new client waits for none of those that are away
// kept in: `product/nfs/src/v4/recovery.rs`, `product/nfs/src/v4/grace.rs`
#[test]
fn the_first_open_of_a_new_client_after_a_kill_waits_for_none_of_those_that_are_away() {
    const AWAY: u64 = 50;
    let Some(place) = Place::new() else { return };
    let server = place.start();
    for at in 0..AWAY {
        let mut away = Session::begin(connect(&server), format!("away {at}").as_bytes(), 1).unwrap();
        let (stateid, file) = open(&mut away);
        away.must(ops().put(&file).lock(EXCLUSIVE, (at, 1), stateid, b"owner")).unwrap();
    }
    let killed = Instant::now();
    server.kill();
    let server = place.start();
    let mut new = Session::begin(connect(&server), b"new", 1).unwrap();
    let first = new.call(ops().put_root().open(BOTH, b"program", b"file", false).get_handle()).unwrap();
    eprintln!("the first OPEN of a new client: {} ms after the kill", killed.elapsed().as_millis());
    assert_eq!(first.status, 0, "no grace");
    let figures = &server.stat()["nfs"];
    let held = ["known_clients", "sessions", "open_files", "locked_ranges"].map(|name| figures[name].as_u64().unwrap());
    assert_eq!(held, [AWAY + 1, AWAY + 1, AWAY + 1, AWAY], "all that the others have is kept for them");
    server.stop();
}

#[test]
fn after_an_orderly_stop_clients_go_on_with_and_without_an_arena() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    go_on_over(serve(&scratch, &data), |server| drop(server.stop()), || serve(&scratch, &data));
    let Some(place) = Place::new() else { return };
    go_on_over(place.start(), |server| drop(server.stop()), || place.start());
}

/// Names of the greatest length make more state than any other clients have.
#[test]
fn an_orderly_stop_keeps_the_opens_of_a_client_with_thousands_of_long_names() {
    const NAME_BYTES: usize = 1024;
    const OPENS: u32 = 5250;
    const A_CALL: u32 = 7;
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = serve(&scratch, &data);
    let mut client = Session::begin(connect(&server), b"client", 1).unwrap();
    let (stateid, file) = open(&mut client);
    client.keeps = false;
    for first in (0..OPENS).step_by(A_CALL as usize) {
        let by = |owner: u32| [&vec![255; NAME_BYTES - 4][..], &owner.to_be_bytes()].concat();
        let opens =
            (first..first + A_CALL).fold(ops(), |ops, owner| ops.put_root().open(BOTH, &by(owner), b"file", false));
        client.must(opens).unwrap();
    }
    let opens = server.stat()["nfs"]["open_files"].clone();
    assert!(opens.as_u64().unwrap() > OPENS.into(), "{opens}");
    server.stop();
    let server = serve(&scratch, &data);
    client.client = connect(&server);
    client.must(ops().put(&file).read(stateid, 0, 1)).unwrap();
    assert_eq!(server.stat()["nfs"]["open_files"], opens);
    server.stop();
}

/// A file that a client has open, locked and closed to others is replaced on the host while no server runs. The new
/// file, which may have the number of the old one, is nobody's.
fn replaced_between(data: &Path, server: Server, end: impl FnOnce(Server), start: impl FnOnce() -> Server) {
    const DENIES_ALL: (u32, u32) = (3, 3);
    const NO_STATEID: u32 = 10_025;
    const STALE: u32 = 70;
    let mut holder = Session::begin(connect(&server), b"holder", 1).unwrap();
    let (stateid, old) = open(&mut holder);
    holder.must(ops().put(&old).lock(EXCLUSIVE, WHOLE, stateid, b"owner")).unwrap();
    holder.must(ops().put_root().open(DENIES_ALL, b"denier", b"denied", true)).unwrap();
    end(server);
    let numbers = ["file", "denied"].map(|name| fs::metadata(data.join(name)).unwrap().ino());
    ["file", "denied"].iter().for_each(|name| fs::remove_file(data.join(name)).unwrap());
    for name in ["denied", "file"] {
        fs::write(data.join(name), "another's").unwrap();
    }
    let now = ["file", "denied"].map(|name| fs::metadata(data.join(name)).unwrap().ino());
    eprintln!("numbers {numbers:?}, and of the new files {now:?}");
    let server = start();
    let mut new = Session::begin(connect(&server), b"new", 1).unwrap();
    let (by_new, file) = open(&mut new);
    new.must(ops().put(&file).lock(EXCLUSIVE, WHOLE, by_new, b"owner")).unwrap();
    new.must(ops().put_root().open(BOTH, b"program", b"denied", false)).unwrap();
    holder.client = connect(&server);
    for (handle, status) in [(&file, NO_STATEID), (&old, STALE)] {
        let uses = [ops().put(handle).read(stateid, 0, 10), ops().put(handle).write(stateid, 0, 2, b"OVERWRITTEN")];
        uses.into_iter().for_each(|it| assert_eq!(holder.call(it).unwrap().status, status));
    }
    assert_eq!(fs::read_to_string(data.join("file")).unwrap(), "another's");
    let ended = server.stop();
    let told = ended.stderr.matches("The open has ended, with its locks").count();
    assert!(told == 2 && !ended.stderr.contains("killed"), "{}", ended.stderr);
}

// rule: after a restart an open of a file is none of another file that has its inode number
// kept in: `product/nfs/src/v4/recovery.rs`
#[test]
fn a_file_that_is_replaced_while_no_server_runs_has_no_open_and_no_lock_of_the_one_before() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let start = || serve(&scratch, &data);
    replaced_between(&data, start(), |server| drop(server.stop()), start);
    let Some(place) = Place::new() else { return };
    replaced_between(&place.data, place.start(), Server::kill, || place.start());
}

#[test]
fn a_server_without_version_4_in_between_ends_the_state_of_clients() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = serve(&scratch, &data);
    let mut holder = Session::begin(connect(&server), b"holder", 1).unwrap();
    let (stateid, file) = open(&mut holder);
    holder.must(ops().put(&file).lock(EXCLUSIVE, WHOLE, stateid, b"owner")).unwrap();
    server.stop();
    let between = Server::start(scratch.path(), &[&data], &["--cache", "64MiB", "--nfs", "3"]);
    between.stop();
    let server = serve(&scratch, &data);
    holder.client = connect(&server);
    assert_eq!(holder.call(ops().put_root()).unwrap().status, BADSESSION);
    server.stop();
}

// rule: a state directory is not continued after a server with another one
// kept in: `product/command/src/serve/persisted/last_run.rs`
#[test]
fn a_server_with_another_state_directory_in_between_ends_the_state_of_clients() {
    for of_copy in [false, true] {
        for between in ["data", ".", "data/inner"] {
            let scratch = Scratch::new();
            let data = scratch.directory("data");
            fs::create_dir(data.join("inner")).unwrap();
            // The servers persist nothing below a served directory.
            let (home, other) = (Scratch::new(), Scratch::new());
            let start = || Server::start(home.path(), &[&data], &["--cache", "64MiB", "--nfs", "4"]);
            let server = start();
            let mut holder = Session::begin(connect(&server), b"holder", 1).unwrap();
            let (stateid, file) = open(&mut holder);
            holder.must(ops().put(&file).lock(EXCLUSIVE, WHOLE, stateid, b"owner")).unwrap();
            server.stop();
            let state = other.path().join("state");
            match of_copy {
                true => crate::passed_over_elsewhere::copy_state(&home.path().join("afflux"), &state),
                false => fs::create_dir(&state).unwrap(),
            }
            let more = ["--state", state.to_str().unwrap()];
            Server::start(home.path(), &[&scratch.path().join(between)], &more).kill();
            let server = start();
            holder.client = connect(&server);
            assert_eq!(holder.call(ops().put_root()).unwrap().status, BADSESSION, "{of_copy} {between}");
            let mut holder = Session::begin_reclaiming(connect(&server), b"holder", 1).unwrap();
            let reclaims = ops().put(&file).reclaim_open(BOTH, b"program");
            assert_ne!(holder.call(reclaims).unwrap().status, 0, "another client may have had the lock");
            server.signal(Signal::KILL);
            let said = server.wait().stderr;
            assert!(said.contains("the last server of the state directory may not be the last one here"), "{said}");
        }
    }
}

/// Has this process lock a file of the host, or unlock it.
fn lock_on_host(file: &File, how: FlockOperation) -> bool {
    fcntl_lock(file, how).is_ok()
}

#[test]
fn programs_of_the_host_and_clients_exclude_each_other_by_posix_locks() {
    use FlockOperation::{NonBlockingLockExclusive, NonBlockingLockShared, Unlock};
    const SHARED: u32 = 1;
    let Some(place) = Place::new() else { return };
    let server = place.start_with(&["--posix-locks"]);
    let mut client = Session::begin(connect(&server), b"client", 1).unwrap();
    let (stateid, file) = open(&mut client);
    // All locks of a process end with any of its descriptors of the file: it has one.
    let program = File::options().read(true).write(true).open(place.data.join("file")).unwrap();
    let locked = client.must(ops().put(&file).lock(SHARED, WHOLE, stateid, b"owner")).unwrap();
    let mut reader = locked.reader();
    (0..2).for_each(|_| assert_eq!(reader.next_result().unwrap().1, 0));
    let lock = reader.stateid().unwrap();
    assert!(!lock_on_host(&program, NonBlockingLockExclusive), "a client has it");
    assert!(lock_on_host(&program, NonBlockingLockShared));
    assert_eq!(client.call(ops().put(&file).lock_more(EXCLUSIVE, WHOLE, lock)).unwrap().status, DENIED);
    let tested = client.call(ops().put(&file).test_lock(EXCLUSIVE, WHOLE, b"owner")).unwrap();
    let own = format!("process {}", std::process::id());
    assert!(tested.status == DENIED && tested.results.windows(own.len()).any(|it| it == own.as_bytes()));
    assert!(lock_on_host(&program, Unlock));
    client.must(ops().put(&file).lock_more(EXCLUSIVE, WHOLE, lock)).unwrap();
    assert!(!lock_on_host(&program, NonBlockingLockShared));
    // A later server shows what its clients have.
    server.kill();
    let server = place.start_with(&["--posix-locks"]);
    client.client = connect(&server);
    afflux_scratch::eventually("the lock is shown again", || {
        let is_free = lock_on_host(&program, NonBlockingLockShared);
        lock_on_host(&program, Unlock);
        !is_free
    });
    client.must(ops().put(&file).unlock(WHOLE, (lock.0 + 1, lock.1))).unwrap();
    assert!(lock_on_host(&program, NonBlockingLockExclusive));
    assert_eq!(client.call(ops().put(&file).lock(SHARED, WHOLE, stateid, b"new")).unwrap().status, DENIED);
    server.stop();
}

#[test]
fn a_program_on_a_mount_waits_for_one_of_the_host() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mount = point.to_str().unwrap();
    let server = Server::start(scratch.path(), &[&data], &["--posix-locks", "--mount", mount]);
    let mounted = Mounted { server: Some(server), point: point.clone() };
    std::fs::write(point.join("file"), "").unwrap();
    let open = |place: &Path| File::options().read(true).write(true).open(place.join("file")).unwrap();
    let (of_host, on_mount) = (open(&data), open(&point));
    assert!(lock_on_host(&of_host, FlockOperation::NonBlockingLockExclusive));
    assert!(!lock_on_host(&on_mount, FlockOperation::NonBlockingLockShared));
    let waiting = thread::spawn(move || {
        let is_locked = lock_on_host(&on_mount, FlockOperation::LockExclusive);
        (is_locked, on_mount)
    });
    let server = mounted.server();
    afflux_scratch::eventually("the program waits", || server.stat()["nfs"]["lock_waiters"] == 1);
    assert!(lock_on_host(&of_host, FlockOperation::Unlock));
    let (is_locked, on_mount) = waiting.join().unwrap();
    assert!(is_locked && !lock_on_host(&of_host, FlockOperation::NonBlockingLockShared));
    drop(on_mount);
    afflux_scratch::eventually("the kernel has told of the close", || {
        lock_on_host(&of_host, FlockOperation::NonBlockingLockExclusive)
    });
    drop(of_host);
    mounted.stop();
}

#[test]
fn posix_locks_take_directories_and_version_4() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let directory = data.to_str().unwrap();
    for (arguments, said) in [
        (["serve", "s3://bucket/prefix", "--posix-locks"].as_slice(), "--posix-locks takes directories of this host"),
        (&["serve", directory, "--posix-locks", "--nfs", "3"], "--posix-locks shows locks of version 4"),
    ] {
        let refused = crate::server::run(scratch.path(), arguments);
        assert!(refused.status.code() == Some(2) && text(&refused).contains(said), "{}", text(&refused));
    }
}

#[test]
fn delegations_take_version_4_and_the_promise_that_nobody_else_changes_the_files() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let directory = data.to_str().unwrap();
    for (more, said) in [
        (&[] as &[&str], "takes --sole, the promise that nobody changes it but through this server"),
        (&["--sole", "--nfs", "3"], "version 4 has delegations, which --nfs 3 refuses"),
        (&["--sole", "--posix-locks"], "with --posix-locks, programs of this host use the files"),
        (&["--sole", "--shared"], "with --shared, another server may serve the files"),
    ] {
        let arguments = [&["serve", directory, "--delegations", "read"], more].concat();
        let refused = crate::server::run(scratch.path(), &arguments);
        assert!(refused.status.code() == Some(2) && text(&refused).contains(said), "{}", text(&refused));
    }
    // Without delegations the promise is one of a mount, as before.
    let refused = crate::server::run(scratch.path(), &["serve", directory, "--sole"]);
    assert!(text(&refused).contains("--mount names one"), "{}", text(&refused));
    Server::start(scratch.path(), &[&data], &["--sole", "--delegations", "read"]).stop();
}

/// The port of the present server, and who has the lock.
struct Contended {
    port: AtomicU16,
    /// The number of the locker whose lock was granted; zero if none was.
    holder: AtomicU64,
    granted: AtomicU64,
    is_over: AtomicBool,
}

impl Contended {
    /// Sends a call until it is answered, to one server after the other.
    fn ask(&self, session: &mut Session, call: impl Fn() -> Compound) -> Outcome {
        session.sequence += 1;
        loop {
            match session.again(call()) {
                Ok(outcome) => return outcome,
                Err(_) => loop {
                    if let Ok(client) = Client::connect(("127.0.0.1", self.port.load(Ordering::SeqCst))) {
                        session.client = client;
                        break;
                    }
                    thread::yield_now();
                },
            }
        }
    }

    fn lock_again_and_again(&self, mut session: Session, number: u64) {
        while !self.is_over.load(Ordering::SeqCst) {
            let opens = || ops().put_root().open(BOTH, b"program", b"file", true).get_handle();
            let opened = self.ask(&mut session, opens);
            assert_eq!(opened.status, 0);
            let mut reader = opened.reader();
            reader.skip_sequence().unwrap();
            (0..2).for_each(|_| assert_eq!(reader.next_result().unwrap().1, 0));
            let stateid = reader.stateid().unwrap();
            assert_eq!(stateid.0, 1, "opened once");
            reader.skip_open().unwrap();
            reader.next_result().unwrap();
            let file = reader.opaque().unwrap().to_vec();
            let wanted = || ops().put(&file).lock(EXCLUSIVE, WHOLE, stateid, b"owner");
            let status = self.ask(&mut session, wanted).status;
            assert!(status == 0 || status == DENIED, "status {status}");
            if status == 0 {
                assert_eq!(self.holder.swap(number, Ordering::SeqCst), 0, "a lock seen by two");
                self.granted.fetch_add(1, Ordering::SeqCst);
                let test = || ops().put(&file).test_lock(EXCLUSIVE, WHOLE, b"another owner");
                assert_eq!(self.ask(&mut session, test).status, DENIED, "a lock that was lost");
                assert_eq!(self.holder.swap(0, Ordering::SeqCst), number, "a lock seen by two");
            }
            // This ends the lock.
            assert_eq!(self.ask(&mut session, || ops().put(&file).close(stateid)).status, 0);
        }
    }
}

/// `AFFLUX_SERVER_KILLS` sets the number of kills.
#[test]
fn a_server_killed_under_two_lockers_gives_no_lock_to_two_and_loses_none() {
    let Some(place) = Place::new() else { return };
    let kills = std::env::var("AFFLUX_SERVER_KILLS").map_or(12, |kills| kills.parse().unwrap());
    let mut server = place.start();
    let lockers: [&[u8]; 2] = [b"one", b"two"];
    let sessions = lockers.map(|name| Session::begin(connect(&server), name, 1).unwrap());
    let contended = Contended {
        port: AtomicU16::new(server.port()),
        holder: AtomicU64::new(0),
        granted: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    };
    let server = thread::scope(|threads| {
        for (session, number) in sessions.into_iter().zip(1..) {
            let contended = &contended;
            threads.spawn(move || contended.lock_again_and_again(session, number));
        }
        let mut random = Bytes::new(7);
        for _ in 0..kills {
            let wanted = contended.granted.load(Ordering::SeqCst) + random.below(20);
            afflux_scratch::eventually("locks are granted", || {
                contended.granted.load(Ordering::SeqCst) >= wanted || contended.is_over.load(Ordering::SeqCst)
            });
            server.signal(Signal::KILL);
            server.wait();
            server = place.start();
            contended.port.store(server.port(), Ordering::SeqCst);
        }
        contended.is_over.store(true, Ordering::SeqCst);
        server
    });
    server.stop();
}

#[test]
fn a_mount_without_clients_says_nothing_about_their_locks() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let tells = |server: &Server| server.ready["notes"].to_string().contains("locks hold among clients");
    let mounted = Mounted::start(scratch.path(), &data, &point);
    assert!(!tells(mounted.server()), "{}", mounted.server().ready);
    mounted.stop();
    let server = Server::start(scratch.path(), &[&data], &[]);
    assert!(tells(&server), "{}", server.ready);
    server.stop();
}

#[test]
fn programs_on_a_mount_and_clients_exclude_each_other() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mount = point.to_str().unwrap();
    let server = Server::start(scratch.path(), &[&data], &["--cache", "64MiB", "--nfs", "4", "--mount", mount]);
    let mounted = Mounted { server: Some(server), point: point.clone() };
    let server = mounted.server();
    let mut client = Session::begin(connect(server), b"client", 1).unwrap();
    let (stateid, file) = open(&mut client);
    let program = File::options().read(true).write(true).open(point.join("file")).unwrap();
    program.lock().unwrap();
    let wanted = || ops().put(&file).lock(EXCLUSIVE, WHOLE, stateid, b"owner");
    assert_eq!(client.call(wanted()).unwrap().status, DENIED);
    drop(program);
    afflux_scratch::eventually("the kernel has told of the close", || client.call(wanted()).unwrap().status == 0);
    let program = File::open(point.join("file")).unwrap();
    assert!(matches!(program.try_lock(), Err(std::fs::TryLockError::WouldBlock)));
    // One that waits gets the lock when the client closes the file.
    let waiting = std::thread::spawn(move || program.lock_shared());
    afflux_scratch::eventually("the program waits", || server.stat()["nfs"]["lockers"].as_array().unwrap().len() == 2);
    client.must(ops().put(&file).close(stateid)).unwrap();
    waiting.join().unwrap().unwrap();
    mounted.stop();
}

#[cfg(feature = "object")]
#[test]
fn a_server_on_another_host_that_takes_a_volume_over_has_clients_ask_again_for_what_they_had() {
    let (store, first, second) = (FakeStore::start(), Scratch::new(), Scratch::new());
    let server = store_server::serve(&store, first.path(), "first", &[]);
    let mut holder = Session::begin(connect(&server), b"holder", 1).unwrap();
    let (stateid, file) = open(&mut holder);
    holder.must(ops().put(&file).write(stateid, 0, 2, b"data").lock(EXCLUSIVE, WHOLE, stateid, b"owner")).unwrap();
    server.kill();
    // It has neither the first one's state directory nor its memory.
    let server = store_server::serve(&store, second.path(), "second", &["--take-over"]);
    holder.client = connect(&server);
    assert_eq!(holder.call(ops().put_root()).unwrap().status, BADSESSION);
    let mut other = Session::begin(connect(&server), b"other", 1).unwrap();
    let opens = || ops().put_root().open(BOTH, b"program", b"file", false);
    assert_eq!(other.call(opens()).unwrap().status, GRACE, "the file may be the holder's");
    let mut holder = Session::begin_reclaiming(connect(&server), b"holder", 1).unwrap();
    let stateid = opened(&holder.must(ops().put(&file).reclaim_open(BOTH, b"program")).unwrap());
    holder.must(ops().put(&file).reclaim_lock(EXCLUSIVE, WHOLE, stateid, b"owner").reclaim_complete()).unwrap();
    // Nobody is missing any more, and the lock is the holder's.
    let stateid = opened(&other.must(opens()).unwrap());
    let locked = other.call(ops().put(&file).lock(EXCLUSIVE, WHOLE, stateid, b"owner")).unwrap();
    assert_eq!(locked.status, DENIED);
    let ended = server.stop();
    assert!(ended.stderr.contains("1 clients of NFS version 4 had state"), "{}", ended.stderr);
}
