//! The unwritten bytes of an earlier server, after another server has served the same directories since.

use std::fs;
use std::path::PathBuf;

use crate::arenas::Place;
use crate::client::Client;
use crate::scratch::{Bytes, Scratch};
use crate::server::{LAZY, Server, run, text};

impl Place {
    /// A server is killed with bytes of a file in its memory. Returns these.
    fn killed_with_bytes(&self) -> Vec<u8> {
        let server = self.start_with(&LAZY);
        let mut client = Client::mount(&server);
        let root = client.root();
        let bytes = Bytes::new(21).vec(100_000);
        client.write_file_uncommitted(&root, "f", &bytes);
        server.kill();
        bytes
    }

    /// A server without the memory takes other bytes for the file, and commits them.
    fn served_without(&self, more: &[&str]) -> (Vec<u8>, Server) {
        let server = Server::start(self.scratch.path(), &[&self.data], more);
        let mut client = Client::mount(&server);
        let root = client.root();
        let bytes = Bytes::new(22).vec(100_000);
        client.write_file(&root, "f", &bytes);
        (bytes, server)
    }

    fn on_disk(&self) -> Vec<u8> {
        fs::read(self.data.join("f")).unwrap()
    }

    fn state(&self) -> PathBuf {
        self.scratch.path().join("afflux")
    }

    /// A start is refused with the size, the files and the command that helps. The command works.
    fn must_refuse_and_go_on(&self, committed: &[u8]) {
        let said = self.refused(&[]);
        let arena = self.arena().display().to_string();
        let file = self.data.join("f").display().to_string();
        for words in [&arena, &file, "kB unwritten of 1 files", &format!("rm {arena}")] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(self.arena().exists() && self.on_disk() == committed, "nothing is lost");
        fs::remove_file(self.arena()).unwrap();
        self.start().stop();
        assert!(self.on_disk() == committed);
    }
}

// rule: bytes of a killed server are written home only if no other has served since
// kept in: `product/command/src/serve/persisted/last_run.rs`, `product/command/src/serve/persisted/arena.rs`
#[test]
fn memory_of_a_server_that_was_not_the_last_one_is_refused() {
    for is_killed in [false, true] {
        let Some(place) = Place::new() else { return };
        place.killed_with_bytes();
        let (committed, server) = place.served_without(&[]);
        if is_killed {
            server.kill()
        } else {
            drop(server.stop())
        }
        place.must_refuse_and_go_on(&committed);
    }
}

#[test]
fn memory_is_refused_after_a_server_with_another_memory() {
    let Some(place) = Place::new() else { return };
    place.killed_with_bytes();
    let other = place.arena().with_file_name("other");
    let (committed, server) = place.served_without(&["--arena", other.to_str().unwrap()]);
    server.stop();
    place.must_refuse_and_go_on(&committed);
}

#[test]
fn memory_is_refused_with_another_state_directory_and_taken_with_its_own() {
    let Some(place) = Place::new() else { return };
    let bytes = place.killed_with_bytes();
    // With the key of handles, the files are known.
    let other = place.scratch.directory("state");
    fs::copy(place.state().join("handle-key"), other.join("handle-key")).unwrap();
    let said = place.refused(&["--state", other.to_str().unwrap()]);
    assert!(said.contains("this state directory is not of the server that left this memory"), "{said}");
    let found = place.checked();
    assert!(found.contains("an earlier server left") && found.contains("of 1 files"), "{found}");
    place.start().stop();
    assert_eq!(place.checked(), "The settings are valid.\n");
    assert!(place.on_disk() == bytes);
}

#[test]
fn memory_is_refused_if_the_state_directory_is_lost() {
    let Some(place) = Place::new() else { return };
    let bytes = place.killed_with_bytes();
    let kept = place.scratch.path().join("kept");
    fs::rename(place.state(), &kept).unwrap();
    let said = place.refused(&[]);
    assert!(said.contains("--state") && said.contains("`rm`"), "{said}");
    fs::remove_dir_all(place.state()).unwrap();
    fs::rename(kept, place.state()).unwrap();
    place.start().stop();
    assert!(place.on_disk() == bytes);
}

#[test]
fn memory_is_refused_if_the_number_cannot_be_read() {
    let Some(place) = Place::new() else { return };
    let bytes = place.killed_with_bytes();
    let number = place.state().join("write-verifier");
    let text = fs::read(&number).unwrap();
    std::os::unix::fs::chown(&number, Some(4711), None).unwrap();
    let said = place.refused(&[]);
    assert!(said.contains("is unknown (write-verifier"), "{said}");
    fs::remove_file(&number).unwrap();
    fs::write(&number, text).unwrap();
    place.start().stop();
    assert!(place.on_disk() == bytes);
}

