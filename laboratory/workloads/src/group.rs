//! Relations between jobs: ends of other jobs, waits for other jobs, shares of a flow.
//!
//! Owns: `exitall`, `wait_for` and `flow`, by fio's rules.
//! Does not own: stonewalls (the run's order of starts), a job's work (`runner`).
//! Invariants: a clone that waits for a job is woken when the job's last clone ends, for whatever reason.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use crate::job::Ends;
use crate::locking::lock;

/// One clone's state, as others see it.
#[derive(Default)]
struct Member {
    group: u64,
    runs: AtomicBool,
    ended: AtomicBool,
    end_requested: AtomicBool,
}

/// When a clone's end ends others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EndsOthers {
    /// `exitall`.
    pub(crate) always: bool,
    /// `exitall_on_error`.
    pub(crate) on_error: bool,
}

/// All clones of a run.
#[derive(Default)]
pub(crate) struct Everybody {
    members: Vec<Member>,
    /// Some job's end may end others.
    pub(crate) any_ends_others: bool,
    any_ends_always: bool,
}

impl Everybody {
    /// Adds a clone of a group; returns its number.
    pub(crate) fn add(&mut self, group: u64, ends_others: EndsOthers) -> usize {
        self.members.push(Member { group, ..Member::default() });
        self.any_ends_always |= ends_others.always;
        self.any_ends_others |= ends_others.always || ends_others.on_error;
        self.members.len() - 1
    }

    pub(crate) fn begins(&self, number: usize) {
        self.members[number].runs.store(true, Ordering::Relaxed);
    }

    /// Whether another clone's end also ends this one.
    #[inline]
    pub(crate) fn is_end_requested(&self, number: usize) -> bool {
        self.any_ends_others && self.members[number].end_requested.load(Ordering::Relaxed)
    }

    /// A clone has ended. If any job has `exitall`, every job's end also ends the clones chosen by its own `exit_what`.
    /// With `exitall_on_error`, every job's end by an error does.
    pub(crate) fn ended(&self, number: usize, ends: Ends, has_failed: bool) {
        let own = &self.members[number];
        own.ended.store(true, Ordering::Relaxed);
        if !(self.any_ends_always || self.any_ends_others && has_failed) {
            return;
        }
        for member in &self.members {
            let meant = match ends {
                Ends::Group => member.group == own.group,
                Ends::Running => member.runs.load(Ordering::Relaxed),
                Ends::All => true,
            };
            if meant && !member.ended.load(Ordering::Relaxed) {
                member.end_requested.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// The clones of a job that have not ended, and the tasks that wait for them.
#[derive(Default)]
pub(crate) struct Gate(Mutex<(u64, Vec<Waker>)>);

impl Gate {
    pub(crate) fn add(&self) {
        lock(&self.0).0 += 1;
    }

    pub(crate) fn ended(&self) {
        let wakers = {
            let mut gate = lock(&self.0);
            gate.0 -= 1;
            if gate.0 == 0 { std::mem::take(&mut gate.1) } else { Vec::new() }
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits until all clones have ended.
    pub(crate) async fn all_ended(self: Arc<Self>) {
        poll_fn(|cx| {
            let mut gate = lock(&self.0);
            if gate.0 == 0 {
                return Poll::Ready(());
            }
            gate.1.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Jobs that share their calls by weights.
#[derive(Default)]
pub(crate) struct Flow {
    calls: AtomicU64,
    weights: AtomicU64,
}

/// A clone's part of a flow.
pub(crate) struct FlowShare {
    pub(crate) flow: Arc<Flow>,
    pub(crate) weight: u64,
    pub(crate) calls: u64,
}

impl FlowShare {
    pub(crate) fn begins(&self) {
        self.flow.weights.fetch_add(self.weight, Ordering::Relaxed);
    }

    pub(crate) fn ends(&self) {
        self.flow.weights.fetch_sub(self.weight, Ordering::Relaxed);
        self.flow.calls.fetch_sub(self.calls, Ordering::Relaxed);
    }

    /// Takes the next call, unless the clone has already taken more than its share.
    pub(crate) fn take(&mut self) -> bool {
        let (all, weights) = (self.flow.calls.load(Ordering::Relaxed) + 1, self.flow.weights.load(Ordering::Relaxed));
        if u128::from(self.calls) * u128::from(weights) > u128::from(self.weight) * u128::from(all) {
            return false;
        }
        self.calls += 1;
        self.flow.calls.fetch_add(1, Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests;
