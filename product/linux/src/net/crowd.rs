//! Who makes room for a new connection when there are as many as may be.
//!
//! Owns: the limits, the choice.
//! Does not own: closing the chosen connection (`serve`), the state of a connection (`connection`), the parties
//! (`frontend`).
//! Invariants: a pure function of what is given. The party with the most connections makes room, and none that has
//! fewer than the newcomer's: so many connections of one party do not take the places of another's few. An idle
//! connection goes first, then one whose peer does not read; one at work only for a party that has fewer afterwards, too.
//! Some places are root's alone. No new connection waits for a peer.

use std::collections::BTreeMap;
use std::fmt;

use afflux_frontend::Party;

/// What a service takes at most. Asked for again whenever it matters, so that a limit may be changed.
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
    /// How long bytes of a peer may lie unread because there is no room for them before its connection is reset, so
    /// that it tries again while its own patience lasts; 0 is for ever.
    pub unread_ns: u64,
}

/// Of so many places one is kept for this host's root.
const PLACES_FOR_ONE_OF_ROOT: usize = 16;

impl ServeLimits {
    /// Places that only root of this host takes.
    fn places_of_root(&self) -> usize {
        self.connections_max / PLACES_FOR_ONE_OF_ROOT
    }
}

/// A connection that was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefusedConnection {
    /// The party that it is of.
    pub party: Party,
    /// How many connections that party has.
    pub connections: usize,
}

impl fmt::Display for RefusedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { party, connections } = self;
        write!(
            f,
            "a connection of {party}, which has {connections}, was refused: all that could make room for it have calls \
             in progress"
        )
    }
}

/// A connection, as the choice sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Member {
    pub(super) number: u64,
    pub(super) party: Party,
    /// No calls in progress, no unsent replies.
    pub(super) idle: bool,
    /// Its peer has not taken replies, or not ended a record, for a while.
    pub(super) stalled: bool,
    /// It was told to go.
    pub(super) leaving: bool,
    /// When it last received or sent something.
    pub(super) active_ns: u64,
}

impl Member {
    /// Greatest for an idle connection, then for a stalled one. Among those alike the least recently active is greater.
    fn waits_for_nothing_here(&self) -> (bool, bool, std::cmp::Reverse<u64>) {
        (self.idle, self.stalled, std::cmp::Reverse(self.active_ns))
    }
}

/// What becomes of a new connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// There is room.
    Serve,
    /// This one goes; then there is.
    MakeRoom(u64),
    /// Until one is gone, or stays, that was told to go.
    Wait,
    /// All connections that could make room are at work.
    Refuse,
}

/// Decides about a new connection of `party`.
pub(super) fn choose(members: &[Member], party: Party, limits: &ServeLimits) -> Choice {
    let mut counts: BTreeMap<Party, usize> = BTreeMap::new();
    for member in members {
        *counts.entry(member.party).or_default() += 1;
    }
    let count = |party: Party| counts.get(&party).copied().unwrap_or(0);
    let (all, own, roots) = (limits.connections_max.max(1), count(party), limits.places_of_root());
    let full = match party {
        Party::ROOT => members.len() >= all,
        // Root's connections beyond its own places are in other places.
        _ => members.len() + roots.saturating_sub(count(Party::ROOT)) >= all,
    };
    let crowded = own >= limits.peer_connections_max.max(1);
    if !crowded && !full {
        return Choice::Serve;
    }
    // Root's connections in its own places count as none.
    let weight = |party: Party| if party == Party::ROOT { count(party).saturating_sub(roots) } else { count(party) };
    let gives_way = |member: &&Member| {
        member.party == party || (!crowded && weight(member.party) > 0 && weight(member.party) >= own)
    };
    if members.iter().filter(gives_way).any(|member| member.leaving) {
        return Choice::Wait;
    }
    let first = |member: &&Member| (weight(member.party), member.party, member.waits_for_nothing_here());
    let of_most = members.iter().filter(gives_way).max_by_key(first);
    let goes = |member: &&Member| {
        let fewer = member.party != party && weight(member.party) > own + 1;
        member.idle || member.stalled || fewer
    };
    let idle = || members.iter().filter(|member| gives_way(member) && member.idle).max_by_key(first);
    of_most.filter(goes).or_else(idle).map_or(Choice::Refuse, |member| Choice::MakeRoom(member.number))
}

#[cfg(test)]
mod tests;
