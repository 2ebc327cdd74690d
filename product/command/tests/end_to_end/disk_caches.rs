//! A volume in an object store with parts on a local disk.

//! rule: what a disk cache has after a kill is used, a damaged or full disk costs requests alone, and two servers never
//! share one
//! kept in: `product/object-store/src/disk_cache.rs`, `product/object-store/src/disk_cache/directory.rs`

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use afflux_scratch::eventually;

use crate::client::{Client, Handle};
use crate::scratch::{Bytes, Mount, Scratch};
use crate::server::{Server, afflux};

/// Larger than the cache in memory.
const FILE_BYTES: usize = 40 << 20;
const READ_BYTES: usize = 64 << 10;

struct Stored {
    scratch: Scratch,
    store: PathBuf,
    disk: PathBuf,
    bytes: Vec<u8>,
}

impl Stored {
    /// A volume with one file, and a directory for its disk cache.
    fn new() -> Self {
        let scratch = Scratch::new();
        let store = PathBuf::from(format!("file://{}", scratch.path().join("store").display()));
        let server = Server::start(scratch.path(), &[&store], &["--cache", "16MiB"]);
        let mut client = Client::mount(&server);
        let (root, bytes) = (client.root(), Bytes::new(3).vec(FILE_BYTES));
        client.write_file(&root, "file", &bytes);
        server.stop();
        let disk = scratch.directory("disk");
        Self { scratch, store, disk, bytes }
    }

    fn serve(&self, disk: &Path) -> (Server, Client, Handle) {
        let disk = ["--disk-cache", disk.to_str().unwrap(), "--disk-cache-size", "128MiB"];
        let server = Server::start(self.scratch.path(), &[&self.store], &[&["--cache", "16MiB"][..], &disk].concat());
        let mut client = Client::mount(&server);
        let root = client.root();
        let file = client.lookup(&root, "file");
        (server, client, file)
    }

    /// Reads all blocks in an order without a stream.
    fn read(&self, client: &mut Client, file: &Handle) {
        let blocks = FILE_BYTES / READ_BYTES;
        for at in (0..blocks).map(|block| block * 263 % blocks * READ_BYTES) {
            let read = client.read_at(file, at as u64, READ_BYTES);
            assert!(read == self.bytes[at..at + READ_BYTES], "wrong bytes at {at}");
        }
    }
}

/// A figure of the disk cache.
fn figure(server: &Server, name: &str) -> u64 {
    server.stat()["devices"][0]["store"]["disk_cache"][name].as_u64().unwrap()
}

#[test]
fn a_second_pass_fetches_nothing_also_after_a_kill_and_damage_costs_requests() {
    let stored = Stored::new();
    let (server, mut client, file) = stored.serve(&stored.disk);
    eventually("the whole file is on the disk", || {
        let before = figure(&server, "misses");
        stored.read(&mut client, &file);
        figure(&server, "misses") == before
    });
    assert!(figure(&server, "read_bytes") >= FILE_BYTES as u64 / 2);
    server.kill();
    let (server, mut client, file) = stored.serve(&stored.disk);
    stored.read(&mut client, &file);
    assert!(figure(&server, "misses") <= 16, "the last parts before the kill may be gone");
    for entry in fs::read_dir(stored.disk.join("parts-1")).unwrap() {
        let file = OpenOptions::new().write(true).open(entry.unwrap().path()).unwrap();
        (0..16).for_each(|at| file.write_all_at(&[at], 4096 + u64::from(at) * 69_632).unwrap());
    }
    stored.read(&mut client, &file);
    assert!(figure(&server, "dropped") > 0);
    let other = format!("file://{}", stored.scratch.path().join("other").display());
    let mut second = afflux(stored.scratch.path());
    second.args(["serve", &other, "--listen", "127.0.0.1:0", "--disk-cache-size", "128MiB", "--disk-cache"]);
    let refused = second.arg(&stored.disk).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("another server has its disk cache there"), "{said}");
    assert_eq!(refused.status.code(), Some(1));
    server.stop();
}

#[test]
fn a_disk_without_space_costs_requests_alone() {
    let stored = Stored::new();
    let Some(_full) = Mount::tmpfs(&stored.disk, 32 << 20) else { return };
    let (server, mut client, file) = stored.serve(&stored.disk);
    stored.read(&mut client, &file);
    assert!(server.stat()["devices"][0]["store"]["disk_cache"].is_null());
    server.stop();
}
