//! Who makes room for a new connection when there are as many as may be.
//!
//! Owns: the limits, the choice.
//! Does not own: closing what was chosen (`serve`), what a connection is doing (`connection`).
//! Invariants: a pure function of what is given. Only an idle connection is chosen: one without calls in
//! progress and without unsent replies. The addresses with the most connections give way first, so that
//! many connections from one address do not take the place of another's few.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Bits of an IPv6 address that are one peer: what a single subscriber gets.
const IPV6_PEER_BITS: u32 = 64;

/// What a service takes at most. Asked for again whenever it matters, so that a limit may be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServeLimits {
    /// Connections at once, at least 1.
    pub connections_max: usize,
    /// Connections from one address (of IPv6, from one network of 64 bits), at least 1.
    pub peer_connections_max: usize,
    /// How long a connection may be silent before it is closed; 0 is for ever.
    pub idle_ns: u64,
    /// Bytes that all connections together hold: received and not answered, or not sent yet.
    pub request_bytes_max: u64,
    /// How long bytes of a peer may lie unread because there is no room for them before its connection is reset, so
    /// that it tries again while its own patience lasts; 0 is for ever.
    pub unread_ns: u64,
}

/// A connection that was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefusedConnection {
    /// Where it came from.
    pub address: IpAddr,
    /// How many connections that address has.
    pub connections: usize,
}

impl fmt::Display for RefusedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, connections } = self;
        write!(f, "a connection from {address} was refused: its {connections} connections all have calls in progress")
    }
}

/// The address that connections are counted by.
pub(super) fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> IPV6_PEER_BITS << IPV6_PEER_BITS)),
        v4 => v4,
    }
}

/// A connection, as the choice sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Member {
    pub(super) number: u64,
    /// As [`counted_as`] gives it.
    pub(super) address: IpAddr,
    pub(super) idle: bool,
    /// It was told to go.
    pub(super) leaving: bool,
    /// When it last received or sent something.
    pub(super) active_ns: u64,
}

/// What becomes of a new connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// There is room.
    Serve,
    /// This one goes; then there is.
    MakeRoom(u64),
    /// Until one goes that was told to, or becomes idle.
    Wait,
    /// Its address has as many as it may, and all are at work.
    Refuse,
}

/// What becomes of a new connection from `address`.
pub(super) fn choose(members: &[Member], address: IpAddr, limits: &ServeLimits) -> Choice {
    let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for member in members {
        *counts.entry(member.address).or_default() += 1;
    }
    let same = counts.get(&address).copied().unwrap_or(0);
    let crowded = same >= limits.peer_connections_max.max(1);
    if !crowded && members.len() < limits.connections_max.max(1) {
        return Choice::Serve;
    }
    let mut candidates = members.iter().filter(|member| !crowded || member.address == address);
    if candidates.clone().any(|member| member.leaving) {
        return Choice::Wait;
    }
    let weight = |member: &&Member| (counts.get(&member.address).copied(), std::cmp::Reverse(member.active_ns));
    match candidates.by_ref().filter(|member| member.idle).max_by_key(weight) {
        Some(member) => Choice::MakeRoom(member.number),
        None if crowded => Choice::Refuse,
        None => Choice::Wait,
    }
}

#[cfg(test)]
mod tests;
