//! One user among others: who asks for much, or for many connections, takes nothing of theirs.

use std::fs;
use std::os::unix::fs::chown;

use nfs_client::NFS;

use crate::callers::{MARY, ROOT, connected_as, is_root, open_directory, status};
use crate::scratch::Scratch;
use crate::server::Server;

const SETATTR: u32 = 2;

#[test]
fn a_user_who_asks_much_has_no_call_of_another_run_twice() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let data = open_directory(&scratch, "data");
    fs::write(data.join("mary's"), b"").unwrap();
    chown(data.join("mary's"), Some(MARY.uid), Some(MARY.gid)).unwrap();
    fs::write(data.join("name"), b"old").unwrap();
    let server = Server::start(scratch.path(), &[&data], &[]);
    let mut roots = connected_as(ROOT.uid, &server);
    let root = roots.mount("/").unwrap();
    let xid = roots.next_xid();
    roots.remove(&root, b"name").unwrap();
    fs::write(data.join("name"), b"new").unwrap();

    let mut mary = connected_as(MARY.uid, &server);
    let object = mary.lookup(&root, b"mary's").unwrap().0;
    // Of nothing: a handle in whole words, six attributes that stay, no guard.
    let padding = &[0; 3][..object.len().next_multiple_of(4) - object.len()];
    let arguments = [&(object.len() as u32).to_be_bytes()[..], &object, padding, &[0; 7 * 4]].concat();
    for _ in 0..200 {
        (0..100).for_each(|_| _ = mary.send(NFS, SETATTR, &arguments).unwrap());
        for _ in 0..100 {
            assert_eq!(mary.receive().unwrap().results[..4], [0; 4]);
        }
    }
    // Root's client lost its connection, and sends its call again.
    let mut again = connected_as(ROOT.uid, &server);
    again.set_next_xid(xid);
    again.remove(&root, b"name").unwrap();
    assert_eq!(fs::read(data.join("name")).unwrap(), b"new");
}
