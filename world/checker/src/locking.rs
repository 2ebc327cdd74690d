//! Locks that outlive a panic.
//!
//! Owns: taking a lock.
//! Does not own: what is locked.
//! Invariants: a check that failed inside leaves nothing half done that the next one would trip over.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic of a task that held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
