//! The slots of tasks that wait for an amount each, in order of asking.
//!
//! Owns: the order, the grant to each task until the task takes it, the tasks that look at something else first.
//! Does not own: the amounts, the lock around the slots, the choice of whom to grant (`permits`,
//! `devices::admission`).
//! Invariants: grants are given from the front. A task that looks at something else keeps its slot, and no
//! other task waits for it. Each step takes time in the logarithm of the number of slots
//! (`many_waiters_take_and_leave_their_places_in_any_order`). No waker runs here: the caller wakes with no lock held.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;

/// Tasks that wait for grants, by ticket and so in order of asking.
#[derive(Default)]
pub struct WaitSlots {
    waiting: BTreeMap<u64, WaitSlot>,
    /// Tasks that look at something else before they wait on.
    looking: BTreeMap<u64, WaitSlot>,
    /// Tickets of tasks that have yet to take their grants.
    granted: BTreeSet<u64>,
    tickets: u64,
}

struct WaitSlot {
    amount: u64,
    waker: Waker,
}

impl WaitSlots {
    /// The number of slots, including those of tasks that have yet to take their grants.
    pub fn count(&self) -> usize {
        self.waiting.len() + self.looking.len() + self.granted.len()
    }

    /// Whether no task waits for a grant.
    pub fn is_nobody_waiting(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Gives a task the last slot; returns its ticket.
    pub fn enter(&mut self, amount: u64, waker: &Waker) -> u64 {
        self.tickets += 1;
        self.waiting.insert(self.tickets, WaitSlot { amount, waker: waker.clone() });
        self.tickets
    }

    /// Grants from the front, as long as `fits` agrees to a task's amount. Returns whom to wake.
    pub fn grant(&mut self, mut fits: impl FnMut(u64) -> bool) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some(first) = self.waiting.first_entry()
            && fits(first.get().amount)
        {
            let (ticket, slot) = first.remove_entry();
            self.granted.insert(ticket);
            woken.push(slot.waker);
        }
        woken
    }

    /// Takes the grant to a task, and its slot away. A task without a grant waits on, with this waker. Returns whether
    /// it had one.
    pub fn try_take(&mut self, ticket: u64, waker: &Waker) -> bool {
        if let Some(slot) = self.waiting.get_mut(&ticket).or_else(|| self.looking.get_mut(&ticket)) {
            slot.waker.clone_from(waker);
            return false;
        }
        self.granted.remove(&ticket)
    }

    /// Takes the slot of a task away; returns whether the task had a grant that it did not take.
    pub fn take_grant(&mut self, ticket: u64) -> bool {
        let had_place = self.waiting.remove(&ticket).is_some() || self.looking.remove(&ticket).is_some();
        !had_place && self.granted.remove(&ticket)
    }

    /// Has a task without a grant look at something else. It gets none before it calls [`WaitSlots::try_wait_on`].
    /// Returns whom to wake.
    pub fn look(&mut self, ticket: u64) -> Option<Waker> {
        let slot = self.waiting.remove(&ticket)?;
        let waker = slot.waker.clone();
        self.looking.insert(ticket, slot);
        Some(waker)
    }

    /// A task that was to look at something else waits again, at its slot. Returns whether it was to look.
    pub fn try_wait_on(&mut self, ticket: u64) -> bool {
        let Some(slot) = self.looking.remove(&ticket) else { return false };
        self.waiting.insert(ticket, slot);
        true
    }

    /// The wakers of all tasks without a grant, from the front.
    pub fn wakers(&self) -> Vec<Waker> {
        self.waiting.values().chain(self.looking.values()).map(|slot| slot.waker.clone()).collect()
    }
}
