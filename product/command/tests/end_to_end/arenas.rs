//! A cache in a file that outlives the server (`--arena`): the successor of a killed server, and files that a server
//! refuses.

use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::process::Signal;

use crate::checks::are_alike;
use crate::client::Client;
use crate::hanging::Frozen;
use crate::scratch::{Bytes, Mount, Scratch};
use crate::server::{LAZY, Server, eventually, run, text};

/// A served directory, and a directory for an arena.
pub(crate) struct Place {
    pub(crate) scratch: Scratch,
    pub(crate) data: PathBuf,
    pub(crate) memory: afflux_scratch::Scratch,
}

impl Place {
    /// `None`, with a message, where there is no tmpfs, or handles cannot be opened.
    pub(crate) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            afflux_scratch::skipped!("only root is sure to be allowed to open files by handle");
            return None;
        }
        let Ok(memory) = afflux_scratch::Scratch::new(Path::new("/dev/shm"), "arena") else {
            afflux_scratch::skipped!("/dev/shm is not there");
            return None;
        };
        let scratch = Scratch::new();
        let data = scratch.directory("data");
        Some(Self { scratch, data, memory })
    }

    pub(crate) fn arena(&self) -> PathBuf {
        self.memory.path().join("arena")
    }

    pub(crate) fn start(&self) -> Server {
        self.start_with(&[])
    }

    pub(crate) fn start_with(&self, more: &[&str]) -> Server {
        let arena = self.arena();
        let mut arguments = vec!["--arena", arena.to_str().unwrap()];
        arguments.extend(more);
        Server::start(self.scratch.path(), &[&self.data], &arguments)
    }

    /// The words of a server that does not start. A check before says the same.
    pub(crate) fn refused(&self, more: &[&str]) -> String {
        let (arena, data) = (self.arena(), self.data.to_str().unwrap());
        let mut arguments = vec!["serve", data, "--arena", arena.to_str().unwrap()];
        for default in [["--cache", "64MiB"], ["--listen", "127.0.0.1:0"]] {
            arguments.extend(default.iter().filter(|_| !more.contains(&default[0])));
        }
        arguments.extend(more);
        let check = run(self.scratch.path(), &[&arguments[..], &["--check"]].concat());
        let output = run(self.scratch.path(), &arguments);
        assert!(!output.status.success(), "{}", text(&output));
        assert!(are_alike(&check, &output), "a check says: {}", text(&check));
        text(&output)
    }

    /// The words of a check that finds nothing wrong.
    pub(crate) fn checked(&self) -> String {
        let (arena, data) = (self.arena(), self.data.to_str().unwrap());
        let check = run(
            self.scratch.path(),
            &[
                "serve",
                data,
                "--arena",
                arena.to_str().unwrap(),
                "--cache",
                "64MiB",
                "--listen",
                "127.0.0.1:0",
                "--check",
            ],
        );
        assert!(check.status.success(), "{}", text(&check));
        text(&check)
    }
}

// rule: a killed server's successor has every accepted byte, under the same write verifier kept in:
// `product/engine/src/recovery/adopt.rs`, `product/volume/src/handles/adopt.rs`,
// `product/command/src/serve/persisted/arena.rs`
#[test]
fn what_was_accepted_is_there_after_a_kill() {
    let Some(place) = Place::new() else { return };
    let server = place.start_with(&LAZY);
    let mut client = Client::mount(&server);
    let root = client.root();
    let bytes = Bytes::new(3).vec(1 << 20);
    let file = client.write_file_uncommitted(&root, "f", &bytes);
    let (verifier, told) = (client.verifier(), client.attributes(&file));
    server.kill();
    let on_disk = fs::read(place.data.join("f")).unwrap();
    assert_eq!(on_disk.len(), 0, "nothing was written");
    let server = place.start();
    let mut client = Client::mount(&server);
    assert!(client.read_file(&root, "f") == bytes);
    let now = client.attributes(&file);
    let is_later = |time, than| SystemTime::from(time) >= SystemTime::from(than);
    let are_kept = is_later(now.mtime, told.mtime) && is_later(now.ctime, told.ctime);
    assert!(now.size == told.size && are_kept, "{told:?} {now:?}");
    client.commit(&file);
    assert_eq!(client.verifier(), verifier, "nothing was lost");
    assert!(fs::read(place.data.join("f")).unwrap() == bytes, "the client sent nothing again");
    server.stop();
    assert!(!place.arena().exists(), "everything was written");
}

