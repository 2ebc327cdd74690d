//! What is in flight, by the order in which it began.
//!
//! Owns: the numbers, and a value for each number in flight.
//! Does not own: how many may be in flight.
//! Invariants: a later one has a higher number. A number ends once. An end searches and moves no more than what is in
//! flight.

use std::collections::VecDeque;

pub(crate) struct InOrder<T> {
    next: u64,
    /// In the order of their numbers.
    in_flight: VecDeque<(u64, T)>,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self { next: 0, in_flight: VecDeque::new() }
    }
}

impl<T> InOrder<T> {
    pub(crate) fn begin(&mut self, value: T) -> u64 {
        let number = self.next;
        self.next += 1;
        self.in_flight.push_back((number, value));
        number
    }

    /// Ends a number. None if it has ended before.
    pub(crate) fn end(&mut self, number: u64) -> Option<T> {
        let at = self.in_flight.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.in_flight.remove(at).map(|(_, value)| value)
    }

    /// The number of the next that begins.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// The first in flight that is `wanted`.
    pub(crate) fn first(&self, wanted: impl Fn(&T) -> bool) -> Option<u64> {
        self.in_flight.iter().find(|(_, value)| wanted(value)).map(|(number, _)| *number)
    }

    /// The value of a number in flight.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let at = self.in_flight.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.in_flight.get_mut(at).map(|(_, value)| value)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.in_flight.iter_mut().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests;
