//! A thread's deadlines.
//!
//! Owns: the deadlines of one reactor, each with the waker of its waiter.
//! Does not own: the wait itself; the driver waits at most until the earliest deadline. The future of a deadline
//! (`sleep`).
//! Invariants: a deadline is due once.

use std::collections::BTreeMap;
use std::task::Waker;

use afflux_engine::Nanos;

/// A deadline and a number that no other timer has.
pub(super) type TimerKey = (Nanos, u64);

#[derive(Default)]
pub(super) struct Timers {
    wakers: BTreeMap<TimerKey, Waker>,
}

impl Timers {
    pub(super) fn earliest(&self) -> Option<Nanos> {
        self.wakers.first_key_value().map(|(key, _)| key.0)
    }

    /// Takes the waker of a timer whose deadline has come.
    pub(super) fn take_due(&mut self, now: Nanos) -> Option<Waker> {
        let entry = self.wakers.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    pub(super) fn set(&mut self, key: TimerKey, waker: Waker) -> Option<Waker> {
        self.wakers.insert(key, waker)
    }

    pub(super) fn forget(&mut self, key: TimerKey) -> Option<Waker> {
        self.wakers.remove(&key)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.wakers.len()
    }
}