#[test]
fn a_successor_that_is_killed_itself_loses_nothing() {
    let Some(place) = Place::new() else { return };
    let server = place.start();
    let mut client = Client::mount(&server);
    let root = client.root();
    let bytes = Bytes::new(4).vec(300_000);
    client.write_file_uncommitted(&root, "f", &bytes);
    server.kill();
    for _ in 0..4 {
        place.start().kill();
    }
    // A stop writes files that no client has asked for.
    place.start().stop();
    assert!(fs::read(place.data.join("f")).unwrap() == bytes);
}

// rule: after three ends within a minute the data is written home before a cache works with it
// kept in: `product/engine/src/recovery/mod.rs`, `product/command/src/serve/persisted/arena.rs`
#[test]
fn servers_that_end_again_and_again_get_a_rescue() {
    let Some(place) = Place::new() else { return };
    let mut server = place.start_with(&LAZY);
    let mut client = Client::mount(&server);
    let root = client.root();
    let mut bytes = Bytes::new(11).vec(300_001);
    let file = client.write_file_uncommitted(&root, "f", &bytes);
    let verifier = client.verifier();
    for recovery in 1..=3 {
        server.kill();
        server = place.start_with(&LAZY);
        let mut client = Client::mount(&server);
        bytes[recovery * 1000..][..3000].fill(recovery as u8);
        client.try_write_at(&file, recovery as u64 * 1000, &[recovery as u8; 3000]).unwrap();
    }
    server.kill();
    let server = place.start_with(&LAZY);
    assert!(fs::read(place.data.join("f")).unwrap() == bytes, "the rescue has written it");
    let mut client = Client::mount(&server);
    assert!(client.read_file(&root, "f") == bytes);
    client.try_write_at(&file, 5, b"more").unwrap();
    client.commit(&file);
    assert_eq!(client.verifier(), verifier, "nothing was lost");
    server.signal(Signal::KILL);
    let ended = server.wait();
    assert!(ended.stderr.contains("3 servers ended within a minute of their start"), "{ended:?}");
    let ended = place.start_with(&LAZY).stop();
    assert!(!ended.stderr.contains("within a minute of their start"), "the rescue ended the row: {ended:?}");
}

/// The names that a listing shows come with the sizes that the server reported to clients.
#[test]
fn a_listing_shows_the_sizes_of_files_that_nobody_has_used_since() {
    let Some(place) = Place::new() else { return };
    let server = place.start();
    let mut client = Client::mount(&server);
    let root = client.root();
    for number in 0..50 {
        client.write_file_uncommitted(&root, &format!("f{number}"), &Bytes::new(number).vec(1000 + number as usize));
    }
    server.kill();
    let server = place.start();
    let sizes = Client::mount(&server).listed_sizes(&root);
    assert_eq!(sizes.len(), 50);
    for (name, size) in sizes {
        assert_eq!(size, 1000 + name[1..].parse::<u64>().unwrap(), "{name}");
    }
    server.stop();
}

#[test]
fn a_file_that_is_gone_takes_its_bytes_along() {
    let Some(place) = Place::new() else { return };
    let server = place.start();
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file_uncommitted(&root, "gone", &Bytes::new(5).vec(100_000));
    let kept = Bytes::new(6).vec(100_000);
    client.write_file_uncommitted(&root, "kept", &kept);
    server.kill();
    fs::remove_file(place.data.join("gone")).unwrap();
    let ended = place.start().stop();
    assert!(ended.stderr.contains("1 files that an earlier server had open are gone"), "{ended:?}");
    assert!(fs::read(place.data.join("kept")).unwrap() == kept);
}

