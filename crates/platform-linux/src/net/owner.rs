//! Whose a peer's socket is: asked of the kernel by the addresses of the connection (sock_diag(7)).
//!
//! Owns: the netlink socket, the question and the reading of the answer.
//! Does not own: what follows from it (front ends).
//! Invariants: an owner is told only of the socket that is asked for, and only while a process or the
//! kernel holds it. The kernel gives 0, that is root, as the owner of sockets that nobody holds any more
//! (closed by their process, or in TIME_WAIT), and knows no inode of them: those have no owner here.

use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

/// The kernel's `struct nlmsghdr`, `struct inet_diag_req_v2` and `struct inet_diag_msg`, in bytes.
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
const ANSWER_BYTES: usize = HEADER_BYTES + 72;
/// An answer, and the attributes behind it that are not asked for and come all the same.
const BUFFER_BYTES: usize = 4_096;
/// Answers to earlier questions that are passed over: none, unless one was given up half-way.
const STALE_ANSWERS_MAX: usize = 16;

/// `SOCK_DIAG_BY_FAMILY`, `NLM_F_REQUEST`, `NLMSG_ERROR`; `IPPROTO_TCP`.
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
const ERROR: u16 = 2;
const TCP: u8 = 6;
/// `TCP_LISTEN`: what the kernel answers with where no connection is.
const LISTEN: u8 = 10;

/// Asks whose sockets are.
pub(super) struct SocketOwners {
    netlink: OwnedFd,
    sequence: u32,
}

impl SocketOwners {
    /// Fails where the kernel has no sock_diag, or the process may not use it.
    pub(super) fn new() -> Result<Self, Errno> {
        let kind = SocketType::RAW;
        let netlink = socket_with(AddressFamily::NETLINK, kind, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
        Ok(Self { netlink, sequence: 0 })
    }

    /// The user that the socket at `its` belongs to, which is connected to `other`. None if there is no
    /// such socket, or nobody holds it.
    pub(super) fn owner(&mut self, its: SocketAddr, other: SocketAddr) -> Result<Option<u32>, Errno> {
        let (its, other) = (canonical(its), canonical(other));
        self.sequence = self.sequence.wrapping_add(1);
        let question = question(self.sequence, its, other);
        sendto(&self.netlink, &question, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut buffer = [0; BUFFER_BYTES];
        for _ in 0..STALE_ANSWERS_MAX {
            // The kernel has answered before the question's system call returned.
            let (bytes, _) = recv(&self.netlink, &mut buffer[..], RecvFlags::DONTWAIT)?;
            let answer = &buffer[..bytes.min(BUFFER_BYTES)];
            if word(answer, 8) == Some(self.sequence) {
                return read_answer(answer, its, other);
            }
        }
        Err(Errno::PROTO)
    }
}

/// An IPv4 address that came in IPv6's form, as itself: so the kernel finds the socket.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn octets(address: IpAddr) -> [u8; 16] {
    let mut octets = [0; 16];
    match address {
        IpAddr::V4(v4) => octets[..4].copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => octets = v6.octets(),
    }
    octets
}

fn question(sequence: u32, its: SocketAddr, other: SocketAddr) -> [u8; REQUEST_BYTES] {
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
    put(&0_u32.to_ne_bytes());
    // `INET_DIAG_NOCOOKIE`
    put(&[0xff; 8]);
    bytes
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn read_answer(answer: &[u8], its: SocketAddr, other: SocketAddr) -> Result<Option<u32>, Errno> {
    let kind = answer.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    if kind == Some(ERROR) {
        let error = word(answer, HEADER_BYTES).map_or(0, |code| (code as i32).wrapping_neg());
        return match Errno::from_raw_os_error(error) {
            Errno::NOENT => Ok(None),
            error => Err(error),
        };
    }
    if kind != Some(BY_FAMILY) || answer.len() < ANSWER_BYTES {
        return Err(Errno::PROTO);
    }
    let message = &answer[HEADER_BYTES..ANSWER_BYTES];
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
    let is_it = same(found(4, 8), its) && same(found(6, 24), other) && state != LISTEN;
    Ok(owner.filter(|_| is_it && inode != Some(0)))
}

#[cfg(test)]
mod tests;
