use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use super::*;

fn connected(listen: &str, connect: Option<IpAddr>) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(listen).unwrap();
    let mut to = listener.local_addr().unwrap();
    to.set_ip(connect.unwrap_or(to.ip()));
    let client = TcpStream::connect(to).unwrap();
    (client, listener.accept().unwrap().0)
}

fn origin_of_peer(accepted: &TcpStream) -> Origin {
    Origins::new().of(accepted.peer_addr().unwrap(), accepted.local_addr().unwrap()).unwrap()
}

fn us() -> Origin {
    Origin::User(rustix::process::geteuid().as_raw())
}

#[test]
fn every_kind_of_address_has_its_user() {
    let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
    // The last two: an IPv4 client of an IPv6 socket, and a client that writes IPv4 as IPv6.
    let mapped = IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
    for (listen, connect) in
        [("127.0.0.1:0", None), ("[::1]:0", None), ("[::]:0", Some(v4)), ("127.0.0.1:0", Some(mapped))]
    {
        let (client, accepted) = connected(listen, connect);
        assert_eq!(origin_of_peer(&accepted), us(), "{listen} {connect:?}");
        drop(client);
    }
}

#[test]
fn what_nobody_holds_is_an_orphan_by_every_kind_of_address() {
    let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
    for (listen, connect) in [("127.0.0.1:0", None), ("[::1]:0", None), ("[::]:0", Some(v4))] {
        // Closed by its process, with the peer's side still open: the kernel gives a user nevertheless.
        let (mut client, accepted) = connected(listen, connect);
        client.write_all(b"x").unwrap();
        drop(client);
        assert_eq!(origin_of_peer(&accepted), Origin::Orphan, "{listen}");
        // Both sides have closed, so the kernel retains only the addresses for a while, or nothing at all.
        let (client, mut accepted) = connected(listen, connect);
        let (its, own) = (accepted.peer_addr().unwrap(), accepted.local_addr().unwrap());
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(accepted.read(&mut [0]).unwrap(), 0);
        drop((accepted, client));
        assert_eq!(Origins::new().of(its, own).unwrap(), Origin::Orphan, "{listen}");
        // Half closed, but held.
        let (client, accepted) = connected(listen, connect);
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(origin_of_peer(&accepted), us(), "{listen}");
    }
    // Only a listener is at the address.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 1);
    let mut origins = Origins::new();
    assert_eq!(origins.of(listener.local_addr().unwrap(), other).unwrap(), Origin::Orphan);
    // An answer that came too late is not taken for the next one.
    let question = socket_question(origins.sequence, listener.local_addr().unwrap(), other);
    let netlink = origins.sockets.as_ref().unwrap();
    sendto(netlink, &question, SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).unwrap();
    let (_client, accepted) = connected("127.0.0.1:0", None);
    let found = origins.of(accepted.peer_addr().unwrap(), accepted.local_addr().unwrap());
    assert_eq!(found.unwrap(), us());
}

/// Addresses of this host besides loopback's; link-local ones with their interfaces.
fn own_addresses() -> Vec<SocketAddr> {
    let v6 = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let v6 = v6.lines().map(|line| {
        let mut words = line.split_whitespace();
        let address = Ipv6Addr::from_bits(u128::from_str_radix(words.next().unwrap(), 16).unwrap());
        let interface = u32::from_str_radix(words.next().unwrap(), 16).unwrap();
        let scope = if address.is_unicast_link_local() { interface } else { 0 };
        SocketAddr::V6(std::net::SocketAddrV6::new(address, 700, 0, scope))
    });
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let v4 = probe.connect("198.51.100.1:9").ok().and_then(|()| probe.local_addr().ok());
    v6.chain(v4).collect()
}

#[test]
fn an_address_of_this_host_is_not_elsewhere_though_no_socket_is_there() {
    let mut origins = Origins::new();
    origins.check_known().unwrap();
    let text = |text: &str| text.parse::<SocketAddr>().unwrap();
    let loopback = ["127.0.0.1:700", "127.200.3.4:700", "[::1]:700", "[::ffff:127.0.0.1]:700"].map(text);
    let own = text("127.0.0.1:2049");
    for address in own_addresses().into_iter().chain(loopback) {
        assert_eq!(origins.of(address, own).unwrap(), Origin::Orphan, "{address}");
        if let IpAddr::V4(v4) = address.ip() {
            let mapped = SocketAddr::new(v4.to_ipv6_mapped().into(), 700);
            assert_eq!(origins.of(mapped, own).unwrap(), Origin::Orphan, "{mapped}");
        }
    }
    // The connection's own end is on this host, whatever the kernel says about the address.
    let elsewhere = ["198.51.100.7:700", "[2001:db8::7]:700", "[::ffff:198.51.100.7]:700"].map(text);
    for address in elsewhere {
        assert_eq!(origins.of(address, own).unwrap(), Origin::Elsewhere, "{address}");
        assert_eq!(origins.of(address, SocketAddr::new(address.ip(), 2049)).unwrap(), Origin::Orphan);
    }
    // A kernel that does not report sockets, or addresses.
    let mut origins = Origins { sockets: Err(Errno::PROTONOSUPPORT), ..Origins::new() };
    assert_eq!(origins.check_known(), Err(Errno::PROTONOSUPPORT));
    assert_eq!(origins.of(loopback[0], own).unwrap(), Origin::Orphan);
    assert_eq!(origins.of(elsewhere[0], own).unwrap(), Origin::Elsewhere);
    let mut origins = Origins { routes: Err(Errno::PROTONOSUPPORT), ..Origins::new() };
    assert_eq!(origins.of(elsewhere[0], own).unwrap(), Origin::Orphan);
}

#[test]
fn a_socket_that_is_not_connected_owns_no_connection_even_if_the_kernel_gives_its_addresses() {
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
    assert_eq!(read_socket(&answer(ESTABLISHED), its, other), Ok(Socket::Of(4001)));
    for state in [LISTEN, SYN_SENT] {
        assert_eq!(read_socket(&answer(state), its, other), Ok(Socket::None));
    }
    let mut nobodys = answer(ESTABLISHED);
    nobodys[HEADER_BYTES + 68..HEADER_BYTES + 72].fill(0);
    assert_eq!(read_socket(&nobodys, its, other), Ok(Socket::Nobodys));
}

#[test]
fn a_kernel_that_knows_no_socket_of_tcp_tells_no_origins() {
    let mut answer = vec![0; HEADER_BYTES + 4];
    answer[4..6].copy_from_slice(&ERROR.to_ne_bytes());
    answer[HEADER_BYTES..].copy_from_slice(&(-Errno::NOENT.raw_os_error()).to_ne_bytes());
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    assert_eq!(read_socket(&answer, nowhere, nowhere), Ok(Socket::None));
    // The same answer to a question about a socket that is there.
    assert_eq!(check_told(&answer), Err(Errno::PROTONOSUPPORT));
}
