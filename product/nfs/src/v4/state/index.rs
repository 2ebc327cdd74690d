//! The ids of states: of an owner, of a group and of a party.
//!
//! Owns: the lists by them.
//! Does not own: the places and their contents (`states`).
//! Invariants: an owner, a group or a party without states takes no memory.

use std::collections::{BTreeMap, BTreeSet};

use afflux_frontend::Party;

use super::quota::PartyCounts;
use super::steps::step;

/// The keys of a state.
#[derive(Clone, Copy)]
pub(crate) struct StateKeys {
    /// A file, and its owner's number there.
    pub(crate) owner: (u64, u64),
    /// The client or the open with which the state ends.
    pub(crate) group: u64,
    pub(crate) party: Party,
}

/// Ids by the keys of their states.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct StateIndex {
    of_owner: BTreeMap<(u64, u64), u32>,
    of_group: BTreeMap<u64, BTreeSet<u32>>,
    /// The groups of a party that have states.
    of_party: BTreeMap<Party, BTreeSet<u64>>,
    counts: PartyCounts,
}

impl StateIndex {
    pub(crate) fn insert(&mut self, id: u32, keys: StateKeys) {
        self.of_owner.insert(keys.owner, id);
        let group = self.of_group.entry(keys.group).or_default();
        if group.is_empty() {
            self.of_party.entry(keys.party).or_default().insert(keys.group);
        }
        group.insert(id);
        self.counts.add(keys.party, 1);
    }

    pub(crate) fn remove(&mut self, id: u32, keys: StateKeys) {
        self.of_owner.remove(&keys.owner);
        if let Some(states) = self.of_group.get_mut(&keys.group) {
            states.remove(&id);
            if states.is_empty() {
                self.of_group.remove(&keys.group);
                self.forget_group(keys);
            }
        }
        self.counts.remove(keys.party, 1);
    }

    /// A group of a party has no states any more.
    fn forget_group(&mut self, keys: StateKeys) {
        if let Some(groups) = self.of_party.get_mut(&keys.party) {
            groups.remove(&keys.group);
            if groups.is_empty() {
                self.of_party.remove(&keys.party);
            }
        }
    }

    /// The id of the state of a file's owner.
    pub(crate) fn of_owner(&self, file: u64, number: u64) -> Option<u32> {
        self.of_owner.get(&(file, number)).copied()
    }

    /// The ids of a file's states, by their owners' numbers.
    pub(crate) fn of_file(&self, file: u64) -> impl Iterator<Item = u32> {
        self.of_owner.range((file, 0)..=(file, u64::MAX)).inspect(|_| step()).map(|(_, id)| *id)
    }

    /// The ids of a group's states.
    pub(crate) fn of_group(&self, group: u64) -> impl Iterator<Item = u32> {
        self.of_group.get(&group).into_iter().flatten().inspect(|_| step()).copied()
    }

    /// The number of a group's states.
    pub(crate) fn count_of(&self, group: u64) -> usize {
        self.of_group.get(&group).map_or(0, BTreeSet::len)
    }

    /// Whether a group has any.
    pub(crate) fn has_group(&self, group: u64) -> bool {
        self.of_group.contains_key(&group)
    }

    /// The number of each party's states.
    pub(crate) fn counts(&self) -> &PartyCounts {
        &self.counts
    }

    /// The id of one of a party's states.
    pub(crate) fn one_of_party(&self, party: Party) -> Option<u32> {
        self.of_group.get(self.of_party.get(&party)?.first()?)?.first().copied()
    }
}
