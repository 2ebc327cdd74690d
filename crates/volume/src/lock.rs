//! Locks: short ones, held for a few lines, never over an await or a call to the host; and the one of an object's changes.
//!
//! Owns: what becomes of a short lock whose holder panicked; whether somebody waits for an object's changes.
//! Does not own: locks that are held over an await (`futures_util`'s), the order of locks (`docs/concurrency.md`).
//! Invariants: a panic under a short lock leaves nothing half-changed that others rely on, so they go on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::lock::{Mutex as TaskMutex, MutexGuard as TaskMutexGuard};

/// Held by one change of an object at a time, over awaits.
#[derive(Default)]
pub(crate) struct ChangeLock {
    lock: TaskMutex<()>,
    line: AtomicUsize,
}

/// One who waits.
struct InLine<'a>(&'a AtomicUsize);

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ChangeLock {
    pub(crate) async fn lock(&self) -> TaskMutexGuard<'_, ()> {
        if let Some(held) = self.lock.try_lock() {
            return held;
        }
        self.line.fetch_add(1, Ordering::Relaxed);
        let _in_line = InLine(&self.line);
        self.lock.lock().await
    }

    pub(crate) fn try_lock(&self) -> Option<TaskMutexGuard<'_, ()>> {
        self.lock.try_lock()
    }

    /// Whether somebody waits for it.
    pub(crate) fn has_line(&self) -> bool {
        self.line.load(Ordering::Relaxed) > 0
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
