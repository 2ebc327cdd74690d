//! Locks that outlive a panic.
//!
//! Owns: taking a lock. Does not own: the locked data.
//! Invariants: a failed check inside a lock leaves nothing half done.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, even after a task panicked with the lock held.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
