//! Clients, or their sessions, in the order in which the server last heard them.
//!
//! Owns: the order of each party's, and of all.
//! Does not own: leases (`leases`), the choice among those that were silent for long (`clients`, `sessions`).
//! Invariants: a call that renews a lease does not change the order. So the order has the time of the last look, which
//! is never later than the true one. One look renews the times of [`LOOKS_MAX`] at most, and the next look goes on.

use std::collections::{BTreeMap, BTreeSet};

use afflux_frontend::Party;

use super::steps::step;

/// Most things that one look considers.
pub(super) const LOOKS_MAX: usize = 64;

/// Things of parties by their silence.
pub(super) struct SilenceOrder<K> {
    /// The party of each, and its time in the order.
    known: BTreeMap<K, (Party, u64)>,
    of_all: BTreeSet<(u64, K)>,
    of_party: BTreeMap<Party, BTreeSet<(u64, K)>>,
}

impl<K> Default for SilenceOrder<K> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), of_all: BTreeSet::new(), of_party: BTreeMap::new() }
    }
}

impl<K: Copy + Ord> SilenceOrder<K> {
    /// Adds one that was heard at this time.
    pub(super) fn add(&mut self, key: K, party: Party, heard_ns: u64) {
        self.remove(key);
        self.known.insert(key, (party, heard_ns));
        self.of_all.insert((heard_ns, key));
        self.of_party.entry(party).or_default().insert((heard_ns, key));
    }

    pub(super) fn remove(&mut self, key: K) {
        let Some((party, heard_ns)) = self.known.remove(&key) else { return };
        self.of_all.remove(&(heard_ns, key));
        if let Some(own) = self.of_party.get_mut(&party) {
            own.remove(&(heard_ns, key));
            if own.is_empty() {
                self.of_party.remove(&party);
            }
        }
    }

    /// No one was silent since an earlier time than this.
    pub(super) fn heard_from_ns(&self) -> Option<u64> {
        self.of_all.first().map(|(heard_ns, _)| *heard_ns)
    }

    /// The first ones of a party, or of all, the longest silent one first. `heard_ns` tells when the server last heard
    /// one.
    pub(super) fn longest_silent(&mut self, of: Option<Party>, heard_ns: impl Fn(K) -> u64) -> Vec<K> {
        let order = match of {
            Some(party) => self.of_party.get(&party),
            None => Some(&self.of_all),
        };
        let first: Vec<(u64, K)> = order.into_iter().flatten().take(LOOKS_MAX).inspect(|_| step()).copied().collect();
        let mut now: Vec<(u64, K)> = first.iter().map(|(_, key)| (heard_ns(*key), *key)).collect();
        for ((before_ns, key), (now_ns, _)) in first.iter().zip(&now) {
            if before_ns != now_ns
                && let Some((party, _)) = self.known.get(key)
            {
                self.add(*key, *party, *now_ns);
            }
        }
        now.sort_unstable();
        now.into_iter().map(|(_, key)| key).collect()
    }

    /// Number of things.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests;
