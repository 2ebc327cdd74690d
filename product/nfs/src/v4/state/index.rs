//! The places of an owner, of a group and of a party.
//!
//! Owns: the lists by them.
//! Does not own: the places and their contents (`places`).
//! Invariants: an owner, a group or a party without places takes no memory.

use std::collections::{BTreeMap, BTreeSet};

use afflux_frontend::Party;

/// The keys of a place.
#[derive(Clone, Copy)]
pub(crate) struct PlaceKeys {
    /// A file, and its owner's number there.
    pub(crate) owner: (u64, u64),
    /// The client or the open with which the place ends.
    pub(crate) group: u64,
    pub(crate) party: Party,
}

/// Places by their keys.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct PlaceIndex {
    of_owner: BTreeMap<(u64, u64), u32>,
    of_group: BTreeMap<u64, BTreeSet<u32>>,
    of_party: BTreeMap<Party, usize>,
}

impl PlaceIndex {
    pub(crate) fn insert(&mut self, place: u32, keys: PlaceKeys) {
        self.of_owner.insert(keys.owner, place);
        self.of_group.entry(keys.group).or_default().insert(place);
        *self.of_party.entry(keys.party).or_default() += 1;
    }

    pub(crate) fn remove(&mut self, place: u32, keys: PlaceKeys) {
        self.of_owner.remove(&keys.owner);
        if let Some(places) = self.of_group.get_mut(&keys.group) {
            places.remove(&place);
            if places.is_empty() {
                self.of_group.remove(&keys.group);
            }
        }
        if let Some(count) = self.of_party.get_mut(&keys.party) {
            *count -= 1;
            if *count == 0 {
                self.of_party.remove(&keys.party);
            }
        }
    }

    /// The place of a file's owner.
    pub(crate) fn of_owner(&self, file: u64, number: u64) -> Option<u32> {
        self.of_owner.get(&(file, number)).copied()
    }

    /// The places of a group.
    pub(crate) fn of_group(&self, group: u64) -> BTreeSet<u32> {
        self.of_group.get(&group).cloned().unwrap_or_default()
    }

    /// Whether a group has any.
    pub(crate) fn has_group(&self, group: u64) -> bool {
        self.of_group.contains_key(&group)
    }

    /// Number of a party's places.
    pub(crate) fn of_party(&self, party: Party) -> usize {
        self.of_party.get(&party).copied().unwrap_or_default()
    }
}
