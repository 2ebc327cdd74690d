//! How many tasks are still at work.
//!
//! Owns: the count, and the waking of the one task that waits for it.
//! Does not own: the tasks.
//! Invariants: the task that waits is woken once, by the last that ends.

use std::sync::Mutex;
use std::task::Waker;

use crate::locking::lock;

/// How many tasks have not ended, and who waits for that.
#[derive(Default)]
pub(crate) struct Left {
    pub(crate) count: u64,
    pub(crate) waker: Option<Waker>,
}

impl Left {
    /// A task has ended.
    pub(crate) fn ended(left: &Mutex<Self>) {
        let waker = {
            let mut left = lock(left);
            left.count -= 1;
            if left.count == 0 { left.waker.take() } else { None }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
