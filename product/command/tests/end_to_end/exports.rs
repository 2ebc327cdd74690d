//! The root of several exports, as clients of version 4 list it.

use std::fs;
use std::path::Path;

use afflux_nfs_client::Client;
use afflux_nfs_client::sessions::{Compound, Session};

use crate::scratch::Scratch;
use crate::server::Server;

const CHANGE: u32 = 1 << 3;
const FILEID: u32 = 1 << 20;
const BAD_COOKIE: u32 = 10_003;

fn root() -> Compound {
    Compound::default().put_root()
}

fn session(server: &Server, name: &str) -> Session {
    Session::begin(Client::connect(("127.0.0.1", server.port())).unwrap(), name.as_bytes(), 2).unwrap()
}

/// The names in the root.
fn names(session: &mut Session) -> Vec<String> {
    let listed = session.must(root().list(0, 4096, &[FILEID])).unwrap();
    let mut reader = listed.reader();
    for _ in 0..2 {
        reader.next_result().unwrap();
    }
    reader.skip(8).unwrap();
    let mut names = Vec::new();
    while reader.u32().unwrap() == 1 {
        reader.u64().unwrap();
        names.push(String::from_utf8(reader.opaque().unwrap().to_vec()).unwrap());
        reader.attributes().unwrap();
    }
    names
}

fn change(session: &mut Session) -> Vec<u8> {
    let told = session.must(root().attributes(&[CHANGE])).unwrap();
    told.results[told.results.len() - 8..].to_vec()
}

fn serve(home: &Path, directories: &[&Path]) -> Server {
    Server::start(home, directories, &["--cache", "64MiB"])
}

#[test]
fn an_export_whose_directory_is_gone_hides_no_other() {
    let scratch = Scratch::new();
    let (here, gone) = (scratch.directory("here"), scratch.directory("gone"));
    let server = serve(scratch.path(), &[&here, &gone]);
    let mut client = session(&server, "client");
    assert_eq!(names(&mut client), ["here", "gone"]);
    fs::remove_dir(&gone).unwrap();
    afflux_scratch::eventually("the directory is known to be gone", || {
        client.call(root().lookup(b"gone").attributes(&[FILEID])).unwrap().status != 0
    });
    assert_eq!(names(&mut client), ["here", "gone"]);
    client.must(root().lookup(b"here").make_directory(b"made")).unwrap();
    // A cookie that no name has.
    assert_eq!(client.call(root().list(99, 4096, &[FILEID])).unwrap().status, BAD_COOKIE);
    assert_eq!(client.call(root().list(4, 4096, &[FILEID])).unwrap().status, 0);
    server.stop();
}

#[test]
fn a_start_with_one_more_export_changes_the_root_for_clients_that_keep_its_names() {
    let scratch = Scratch::new();
    let (one, two, three) = (scratch.directory("one"), scratch.directory("two"), scratch.directory("three"));
    let server = serve(scratch.path(), &[&one, &two]);
    let mut client = session(&server, "client");
    let before = change(&mut client);
    assert_eq!(change(&mut client), before);
    server.stop();
    let server = serve(scratch.path(), &[&one, &two, &three]);
    let mut client = session(&server, "another");
    assert!(change(&mut client) > before, "a client looks again only at what has changed");
    assert_eq!(names(&mut client), ["one", "two", "three"]);
    server.stop();
}