#[test]
fn a_cache_keeps_its_size_until_everything_is_written() {
    let Some(place) = Place::new() else { return };
    let server = place.start_with(&["--cache", "32MiB"]);
    let mut client = Client::mount(&server);
    let root = client.root();
    let bytes = Bytes::new(7).vec(100_000);
    client.write_file_uncommitted(&root, "f", &bytes);
    server.kill();
    let server = place.start_with(&["--cache", "64MiB"]);
    let cache = server.stat()["cache"].clone();
    assert_eq!((&cache["cache_bytes"], cache["arena"].as_str()), (&(32 << 20).into(), place.arena().to_str()));
    assert!(Client::mount(&server).read_file(&root, "f") == bytes);
    server.stop();
    let server = place.start_with(&["--cache", "64MiB"]);
    assert_eq!(server.stat()["cache"]["cache_bytes"], 64 << 20);
    server.stop();
}

// rule: two servers never write from one arena
// kept in: `product/linux-server/src/arena_file.rs`
#[test]
fn a_second_server_is_refused() {
    let Some(place) = Place::new() else { return };
    let server = place.start();
    let said = place.refused(&["--shared"]);
    assert!(said.contains(&format!("process {} uses it", server.process())), "{said}");
    server.stop();
}

#[test]
fn a_frozen_server_is_ended_before_the_next_one_starts() {
    let Some(place) = Place::new() else { return };
    let frozen = place.start();
    let mut client = Client::mount(&frozen);
    let root = client.root();
    let bytes = Bytes::new(8).vec(200_000);
    client.write_file_uncommitted(&root, "f", &bytes);
    frozen.freeze();
    let server = place.start();
    assert_eq!(frozen.wait().signal, Some(Signal::KILL.as_raw()));
    assert!(Client::mount(&server).read_file(&root, "f") == bytes);
    let ended = server.stop();
    assert!(ended.stderr.contains("was stopped and had the memory; it is killed"), "{ended:?}");
}

#[test]
fn files_of_an_export_that_is_not_served_now_are_kept() {
    let Some(place) = Place::new() else { return };
    let server = place.start();
    let mut client = Client::mount(&server);
    let root = client.root();
    let bytes = Bytes::new(9).vec(100_000);
    client.write_file_uncommitted(&root, "f", &bytes);
    server.kill();
    let other = Place { data: place.scratch.directory("other"), ..place };
    let said = other.refused(&[]);
    assert!(said.contains("left 1 files that are below none of these directories"), "{said}");
    let place = Place { data: other.scratch.directory("data"), ..other };
    place.start().stop();
    assert!(fs::read(place.data.join("f")).unwrap() == bytes);
}

#[test]
fn files_that_cannot_hold_a_cache_are_refused_and_left_alone() {
    let Some(mut place) = Place::new() else { return };
    let arena = place.arena();
    let cases: [(&str, &dyn Fn()); 6] = [
        ("it is no arena of this program", &|| fs::write(&arena, Bytes::new(1).vec(1 << 20)).unwrap()),
        ("it is no arena of this program", &|| fs::write(&arena, "short").unwrap()),
        ("its mode is 644", &|| {
            fs::write(&arena, "").unwrap();
            fs::set_permissions(&arena, Permissions::from_mode(0o644)).unwrap();
        }),
        ("it belongs to user 65534, and this server runs as user 0", &|| {
            fs::write(&arena, "").unwrap();
            chown(&arena, Some(65534), None).unwrap();
        }),
        ("open: ", &|| symlink("/dev/zero", &arena).unwrap()),
        ("it is no regular file", &|| {
            let path = std::ffi::CString::new(arena.to_str().unwrap()).unwrap();
            rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        }),
    ];
    for (reason, make) in cases {
        make();
        if fs::symlink_metadata(&arena).unwrap().is_file() && !reason.contains("mode") {
            fs::set_permissions(&arena, Permissions::from_mode(0o600)).unwrap();
        }
        let before = fs::symlink_metadata(&arena).unwrap().len();
        let said = place.refused(&[]);
        assert!(said.contains(reason) && said.contains("/arena"), "{reason}: {said}");
        assert_eq!(fs::symlink_metadata(&arena).unwrap().len(), before);
        fs::remove_file(&arena).unwrap();
    }
    // On a disk.
    place.memory = afflux_scratch::Scratch::new(place.scratch.path(), "disk").unwrap();
    let said = place.refused(&[]);
    assert!(said.contains("it is not on a tmpfs") && !place.arena().exists(), "{said}");
}

