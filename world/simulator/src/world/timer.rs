//! Timers: sleeping tasks to wake and calls to make, each at an instant.
//!
//! Owns: the entries in the order of their instants; the seed orders equal instants.
//! Does not own: the clock.
//! Invariants: a sleep has at most one entry and removes it when it is dropped, so that the clock never jumps to an
//! instant for which nobody waits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::task::TaskRef;
use super::{Call, Shared};

pub(crate) enum Due {
    /// A task that sleeps by itself, as nearly all do: no waker has to be cloned and run for it.
    Task(TaskRef),
    Wake(Waker),
    Call(Call),
}

/// The heap is cleared of cancelled entries once there are more than this many and more than half of all entries are
/// cancelled.
const CANCELLED_MAX: usize = 64;

/// Identifies an entry by its current slot and its lasting number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimerKey {
    slot: u32,
    number: u64,
}

struct Slot {
    number: u64,
    /// `None` once it is cancelled.
    due: Option<Due>,
}

/// A heap of instants over slots with the due work. The heap moves small entries, and a cancelled entry leaves it
/// later.
#[derive(Default)]
pub(crate) struct Timers {
    /// Instant, a draw that orders equal instants, slot.
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    added: u64,
    cancelled: usize,
}

impl Timers {
    pub(crate) fn add(&mut self, at_ns: u64, tie: u64, due: Due) -> TimerKey {
        self.added += 1;
        let new = Slot { number: self.added, due: Some(due) };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = new;
                slot
            }
            None => {
                self.slots.push(new);
                self.slots.len() as u32 - 1
            }
        };
        self.heap.push(Reverse((at_ns, tie, slot)));
        TimerKey { slot, number: self.added }
    }

    fn get_mut(&mut self, key: TimerKey) -> Option<&mut Option<Due>> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        (slot.number == key.number && slot.due.is_some()).then_some(&mut slot.due)
    }

    /// Removes the entry, if it is not over.
    pub(crate) fn remove(&mut self, key: TimerKey) -> Option<Due> {
        let due = self.get_mut(key)?.take();
        self.cancelled += 1;
        if self.cancelled > CANCELLED_MAX && self.cancelled * 2 > self.heap.len() {
            let (slots, free) = (&self.slots, &mut self.free);
            self.heap.retain(|Reverse((_, _, slot))| {
                let existing = slots[*slot as usize].due.is_some();
                if !existing {
                    free.push(*slot);
                }
                existing
            });
            self.cancelled = 0;
        }
        due
    }

    /// Replaces the entry's work and returns the old one. If the entry is over, returns `due` for a new entry.
    pub(crate) fn replace(&mut self, key: TimerKey, due: Due) -> Result<Option<Due>, Due> {
        match self.get_mut(key) {
            Some(entry) => Ok(entry.replace(due)),
            None => Err(due),
        }
    }

    /// The instant of the first entry.
    pub(crate) fn first_ns(&mut self) -> Option<u64> {
        loop {
            let Reverse((at_ns, _, slot)) = *self.heap.peek()?;
            if self.slots[slot as usize].due.is_some() {
                return Some(at_ns);
            }
            self.heap.pop();
            self.free.push(slot);
            self.cancelled -= 1;
        }
    }

    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<Due> {
        if self.first_ns()? > now_ns {
            return None;
        }
        let Reverse((_, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        self.slots[slot as usize].due.take()
    }
}

/// Ends at an instant.
pub(crate) struct Sleep {
    shared: Arc<Shared>,
    deadline_ns: u64,
    key: Option<TimerKey>,
}

impl Sleep {
    pub(crate) fn new(shared: Arc<Shared>, deadline_ns: u64) -> Self {
        Self { shared, deadline_ns, key: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let now_ns = self.shared.now_ns();
        let mut core = self.shared.lock();
        if now_ns >= self.deadline_ns {
            let old = self.key.and_then(|key| core.timers.remove(key));
            drop(core);
            drop(old);
            self.key = None;
            return Poll::Ready(());
        }
        let due = match core.running {
            Some(task) if core.tasks.is_own(task, cx.waker()) => Due::Task(task),
            _ => Due::Wake(cx.waker().clone()),
        };
        let existing = match self.key {
            Some(key) => core.timers.replace(key, due).map(|old| (key, old)),
            None => Err(due),
        };
        let (key, old) = existing.unwrap_or_else(|due| {
            let tie = core.schedule.bits();
            core.trace.event(now_ns, "sleep", &[self.deadline_ns]);
            (core.timers.add(self.deadline_ns, tie, due), None)
        });
        drop(core);
        drop(old);
        self.shared.clock.disturb(self.deadline_ns);
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let old = self.shared.lock().timers.remove(key);
            drop(old);
        }
    }
}

#[cfg(test)]
mod tests;
