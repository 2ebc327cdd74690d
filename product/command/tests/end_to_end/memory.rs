//! The cache's memory is fixed, and connections' memory is bounded.

use std::io::Write;
use std::net::TcpStream;

use afflux_nfs_client::stable_how;

use crate::client::Client;
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, eventually};

const CACHE_BYTES: u64 = 64 << 20;

/// Memory beside the pages and the program: stacks, buffers of connections, tables. 5.1 MB were seen. The pages of the
/// program are not counted: the server locks them, and a build that is not optimized, or has volumes in stores, has
/// tens of MB of them.
const BESIDE_BYTES: u64 = 10 << 20;

/// The same with the program's pages, in a build as it is installed.
const INSTALLED_BYTES: u64 = 32 << 20;

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
    let beside = server.peak_bytes_beside_program() - CACHE_BYTES;
    assert!(beside <= BESIDE_BYTES, "{beside} bytes were resident beside the cache and the program");
    assert!(server.counter("pgsteal") > 0, "nothing was evicted");
    server.stop();
}

/// README.md and docs/use/install.md.
#[test]
fn the_memory_that_the_documents_name_beside_the_cache_is_enough() {
    const NAMED_MIB: u64 = 288;
    for document in [include_str!("../../../../README.md"), include_str!("../../../../docs/use/install.md")] {
        assert!(document.contains(&format!("{NAMED_MIB} MiB")));
    }
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), &[&scratch.directory("data")], &["--cache", "64MiB"]);
    let requests = server.stat()["knobs"]["nfs_request_bytes_max"].as_u64().unwrap();
    assert!(requests + INSTALLED_BYTES <= NAMED_MIB << 20, "{requests} bytes of requests");
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

/// Memory behind the cache, as `stat` reports it.
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
    afflux_scratch::eventually("all of the cache has memory", || resident_bytes(&server) == CACHE_BYTES);
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

fn nfs_gauge(server: &Server, name: &str) -> u64 {
    server.stat()["nfs"][name].as_u64().unwrap()
}

#[test]
fn unfinished_records_hold_at_most_the_bound_and_their_memory_comes_back() {
    const BOUND_BYTES: u64 = 128 << 20;
    const LOOSE_BYTES: u64 = 64 << 20;
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--set", "nfs_request_bytes_max=128MiB"]);
    eventually("the cache has its memory", || resident_bytes(&server) == CACHE_BYTES);
    let before = server.resident_bytes();
    // A record of 1 MiB without its end.
    let mut call = vec![0; 1_000_000];
    call[..4].copy_from_slice(&((1 << 31) | (1_u32 << 20)).to_be_bytes());
    let mut streams: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(("127.0.0.1", server.port())).unwrap()).collect();
    for stream in &mut streams {
        stream.set_nonblocking(true).unwrap();
        // Data beyond the kernel's buffers is dropped.
        let _ = stream.write(&call);
    }
    eventually("some wait", || {
        let held = nfs_gauge(&server, "request_bytes");
        assert!(held <= BOUND_BYTES, "{held} bytes are held");
        // The other half is reserved for connections that may still come.
        nfs_gauge(&server, "waiting_for_room") > 0 && held > BOUND_BYTES / 2
    });
    // Other clients are served at once, with correct data.
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file(&root, "small", b"some bytes");
    assert!(client.read_file(&root, "small") == b"some bytes");
    let mut plain = afflux_nfs_client::Client::connect(("127.0.0.1", server.port())).unwrap();
    let file = plain.find(&root, "small").unwrap();
    assert_eq!(plain.getattr(&file).unwrap().size, 10);
    plain.write(&file, 0, &[7; 8_000], stable_how::UNSTABLE).unwrap();
    plain.commit(&file, 0, 0).unwrap();
    let resident = server.resident_bytes();
    assert!(resident <= before + BOUND_BYTES + LOOSE_BYTES, "{resident} bytes resident, {before} before");
    // The server closes silent connections until none waits. Between two tries none may wait for a moment, too.
    eventually("silent ones go until nobody waits", || {
        nfs_gauge(&server, "closed_stalled") > 0 && nfs_gauge(&server, "waiting_for_room") == 0
    });
    drop((streams, client, plain));
    eventually("nothing is held", || {
        nfs_gauge(&server, "connections") == 0 && nfs_gauge(&server, "request_bytes") == 0
    });
    eventually("memory has gone back to the system", || server.resident_bytes() <= before + (16 << 20));
    server.stop();
}

#[test]
fn on_loopback_memory_is_locked_unless_that_is_unwanted() {
    if !rustix::process::geteuid().is_root() {
        afflux_scratch::skipped!("only root is sure to be allowed to lock memory");
        return;
    }
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    for (flags, locks) in [(&[][..], true), (&["--lock-memory", "on"], true), (&["--lock-memory", "off"], false)] {
        let server = Server::start(scratch.path(), &[&data], flags);
        // The cache is mapped, and counts as locked whether it is used or not.
        assert_eq!(server.locked_bytes() >= 64 << 20, locks, "{flags:?}: {} bytes", server.locked_bytes());
        assert!(!server.ready["notes"].to_string().contains("locked"), "{}", server.ready);
        server.stop();
    }
}
