//! Memory and tasks of ended work, pooled for the next work of the same kind. A program that is part of its host's own
//! reclaim must not ask the host for memory in order to write.
//!
//! Owns: the idle values (boxes of requests' ends, answers of rounds and of calls, tasks that have run rounds), the
//! bound on their number, the choice of one to use again, how an idle task gets a file.
//! Does not own: the contents, which a value's user empties; the work of an end (`writeback::complete`), rounds
//! (`writeback::sync`).
//! Invariants: at most the bound is pooled, and what is pooled holds no file and no engine. A shared value is used
//! again only when nobody else has it. The locks are the last to be taken: nothing else is locked while one is held.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use afflux_device::error::DeviceError;
use afflux_pages::wait::{Answer, WaitQueue, lock};

use crate::devices::file::{FileInner, SharedRound};

/// Idle values, each with its owner while it is in use.
pub struct Recycler<T>(Mutex<Idle<T>>);

struct Idle<T> {
    values: Vec<T>,
    most: usize,
}

impl<T> Recycler<T> {
    /// Pools at most `most` values.
    pub const fn new(most: usize) -> Self {
        Self(Mutex::new(Idle { values: Vec::new(), most }))
    }

    /// The value that came last.
    pub fn take(&self) -> Option<T> {
        lock(&self.0).values.pop()
    }

    /// Pools an idle value, unless there are enough. Returns whether it did.
    pub fn try_keep(&self, value: T) -> bool {
        let mut idle = lock(&self.0);
        let keeps = idle.values.len() < idle.most;
        if keeps {
            idle.values.push(value);
        }
        keeps
    }

    /// Drops all values, and pools none from here on.
    pub fn end(&self) {
        let values = std::mem::replace(&mut *lock(&self.0), Idle { values: Vec::new(), most: 0 });
        drop(values);
    }

    /// The number of idle values.
    pub fn count(&self) -> usize {
        lock(&self.0).values.len()
    }
}

/// How many shared values are checked for one that nobody else has.
const LOOKED_AT: usize = 4;

/// Values that several parties use, in use or idle; the one taken first is at the front.
pub struct SharedRecycler<T> {
    values: Mutex<VecDeque<Arc<T>>>,
    most: usize,
}

impl<T> SharedRecycler<T> {
    /// Pools at most `most` values.
    pub const fn new(most: usize) -> Self {
        Self { values: Mutex::new(VecDeque::new()), most }
    }

    /// A value with these contents: an idle one, filled anew by `fill`, or a new one.
    pub fn take<C>(&self, contents: C, fill: impl FnOnce(&mut T, C), new: impl FnOnce(C) -> Arc<T>) -> Arc<T> {
        let mut values = lock(&self.values);
        for _ in 0..LOOKED_AT.min(values.len()) {
            values.rotate_left(1);
            let last = values.len() - 1;
            if let Some(idle) = Arc::get_mut(&mut values[last]) {
                fill(idle, contents);
                return Arc::clone(&values[last]);
            }
        }
        let value = new(contents);
        if values.len() < self.most {
            values.push_back(Arc::clone(&value));
        }
        value
    }

    /// The number of pooled values, in use or idle.
    pub fn count(&self) -> usize {
        lock(&self.values).len()
    }
}

/// The number of requests in flight on a device: more would hardly be used.
const POOLED: usize = 64;

/// The pooled memory of one engine, whose requests end as `W` if they write, and as `C` if they carry no data.
pub(crate) struct RecycledMemory<W, C> {
    pub(crate) writes: Recycler<Box<Boxed<W>>>,
    pub(crate) calls: Recycler<Box<Boxed<C>>>,
    call_answers: SharedRecycler<Answer<Result<(), DeviceError>>>,
    rounds: SharedRecycler<SharedRound>,
}

impl<W, C> RecycledMemory<W, C> {
    /// An answer of a call, not given yet.
    pub(crate) fn call_answer(&self) -> Arc<Answer<Result<(), DeviceError>>> {
        self.call_answers.take((), |answer, ()| answer.renew(), |()| Answer::new())
    }

    /// A round, not begun yet.
    pub(crate) fn round(&self) -> Arc<SharedRound> {
        let renew = |round: &mut SharedRound, ()| {
            round.result.renew();
            round.granted.renew();
        };
        self.rounds.take((), renew, |()| Arc::default())
    }
}

impl<W, C> Default for RecycledMemory<W, C> {
    fn default() -> Self {
        Self {
            writes: Recycler::new(POOLED),
            calls: Recycler::new(POOLED),
            call_answers: SharedRecycler::new(POOLED),
            rounds: SharedRecycler::new(POOLED),
        }
    }
}

/// A box that is pooled after its content was used.
pub(crate) struct Boxed<T>(Option<T>);

impl<T> Boxed<T> {
    /// Puts the value into a pooled box, or a new one.
    pub(crate) fn of(pooled: &Recycler<Box<Self>>, value: T) -> Box<Self> {
        let mut boxed = pooled.take().unwrap_or_else(|| Box::new(Self(None)));
        boxed.0 = Some(value);
        boxed
    }

    pub(crate) fn get(&self) -> &T {
        self.0.as_ref().unwrap_or_else(|| unreachable!("taken out once, at the end"))
    }

    /// Takes the content out.
    pub(crate) fn take(&mut self) -> T {
        self.0.take().unwrap_or_else(|| unreachable!("taken out once, at the end"))
    }
}

/// A task takes about 1 KiB.
pub(crate) const IDLE_MAX: usize = 64;

/// Where an idle task gets its next file.
#[derive(Default)]
pub(crate) struct IdleTask {
    file: Mutex<Option<Arc<FileInner>>>,
    given: WaitQueue,
}

impl IdleTask {
    pub(crate) fn give(&self, file: Arc<FileInner>) {
        *lock(&self.file) = Some(file);
        self.given.wake_all();
    }

    pub(crate) async fn next_file(&self) -> Arc<FileInner> {
        self.given.until(|| lock(&self.file).take()).await
    }
}

#[cfg(test)]
mod tests;
