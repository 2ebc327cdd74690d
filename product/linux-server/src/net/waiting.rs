//! Accepted connections that wait for room, by party.
//!
//! Owns: their order and their bound.
//! Does not own: the room (`crowd`), the sockets' service (`serve`).
//! Invariants: a party with fewer connections comes before one with more, in any order of arrival. Each party has some
//! waiting connections at most, and so have all: of more, the earliest of the party with the most goes.

use std::collections::VecDeque;

use afflux_frontend::Party;

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

    /// Adds a connection. Returns the party of the one that lost its place.
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
