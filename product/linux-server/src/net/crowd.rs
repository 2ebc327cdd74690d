//! A slot for a new connection when all slots are taken: the choice of the evicted connection, and those that wait, by
//! party.
//!
//! Owns: the limits, the choice, the words for a refusal; the order and the bound of accepted connections that wait.
//! Does not own: closing the chosen connection (`serve`), the state of a connection (`connection`), the parties
//! (`frontend`).
//! Invariants: the choice is a pure function of its arguments. The party with the most connections gives up a slot, and
//! no party with fewer than the newcomer's does. So many connections of one party do not take the slots of another's
//! few. An idle connection goes first, then one whose peer does not read. A connection at work goes only if its party
//! has more connections than the newcomer's will then have. Some slots are root's alone. No new connection waits for a
//! peer. Among those that wait, a party with fewer connections comes before one with more, in any order of arrival.
//! Each party has some waiting connections at most, and so have all: of more, the earliest of the party with the most
//! goes.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use afflux_frontend::Party;

/// The bounds of a service. They are read at each use, so that a limit may be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServeLimits {
    /// Connections at once, at least 1.
    pub connections_max: usize,
    /// Connections of one party, at least 1.
    pub peer_connections_max: usize,
    /// How long a connection may be silent before it is closed; 0 is for ever.
    pub idle_ns: u64,
    /// Bytes that all connections together hold: received and not answered, or not sent yet.
    pub request_bytes_max: u64,
    /// How long a peer's bytes may lie unread for want of quota before its connection is reset; 0 is for ever. The
    /// reset lets the peer try again while its own patience lasts.
    pub unread_ns: u64,
}

/// One slot out of this many is reserved for this host's root.
const CONNECTIONS_FOR_ONE_OF_ROOT: usize = 16;

impl ServeLimits {
    /// Slots for root of this host alone.
    fn connections_of_root(&self) -> usize {
        self.connections_max / CONNECTIONS_FOR_ONE_OF_ROOT
    }
}

/// A connection that was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefusedConnection {
    /// The party of the connection.
    pub party: Party,
    /// The number of connections that the party has.
    pub connections: usize,
    /// The bound that refused it.
    pub bound: Bound,
}

/// The bounds of the number of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// On the connections of one party.
    OfParty(usize),
    /// On all connections.
    OfAll(usize),
}

impl ServeLimits {
    /// The bound that a party with this many connections meets.
    pub(super) fn bound_reached(&self, connections: usize) -> Bound {
        match self.peer_connections_max.max(1) {
            max if connections >= max => Bound::OfParty(max),
            _ => Bound::OfAll(self.connections_max.max(1)),
        }
    }
}

impl fmt::Display for RefusedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { party, connections, bound } = self;
        write!(f, "a connection of {party}, which has {connections}, was refused: {bound} have calls in progress")
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfParty(max) => write!(f, "it may have {max}, and all of them"),
            Self::OfAll(max) => write!(f, "the server has {max} places in all, and the connections that could go"),
        }
    }
}

/// A connection, as the choice sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Member {
    pub(super) id: u64,
    pub(super) party: Party,
    /// No calls in progress, no unsent replies.
    pub(super) idle: bool,
    /// The peer has not taken replies, or not ended a record, for a while.
    pub(super) stalled: bool,
    /// It was asked to close.
    pub(super) leaving: bool,
    /// The time of its last receive or send.
    pub(super) active_ns: u64,
}

impl Member {
    /// Greatest for an idle connection, then for a stalled one. Among equals, the least recently active is greatest.
    fn idleness(&self) -> (bool, bool, std::cmp::Reverse<u64>) {
        (self.idle, self.stalled, std::cmp::Reverse(self.active_ns))
    }
}

/// The fate of a new connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// There is a free slot.
    Serve,
    /// There is a slot once this connection has gone.
    Evict(u64),
    /// Wait for a connection that was asked to close: it closes, or decides to stay.
    Wait,
    /// All connections that could be evicted are at work.
    Refuse,
}

/// Decides about a new connection of `party`.
pub(super) fn choose(members: &[Member], party: Party, limits: &ServeLimits) -> Choice {
    let mut counts: BTreeMap<Party, usize> = BTreeMap::new();
    for member in members {
        *counts.entry(member.party).or_default() += 1;
    }
    let count = |party: Party| counts.get(&party).copied().unwrap_or(0);
    let (all, own, roots) = (limits.connections_max.max(1), count(party), limits.connections_of_root());
    let full = match party {
        Party::ROOT => members.len() >= all,
        // Root's connections beyond its own slots take other slots.
        _ => members.len() + roots.saturating_sub(count(Party::ROOT)) >= all,
    };
    let crowded = own >= limits.peer_connections_max.max(1);
    if !crowded && !full {
        return Choice::Serve;
    }
    // Root's connections in its own slots count as none.
    let weight = |party: Party| if party == Party::ROOT { count(party).saturating_sub(roots) } else { count(party) };
    let gives_way = |member: &&Member| {
        member.party == party || (!crowded && weight(member.party) > 0 && weight(member.party) >= own)
    };
    if members.iter().filter(gives_way).any(|member| member.leaving) {
        return Choice::Wait;
    }
    let first = |member: &&Member| (weight(member.party), member.party, member.idleness());
    let of_most = members.iter().filter(gives_way).max_by_key(first);
    let goes = |member: &&Member| {
        let fewer = member.party != party && weight(member.party) > own + 1;
        member.idle || member.stalled || fewer
    };
    let idle = || members.iter().filter(|member| gives_way(member) && member.idle).max_by_key(first);
    of_most.filter(goes).or_else(idle).map_or(Choice::Refuse, |member| Choice::Evict(member.id))
}

/// Most waiting connections of a party.
pub(super) const PARTY_MAX: usize = 64;
/// Most waiting connections.
pub(super) const ALL_MAX: usize = 80;

/// The waiting connections, in the order of their arrival.
pub(super) struct PartyQueue<T>(VecDeque<(Party, T)>);

impl<T> PartyQueue<T> {
    pub(super) fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, party: Party) -> bool {
        self.0.iter().any(|(other, _)| *other == party)
    }

    fn count(&self, party: Party) -> usize {
        self.0.iter().filter(|(other, _)| *other == party).count()
    }

    /// Adds a connection. Returns the party of the one that lost its slot.
    pub(super) fn add(&mut self, party: Party, connection: T) -> Option<Party> {
        self.0.push_back((party, connection));
        let largest = || self.0.iter().map(|(party, _)| *party).max_by_key(|party| self.count(*party));
        let crowded = Some(party).filter(|party| self.count(*party) > PARTY_MAX);
        let loser = crowded.or_else(|| largest().filter(|_| self.0.len() > ALL_MAX))?;
        self.take(loser);
        Some(loser)
    }

    /// The parties that wait, the one with the fewest `connections` first.
    pub(super) fn parties(&self, connections: impl Fn(Party) -> usize) -> Vec<Party> {
        let mut parties: Vec<Party> = Vec::new();
        for (party, _) in &self.0 {
            if !parties.contains(party) {
                parties.push(*party);
            }
        }
        parties.sort_by_key(|party| connections(*party));
        parties
    }

    /// The earliest connection of a party.
    pub(super) fn take(&mut self, party: Party) -> Option<T> {
        let at = self.0.iter().position(|(other, _)| *other == party)?;
        self.0.remove(at).map(|(_, connection)| connection)
    }
}

#[cfg(test)]
mod tests;
