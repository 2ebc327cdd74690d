//! The peer of a connection, and the claimed caller of a call.
//!
//! Owns: the facts that a world knows of a connection's peer, the party of a peer, the claim of a call.
//! Does not own: the trust in a claim and its consequences (front ends); the user of a call (`afflux_volume::Caller`);
//! the bounds.
//! Invariants: plain values. The facts of the world (`Peer`) and the claim of a call (`CallerClaim`) are not mixed. A
//! process of this host is in its user's party, independent of its address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The bits of an IPv6 address that identify a machine: a subscriber gets a network of this length.
const IPV6_MACHINE_BITS: u32 = 64;

/// The location of a peer, and its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A user of this host: one of its processes holds the socket, or the kernel does for root.
    User(u32),
    /// This host, with an unknown user: the process has closed the socket, or the kernel finds none at the address, or
    /// does not report it.
    Orphan,
    /// No address of this host: another host, or another network namespace.
    Elsewhere,
}

/// The other end of a connection, as far as the accepting world knows it. Callers' claims are in their calls
/// ([`CallerClaim`]). Calls that come from this host's kernel, over a device of its own, have no peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The peer's address.
    pub address: IpAddr,
    /// The peer's port; 0 where there are no ports.
    pub port: u16,
    /// The peer's location and user.
    pub origin: Origin,
}

impl Peer {
    /// The party whose bounds apply to it.
    pub fn party(&self) -> Party {
        match self.origin {
            Origin::User(uid) => Party::User(uid),
            Origin::Orphan => Party::Orphans,
            Origin::Elsewhere => Party::Machine(match self.address.to_canonical() {
                IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(
                    v6.to_bits() >> (128 - IPV6_MACHINE_BITS) << (128 - IPV6_MACHINE_BITS),
                )),
                v4 => v4,
            }),
        }
    }
}

impl From<IpAddr> for Peer {
    /// A peer on another host, known only by its address.
    fn from(address: IpAddr) -> Self {
        Self { address, port: 0, origin: Origin::Elsewhere }
    }
}

/// Peers that have one bound together. Many connections, addresses or calls of one party take nothing from another
/// party.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Party {
    /// All processes of one user of this host.
    User(u32),
    /// All peers of this host whose users the kernel does not know.
    Orphans,
    /// Another machine by its address; for IPv6, its 64-bit network.
    Machine(IpAddr),
}

impl Party {
    /// Root of this host. Mounts by its kernel belong to this party.
    pub const ROOT: Self = Self::User(0);
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(uid) => write!(f, "user {uid}"),
            Self::Orphans => f.write_str("processes that are gone"),
            Self::Machine(address @ IpAddr::V6(_)) => write!(f, "{address}/{IPV6_MACHINE_BITS}"),
            Self::Machine(address) => address.fmt(f),
        }
    }
}

/// Most supplementary groups that a call can name: the bound of AUTH_SYS (RFC 5531).
pub const GROUPS_MAX: usize = 16;

/// The caller that a call claims. A client's kernel or library sets it, and can set anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallerClaim {
    /// No particular user.
    Anonymous,
    /// A user of the host.
    User {
        /// The user's number.
        uid: u32,
        /// The primary group's number.
        gid: u32,
        /// Supplementary groups; entries from `group_count` on are 0.
        groups: [u32; GROUPS_MAX],
        /// The number of groups.
        group_count: u8,
    },
}

#[cfg(test)]
mod tests;
