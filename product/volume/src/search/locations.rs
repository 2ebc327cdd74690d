//! The last known locations of objects: the way back from an identity to a name.
//!
//! Owns: a bounded map from identity to the directory and name where the object was found.
//! Does not own: the check of a location (the code that follows one compares identities).
//! Invariants: at most `entries_max` entries.

use crate::tree::identity::{Identity, IdentityMap};
use crate::tree::location::Location;

/// Locations by identity, in two generations: when the young one is full the old one is dropped.
pub(crate) struct Locations {
    entries_max: usize,
    young: IdentityMap<Location>,
    old: IdentityMap<Location>,
    dropped: u64,
}

impl Locations {
    pub(crate) fn new(entries_max: usize) -> Self {
        Self { entries_max: entries_max.max(2), young: IdentityMap::default(), old: IdentityMap::default(), dropped: 0 }
    }

    pub(crate) fn insert(&mut self, identity: Identity, location: Location) {
        if self.young.len() >= self.entries_max / 2 && !self.young.contains_key(&identity) {
            let oldest = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.dropped += u64::from(!oldest.is_empty());
        }
        self.young.insert(identity, location);
    }

    /// The object is gone.
    pub(crate) fn remove(&mut self, identity: &Identity) {
        self.young.remove(identity);
        self.old.remove(identity);
    }

    /// How often locations were dropped because there were too many.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// All locations. An object may occur twice; its older location comes first.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Identity, &Location)> {
        self.old.iter().chain(&self.young)
    }

    /// An upper bound on their number.
    pub(crate) fn len(&self) -> usize {
        self.old.len() + self.young.len()
    }

    pub(crate) fn get(&self, identity: &Identity) -> Option<&Location> {
        self.young.get(identity).or_else(|| self.old.get(identity))
    }
}

#[cfg(test)]
mod tests;
