//! Stores under trouble: refusals, outages, other writers, read-only access.

//! rule: while a store is away its writers wait and hear why, and nothing is lost
//! kept in: `product/object/src/retry.rs`, `product/command/src/serve/live/upkeep.rs`

use std::net::TcpStream;

use rustix::process::Signal;

use crate::client::Client;
use crate::fake_store::{FakeStore, Mood};
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, eventually, text};
use crate::store_server::{ADDRESS, Served, run, serve, with_keys};

/// NFS3ERR_ROFS.
const READ_ONLY: u32 = 30;

#[test]
fn a_follower_reads_what_another_server_writes_and_sends_no_change_to_the_store() {
    let Served { store, scratch, server: writer, client: mut writing, root } = Served::begin("writer");
    writing.write_file(&root, "first", b"old");
    let follower = serve(&store, scratch.path(), "follower", &["--follow"]);
    assert!(follower.ready["notes"].to_string().contains("--follow"), "{}", follower.ready);
    let mut reading = Client::mount(&follower);
    assert_eq!(reading.root(), root, "handles are those of the volume");
    assert_eq!(reading.read_file(&root, "first"), b"old");
    let large = Bytes::new(7).vec(3 << 20);
    writing.write_file(&root, "second", &large);
    let first = writing.lookup(&root, "first");
    writing.write_at(&first, 0, b"new bytes");
    eventually("the follower sees the new name", || reading.list(&root).contains(&"second".to_owned()));
    assert_eq!(reading.read_file(&root, "second"), large);
    eventually("the follower sees the new bytes", || reading.read_file(&root, "first") == b"new bytes");
    writing.remove(&root, "second");
    eventually("the follower misses the removed name", || !reading.list(&root).contains(&"second".to_owned()));
    writer.stop();
    let changes = store.changes();
    assert_eq!(reading.try_write_at(&first, 0, b"x"), Err(READ_ONLY));
    assert_eq!(reading.read_file(&root, "first"), b"new bytes");
    let gauges = follower.stat()["devices"][0]["store"].clone();
    assert_eq!((gauges["puts"].as_u64(), gauges["deletes"].as_u64()), (Some(0), Some(0)), "{gauges}");
    let said = text(&follower.ask(&["stat", "--verbose"]));
    assert!(said.contains("only read here, as of"), "{said}");
    follower.stop();
    assert_eq!(store.changes(), changes);
}

#[test]
fn while_a_store_is_away_writers_wait_and_hear_why_and_nothing_is_lost() {
    let Served { store, scratch: _scratch, server, mut client, root } = Served::begin("server");
    let file = client.create(&root, "file");
    client.try_write_at(&file, 0, b"written before").unwrap();
    store.set(Mood::Away);
    let waiting = std::thread::spawn(move || {
        client.commit(&file);
        client
    });
    eventually("the server says that the store is away", || !server.stat()["devices"][0]["away_ns"].is_null());
    let said = text(&server.ask(&["stat", "--verbose"]));
    assert!(said.contains("AWAY") && said.contains("SlowDown"), "{said}");
    let said = text(&server.ask(&["delays"]));
    assert!(said.contains("The store behind store is the cause: it has not answered"), "{said}");
    assert!(!waiting.is_finished(), "the writer waits");
    store.set(Mood::Good);
    let mut client = waiting.join().unwrap();
    eventually("the server says that the store is back", || server.stat()["devices"][0]["away_ns"].is_null());
    assert_eq!(client.read_file(&root, "file"), b"written before");
    let said = server.stop().stderr;
    assert!(said.contains("has been away for") && said.contains("answers again"), "{said}");
}

