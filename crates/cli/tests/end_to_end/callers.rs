//! Who is answered: sockets of other users are refused, unless everybody is let in.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::fchown;

use rustix::net::{AddressFamily, SocketType, connect, socket};

use crate::scratch::Scratch;
use crate::server::Server;

const NOBODY: u32 = 65_534;
const AUTH_TOOWEAK: u32 = 5;

/// A connection whose socket belongs to `user`, as that user's process would have it.
fn connected_as(user: u32, server: &Server) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    fchown(&socket, Some(user), None).unwrap();
    connect(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()))).unwrap();
    TcpStream::from(socket)
}

/// What a call of `program`'s procedure 0, from one who claims to be root, is answered with after its number.
fn null(stream: &mut TcpStream, program: u32) -> Vec<u32> {
    // AUTH_SYS: stamp, a machine without a name, user, group, no further groups.
    let call = [9, 0, 2, program, 3, 0, 1, 20, 1, 0, 0, 0, 0, 0, 0];
    let words = [(1 << 31) | (4 * call.len() as u32)].into_iter().chain(call);
    stream.write_all(&words.flat_map(u32::to_be_bytes).collect::<Vec<u8>>()).unwrap();
    let mut mark = [0; 4];
    stream.read_exact(&mut mark).unwrap();
    let mut reply = vec![0; (u32::from_be_bytes(mark) & !(1 << 31)) as usize];
    stream.read_exact(&mut reply).unwrap();
    let words: Vec<u32> = reply.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
    assert_eq!(words[0], 9);
    words[1..].to_vec()
}

#[test]
fn sockets_of_other_users_are_refused_unless_any_peer_is_let_in() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can have another user's socket");
        return;
    }
    const NFS: u32 = 100_003;
    const MOUNT: u32 = 100_005;
    let done = [1, 0, 0, 0, 0];
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    assert_eq!(server.ready["any_peer"], false);
    let (mut own, mut other) = (connected_as(0, &server), connected_as(NOBODY, &server));
    for program in [MOUNT, NFS] {
        assert_eq!(null(&mut other, program), [1, 1, 1, AUTH_TOOWEAK]);
        assert_eq!(null(&mut own, program), done);
    }
    assert_eq!(server.stat()["nfs"]["calls"]["rpc_auth_tooweak"], 2);
    drop((own, other, server));

    let server = Server::start(scratch.path(), &[&data], &["--any-peer"]);
    assert_eq!(server.ready["any_peer"], true);
    assert_eq!(null(&mut connected_as(NOBODY, &server), NFS), done);
}
