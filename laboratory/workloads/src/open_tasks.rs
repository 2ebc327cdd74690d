//! The number of tasks that have not ended.
//!
//! Owns: the count, and the wake-up of the one task that waits for it.
//! Does not own: the tasks.
//! Invariants: the waiting task is woken once, by the last task to end.

use std::sync::Mutex;
use std::task::Waker;

use crate::locking::lock;

/// The tasks that have not ended, and the task that waits for their end.
#[derive(Default)]
pub(crate) struct OpenTasks {
    pub(crate) count: u64,
    pub(crate) waker: Option<Waker>,
}

impl OpenTasks {
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
