//! Locks that outlive a panic.
//!
//! Owns: taking a lock.
//! Does not own: the locked values.
//! Invariants: a check that fails under a lock does not make every later access panic, too.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, even after a panic of a task that held it.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