#[test]
fn a_file_on_a_way_that_another_user_can_change_is_refused() {
    let Some(place) = Place::new() else { return };
    let theirs = place.memory.path().to_path_buf();
    chown(&theirs, Some(65534), None).unwrap();
    let said = place.refused(&[]);
    chown(&theirs, Some(0), None).unwrap();
    assert!(said.contains("--arena: ") && said.contains("belongs to user 65534"), "{said}");
    assert!(!place.arena().exists());
}

#[test]
fn settings_that_do_not_go_with_an_arena_are_refused() {
    let Some(place) = Place::new() else { return };
    let said = place.refused(&["--subtree-check"]);
    assert!(said.contains("--arena takes the right to open files by handle"), "{said}");
    assert!(!place.arena().exists(), "a file that nobody uses would hold memory");
    let point = place.scratch.directory("point");
    let said = place.refused(&["--mount", point.to_str().unwrap()]);
    assert!(said.contains("--arena FILE is for NFS clients"), "{said}");
}

// rule: a failed start removes an arena that it made, and keeps the arena of an earlier server
// kept in: `product/linux-server/src/arena_file.rs`
#[test]
fn a_start_that_fails_leaves_no_new_file() {
    let Some(place) = Place::new() else { return };
    let other = Server::start(place.scratch.path(), &[&place.scratch.directory("other")], &[]);
    let said = place.refused(&["--listen", &format!("127.0.0.1:{}", other.port())]);
    assert!(said.contains("is in use by Afflux itself") && !place.arena().exists(), "{said}");
    other.stop();
    let there = Place { data: place.scratch.path().join("gone"), ..place };
    there.refused(&[]);
    assert!(!there.arena().exists());
    let place = Place { data: there.scratch.directory("data"), ..there };
    let server = place.start();
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file_uncommitted(&root, "f", b"accepted");
    server.kill();
    let gone = Place { data: place.scratch.path().join("gone"), ..place };
    gone.refused(&[]);
    assert!(gone.arena().exists(), "an earlier server left it");
    let place = Place { data: gone.scratch.directory("data"), ..gone };
    place.start().stop();
    assert_eq!(fs::read(place.data.join("f")).unwrap(), b"accepted");
}

#[test]
fn a_second_signal_leaves_the_rest_to_the_next_server() {
    let Some(place) = Place::new() else { return };
    let Some(_mount) = Mount::ext4(&place.scratch.path().join("image"), &place.data, 64 << 20) else { return };
    let server = place.start_with(&LAZY);
    let mut client = Client::mount(&server);
    let root = client.root();
    let bytes = Bytes::new(12).vec(3_000_000);
    client.write_file_uncommitted(&root, "f", &bytes);
    let Some(frozen) = Frozen::freeze(&place.data) else { return };
    server.signal(Signal::TERM);
    eventually("the stop begins", || TcpStream::connect(("127.0.0.1", server.port())).is_err());
    server.signal(Signal::TERM);
    // A write inside the kernel cannot be cancelled while the file system is frozen.
    eventually("the second signal is noticed", || !server.control.exists());
    drop(frozen);
    let ended = server.wait();
    let keeps = format!("the rest is in {} for the next server", place.arena().display());
    assert!(ended.code == Some(1) && ended.stderr.contains(&keeps), "{ended:?}");
    place.start().stop();
    assert!(fs::read(place.data.join("f")).unwrap() == bytes);
}

