//! How long a silent client keeps its state.
//!
//! Owns: the lease's length, when it has ended, when a client is forgotten altogether.
//! Does not own: the clock, the state that ends with a lease (`clients`, `opens`).
//! Invariants: a client whose lease has ended keeps its state until somebody is in its way, its place is needed, or
//! [`FORGOTTEN_NS`] have passed.

use std::sync::atomic::{AtomicU64, Ordering};

/// The lease, as clients are told.
pub(crate) const LEASE_SECONDS: u32 = 60;
const LEASE_NS: u64 = LEASE_SECONDS as u64 * 1_000_000_000;
/// A client that was silent for a day is forgotten.
const FORGOTTEN_NS: u64 = 24 * 60 * 60 * 1_000_000_000;

/// The last time at which a client was heard.
#[derive(Debug)]
pub(crate) struct Lease(AtomicU64);

impl Lease {
    /// Begins at this time.
    pub(crate) fn begun(now_ns: u64) -> Self {
        Self(AtomicU64::new(now_ns))
    }

    /// The client was heard. A store, since two connections of one client may be at it.
    pub(crate) fn renew(&self, now_ns: u64) {
        self.0.store(now_ns, Ordering::Relaxed);
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.heard_ns()) > LEASE_NS
    }

    /// Whether the client may be forgotten, though nobody is in its way.
    pub(crate) fn is_forgotten(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.heard_ns()) > FORGOTTEN_NS
    }

    /// When the client was heard.
    pub(crate) fn heard_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
