//! Locks that outlive a panic.
//!
//! Owns: taking a lock.
//! Does not own: what is locked.
//! Invariants: a check that failed inside a lock does not turn every later look into a second panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic of somebody who held the lock.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
