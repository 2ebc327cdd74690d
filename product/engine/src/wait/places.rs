//! The places of tasks that wait for an amount each, in order of asking.
//!
//! Owns: the order, the answer to each task until the task takes it.
//! Does not own: the amounts, the lock around the places, the choice of whom to answer (`permits`,
//! `devices::admission`).
//! Invariants: answers are given from the front. No waker runs here: the caller wakes with no lock held.

use std::collections::VecDeque;
use std::task::Waker;

/// Tasks that wait for answers of the type `A`.
pub(crate) struct Places<A> {
    queue: VecDeque<Place<A>>,
    tickets: u64,
}

struct Place<A> {
    ticket: u64,
    amount: u64,
    waker: Waker,
    answer: Option<A>,
}

impl<A> Default for Places<A> {
    fn default() -> Self {
        Self { queue: VecDeque::new(), tickets: 0 }
    }
}

impl<A: Copy> Places<A> {
    /// The number of places, including those of tasks that have yet to take their answers.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether every task has its answer.
    pub(crate) fn all_answered(&self) -> bool {
        self.queue.iter().all(|place| place.answer.is_some())
    }

    /// Gives a task the last place; returns its ticket.
    pub(crate) fn enter(&mut self, amount: u64, waker: &Waker) -> u64 {
        self.tickets += 1;
        self.queue.push_back(Place { ticket: self.tickets, amount, waker: waker.clone(), answer: None });
        self.tickets
    }

    /// Answers tasks from the front, as long as `answer` has one for their amount. Returns whom to wake.
    pub(crate) fn answer(&mut self, mut answer: impl FnMut(u64) -> Option<A>) -> Vec<Waker> {
        let mut woken = Vec::new();
        for place in self.queue.iter_mut().filter(|place| place.answer.is_none()) {
            place.answer = answer(place.amount);
            if place.answer.is_none() {
                break;
            }
            woken.push(place.waker.clone());
        }
        woken
    }

    /// Takes the answer to a task, and its place away. A task without an answer waits on, with this waker.
    pub(crate) fn take(&mut self, ticket: u64, waker: &Waker) -> Option<A> {
        let place = self.queue.iter_mut().find(|place| place.ticket == ticket)?;
        if place.answer.is_none() {
            place.waker.clone_from(waker);
            return None;
        }
        self.leave(ticket)
    }

    /// Takes the place of a task away; returns the answer that the task had and did not take.
    pub(crate) fn leave(&mut self, ticket: u64) -> Option<A> {
        let at = self.queue.iter().position(|place| place.ticket == ticket)?;
        self.queue.remove(at)?.answer
    }
}
