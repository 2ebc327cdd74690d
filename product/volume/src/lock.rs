//! Short locks: held for a few lines, never over an await or a call to the host.
//!
//! Owns: the handling of such a lock after a panic of its holder.
//! Does not own: locks that are held over an await (`futures_util`'s), the order of locks
//! (`docs/develop/concurrency.md`).
//! Invariants: a panic under a short lock leaves no shared state half-changed, so other threads go on.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
