//! Values in order of entering, each found again by its ticket.
//!
//! Owns: the order, the tickets. Does not own: the lock around them.
//! Invariants: finding a value takes time in the logarithm of their number, and leaving no more on average, whoever
//! leaves (`many_waiters_take_and_leave_their_places_in_any_order`). There are at most as many gaps as values, and one.

use smallvec::SmallVec;

/// The first value, mostly the only one, needs no heap memory.
pub(super) struct Tickets<T> {
    /// With a gap where a value has left.
    entries: SmallVec<[(u64, Option<T>); 1]>,
    values: usize,
    last: u64,
}

impl<T> Default for Tickets<T> {
    fn default() -> Self {
        Self { entries: SmallVec::new(), values: 0, last: 0 }
    }
}

impl<T> Tickets<T> {
    /// The number of values.
    pub(super) fn len(&self) -> usize {
        self.values
    }

    /// Adds a value at the end; returns its ticket.
    pub(super) fn enter(&mut self, value: T) -> u64 {
        self.last += 1;
        self.entries.push((self.last, Some(value)));
        self.values += 1;
        self.last
    }

    fn at(&self, ticket: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&ticket, |entry| entry.0).ok()
    }

    pub(super) fn get_mut(&mut self, ticket: u64) -> Option<&mut T> {
        let at = self.at(ticket)?;
        self.entries[at].1.as_mut()
    }

    /// Takes a value out.
    pub(super) fn leave(&mut self, ticket: u64) -> Option<T> {
        let at = self.at(ticket)?;
        let value = self.entries[at].1.take()?;
        self.values -= 1;
        if self.entries.len() > 2 * self.values + 1 {
            self.entries.retain(|entry| entry.1.is_some());
        }
        Some(value)
    }

    /// Takes all values out, in order.
    pub(super) fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.values = 0;
        std::mem::take(&mut self.entries).into_iter().filter_map(|entry| entry.1)
    }

    #[cfg(test)]
    pub(super) fn tickets(&self) -> Vec<u64> {
        self.entries.iter().filter(|entry| entry.1.is_some()).map(|entry| entry.0).collect()
    }
}
