//! A tree of files goes in and comes out identical.

use std::fs;
use std::path::Path;

use crate::client::Client;
use crate::scratch::{Bytes, Scratch};
use crate::server::Server;

/// One file: its directory's number, its size.
fn plan(files: usize) -> Vec<(usize, usize)> {
    let mut random = Bytes::new(42);
    (0..files)
        .map(|at| {
            let size = match at % 20 {
                0 => 0,
                1 => 1 + random.number() as usize % 3_000_000,
                2..6 => random.number() as usize % 200_000,
                _ => random.number() as usize % 12_000,
            };
            (at % 97, size)
        })
        .collect()
}

fn bytes(at: usize, size: usize) -> Vec<u8> {
    Bytes::new(at as u64 + 1).vec(size)
}

fn compare(directory: &Path, files: &[(usize, usize)]) {
    for (at, (parent, size)) in files.iter().enumerate() {
        let found = fs::read(directory.join(format!("d{parent}/f{at}"))).unwrap();
        assert!(found == bytes(at, *size), "file {at} of {size} bytes came out as {}", found.len());
    }
}

fn read_through(server: &Server, files: &[(usize, usize)]) {
    let mut client = Client::mount(server);
    let root = client.root();
    for (at, (parent, size)) in files.iter().enumerate() {
        let directory = client.lookup(&root, &format!("d{parent}"));
        let found = client.read_file(&directory, &format!("f{at}"));
        assert!(found == bytes(at, *size), "file {at} of {size} bytes came out as {}", found.len());
    }
}

#[test]
fn three_thousand_files_go_in_and_come_out_also_after_a_restart() {
    let files = plan(3_000);
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "64MiB"]);
    let mut client = Client::mount(&server);
    let root = client.root();
    let directories: Vec<_> = (0..97).map(|at| client.make_directory(&root, &format!("d{at}"))).collect();
    for (at, (parent, size)) in files.iter().enumerate() {
        // Every tenth is committed; the flusher and the drain write the others.
        let name = format!("f{at}");
        if at % 10 == 0 {
            client.write_file(&directories[*parent], &name, &bytes(at, *size));
        } else {
            client.write_file_uncommitted(&directories[*parent], &name, &bytes(at, *size));
        }
    }
    let mut names: Vec<String> = (0..97).flat_map(|at| client.list(&directories[at])).collect();
    names.sort();
    let mut expected: Vec<String> = (0..files.len()).map(|at| format!("f{at}")).collect();
    expected.sort();
    assert!(names == expected, "{} of {} files are listed", names.len(), expected.len());
    read_through(&server, &files);
    server.stop();
    compare(&data, &files);
    let server = Server::start(scratch.path(), &[&data], &["--cache", "64MiB"]);
    read_through(&server, &files);
    server.stop();
}

#[test]
#[ignore = "1 GiB: takes a while and the room"]
fn a_file_of_1_gib_goes_in_and_comes_out_also_after_a_restart() {
    const PIECE: usize = 32 << 20;
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "256MiB"]);
    let mut client = Client::mount(&server);
    let root = client.root();
    let file = client.write_file(&root, "big", b"");
    for at in 0..32 {
        client.write_at(&file, at * PIECE as u64, &bytes(at as usize, PIECE));
    }
    client.commit(&file);
    let check = |server: &Server| {
        let mut client = Client::mount(server);
        for at in 0..32 {
            let found = client.read_at(&file, at * PIECE as u64, PIECE);
            assert!(found == bytes(at as usize, PIECE), "piece {at}");
        }
    };
    check(&server);
    server.stop();
    assert_eq!(fs::metadata(data.join("big")).unwrap().len(), 1 << 30);
    let server = Server::start(scratch.path(), &[&data], &["--cache", "256MiB"]);
    check(&server);
    server.stop();
}
