//! How long a silent client keeps its state.
//!
//! Owns: the lease's length, when it has ended, when a client is forgotten altogether.
//! Does not own: the clock, the state that ends with a lease (`clients`, `opens`).
//! Invariants: a client whose lease has ended keeps its state until it is in somebody's way, its place is needed, or
//! [`FORGOTTEN_NS`] have passed. A lease that was revoked is never renewed.

use std::sync::atomic::{AtomicU64, Ordering};

/// The lease, as clients are told.
pub(crate) const LEASE_SECONDS: u32 = 60;
const LEASE_NS: u64 = LEASE_SECONDS as u64 * 1_000_000_000;
/// A client that was silent for a day is forgotten.
const FORGOTTEN_NS: u64 = 24 * 60 * 60 * 1_000_000_000;

/// The time of a lease that was revoked.
const REVOKED: u64 = u64::MAX;

/// The last time at which a client was heard.
#[derive(Debug)]
pub(crate) struct Lease(AtomicU64);

impl Lease {
    /// Begins at this time.
    pub(crate) fn begun(now_ns: u64) -> Self {
        Self(AtomicU64::new(now_ns))
    }

    /// The client was heard. False if its lease was revoked before. Two connections of one client may be at it.
    pub(crate) fn try_renew(&self, now_ns: u64) -> bool {
        // A plain look first: the calls of a poll have one time.
        let heard_ns = self.heard_ns();
        let known_ns = if heard_ns < now_ns { self.0.fetch_max(now_ns, Ordering::Relaxed) } else { heard_ns };
        known_ns != REVOKED
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self, now_ns: u64) -> bool {
        self.is_revoked() || now_ns.saturating_sub(self.heard_ns()) > LEASE_NS
    }

    /// The time until it ends, unless the client is heard.
    pub(crate) fn remaining_ns(&self, now_ns: u64) -> u64 {
        if self.is_revoked() { 0 } else { (LEASE_NS + self.heard_ns()).saturating_sub(now_ns) }
    }

    /// Ends it for good if it has ended. False if it has not: the client was heard.
    pub(crate) fn try_revoke_ended(&self, now_ns: u64) -> bool {
        let heard_ns = self.heard_ns();
        let is_over = heard_ns != REVOKED && now_ns.saturating_sub(heard_ns) > LEASE_NS;
        is_over && self.0.compare_exchange(heard_ns, REVOKED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Ends it for good, whenever the client was heard.
    pub(crate) fn revoke(&self) {
        self.0.store(REVOKED, Ordering::Relaxed);
    }

    /// Whether it was revoked.
    pub(crate) fn is_revoked(&self) -> bool {
        self.heard_ns() == REVOKED
    }

    /// When the client was heard.
    pub(crate) fn heard_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether a client that was last heard at a time may be forgotten, though it is in nobody's way.
pub(crate) fn may_be_forgotten(heard_ns: u64, now_ns: u64) -> bool {
    now_ns.saturating_sub(heard_ns) > FORGOTTEN_NS
}

#[cfg(test)]
mod tests;