#[test]
fn a_start_that_fails_passes_nothing_over() {
    let Some(place) = Place::new() else { return };
    let bytes = place.killed_with_bytes();
    let other = Server::start(&place.scratch.directory("home"), &[&place.scratch.directory("other")], &[]);
    let listen = format!("127.0.0.1:{}", other.port());
    let output = run(place.scratch.path(), &["serve", place.data.to_str().unwrap(), "--listen", &listen]);
    assert!(!output.status.success(), "{}", text(&output));
    let check = run(place.scratch.path(), &["serve", "--check", place.data.to_str().unwrap()]);
    assert!(check.status.success(), "{}", text(&check));
    place.start().stop();
    assert!(place.on_disk() == bytes);
}

#[test]
fn memory_without_unwritten_bytes_is_made_anew() {
    let Some(place) = Place::new() else { return };
    let server = place.start();
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file(&root, "f", b"committed");
    server.kill();
    let (committed, server) = place.served_without(&[]);
    server.kill();
    let server = place.start();
    assert!(Client::mount(&server).read_file(&root, "f") == committed);
    server.stop();
    assert!(place.on_disk() == committed);
}

/// A later server could not tell newer bytes from older bytes.
#[test]
fn a_server_whose_number_cannot_be_kept_does_not_start() {
    let Some(place) = Place::new() else { return };
    place.killed_with_bytes();
    let number = place.state().join("write-verifier");
    let text = fs::read(&number).unwrap();
    fs::remove_file(&number).unwrap();
    fs::create_dir(&number).unwrap();
    let output = run(place.scratch.path(), &["serve", place.data.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    assert!(crate::server::text(&output).contains("cannot be changed: "), "{}", crate::server::text(&output));
    fs::remove_dir(&number).unwrap();
    fs::write(&number, text).unwrap();
    let none = place.scratch.path().join("no directory");
    fs::write(&none, "").unwrap();
    let other = Place { data: place.scratch.directory("other"), ..place };
    fs::remove_file(other.arena()).unwrap();
    let said = other.refused(&["--state", none.to_str().unwrap()]);
    assert!(said.contains("--arena takes a state directory") && !other.arena().exists(), "{said}");
}

// rule: one server at a time has a state directory
// kept in: `product/command/src/serve/persisted.rs`
#[test]
fn a_second_server_has_a_place_of_its_own_or_is_refused_by_name() {
    let scratch = Scratch::new();
    let (a, b, state) = (scratch.directory("a"), scratch.directory("b"), scratch.directory("state"));
    let named = ["--state", state.to_str().unwrap()];
    let first = Server::start(scratch.path(), &[&a], &named);
    let words = ["serve", b.to_str().unwrap(), "--listen", "127.0.0.1:0", named[0], named[1]];
    let words = [&words[..], &["--check"]].concat();
    for count in [words.len() - 1, words.len()] {
        let output = run(scratch.path(), &words[..count]);
        let said = format!("process {} keeps its state in {}; name another with --state", first.process(), named[1]);
        assert!(!output.status.success() && text(&output).contains(&said), "{}", text(&output));
    }
    first.kill();
    Server::start(scratch.path(), &[&b], &named).stop();
    // Where no directory is named, each of them has its own in either order.
    let usual = scratch.path().join("afflux");
    let home = scratch.directory("home");
    let start = |directory: &PathBuf| {
        let name = directory.file_name().unwrap().to_str().unwrap();
        let control = home.join(name);
        let mut command = crate::server::afflux(scratch.path());
        command.arg("serve").arg(directory).args([
            "--listen",
            "127.0.0.1:0",
            "--json",
            "--cache",
            "64MiB",
            "--control",
        ]);
        command.arg(&control);
        Server::spawn(command, control, scratch.path())
    };
    let lists = || ["exports", "servers/1/exports"].map(|list| fs::read_to_string(usual.join(list)).unwrap());
    let servers = [start(&a), start(&b)];
    let expected = [&a, &b].map(|path| format!("{}\n", path.display()));
    assert_eq!(lists(), expected);
    servers.into_iter().for_each(Server::kill);
    let servers = [start(&b), start(&a)];
    assert_eq!(lists(), expected);
    servers.into_iter().for_each(|server| drop(server.stop()));
    assert!(!usual.join("servers/2").exists());
}
