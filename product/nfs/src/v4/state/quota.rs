//! The quota of each party in a table of state that all parties use.
//!
//! Owns: the number of entries of each party, the rule for one more, which party gives up an entry, the errors of a
//! full table.
//! Does not own: the bounds of the tables, the end of state that frees an entry (`client_state`).
//! Invariants: a party gets more only while it has less than the remaining rest. So no party takes all, two or three
//! parties leave entries for others, and a lone party has half. Some entries belong to root of this host. If no entry
//! is free, the party with most gives one up for a party that has less. The server never asks the party with most to
//! come again.

use std::collections::{BTreeMap, BTreeSet};

use afflux_frontend::Party;

use crate::status::NfsStatus;
use crate::steps::step;

/// One entry out of this many is for this host's root alone.
const ENTRIES_FOR_ONE_OF_ROOT: usize = 16;

/// Why one more exceeds the quota, or the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TableFull {
    /// The party has its part.
    OfParty,
    /// No entry is free. The party `most` has most, and more than the asking party will have.
    OfAll { most: Party },
    /// No entry is free, and no other party has more.
    Even,
}

impl TableFull {
    /// The error for the client. Version 4.1 has no error for a bound of the server, and this one that ends the
    /// program's call.
    pub(crate) fn status(self) -> NfsStatus {
        match self {
            Self::OfParty => NfsStatus::Serverfault,
            Self::OfAll { .. } | Self::Even => NfsStatus::Delay,
        }
    }
}

/// The number of entries of each party in a table.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct PartyCounts {
    of_party: BTreeMap<Party, usize>,
    /// The parties by their numbers of entries.
    by_count: BTreeSet<(usize, Party)>,
    all: usize,
}

impl PartyCounts {
    /// Number of a party's entries.
    pub(crate) fn of(&self, party: Party) -> usize {
        self.of_party.get(&party).copied().unwrap_or_default()
    }

    /// Counts entries of a party.
    pub(crate) fn add(&mut self, party: Party, count: usize) {
        self.set(party, self.of(party) + count);
    }

    /// Entries of a party are gone.
    pub(crate) fn remove(&mut self, party: Party, count: usize) {
        self.set(party, self.of(party).saturating_sub(count));
    }

    fn set(&mut self, party: Party, count: usize) {
        let before = if count > 0 { self.of_party.insert(party, count) } else { self.of_party.remove(&party) };
        let before = before.unwrap_or_default();
        self.by_count.remove(&(before, party));
        if count > 0 {
            self.by_count.insert((count, party));
        }
        self.all = self.all + count - before;
    }

    /// The number of entries of the party that has most, without root and the party `but`.
    fn largest(&self, but: Party) -> Option<(usize, Party)> {
        // Root counts by a weight of its own.
        let most_first = self.by_count.iter().rev().inspect(|_| step());
        most_first.copied().find(|(_, of)| *of != but && *of != Party::ROOT)
    }

    /// Whether `count` more exceed the quota of a party in a table of so many.
    pub(crate) fn check_quota(&self, party: Party, count: usize, most: usize) -> Result<(), TableFull> {
        self.check_quota_of_rest(party, count, most.saturating_sub(self.all), most)
    }

    /// As [`PartyCounts::check_quota`], for a table that others fill, too. The caller knows how much of `most` remains.
    pub(crate) fn check_quota_of_rest(
        &self,
        party: Party,
        count: usize,
        left: usize,
        most: usize,
    ) -> Result<(), TableFull> {
        let roots = most / ENTRIES_FOR_ONE_OF_ROOT;
        // Root's entries beyond its own take those of others.
        let weight =
            |party: Party, count: usize| if party == Party::ROOT { count.saturating_sub(roots) } else { count };
        let others = if party == Party::ROOT { 0 } else { roots.saturating_sub(self.of(Party::ROOT)) };
        let (free, own) = (left.saturating_sub(others), weight(party, self.of(party)));
        if count <= free {
            return if own + count <= left { Ok(()) } else { Err(TableFull::OfParty) };
        }
        let root = (party != Party::ROOT).then(|| (weight(Party::ROOT, self.of(Party::ROOT)), Party::ROOT));
        match self.largest(party).max(root) {
            Some((its, most)) if its > own + count => Err(TableFull::OfAll { most }),
            _ if own > 0 => Err(TableFull::OfParty),
            _ => Err(TableFull::Even),
        }
    }
}

#[cfg(test)]
mod tests;
