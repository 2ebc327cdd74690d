//! Stores that refuse, and stores with damaged objects: each call and each command ends, and says why.

//! rule: a call for data that a store refuses ends with an input/output error, and never with a lack of rights
//! kept in: `product/object/src/error.rs`, `product/object-store/src/judge.rs`

use std::fs;
use std::path::Path;

use crate::client::Client;
use crate::fake_store::{FakeStore, Mood};
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, afflux, eventually, run as run_alone, text};
use crate::store_server::{ADDRESS, Served, run, serve};

/// NFS3ERR_IO.
const IO: u32 = 5;

#[test]
fn a_check_of_a_store_that_refuses_reads_says_so_and_ends() {
    let Served { store, scratch, server, mut client, root } = Served::begin("server");
    client.write_file(&root, "file", b"bytes");
    server.stop();
    store.set(Mood::RefusesReads);
    let checked = run(&store, scratch.path(), &["check", ADDRESS]);
    let said = text(&checked);
    assert_eq!(checked.status.code(), Some(1), "{said}");
    assert!(said.contains("without an answer") && said.contains("refuses access (AccessDenied"), "{said}");
}

#[test]
fn a_check_names_the_segments_that_a_store_does_not_give() {
    let Served { store, scratch, server, mut client, root } = Served::begin("server");
    client.write_file(&root, "file", &Bytes::new(1).vec(1 << 20));
    server.stop();
    store.set(Mood::RefusesData);
    let checked = run(&store, scratch.path(), &["check", ADDRESS]);
    let said = text(&checked);
    assert!(checked.status.code() == Some(1) && !said.contains("damaged"), "{said}");
    assert!(said.contains("not read: data/") && said.contains("AccessDenied"), "{said}");
}

fn lengthen(path: &Path, length: u64) {
    for entry in fs::read_dir(path).unwrap().map(Result::unwrap) {
        match entry.metadata().unwrap().is_dir() {
            true => lengthen(&entry.path(), length),
            false => fs::OpenOptions::new().write(true).open(entry.path()).unwrap().set_len(length).unwrap(),
        }
    }
}

#[test]
fn a_cut_object_of_a_directory_is_an_error_and_a_check_names_it() {
    let scratch = Scratch::new();
    let directory = scratch.path().join("store");
    let url = format!("file://{}", directory.display());
    let start = || Server::start(scratch.path(), &[Path::new(&url)], &["--cache", "16MiB"]);
    let server = start();
    let mut client = Client::mount(&server);
    let root = client.root();
    let file = client.write_file(&root, "cut", &Bytes::new(1).vec(1 << 20));
    server.stop();
    for length in [100, 0] {
        lengthen(&directory.join("data"), length);
        let server = start();
        let mut client = Client::mount(&server);
        assert_eq!(client.try_read_at(&file, 500_000, 4_096), Err(IO), "{length} bytes are left");
        server.stop();
        let checked = run_alone(scratch.path(), &["check", &url]);
        let said = text(&checked);
        assert!(checked.status.code() == Some(1) && said.contains("/cut: bytes 0 to 1048576 cannot be read"), "{said}");
    }
}

#[test]
#[ignore = "waits for half a minute: so long keys may come"]
fn a_read_that_a_store_refuses_is_no_lack_of_rights() {
    let Served { store, scratch, server, mut client, root } = Served::begin("server");
    let file = client.write_file(&root, "file", &Bytes::new(1).vec(1 << 20));
    server.stop();
    let server = serve(&store, scratch.path(), "server", &[]);
    let mut client = Client::mount(&server);
    store.set(Mood::RefusesData);
    assert_eq!(client.try_read_at(&file, 0, 4_096), Err(IO));
    store.set(Mood::Good);
    assert_eq!(client.read_at(&file, 0, 4_096), Bytes::new(1).vec(1 << 20)[..4_096]);
    server.stop();
}

// rule: while a change of a name waits for its store, `delays` and `stat` say so
#[test]
fn a_name_that_waits_for_its_store_is_told() {
    let Served { store, scratch: _scratch, server, mut client, root } = Served::begin("server");
    store.set(Mood::LogAway);
    let creating = std::thread::spawn(move || {
        client.create(&root, "new");
        client
    });
    eventually("the store is the cause", || {
        let said = text(&server.ask(&["delays"]));
        said.contains("The store behind store is the cause")
    });
    eventually("stat says why", || {
        let said = text(&server.ask(&["stat", "--verbose"]));
        (said.contains("waiting for the store: ") || said.contains("AWAY: ")) && said.contains("SlowDown")
    });
    let gauges = server.stat()["devices"][0]["store"].clone();
    assert!(gauges["waiting"].as_u64() > Some(0) && gauges["waiting_ns"].as_u64() > Some(0), "{gauges}");
    assert!(!creating.is_finished());
    store.set(Mood::Good);
    creating.join().unwrap();
    server.stop();
}

// rule: keys that a file gets anew are used without a restart
#[test]
fn keys_that_are_renewed_in_their_file_are_used_without_a_restart() {
    let (store, scratch) = (FakeStore::start(), Scratch::new());
    let file = scratch.path().join("credentials");
    let write_keys = |id: &str| {
        fs::write(&file, format!("[default]\naws_access_key_id = {id}\naws_secret_access_key = s\n")).unwrap()
    };
    write_keys("first");
    let (mut command, control) = (afflux(scratch.path()), scratch.path().join("server.sock"));
    command.env("AWS_SHARED_CREDENTIALS_FILE", &file).args(["serve", ADDRESS, "--listen", "127.0.0.1:0", "--json"]);
    command.args(["--cache", "16MiB", "--endpoint", &store.endpoint]).arg("--control").arg(&control);
    store.set(Mood::WantsKey("first"));
    let server = Server::spawn(command, control, scratch.path());
    let mut client = Client::mount(&server);
    let root = client.root();
    let old = client.write_file(&root, "old", b"bytes");
    store.set(Mood::WantsKey("second"));
    let writing = std::thread::spawn(move || {
        client.write_file(&root, "new", &Bytes::new(1).vec(1 << 20));
        client
    });
    eventually("the old keys are refused", || !server.stat()["devices"][0]["store"]["trouble"].is_null());
    assert!(!writing.is_finished());
    write_keys("second");
    let mut client = writing.join().unwrap();
    assert_eq!(client.read_at(&old, 0, 5), b"bytes");
    server.stop();
}
