//! Short locks: held for a few lines, never over an await or a call to the host.
//!
//! Owns: what becomes of such a lock whose holder panicked.
//! Does not own: locks that are held over an await (`futures_util`'s), the order of locks (`docs/concurrency.md`).
//! Invariants: a panic under a short lock leaves nothing half-changed that others rely on, so they go on.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
