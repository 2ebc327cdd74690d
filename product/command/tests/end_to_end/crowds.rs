//! Users in a crowd: a user with many requests or many connections takes nothing from the others.

//! rule: calls and connections of one party push out none of another party: a party is a user of this host, or another
//! machine
//! kept in: `product/nfs/src/v3/reply_cache.rs`, `product/linux-server/src/net/crowd.rs`

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::chown;
use std::process::Command;
use std::time::Duration;

use afflux_nfs_check::hostile::{self, Plan};
use afflux_nfs_client::{Call, Client, NFS};
use rustix::net::sockopt::set_socket_recv_buffer_size;

use crate::callers::{MARY, ROOT, connected_as, open_directory, status};
use crate::scratch::{Scratch, can_be_several_users};
use crate::server::{Server, afflux};

const JOHN: u32 = 4002;
const ANN: u32 = 4003;
const SETATTR: u32 = 2;

#[test]
fn a_user_who_asks_much_has_no_call_of_another_run_twice() {
    if !can_be_several_users() {
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
    // The arguments change nothing: a handle in whole words, six attributes to keep, no guard.
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

/// Data that the kernel does not buffer for a connection, where the client's buffer has [`CLIENT_BUFFER`].
const UNBUFFERED: usize = 8 << 20;
/// The kernel would choose another size otherwise. It remembers earlier connections to this host.
const CLIENT_BUFFER: usize = 64 << 10;

/// Asks for more data than the kernel buffers, and reads a byte of it.
fn deafen(client: &mut Client, file: &[u8]) {
    set_socket_recv_buffer_size(client.socket(), CLIENT_BUFFER).unwrap();
    let call = Call::Read { file: file.to_vec(), offset: 0, count: 16 << 10 };
    for _ in 0..1_000 {
        client.send(NFS, call.procedure().0, &call.arguments()).unwrap();
    }
    client.socket().read_exact(&mut [0]).unwrap();
}

#[test]
fn two_users_whose_clients_do_not_read_lock_out_neither_another_user_nor_root() {
    if !can_be_several_users() {
        return;
    }
    let scratch = Scratch::new();
    let data = open_directory(&scratch, "data");
    fs::write(data.join("file"), vec![7; 1 << 20]).unwrap();
    let control = scratch.path().join("control.sock");
    let inner = afflux(scratch.path());
    let mut command = Command::new("sh");
    // The limit on descriptors leaves 32 slots for connections, two of which are root's.
    command.args(["-c", "ulimit -n 256 && exec \"$@\"", "sh"]).arg(inner.get_program());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["serve", "--json", "--cache", "64MiB", "--listen", "127.0.0.1:0"]);
    command.args(["--set", "nfs_peer_connections_max=24"]);
    command.arg("--control").arg(&control).arg(&data);
    let server = Server::spawn(command, control, scratch.path());
    let mut roots = connected_as(ROOT.uid, &server);
    let root = roots.mount("/").unwrap();
    let file = roots.lookup(&root, b"file").unwrap().0;
    drop(roots);
    let mut deaf = Vec::new();
    for (user, connections) in [(MARY.uid, 24), (JOHN, 6)] {
        for _ in 0..connections {
            let mut client = connected_as(user, &server);
            deafen(&mut client, &file);
            deaf.push(client);
        }
    }
    let mut others: Vec<Client> = [ROOT.uid, ROOT.uid, ANN, ANN, ANN].map(|user| connected_as(user, &server)).into();
    for (at, client) in others.iter_mut().enumerate() {
        assert_eq!(status(client.getattr(&file)), 0, "connection {at} of others");
    }
    let nfs = &server.stat()["nfs"];
    assert_eq!((&nfs["connections"], &nfs["connections_max"]), (&32.into(), &32.into()));
    assert_eq!((&nfs["closed_for_room"], &nfs["refused"]), (&3.into(), &0.into()));
    // The server still serves the other connections of the user with the most, and all of the user with fewer.
    let mut replies = vec![0; UNBUFFERED];
    let served = deaf.iter().filter(|client| client.socket().read_exact(&mut replies).is_ok()).count();
    assert_eq!(served, 27);
}

/// Hostile clients of version 4.2 for five minutes, or as long as `AFFLUX_HOSTILE_SECONDS` says.
#[test]
#[ignore = "hostile clients: minutes"]
fn honest_clients_get_right_answers_beside_hostile_ones() {
    if !can_be_several_users() {
        return;
    }
    let scratch = Scratch::new();
    let data = open_directory(&scratch, "data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "256MiB"]);
    let seconds = std::env::var("AFFLUX_HOSTILE_SECONDS").map_or(300, |seconds| seconds.parse().unwrap());
    let nfs = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
    let outcome = hostile::run(&Plan { nfs, seed: 1, time: Duration::from_secs(seconds), only: None }).unwrap();
    eprintln!("the longest time of an honest answer: {:?}", outcome.longest());
    assert!(outcome.attacks.iter().all(|(_, answers)| *answers > 0), "{outcome:?}");
    assert_eq!(server.stop().code, Some(0));
}
