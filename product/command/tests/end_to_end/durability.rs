//! The contents of the host's disk at each moment.

use std::fs;

use crate::client::Client;
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, afflux};

#[test]
fn what_was_committed_is_on_the_disk_after_a_kill() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "64MiB"]);
    let mut client = Client::mount(&server);
    let root = client.root();
    let directory = client.make_directory(&root, "d");
    let sizes = [0usize, 1, 4095, 4096, 70_000, 3_000_001];
    for (at, size) in sizes.iter().enumerate() {
        client.write_file(&directory, &format!("committed-{at}"), &Bytes::new(at as u64).vec(*size));
    }
    let stable = client.write_file_stable(&directory, "stable", &Bytes::new(77).vec(9_999));
    assert!(stable, "FILE_SYNC was not answered as FILE_SYNC");
    client.write_file_uncommitted(&directory, "uncommitted", &Bytes::new(99).vec(1 << 20));
    server.kill();
    for (at, size) in sizes.iter().enumerate() {
        let on_disk = fs::read(data.join(format!("d/committed-{at}"))).unwrap();
        assert!(on_disk == Bytes::new(at as u64).vec(*size), "file {at}: {} bytes", on_disk.len());
    }
    assert!(fs::read(data.join("d/stable")).unwrap() == Bytes::new(77).vec(9_999));
}

#[test]
fn handles_and_contents_survive_a_restart() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    let mut client = Client::mount(&server);
    let root = client.root();
    let directory = client.make_directory(&root, "d");
    let bytes = Bytes::new(5).vec(123_456);
    let file = client.write_file(&directory, "f", &bytes);
    client.rename(&directory, "f", &root, "moved");
    server.stop();
    let server = Server::start(scratch.path(), &[&data], &[]);
    let mut client = Client::mount(&server);
    assert!(client.read(&file, bytes.len()) == bytes, "the handle from before names the file");
    assert!(client.read_file(&root, "moved") == bytes);
    server.stop();
}

#[test]
fn the_write_verifier_changes_with_a_restart() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let verifier = |server: &Server| {
        let mut client = Client::mount(server);
        let root = client.root();
        client.write_file_uncommitted(&root, "f", b"x");
        client.verifier()
    };
    let server = Server::start(scratch.path(), &[&data], &[]);
    let first = verifier(&server);
    assert_eq!(verifier(&server), first);
    server.kill();
    let server = Server::start(scratch.path(), &[&data], &[]);
    assert_ne!(verifier(&server), first);
    server.stop();
}

// rule: the write verifier outlives an end with everything written, and no other
// kept in: `product/command/src/serve/persisted/last_run.rs`
#[test]
fn the_write_verifier_is_kept_over_a_clean_end_alone() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let state = scratch.directory("state");
    let flags = ["--state", state.to_str().unwrap()];
    let start = || {
        let server = Server::start(scratch.path(), &[&data], &flags);
        let told = fs::read_to_string(state.join("write-verifier")).unwrap();
        assert!(told.starts_with("serving\n"), "gone before it serves: {told}");
        let mut client = Client::mount(&server);
        let root = client.root();
        client.write_file_uncommitted(&root, "f", b"x");
        (server, client.verifier())
    };
    let (server, first) = start();
    server.stop();
    let (server, second) = start();
    assert_eq!(second, first, "all was written");
    server.stop();
    let (server, third) = start();
    assert_eq!(third, first);
    server.kill();
    let (server, fourth) = start();
    assert_ne!(fourth, first, "what was not committed may be gone");
    server.stop();
}

#[test]
fn a_killed_server_can_be_started_again_at_once_where_it_was() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let control = scratch.path().join("control.sock");
    let mut server = Server::start(scratch.path(), &[&data], &[]);
    for _ in 0..5 {
        let listen = format!("127.0.0.1:{}", server.port());
        Client::mount(&server);
        server.kill();
        let mut command = afflux(scratch.path());
        command.arg("serve").arg(&data).args(["--json", "--cache", "64MiB", "--listen", &listen]);
        command.arg("--control").arg(&control);
        server = Server::spawn(command, control.clone(), scratch.path());
    }
    server.stop();
}

#[test]
fn times_of_what_was_committed_do_not_go_back_over_a_kill() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let mut server = Server::start(scratch.path(), &[&data], &[]);
    let mut client = Client::mount(&server);
    let root = client.root();
    let file = client.write_file(&root, "f", b"first");
    for round in 0..8 {
        client.write_at(&file, 0, &Bytes::new(round).vec(5000));
        let told = client.attributes(&file);
        server.kill();
        server = Server::start(scratch.path(), &[&data], &[]);
        client = Client::mount(&server);
        let found = client.attributes(&file);
        assert_eq!(found.mtime, told.mtime, "round {round}");
        // Before 6.13, Linux takes times from ticks: changes within one tick may lack a nanosecond each.
        let nanos =
            |time: afflux_nfs_client::nfstime3| u64::from(time.seconds) * 1_000_000_000 + u64::from(time.nseconds);
        assert!(nanos(found.ctime) + 100 >= nanos(told.ctime), "round {round}");
        assert!(found.used >= 5000, "round {round}: {}", found.used);
    }
    server.stop();
}
