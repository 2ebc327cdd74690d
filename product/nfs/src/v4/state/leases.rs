//! Leases (RFC 8881, section 8.3): each SEQUENCE renews a client's lease, and a silent client loses its state.
//!
//! Owns: the lease's length, when it has ended, when a client is forgotten altogether; clients, or their sessions, in
//! the order in which the server last heard them; the clients whose leases were revoked because somebody wants their
//! locks, the call that has them ended.
//! Does not own: the clock, the state that ends with a lease (`clients`, `opens`), the end itself (`v4::service`), the
//! choice among those that were silent for long (`clients`, `sessions`).
//! Invariants: a client whose lease has ended retains its state until it conflicts with another client, its entry is
//! needed, or [`FORGOTTEN_NS`] have passed. A lease that was revoked is never renewed. The client of each revoked lease
//! ends, also if a program on a mount revoked it. The end is a task of its own, since the volume revokes a lease under
//! a lock that the end takes (`tests/protocol/locks.rs`). A call that renews a lease does not change the order of
//! silence. So the order has the time of the last search, which is never later than the true one. One search renews the
//! times of [`LOOKS_MAX`] at most, and the next search goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use afflux_frontend::Party;

use crate::steps::step;

/// The lease, as the server reports it to clients.
pub(crate) const LEASE_SECONDS: u32 = 60;
pub(crate) const LEASE_NS: u64 = LEASE_SECONDS as u64 * 1_000_000_000;
/// A client that was silent for a day is forgotten.
const FORGOTTEN_NS: u64 = 24 * 60 * 60 * 1_000_000_000;

/// The time of a lease that was revoked.
const REVOKED: u64 = u64::MAX;

/// The last time at which a client was heard, and the number of its lost delegations.
#[derive(Debug)]
pub(crate) struct Lease {
    heard_ns: AtomicU64,
    /// The client's revoked delegations that it has not freed.
    revoked_delegations: AtomicU64,
}

impl Lease {
    /// Begins at this time.
    pub(crate) fn begun(now_ns: u64) -> Self {
        Self { heard_ns: AtomicU64::new(now_ns), revoked_delegations: AtomicU64::new(0) }
    }

    /// The client was heard. False if its lease was revoked before. Two connections of one client may be at it.
    pub(crate) fn try_renew(&self, now_ns: u64) -> bool {
        // A plain load first: the calls of a poll have one time.
        let heard_ns = self.heard_ns();
        let known_ns = if heard_ns < now_ns { self.heard_ns.fetch_max(now_ns, Ordering::Relaxed) } else { heard_ns };
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
        is_over && self.heard_ns.compare_exchange(heard_ns, REVOKED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Ends it for good, whenever the client was heard.
    pub(crate) fn revoke(&self) {
        self.heard_ns.store(REVOKED, Ordering::Relaxed);
    }

    /// Whether it was revoked.
    pub(crate) fn is_revoked(&self) -> bool {
        self.heard_ns() == REVOKED
    }

    /// When the client was heard.
    pub(crate) fn heard_ns(&self) -> u64 {
        self.heard_ns.load(Ordering::Relaxed)
    }

    /// A delegation of the client was revoked.
    pub(crate) fn note_revoked(&self) {
        self.revoked_delegations.fetch_add(1, Ordering::Relaxed);
    }

    /// The client knows that one was revoked.
    pub(crate) fn note_freed(&self) {
        self.revoked_delegations.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the client has to look for delegations that were revoked.
    pub(crate) fn has_revoked_delegations(&self) -> bool {
        self.revoked_delegations.load(Ordering::Relaxed) > 0
    }
}

/// Whether a client that was last heard at a time may be forgotten, though it conflicts with nobody.
pub(crate) fn may_be_forgotten(heard_ns: u64, now_ns: u64) -> bool {
    now_ns.saturating_sub(heard_ns) > FORGOTTEN_NS
}

/// Most things that one search considers.
pub(super) const LOOKS_MAX: usize = 64;

/// Things of parties by their silence.
pub(super) struct SilenceOrder<K> {
    /// The party of each, and its time in the order.
    known: BTreeMap<K, (Party, u64)>,
    of_all: BTreeSet<(u64, K)>,
    of_party: BTreeMap<Party, BTreeSet<(u64, K)>>,
}

impl<K> Default for SilenceOrder<K> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), of_all: BTreeSet::new(), of_party: BTreeMap::new() }
    }
}

impl<K: Copy + Ord> SilenceOrder<K> {
    /// Adds one that was heard at this time.
    pub(super) fn add(&mut self, key: K, party: Party, heard_ns: u64) {
        self.remove(key);
        self.known.insert(key, (party, heard_ns));
        self.of_all.insert((heard_ns, key));
        self.of_party.entry(party).or_default().insert((heard_ns, key));
    }

    pub(super) fn remove(&mut self, key: K) {
        let Some((party, heard_ns)) = self.known.remove(&key) else { return };
        self.of_all.remove(&(heard_ns, key));
        if let Some(own) = self.of_party.get_mut(&party) {
            own.remove(&(heard_ns, key));
            if own.is_empty() {
                self.of_party.remove(&party);
            }
        }
    }

    /// No one was silent since an earlier time than this.
    pub(super) fn heard_from_ns(&self) -> Option<u64> {
        self.of_all.first().map(|(heard_ns, _)| *heard_ns)
    }

    /// The first ones of a party, or of all, the longest silent one first. `heard_ns` returns when the server last
    /// heard one.
    pub(super) fn longest_silent(&mut self, of: Option<Party>, heard_ns: impl Fn(K) -> u64) -> Vec<K> {
        let order = match of {
            Some(party) => self.of_party.get(&party),
            None => Some(&self.of_all),
        };
        let first: Vec<(u64, K)> = order.into_iter().flatten().take(LOOKS_MAX).inspect(|_| step()).copied().collect();
        let mut now: Vec<(u64, K)> = first.iter().map(|(_, key)| (heard_ns(*key), *key)).collect();
        for ((before_ns, key), (now_ns, _)) in first.iter().zip(&now) {
            if before_ns != now_ns
                && let Some((party, _)) = self.known.get(key)
            {
                self.add(*key, *party, *now_ns);
            }
        }
        now.sort_unstable();
        now.into_iter().map(|(_, key)| key).collect()
    }

    /// Number of things.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

/// Leases that were revoked and whose clients have not ended.
#[derive(Default)]
pub(crate) struct Revocations {
    has_some: AtomicBool,
    /// The lock is a leaf.
    clients: Mutex<Vec<u64>>,
    /// Begins a task that ends the clients.
    end_clients: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Revocations {
    /// Sets the function that each revocation of a lease calls. The function must not wait.
    pub(crate) fn call(&self, end_clients: impl Fn() + Send + Sync + 'static) {
        self.end_clients.get_or_init(|| Box::new(end_clients));
    }

    /// The lease of a client was revoked.
    pub(crate) fn begin(&self, clientid: u64) {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).push(clientid);
        self.has_some.store(true, Ordering::Release);
        if let Some(end_clients) = self.end_clients.get() {
            end_clients();
        }
    }

    /// The clients with revoked leases that have not ended. The caller ends them.
    pub(crate) fn take(&self) -> Vec<u64> {
        if !self.has_some.load(Ordering::Relaxed) || !self.has_some.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        std::mem::take(&mut *self.clients.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
