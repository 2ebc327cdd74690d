//! Who is at the other end, and who a call says that it is from.
//!
//! Owns: the facts that a world knows of a connection's peer, the party of a peer, the claim of a call.
//! Does not own: whether that is believed, and what follows from it (front ends); for whom a call is then carried out
//! (`afflux_volume::Caller`); the bounds.
//! Invariants: plain values. The facts of the world (`Peer`) and the claim of a call (`Claim`) are not mixed. A process
//! of this host is in its user's party, whichever address it comes by.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Bits of an IPv6 address that are one machine's: a subscriber gets a network of so many.
const IPV6_MACHINE_BITS: u32 = 64;

/// Where a peer is, and for which user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A user of this host: one of its processes holds the socket, or the kernel does for root.
    User(u32),
    /// This host, and nobody knows for whom: the process has closed the socket, the kernel finds none at the address,
    /// or does not tell.
    Orphan,
    /// No address of this host: another host, or another network namespace.
    Elsewhere,
}

/// Who is at the other end of a connection, as far as the world that accepted it knows. What callers
/// claim to be is in their calls ([`Claim`]). Calls that come from this host's kernel, over a device of its
/// own, have no peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Where it connects from.
    pub address: IpAddr,
    /// From which port; 0 where there are no ports.
    pub port: u16,
    /// Where it is, and for which user.
    pub origin: Origin,
}

impl Peer {
    /// The party that it shares bounds with.
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
    /// A peer on another host, of which nothing is known but its address.
    fn from(address: IpAddr) -> Self {
        Self { address, port: 0, origin: Origin::Elsewhere }
    }
}

/// Peers that share one bound. Many connections, addresses or calls of one party take nothing from another party.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Party {
    /// All processes of one user of this host.
    User(u32),
    /// All peers of this host for which the kernel knows no user.
    Orphans,
    /// Another machine by its address; of IPv6 its network of 64 bits.
    Machine(IpAddr),
}

impl Party {
    /// Root of this host. Its kernel's mounts are this party's.
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

/// Most supplementary groups that a call can name: what AUTH_SYS carries (RFC 5531).
pub const GROUPS_MAX: usize = 16;

/// Who a call says that it is from. A client's kernel or library says so, and can say anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Claim {
    /// Nobody in particular.
    Anonymous,
    /// A user.
    User {
        /// The user's number.
        uid: u32,
        /// The primary group's number.
        gid: u32,
        /// Supplementary groups; those from `group_count` on are 0.
        groups: [u32; GROUPS_MAX],
        /// How many groups there are.
        group_count: u8,
    },
}

#[cfg(test)]
mod tests;
