//! Memory and tasks of ended work, kept for the next work of the same kind. A program that is part of its host's own
//! reclaim must not ask the host for memory in order to write.
//!
//! Owns: the idle values, the bound on their number, the choice of one to use again.
//! Does not own: the contents; a value is emptied by its user.
//! Invariants: at most the bound is kept. A shared value is used again only when nobody else has it. The locks are the
//! last to be taken: nothing else is locked while one is held.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use afflux_pages::wait::lock;

/// Idle values, each with its owner while it is in use.
pub struct Recycler<T>(Mutex<Idle<T>>);

struct Idle<T> {
    values: Vec<T>,
    most: usize,
}

impl<T> Recycler<T> {
    /// Keeps at most `most` values.
    pub const fn new(most: usize) -> Self {
        Self(Mutex::new(Idle { values: Vec::new(), most }))
    }

    /// The value that came last.
    pub fn take(&self) -> Option<T> {
        lock(&self.0).values.pop()
    }

    /// Keeps an idle value, unless there are enough. Returns whether it did.
    pub fn try_keep(&self, value: T) -> bool {
        let mut idle = lock(&self.0);
        let keeps = idle.values.len() < idle.most;
        if keeps {
            idle.values.push(value);
        }
        keeps
    }

    /// Drops all values, and keeps none from here on.
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
    /// Keeps at most `most` values.
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

    /// The number of kept values, in use or idle.
    pub fn count(&self) -> usize {
        lock(&self.values).len()
    }
}

#[cfg(test)]
mod tests;
