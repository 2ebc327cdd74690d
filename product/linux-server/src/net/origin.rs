//! The origin of a peer: its host and the user of its socket. The kernel gives them for the connection's addresses
//! (sock_diag(7), rtnetlink(7)).
//!
//! Owns: the netlink sockets, the questions and the reading of the answers.
//! Does not own: the consequences (front ends).
//! Invariants: a user is given only for the very socket in question, and only while a process or the kernel holds it.
//! The kernel also gives a user, often root, for sockets without a holder (closed by their process, or in TIME_WAIT).
//! Such sockets have no inode, and are orphans here. A peer with an address of this host but no socket there is an
//! orphan, too. If the kernel does not report whether an address is this host's, it counts as such.

use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use afflux_frontend::Origin;
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

/// The kernel's `struct nlmsghdr`, `struct inet_diag_req_v2` and `struct inet_diag_msg`, in bytes.
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
const ANSWER_BYTES: usize = HEADER_BYTES + 72;
/// `struct rtmsg`, and the headers of its attributes.
const ROUTE_BYTES: usize = 12;
const ATTRIBUTE_BYTES: usize = 4;
/// An answer with its attributes, which come unasked.
const BUFFER_BYTES: usize = 4_096;
/// Stale answers that are skipped: there are none, unless an earlier question was given up half-way.
const STALE_ANSWERS_MAX: usize = 16;

/// `SOCK_DIAG_BY_FAMILY`, `RTM_NEWROUTE`, `RTM_GETROUTE`, `NLM_F_REQUEST`, `NLMSG_ERROR`; `IPPROTO_TCP`.
const BY_FAMILY: u16 = 20;
const ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const REQUEST: u16 = 1;
const ERROR: u16 = 2;
const TCP: u8 = 6;
/// `RTA_DST`, `RTA_OIF`; `RTN_LOCAL`.
const TO: u16 = 1;
const BY_INTERFACE: u16 = 4;
const LOCAL: u8 = 2;
/// `TCP_LISTEN`: the kernel answers with this state where no connection is.
const LISTEN: u8 = 10;
/// `TCP_SYN_SENT`: a socket that is not connected yet, so the connection was not accepted from it.
const SYN_SENT: u8 = 2;

/// Asks the kernel for the hosts of peers and the users of their sockets.
pub(super) struct Origins {
    sockets: Result<OwnedFd, Errno>,
    routes: Result<OwnedFd, Errno>,
    sequence: u32,
}

/// The kernel's socket at the address of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Socket {
    /// The socket, held for this user.
    Of(u32),
    /// The socket, without a holder.
    Nobodys,
    /// No connected socket.
    None,
}

impl Origins {
    /// If the kernel lacks sock_diag or rtnetlink, or denies them to the process, the first question shows it.
    pub(super) fn new() -> Self {
        let open = |protocol| socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol);
        // Netlink without a protocol is about routes.
        Self { sockets: open(Some(netlink::SOCK_DIAG)), routes: open(None), sequence: 0 }
    }

    /// Whether both questions get answers; if not, the reason.
    pub(super) fn check_known(&mut self) -> Result<(), Errno> {
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listening = TcpListener::bind(nowhere).and_then(|it| Ok((it.local_addr()?, it)));
        let (own, _listening) = listening.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let question = |sequence| socket_question(sequence, own, nowhere).to_vec();
        self.ask(|all| &all.sockets, question, check_told)?;
        self.ask_routed_here(nowhere).map(|_| ())
    }

    /// The origin of the peer at `its`; the connection ends here at `own`.
    pub(super) fn of(&mut self, its: SocketAddr, own: SocketAddr) -> Result<Origin, Errno> {
        let (its, own) = (canonical(its), canonical(own));
        let found = match self.sockets {
            Ok(_) => self.socket(its, own)?,
            Err(_) => Socket::None,
        };
        Ok(match found {
            Socket::Of(user) => Origin::User(user),
            Socket::Nobodys => Origin::Orphan,
            Socket::None if self.ask_here(its, own)? => Origin::Orphan,
            Socket::None => Origin::Elsewhere,
        })
    }

    /// Whether an address is this host's. The kernel delivers packets for such an address to itself, on any interface.
    fn ask_here(&mut self, its: SocketAddr, own: SocketAddr) -> Result<bool, Errno> {
        let known = its.ip().is_loopback() || its.ip() == own.ip() || self.routes.is_err();
        if known { Ok(true) } else { self.ask_routed_here(its) }
    }

    fn ask_routed_here(&mut self, its: SocketAddr) -> Result<bool, Errno> {
        let question = |sequence| route_question(sequence, its);
        match self.ask(|all| &all.routes, question, read_route) {
            // An unreachable address is not this host's.
            Err(Errno::NETUNREACH | Errno::HOSTUNREACH) => Ok(false),
            answer => answer,
        }
    }

    /// The socket at `its` that is connected to `other`.
    fn socket(&mut self, its: SocketAddr, other: SocketAddr) -> Result<Socket, Errno> {
        let question = |sequence| socket_question(sequence, its, other).to_vec();
        self.ask(|all| &all.sockets, question, |answer| read_socket(answer, its, other))
    }

    fn ask<T>(
        &mut self,
        whom: fn(&Self) -> &Result<OwnedFd, Errno>,
        question: impl FnOnce(u32) -> Vec<u8>,
        read: impl FnOnce(&[u8]) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.sequence = self.sequence.wrapping_add(1);
        let netlink = whom(self).as_ref().map_err(|error| *error)?;
        sendto(netlink, &question(self.sequence), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut buffer = [0; BUFFER_BYTES];
        for _ in 0..STALE_ANSWERS_MAX {
            // The kernel has answered before the system call of the question returned.
            let (bytes, _) = recv(netlink, &mut buffer[..], RecvFlags::DONTWAIT)?;
            let answer = &buffer[..bytes.min(BUFFER_BYTES)];
            if word(answer, 8) == Some(self.sequence) {
                return read(answer);
            }
        }
        Err(Errno::PROTO)
    }
}

