//! What is due at which instant: sleeping tasks to wake, calls to make.
//!
//! Owns: the entries, in the order of their instants; equal instants in an order drawn from the seed.
//! Does not own: the clock.
//! Invariants: a sleep has at most one entry and takes it along when it is dropped, so that the clock
//! never jumps to an instant that nobody waits for.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::task::TaskRef;
use super::{Call, Shared};

pub(crate) enum Due {
    /// A task that sleeps by itself, as nearly all do: no waker has to be copied and run for it.
    Task(TaskRef),
    Wake(Waker),
    Call(Call),
}

/// Instant, a draw that orders equal instants, a number that no other entry has.
pub(crate) type TimerKey = (u64, u64, u64);

#[derive(Default)]
pub(crate) struct Timers {
    entries: BTreeMap<TimerKey, Due>,
    added: u64,
}

impl Timers {
    pub(crate) fn add(&mut self, at_ns: u64, tie: u64, due: Due) -> TimerKey {
        self.added += 1;
        let key = (at_ns, tie, self.added);
        self.entries.insert(key, due);
        key
    }

    pub(crate) fn remove(&mut self, key: TimerKey) -> Option<Due> {
        self.entries.remove(&key)
    }

    pub(crate) fn replace(&mut self, key: TimerKey, due: Due) -> Option<Due> {
        self.entries.insert(key, due)
    }

    pub(crate) fn first_ns(&self) -> Option<u64> {
        self.entries.keys().next().map(|key| key.0)
    }

    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<Due> {
        if self.first_ns()? > now_ns {
            return None;
        }
        self.entries.pop_first().map(|(_, due)| due)
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
        let (key, old) = match self.key {
            Some(key) => (key, core.timers.replace(key, due)),
            None => {
                let tie = core.schedule.bits();
                core.trace.event(now_ns, "sleep", &[self.deadline_ns]);
                (core.timers.add(self.deadline_ns, tie, due), None)
            }
        };
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
