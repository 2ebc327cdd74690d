//! Queues of items by their owners. The owner with the most items gives up one first.
//!
//! Owns: the order of each owner's items, the numbers of items of parties and of their users, whose item is evicted
//! next.
//! Does not own: the items and their bound (the reply cache, the journal of calls).
//! Invariants: a party with fewer items than another loses none, however many users the other has. Among the users of a
//! party it is the same. Among equals the one that came last retains its items longest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Items by the user of a party that owns them.
pub struct OwnedQueues<P, U, T> {
    /// Each list from the oldest item on.
    of: BTreeMap<(P, U), VecDeque<T>>,
    parties: Counts<P>,
    users: BTreeMap<P, Counts<U>>,
    /// The number of items that ever came.
    came: u64,
}

impl<P: Ord + Copy, U: Ord + Copy, T> Default for OwnedQueues<P, U, T> {
    fn default() -> Self {
        Self { of: BTreeMap::new(), parties: Counts::default(), users: BTreeMap::new(), came: 0 }
    }
}

impl<P: Ord + Copy, U: Ord + Copy, T> OwnedQueues<P, U, T> {
    /// Adds an item behind its owner's others.
    pub fn push(&mut self, party: P, user: U, item: T) {
        self.came += 1;
        self.of.entry((party, user)).or_default().push_back(item);
        self.parties.add(party, self.came);
        self.users.entry(party).or_default().add(user, self.came);
    }

    /// The number of an owner's items.
    pub fn len_of(&self, owner: (P, U)) -> usize {
        self.of.get(&owner).map_or(0, VecDeque::len)
    }

    /// The owner whose item goes next: the user with the most items of the party with the most. Parties that are
    /// `spared` for their number of items are passed over.
    pub fn heaviest(&self, spared: impl Fn(P, usize) -> bool) -> Option<(P, U)> {
        let party = self.parties.heaviest_first().find(|&(count, party)| !spared(party, count))?.1;
        Some((party, self.users.get(&party)?.heaviest_first().next()?.1))
    }

    /// Takes the item of an owner that `pick` finds in the list of all.
    pub fn take(&mut self, owner: (P, U), pick: impl FnOnce(&VecDeque<T>) -> Option<usize>) -> Option<T> {
        let items = self.of.get_mut(&owner)?;
        let item = items.remove(pick(items)?)?;
        if items.is_empty() {
            self.of.remove(&owner);
        }
        let (party, user) = owner;
        self.parties.remove(party);
        if let Some(users) = self.users.get_mut(&party) {
            users.remove(user);
            if users.of.is_empty() {
                self.users.remove(&party);
            }
        }
        Some(item)
    }
}

/// Numbers of items by owner, ordered to find the one with the most.
struct Counts<K> {
    /// The number, and when the last item came.
    of: BTreeMap<K, (usize, u64)>,
    ordered: BTreeSet<(usize, Reverse<u64>, K)>,
}

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self { of: BTreeMap::new(), ordered: BTreeSet::new() }
    }
}

impl<K: Ord + Copy> Counts<K> {
    fn add(&mut self, whose: K, now: u64) {
        let (count, came) = self.of.get(&whose).copied().unwrap_or_default();
        self.change(whose, (count, came), (count + 1, now));
    }

    fn remove(&mut self, whose: K) {
        if let Some((count, came)) = self.of.get(&whose).copied() {
            self.change(whose, (count, came), (count - 1, came));
        }
    }

    fn change(&mut self, whose: K, before: (usize, u64), now: (usize, u64)) {
        self.ordered.remove(&(before.0, Reverse(before.1), whose));
        if now.0 == 0 {
            self.of.remove(&whose);
        } else {
            self.of.insert(whose, now);
            self.ordered.insert((now.0, Reverse(now.1), whose));
        }
    }

    fn heaviest_first(&self) -> impl Iterator<Item = (usize, K)> + '_ {
        self.ordered.iter().rev().map(|&(count, _, whose)| (count, whose))
    }
}

#[cfg(test)]
mod tests;
