//! The grace period (RFC 8881, section 8.4.2): an earlier server's clients may reclaim their state. The
//! grace period needs the list of clients that an earlier server wrote.
//!
//! Owns: the missing clients, the time for which others wait, the names on the list.
//! Does not own: the storage of the list (a [`ClientList`]), clients and their state.
//! Invariants: while somebody is missing, nobody gets new state: it might be theirs. That ends after [`GRACE_NS`]. A
//! client that was missing then is off the list, and may never ask again: others may have had its locks since. A
//! machine that gets another address is the same client as long as it runs. Another machine with its name is not: it
//! lacks the verifier. The list shows whether some client's open denies uses: only then do uses without an open wait.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::BoxFuture;

use super::state::leases::LEASE_SECONDS;
use crate::v4::state::quota::step;

/// Longest time for which new state waits: a lease, in which each client speaks, and a little more.
const GRACE_NS: u64 = (LEASE_SECONDS as u64 + 10) * 1_000_000_000;

/// Persists the names of clients for a later server.
pub trait ClientList: Send + Sync + 'static {
    /// Replaces the list. Later lists replace earlier ones, in the order of these calls. The result is true once the
    /// list is durable, or a later one is. The implementation reports an error.
    fn keep(&self, names: Vec<u64>) -> BoxFuture<'static, bool>;
}

/// On the list, it stands for clients whose opens deny uses to others. No client has this name.
const DENIALS: u64 = u64::MAX;
/// The list if that of an earlier server cannot be read: some client, which no other is, had opens that deny uses. So
/// others wait as for any missing client, and nobody may reclaim anything.
pub const UNKNOWN_CLIENTS: [u64; 2] = [DENIALS - 1, DENIALS];

/// Whether two names on the list are of one client. The upper half stands for its party and its own name, so that a
/// client that starts again is known. The lower half stands for its own name and its run, at any address of a machine.
pub(super) fn are_of_one(one: u64, other: u64) -> bool {
    one >> 32 == other >> 32 || one as u32 == other as u32
}

/// The names of clients, earlier and present ones.
pub(super) struct Grace {
    missing: BTreeSet<u64>,
    /// The missing ones by their lower halves.
    missing_runs: BTreeSet<(u32, u64)>,
    until_ns: u64,
    /// The name of each client that may have state.
    present: BTreeMap<u64, u64>,
    /// The number of clients with each of these names.
    of_names: BTreeMap<u64, usize>,
    /// Clients of the earlier server may have had opens that deny uses.
    are_denials_missing: bool,
    /// Clients of this server may have such opens.
    has_denials: bool,
}

impl Grace {
    /// With these names inherited from an earlier server.
    pub(super) fn new(left: Vec<u64>, now_ns: u64) -> Self {
        let mut missing: BTreeSet<u64> = left.into_iter().collect();
        Self {
            are_denials_missing: missing.remove(&DENIALS) && !missing.is_empty(),
            missing_runs: missing.iter().map(|name| (*name as u32, *name)).collect(),
            missing,
            until_ns: now_ns.saturating_add(GRACE_NS),
            present: BTreeMap::new(),
            of_names: BTreeMap::new(),
            has_denials: false,
        }
    }

    /// When new state waits no more, whoever is missing.
    pub(super) fn until_ns(&self) -> u64 {
        self.until_ns
    }

    /// Whether a client that is missing may have had an open that denies uses.
    pub(super) fn are_denials_missing(&self) -> bool {
        self.are_denials_missing && !self.missing.is_empty()
    }

    /// Whether the list shows opens that deny uses.
    pub(super) fn has_denials(&self) -> bool {
        self.has_denials
    }

    /// Clients may have opens that deny uses from now on. Returns the list if it has changed.
    pub(super) fn add_denials(&mut self) -> Option<Vec<u64>> {
        let had_denials = self.has_denials_listed();
        self.has_denials = true;
        self.changed(&[], had_denials)
    }

    /// Whether new state has to wait.
    pub(super) fn is_on(&self, now_ns: u64) -> bool {
        !self.missing.is_empty() && now_ns < self.until_ns
    }