// rule: A server that ends while its store is away ends soon, and says what is not in the store.
#[test]
fn a_server_that_ends_while_its_store_is_away_names_what_it_leaves_behind() {
    let Served { store, scratch, server, mut client, root } = Served::begin("server");
    client.write_file(&root, "kept", b"committed");
    let file = client.create(&root, "file");
    client.try_write_at(&file, 0, &[1; 5_000]).unwrap();
    store.set(Mood::Away);
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(!ended.stdout.contains("drained"), "{ended:?}");
    assert!(ended.stdout.contains("abandoned") && ended.stdout.contains("file number"), "{ended:?}");
    let said = "s3://bucket/home gives no answer";
    assert!(ended.stderr.contains(said) && ended.stderr.contains("SlowDown"), "{ended:?}");
    assert!(ended.stderr.contains("file number ") && ended.stderr.contains("Lost, unless"), "{ended:?}");
    store.set(Mood::Good);
    let server = serve(&store, scratch.path(), "next", &[]);
    assert_eq!(Client::mount(&server).read_file(&root, "kept"), b"committed");
    server.stop();
}

#[test]
fn a_server_with_everything_in_a_store_that_is_away_ends_well() {
    let Served { store, scratch, server, mut client, root } = Served::begin("server");
    // The time that the server settles after a COMMIT is none of its client's changes.
    client.write_file(&root, "kept", b"committed");
    store.set(Mood::Away);
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stdout.contains("drained"), "{ended:?}");
    assert!(ended.stderr.contains("Everything was written before."), "{ended:?}");
    store.set(Mood::Good);
    let server = serve(&store, scratch.path(), "next", &[]);
    assert_eq!(Client::mount(&server).read_file(&root, "kept"), b"committed");
    server.stop();
}

// rule: A server that ends while its store answers and takes no object ends soon, and says what is not in the store.
#[test]
fn a_server_that_ends_while_its_store_refuses_changes_names_what_it_leaves_behind() {
    for mood in [
        Mood::RefusesChanges(403),
        Mood::RefusesChanges(400),
        Mood::RefusesChanges(409),
        Mood::RefusesChanges(503),
        Mood::RefusesPuts(403),
        Mood::RefusesPuts(405),
        Mood::RefusesPuts(507),
        Mood::LogAway,
    ] {
        let Served { store, scratch, server, mut client, root } = Served::begin("server");
        client.write_file(&root, "kept", b"committed");
        let file = client.create(&root, "file");
        client.try_write_at(&file, 0, &[1; 5_000]).unwrap();
        store.set(mood);
        server.signal(Signal::TERM);
        let ended = server.wait();
        assert_eq!(ended.code, Some(1), "{mood:?}: {ended:?}");
        assert!(ended.stdout.contains("\"file\":\"file number "), "{mood:?}: {ended:?}");
        let said = &ended.stderr;
        // A full store refuses bytes for good. The end waits for it only if names have to be written, too.
        if matches!(mood, Mood::RefusesPuts(507)) && ended.stdout.contains("drained") {
            assert!(said.contains("file number ") && said.contains("no space left"), "{mood:?}: {ended:?}");
        } else {
            assert!(ended.stdout.contains("abandoned"), "{mood:?}: {ended:?}");
            assert!(said.contains("s3://bucket/home takes no changes ("), "{mood:?}: {ended:?}");
            assert!(said.contains("Lost, unless clients send it again"), "{mood:?}: {ended:?}");
        }
        store.set(Mood::Good);
        let server = serve(&store, scratch.path(), "next", &[]);
        assert_eq!(Client::mount(&server).read_file(&root, "kept"), b"committed");
        server.stop();
    }
}

// rule: A server whose keys may not remove objects ends well, and the next host need not wait.
#[test]
fn a_server_that_may_not_delete_ends_well_and_another_host_starts_at_once() {
    for status in [403, 405, 409, 503] {
        let Served { store, scratch: _home, server, mut client, root } = Served::begin("server");
        let file = client.create(&root, "file");
        client.try_write_at(&file, 0, b"written at the end").unwrap();
        eventually("the server says that it serves", || has(&store, "home/holder"));
        store.set(Mood::RefusesDeletes(status));
        server.signal(Signal::TERM);
        let ended = server.wait();
        assert_eq!(ended.code, Some(0), "{status}: {ended:?}");
        // This home has no note about the last writer.
        let elsewhere = Scratch::new();
        let next = serve(&store, elsewhere.path(), "next", &[]);
        assert_eq!(Client::mount(&next).read_file(&root, "file"), b"written at the end");
        store.set(Mood::Good);
        next.stop();
    }
}

