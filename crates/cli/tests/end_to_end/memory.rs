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
