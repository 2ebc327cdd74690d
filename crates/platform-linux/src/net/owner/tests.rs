use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};

use super::*;

fn connected(listen: &str, connect: Option<IpAddr>) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(listen).unwrap();
    let mut to = listener.local_addr().unwrap();
    to.set_ip(connect.unwrap_or(to.ip()));
    let client = TcpStream::connect(to).unwrap();
    (client, listener.accept().unwrap().0)
}

fn owner_of_peer(accepted: &TcpStream) -> Option<u32> {
    let mut owners = SocketOwners::new().unwrap();
    owners.owner(accepted.peer_addr().unwrap(), accepted.local_addr().unwrap()).unwrap()
}

#[test]
fn every_kind_of_address_has_its_owner() {
    let us = rustix::process::geteuid().as_raw();
    let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
    // The last two: an IPv4 client of an IPv6 socket, and a client that writes IPv4 as IPv6.
    let mapped = IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
    for (listen, connect) in
        [("127.0.0.1:0", None), ("[::1]:0", None), ("[::]:0", Some(v4)), ("127.0.0.1:0", Some(mapped))]
    {
        let (client, accepted) = connected(listen, connect);
        assert_eq!(owner_of_peer(&accepted), Some(us), "{listen} {connect:?}");
        drop(client);
    }
}

#[test]
fn what_nobody_holds_has_no_owner() {
    // Closed by its process, with the peer's side still open: the kernel gives root as its owner.
    let (mut client, accepted) = connected("127.0.0.1:0", None);
    client.write_all(b"x").unwrap();
    drop(client);
    assert_eq!(owner_of_peer(&accepted), None);
    // Half closed, but held.
    let (client, accepted) = connected("127.0.0.1:0", None);
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(owner_of_peer(&accepted), Some(rustix::process::geteuid().as_raw()));
    // Nothing but a listener at the address.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 1);
    let mut owners = SocketOwners::new().unwrap();
    assert_eq!(owners.owner(listener.local_addr().unwrap(), other).unwrap(), None);
    // An answer that came too late is not taken for another's.
    let question = question(owners.sequence, listener.local_addr().unwrap(), other);
    sendto(&owners.netlink, &question, SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).unwrap();
    let (_client, accepted) = connected("127.0.0.1:0", None);
    let found = owners.owner(accepted.peer_addr().unwrap(), accepted.local_addr().unwrap());
    assert_eq!(found.unwrap(), Some(rustix::process::geteuid().as_raw()));
}

#[test]
fn a_listener_owns_no_connection_even_if_the_kernel_gives_its_addresses() {
    let (its, other) = (SocketAddr::from(([127, 0, 0, 1], 700)), SocketAddr::from(([127, 0, 0, 1], 2049)));
    let answer = |state: u8| {
        let mut bytes = vec![0; ANSWER_BYTES];
        bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        let message = &mut bytes[HEADER_BYTES..];
        (message[0], message[1]) = (AddressFamily::INET.as_raw() as u8, state);
        message[4..6].copy_from_slice(&its.port().to_be_bytes());
        message[6..8].copy_from_slice(&other.port().to_be_bytes());
        message[8..12].copy_from_slice(&[127, 0, 0, 1]);
        message[24..28].copy_from_slice(&[127, 0, 0, 1]);
        message[64..68].copy_from_slice(&4001_u32.to_ne_bytes());
        message[68..72].copy_from_slice(&77_u32.to_ne_bytes());
        bytes
    };
    const ESTABLISHED: u8 = 1;
    assert_eq!(read_answer(&answer(ESTABLISHED), its, other), Ok(Some(4001)));
    assert_eq!(read_answer(&answer(LISTEN), its, other), Ok(None));
}