/// Readers and writers that have committed leave nothing to do, so a successor does not open their files.
#[test]
fn files_that_owe_nothing_are_not_opened_by_a_successor() {
    let Some(place) = Place::new() else { return };
    let server = place.start_with(&LAZY);
    let mut client = Client::mount(&server);
    let root = client.root();
    for number in 0..20 {
        let file = client.write_file_uncommitted(&root, &format!("f{number}"), &Bytes::new(number).vec(10_000));
        client.commit(&file);
    }
    client.write_file_uncommitted(&root, "g", &Bytes::new(30).vec(10_000));
    server.kill();
    let server = place.start_with(&LAZY);
    let mut client = Client::mount(&server);
    for number in 0..20 {
        assert!(client.read_file(&root, &format!("f{number}")) == Bytes::new(number).vec(10_000));
    }
    assert!(client.read_file(&root, "g") == Bytes::new(30).vec(10_000));
    let ended = server.stop();
    assert!(ended.stderr.contains(", of 1 files\n"), "{ended:?}");
}

/// A shorter file would be memory that is not there.
#[test]
fn an_arena_of_another_length_is_refused() {
    let Some(place) = Place::new() else { return };
    place.start().kill();
    let arena = fs::OpenOptions::new().write(true).open(place.arena()).unwrap();
    let bytes = arena.metadata().unwrap().len();
    arena.set_len(bytes - 4096).unwrap();
    let said = place.refused(&[]);
    assert!(said.contains(&format!("it has {} bytes, and its header says {bytes}", bytes - 4096)), "{said}");
}

#[test]
fn an_arena_whose_header_is_damaged_is_refused() {
    let Some(place) = Place::new() else { return };
    place.start().kill();
    let arena = place.arena();
    let mut bytes = fs::read(&arena).unwrap();
    bytes[24] ^= 1;
    fs::write(&arena, &bytes).unwrap();
    let said = place.refused(&[]);
    assert!(said.contains("its header is damaged"), "{said}");
}

/// Pages in a state that no kill leaves are put aside, and the write verifier changes.
#[test]
fn a_damaged_record_costs_the_verifier_and_no_byte_of_others() {
    let Some(place) = Place::new() else { return };
    let server = place.start();
    let mut client = Client::mount(&server);
    let root = client.root();
    let bytes = Bytes::new(10).vec(50_000);
    let file = client.write_file_uncommitted(&root, "f", &bytes);
    let verifier = client.verifier();
    server.kill();
    // The record of the last frame, which is free: after the header's and the slots' parts of 2 MiB and 8 MiB.
    let frames = (64 << 20) / 4096;
    let at = (2 << 20) + (8 << 20) + (frames - 1) * 32;
    let mut memory = fs::read(place.arena()).unwrap();
    memory[at..at + 32].fill(0xff);
    fs::write(place.arena(), &memory).unwrap();
    let server = place.start();
    let mut client = Client::mount(&server);
    assert!(client.read_file(&root, "f") == bytes);
    client.commit(&file);
    assert_ne!(client.verifier(), verifier);
    let ended = server.stop();
    assert!(ended.stderr.contains("in a state that no kill leaves"), "{ended:?}");
    assert!(fs::read(place.data.join("f")).unwrap() == bytes);
}

/// Large pages come in the background; after that a successor maps the memory at once.
#[test]
fn memory_in_a_file_gets_large_pages() {
    let Some(place) = Place::new() else { return };
    let server = place.start();
    eventually("the memory is resident", || {
        let cache = &server.stat()["cache"];
        cache["resident_huge_bytes"].as_u64().unwrap() + cache["resident_base_bytes"].as_u64().unwrap() == 64 << 20
    });
    server.stop();
}
