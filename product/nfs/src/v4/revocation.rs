//! The end of silent clients whose locks somebody wants.
//!
//! Owns: the clients whose leases were revoked, the call that has them ended.
//! Does not own: leases (`state::leases`), the end itself (`service`), the wait for it (the volume).
//! Invariants: the client of each revoked lease ends, also if a program on a mount revoked it. The end is a task of its
//! own, since the volume revokes a lease under a lock that the end takes (`tests/protocol/locks.rs`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Leases that were revoked and whose clients have not ended.
#[derive(Default)]
pub(super) struct Revocations {
    has_some: AtomicBool,
    /// The lock is a leaf.
    clients: Mutex<Vec<u64>>,
    /// Begins a task that ends the clients.
    end_clients: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Revocations {
    /// Sets the function that each revocation of a lease calls. The function must not wait.
    pub(super) fn call(&self, end_clients: impl Fn() + Send + Sync + 'static) {
        self.end_clients.get_or_init(|| Box::new(end_clients));
    }

    /// The lease of a client was revoked.
    pub(super) fn begin(&self, clientid: u64) {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).push(clientid);
        self.has_some.store(true, Ordering::Release);
        if let Some(end_clients) = self.end_clients.get() {
            end_clients();
        }
    }

    /// The clients with revoked leases that have not ended. The caller ends them.
    pub(super) fn take(&self) -> Vec<u64> {
        if !self.has_some.load(Ordering::Relaxed) || !self.has_some.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        std::mem::take(&mut *self.clients.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
