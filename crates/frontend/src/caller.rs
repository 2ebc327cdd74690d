//! Who is at the other end, and who a call says that it is from.
//!
//! Owns: what a world knows of a connection's peer, what a call claims.
//! Does not own: whether that is believed, and what follows from it (front ends); for whom a call is then carried out
//! (`volume::Caller`).
//! Invariants: plain values. What the world found out (`Peer`) and what a call says (`Claim`) are not mixed.

use std::net::IpAddr;

/// Who is at the other end of a connection, as far as the world that accepted it knows. What callers
/// claim to be is in their calls ([`Claim`]). Calls that come from this host's kernel, over a device of its
/// own, have no peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Where it connects from.
    pub address: IpAddr,
    /// From which port; 0 where there are no ports.
    pub port: u16,
    /// The user of this host that its socket belongs to; none where that cannot be known: on other hosts,
    /// in other network namespaces, with a kernel that does not tell.
    pub socket_owner: Option<u32>,
}

impl From<IpAddr> for Peer {
    /// A peer of which nothing is known but its address.
    fn from(address: IpAddr) -> Self {
        Self { address, port: 0, socket_owner: None }
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