fn has(store: &FakeStore, name: &str) -> bool {
    let mut has = false;
    store.change(|objects| has = objects.contains_key(name));
    has
}

// rule: A server that cannot read the list of clients of the one before does not take it for an empty one.
#[test]
fn a_server_does_not_start_with_a_list_of_clients_that_it_cannot_read() {
    let Served { store, scratch, server, .. } = Served::begin("server");
    server.stop();
    store.change(|objects| drop(objects.insert("home/clients".to_owned(), b"<html>maintenance</html>".to_vec())));
    let output = run(&store, scratch.path(), &["serve", ADDRESS, "--listen", "127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("the object `clients` is no list of clients"), "{}", text(&output));
}

/// Kills a server. Returns what it had said.
fn killed(server: Server) -> String {
    server.signal(Signal::KILL);
    server.wait().stderr
}

// rule: A server that was killed is back at once on its host, and after a wait of seconds on another one.
#[test]
fn the_successor_of_a_killed_server_waits_on_another_host_only() {
    const WAITED: &str = "waited until its last answer was over";
    let (store, home, elsewhere) = (FakeStore::start(), Scratch::new(), Scratch::new());
    let first = serve(&store, home.path(), "first", &[]);
    let root = Client::mount(&first).root();
    Client::mount(&first).write_file(&root, "file", b"committed");
    first.kill();
    // The state directory is another one.
    let second = serve(&store, elsewhere.path(), "second", &["--take-over"]);
    assert_eq!(Client::mount(&second).read_file(&root, "file"), b"committed");
    assert!(killed(second).contains(WAITED));
    for arguments in [&[][..], &["--take-over"]] {
        let next = serve(&store, elsewhere.path(), "next", arguments);
        assert_eq!(Client::mount(&next).read_file(&root, "file"), b"committed");
        let said = killed(next);
        assert!(!said.contains(WAITED), "{said}");
    }
    // The note of the first server is older than the last writer.
    let last = serve(&store, home.path(), "last", &[]);
    assert!(last.stop().stderr.contains(WAITED));
}

#[test]
fn a_store_without_conditions_is_only_read_and_the_server_says_why() {
    let Served { store, scratch, server, mut client, root } = Served::begin("writer");
    let file = client.write_file(&root, "file", b"bytes");
    server.stop();
    for (mood, why) in WITHOUT_CONDITIONS {
        store.set(mood);
        let server = serve(&store, scratch.path(), "reader", &[]);
        assert!(server.ready["notes"].to_string().contains(why), "{}", server.ready);
        let mut client = Client::mount(&server);
        assert_eq!(client.read_file(&root, "file"), b"bytes");
        assert_eq!(client.try_write_at(&file, 0, b"x"), Err(READ_ONLY));
        server.stop();
    }
}

const WITHOUT_CONDITIONS: [(Mood, &str); 2] = [
    (Mood::NoConditions, "a second time"),
    (Mood::RefusesConditions(501), "refuses a request with If-None-Match (NotImplemented"),
];

#[test]
fn an_empty_place_in_a_store_without_conditions_is_refused_with_the_promise() {
    for (mood, why) in WITHOUT_CONDITIONS {
        let store = FakeStore::start();
        store.set(mood);
        let said = refused(&store, &[]);
        assert!(said.contains("s3://bucket/home can only be read: it ") && said.contains(why), "{said}");
    }
}

#[test]
fn a_server_whose_volume_is_taken_over_ends_by_itself_and_its_successor_has_everything() {
    let Served { store, scratch, server: old, mut client, root } = Served::begin("old");
    client.write_file(&root, "file", b"committed");
    let new = serve(&store, scratch.path(), "new", &["--take-over"]);
    let ended = old.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("the volume over; this server ends"), "{ended:?}");
    assert_eq!(Client::mount(&new).read_file(&root, "file"), b"committed");
    new.stop();
}

#[test]
fn a_second_server_on_a_host_is_refused_and_the_successor_of_a_killed_one_is_not() {
    let (store, scratch) = (FakeStore::start(), Scratch::new());
    let first = serve(&store, scratch.path(), "first", &[]);
    // Its word about itself comes after its first answer.
    eventually("the first one says that it serves", || has(&store, "home/holder"));
    let said = refused(&store, &[]);
    assert!(said.contains("is served by") && said.contains("--take-over to take the volume"), "{said}");
    first.kill();
    serve(&store, scratch.path(), "second", &[]).stop();
}

/// The words of a server that does not start.
fn refused(store: &FakeStore, arguments: &[&str]) -> String {
    let scratch = Scratch::new();
    let given = [&["serve", ADDRESS, "--listen", "127.0.0.1:0"][..], arguments].concat();
    let output = run(store, scratch.path(), &given);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    text(&output)
}

#[test]
fn wrong_keys_are_refused_with_advice() {
    let store = FakeStore::start();
    store.set(Mood::Denied);
    for arguments in [&[][..], &["--follow"]] {
        let said = refused(&store, arguments);
        assert!(said.contains("InvalidAccessKeyId") && said.contains("check AWS_ACCESS_KEY_ID"), "{said}");
    }
}

#[test]
fn a_missing_bucket_is_refused_with_advice() {
    let store = FakeStore::start();
    store.set(Mood::NoBucket);
    for arguments in [&[][..], &["--follow"]] {
        let said = refused(&store, arguments);
        assert!(said.contains("there is no bucket bucket; make it"), "{said}");
    }
}

#[test]
fn a_missing_volume_is_not_followed() {
    let said = refused(&FakeStore::start(), &["--follow"]);
    assert!(said.contains("there is no volume") && said.contains("afflux volumes"), "{said}");
}

#[test]
fn a_newer_format_is_refused_with_advice() {
    let (store, scratch) = (FakeStore::start(), Scratch::new());
    serve(&store, scratch.path(), "writer", &[]).stop();
    store.change(|objects| {
        let newest = objects.keys().rfind(|name| name.contains("records/manifest/")).cloned().unwrap();
        // The first bytes are the version of the format.
        objects.get_mut(&newest).unwrap()[..2].copy_from_slice(&999_u16.to_be_bytes());
    });
    for arguments in [&[][..], &["--follow"]] {
        let said = refused(&store, arguments);
        assert!(said.contains("a newer version of afflux"), "{said}");
    }
}

#[test]
fn a_volume_that_another_host_serves_is_refused_and_a_standby_takes_no_connection() {
    let (store, scratch) = (FakeStore::start(), Scratch::new());
    serve(&store, scratch.path(), "writer", &[]).stop();
    store.change(|objects| drop(objects.insert("home/holder".to_owned(), b"9 another-host\n".to_vec())));
    let said = refused(&store, &[]);
    assert!(said.contains("is served by another-host") && said.contains("--standby"), "{said}");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = with_keys(scratch.path());
    command.args(["serve", ADDRESS, "--standby", "--listen", &format!("127.0.0.1:{port}")]);
    command.args(["--endpoint", &store.endpoint]).arg("--control").arg(scratch.path().join("standby.sock"));
    let mut standby = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut said = std::io::BufReader::new(standby.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert!(line.contains("Waiting until another-host no longer serves"), "{line}");
    let connected = TcpStream::connect(("127.0.0.1", port));
    standby.kill().unwrap();
    standby.wait().unwrap();
    assert_eq!(connected.map(drop).unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
}