/// Turns an IPv4 address in IPv6's form into itself, so that the kernel finds the socket.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_some() => SocketAddr::new(v6.ip().to_canonical(), v6.port()),
        address => address,
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    let mut octets = [0; 16];
    match address {
        IpAddr::V4(v4) => octets[..4].copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => octets = v6.octets(),
    }
    octets
}

/// The interface of a link-local address.
fn interface(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => Some(v6.scope_id()),
        _ => None,
    }
}

fn socket_question(sequence: u32, its: SocketAddr, other: SocketAddr) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    let mut at = 0;
    let mut put = |field: &[u8]| {
        bytes[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    };
    put(&(REQUEST_BYTES as u32).to_ne_bytes());
    put(&BY_FAMILY.to_ne_bytes());
    put(&REQUEST.to_ne_bytes());
    put(&sequence.to_ne_bytes());
    put(&0_u32.to_ne_bytes());
    let family = if its.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    put(&[family.as_raw() as u8, TCP, 0, 0]);
    put(&u32::MAX.to_ne_bytes());
    put(&its.port().to_be_bytes());
    put(&other.port().to_be_bytes());
    put(&octets(its.ip()));
    put(&octets(other.ip()));
    // A socket with a link-local address is bound to this interface.
    put(&interface(its).unwrap_or(0).to_ne_bytes());
    // `INET_DIAG_NOCOOKIE`
    put(&[0xff; 8]);
    bytes
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// `struct nlmsghdr`, `struct rtmsg`, the address and the interface.
fn route_question(sequence: u32, to: SocketAddr) -> Vec<u8> {
    let (family, width) = if to.is_ipv4() { (AddressFamily::INET, 4) } else { (AddressFamily::INET6, 16) };
    let interface = interface(to);
    let bytes = HEADER_BYTES + ROUTE_BYTES + ATTRIBUTE_BYTES + width + interface.map_or(0, |_| ATTRIBUTE_BYTES + 4);
    let mut question = Vec::with_capacity(bytes);
    question.extend((bytes as u32).to_ne_bytes());
    question.extend(GET_ROUTE.to_ne_bytes());
    question.extend(REQUEST.to_ne_bytes());
    question.extend(sequence.to_ne_bytes());
    question.extend(0_u32.to_ne_bytes());
    question.extend([family.as_raw() as u8, 8 * width as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut attribute = |kind: u16, value: &[u8]| {
        question.extend(((ATTRIBUTE_BYTES + value.len()) as u16).to_ne_bytes());
        question.extend(kind.to_ne_bytes());
        question.extend(value);
    };
    attribute(TO, &octets(to.ip())[..width]);
    interface.into_iter().for_each(|interface| attribute(BY_INTERFACE, &interface.to_ne_bytes()));
    question
}

/// The message in an answer of this kind; the kernel's error if the answer is one.
fn message(answer: &[u8], kind: u16, bytes: usize) -> Result<&[u8], Errno> {
    let told = answer.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    if told == Some(ERROR) {
        let error = word(answer, HEADER_BYTES).map_or(0, |code| (code as i32).wrapping_neg());
        return Err(Errno::from_raw_os_error(error));
    }
    answer.get(HEADER_BYTES..HEADER_BYTES + bytes).filter(|_| told == Some(kind)).ok_or(Errno::PROTO)
}

/// Whether the address of the route in question is this host's.
fn read_route(answer: &[u8]) -> Result<bool, Errno> {
    const TYPE_AT: usize = 7;
    Ok(message(answer, ROUTE, ROUTE_BYTES)?[TYPE_AT] == LOCAL)
}

/// Whether the kernel knows a socket that is there. A kernel with sock_diag but without inet_diag knows none of TCP.
fn check_told(answer: &[u8]) -> Result<(), Errno> {
    match message(answer, BY_FAMILY, ANSWER_BYTES - HEADER_BYTES) {
        Err(Errno::NOENT) => Err(Errno::PROTONOSUPPORT),
        message => message.map(drop),
    }
}

fn read_socket(answer: &[u8], its: SocketAddr, other: SocketAddr) -> Result<Socket, Errno> {
    let message = match message(answer, BY_FAMILY, ANSWER_BYTES - HEADER_BYTES) {
        Err(Errno::NOENT) => return Ok(Socket::None),
        message => message?,
    };
    let (family, state) = (message[0], message[1]);
    let found = |port_at: usize, address_at: usize| {
        let port = u16::from_be_bytes([message[port_at], message[port_at + 1]]);
        let mut octets = [0; size_of::<Ipv6Addr>()];
        octets.copy_from_slice(&message[address_at..address_at + 16]);
        let address = if family == AddressFamily::INET.as_raw() as u8 {
            IpAddr::V4(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]))
        } else {
            IpAddr::V6(Ipv6Addr::from(octets))
        };
        canonical(SocketAddr::new(address, port))
    };
    let (owner, inode) = (word(message, 64), word(message, 68));
    let same = |one: SocketAddr, two: SocketAddr| (one.ip(), one.port()) == (two.ip(), two.port());
    if !same(found(4, 8), its) || !same(found(6, 24), other) || state == LISTEN || state == SYN_SENT {
        return Ok(Socket::None);
    }
    Ok(owner.filter(|_| inode != Some(0)).map_or(Socket::Nobodys, Socket::Of))
}

#[cfg(test)]
mod tests;