    /// The number of clients that are missing.
    pub(super) fn missing(&self) -> usize {
        self.missing.len()
    }

    /// Whether a client of this name may ask for its earlier state.
    pub(super) fn may_reclaim(&self, name: u64, now_ns: u64) -> bool {
        self.is_on(now_ns) && self.missing_of(name).next().is_some()
    }

    /// The missing names of one client.
    fn missing_of(&self, name: u64) -> impl Iterator<Item = u64> {
        let (half, run) = (name >> 32 << 32, name as u32);
        let of_name = self.missing.range(half..=half | u64::from(u32::MAX)).copied();
        of_name.chain(self.missing_runs.range((run, 0)..=(run, u64::MAX)).map(|(_, name)| *name))
    }

    /// Whether a client is on the list.
    pub(super) fn has(&self, clientid: u64) -> bool {
        self.present.contains_key(&clientid)
    }

    /// A client may have state from now on. Returns the list if it has changed.
    pub(super) fn add(&mut self, clientid: u64, name: u64) -> Option<Vec<u64>> {
        let (was_listed, had_denials) = (self.is_listed(name), self.has_denials_listed());
        let before = self.present.insert(clientid, name);
        *self.of_names.entry(name).or_default() += 1;
        before.into_iter().for_each(|before| self.forget_name(before));
        if was_listed { self.changed(before.as_slice(), had_denials) } else { Some(self.names()) }
    }

    /// A client has asked for all that it had. Returns the list if it has changed.
    pub(super) fn complete(&mut self, name: u64) -> Option<Vec<u64>> {
        let had_denials = self.has_denials_listed();
        let back: Vec<u64> = self.missing_of(name).collect();
        for name in &back {
            self.missing.remove(name);
            self.missing_runs.remove(&(*name as u32, *name));
        }
        self.changed(&back, had_denials)
    }

    /// Clients have ended. Returns the list if it has changed.
    pub(super) fn remove(&mut self, clients: &[u64]) -> Option<Vec<u64>> {
        let had_denials = self.has_denials_listed();
        let gone: Vec<u64> = clients.iter().filter_map(|clientid| self.present.remove(clientid)).collect();
        gone.iter().for_each(|name| self.forget_name(*name));
        self.changed(&gone, had_denials)
    }

    /// Stops waiting for clients that are missing for too long. Returns the list if it has changed.
    pub(super) fn expire(&mut self, now_ns: u64) -> Option<Vec<u64>> {
        if now_ns < self.until_ns {
            return None;
        }
        let had_denials = self.has_denials_listed();
        let gone: Vec<u64> = std::mem::take(&mut self.missing).into_iter().collect();
        self.missing_runs.clear();
        self.changed(&gone, had_denials)
    }

    pub(super) fn names(&self) -> Vec<u64> {
        let all = self.missing.iter().chain(self.of_names.keys()).inspect(|_| step());
        let mut names: BTreeSet<u64> = all.copied().collect();
        if self.has_denials_listed() {
            names.insert(DENIALS);
        }
        names.into_iter().collect()
    }

    fn has_denials_listed(&self) -> bool {
        self.has_denials || self.are_denials_missing()
    }

    fn is_listed(&self, name: u64) -> bool {
        self.missing.contains(&name) || self.of_names.contains_key(&name)
    }

    /// One client less has this name.
    fn forget_name(&mut self, name: u64) {
        if let Some(count) = self.of_names.get_mut(&name) {
            *count -= 1;
            if *count == 0 {
                self.of_names.remove(&name);
            }
        }
    }

    /// The list, if it has changed. `gone` are names that are no longer missing, or no longer present. Without a change
    /// nothing is copied.
    fn changed(&self, gone: &[u64], had_denials: bool) -> Option<Vec<u64>> {
        let has_changed = had_denials != self.has_denials_listed() || gone.iter().any(|name| !self.is_listed(*name));
        has_changed.then(|| self.names())
    }
}

#[cfg(test)]
mod tests;
