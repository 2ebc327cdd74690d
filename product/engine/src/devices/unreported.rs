//! Ends of requests that the policy has not been told of.
//!
//! A policy that takes ends together ([`Needs::takes_sums`](crate::policy::Needs::takes_sums)) is told of their sums: small
//! requests end every few microseconds, and to tell of one takes longer than to make it.
//!
//! Owns: the sums, the time at which they are due.
//! Does not own: the telling (`devices`), the device's clocks, which move at each end.
//! Invariants: each end is told once (test `each_end_is_in_one_sum`). The policy knows of all ends before it answers a
//! question about the device (`a_question_finds_all_ends_told`).

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::platform::Nanos;
use crate::policy::{Completed, Direction};
use crate::wait::lock;

/// The most ends in one sum.
const ENDS_MAX: u64 = 16;
/// The time from the first submission of a sum's requests that makes it due. So the end of a request that took as long is told at
/// once.
const AGE_NS: u64 = Nanos::MILLISECOND;

#[derive(Default)]
pub(crate) struct Unreported {
    sums: Mutex<[Sum; 2]>,
    /// The ends in both sums, so that a question without any takes no lock.
    ends: AtomicU64,
}

/// The ends of one direction.
#[derive(Clone, Copy, Default)]
struct Sum {
    ends: u64,
    /// When the first of these requests was submitted.
    submitted: Nanos,
    done: Completed,
}

impl Sum {
    fn add(&mut self, done: &Completed, now: Nanos) {
        let submitted = Nanos(now.0.saturating_sub(done.latency_ns));
        if self.ends == 0 {
            *self = Self { ends: 1, submitted, done: *done };
            return;
        }
        let sum = &mut self.done;
        self.ends += 1;
        self.submitted = self.submitted.min(submitted);
        sum.runs += done.runs;
        sum.pages += done.pages;
        sum.bytes += done.bytes;
        sum.in_flight = sum.in_flight.max(done.in_flight);
        sum.held_back |= done.held_back;
        sum.unwatched_ns = sum.unwatched_ns.saturating_add(done.unwatched_ns);
        sum.too_many |= done.too_many;
    }

    fn is_due(&self, now: Nanos) -> bool {
        self.ends >= ENDS_MAX || self.ends > 0 && now.since(self.submitted) >= AGE_NS
    }

    fn told_at(&self, now: Nanos) -> Option<Completed> {
        let latency_ns = now.since(self.submitted);
        let unwatched_ns = self.done.unwatched_ns.min(latency_ns);
        (self.ends > 0).then_some(Completed { latency_ns, unwatched_ns, ..self.done })
    }
}

impl Unreported {
    /// A request has ended. Returns whether the policy is to be told now.
    pub(crate) fn add(&self, done: &Completed, now: Nanos) -> bool {
        let mut sums = lock(&self.sums);
        let sum = &mut sums[usize::from(done.direction == Direction::Read)];
        sum.add(done, now);
        self.ends.fetch_add(1, Ordering::Relaxed);
        sum.is_due(now)
    }

    /// Takes the sums of all ends since the last call: of writes, and of reads.
    pub(crate) fn take(&self, now: Nanos) -> [Option<Completed>; 2] {
        if self.ends.load(Ordering::Relaxed) == 0 {
            return [None; 2];
        }
        let taken = std::mem::take(&mut *lock(&self.sums));
        self.ends.fetch_sub(taken.iter().map(|sum| sum.ends).sum(), Ordering::Relaxed);
        taken.map(|sum| sum.told_at(now))
    }
}

#[cfg(test)]
mod tests;
