//! The cache's memory is fixed.

use crate::client::Client;
use crate::scratch::{Bytes, Scratch};
use crate::server::Server;

const CACHE_BYTES: u64 = 64 << 20;

/// Program, stacks, rings, buffers of connections, tables: all but the pages. (11 MB were seen.)
const BESIDE_BYTES: u64 = 24 << 20;

/// Writes and reads back files of `each` bytes until `total` went through in each direction.
fn through(total: u64, each: usize) {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "64MiB"]);
    let mut client = Client::mount(&server);
    let root = client.root();
    let files = total / each as u64;
    for at in 0..files {
        client.write_file(&root, &format!("f{at}"), &Bytes::new(at).vec(each));
    }
    for at in 0..files {
        assert!(client.read_file(&root, &format!("f{at}")) == Bytes::new(at).vec(each), "file {at}");
    }
    let peak = server.peak_resident_bytes();
    assert!(peak <= CACHE_BYTES + BESIDE_BYTES, "{peak} bytes were resident");
    assert!(server.counter("pgsteal") > 0, "nothing was evicted");
    server.stop();
}

#[test]
fn a_64_mib_cache_holds_while_256_mib_go_through() {
    through(256 << 20, 32 << 20);
}

#[test]
#[ignore = "2 GiB: takes a while and the room"]
fn a_64_mib_cache_holds_while_2_gib_go_through() {
    through(2 << 30, 256 << 20);
}

/// What `stat` says has memory behind it.
fn resident_bytes(server: &Server) -> u64 {
    let stat = server.stat();
    let part = |name: &str| stat["cache"][name].as_u64().unwrap();
    part("resident_huge_bytes") + part("resident_base_bytes")
}

#[test]
fn the_cache_gets_its_memory_in_the_background() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "64MiB"]);
    // A guard against hangs, far above what it takes.
    for _ in 0..3000 {
        if resident_bytes(&server) == CACHE_BYTES {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(resident_bytes(&server), CACHE_BYTES);
    server.stop();
}

#[test]
fn the_cache_can_be_left_without_memory_until_it_is_used() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "64MiB", "--prefault", "off"]);
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file(&root, "a", &Bytes::new(1).vec(1 << 20));
    assert!((1 << 20..CACHE_BYTES / 2).contains(&resident_bytes(&server)));
    server.stop();
}

#[test]
fn a_server_stops_while_its_cache_still_gets_memory() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "1GiB"]);
    server.stop();
}
