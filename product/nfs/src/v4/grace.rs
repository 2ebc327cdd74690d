//! The grace period (RFC 8881, section 8.4.2): an earlier server's clients may reclaim their state. The
//! grace period needs the list of clients that an earlier server wrote.
//!
//! Owns: the missing clients, the time for which others wait, the names on the list.
//! Does not own: the storage of the list (a [`ClientList`]), clients and their state.
//! Invariants: while somebody is missing, nobody gets new state: it might be theirs. That ends after [`GRACE_NS`]. A
//! client that was missing then is off the list, and may never ask again: others may have had its locks since. A
//! machine that gets another address is the same client as long as it runs. Another machine with its name is not: it
//! lacks the verifier. The list shows whether some client's open denies uses: only then do uses without an open wait.
//! A client has no state before the list is durable with it. A change of the list has the names that come or go alone,
//! so its steps do not grow with the list.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::BoxFuture;

use super::state::leases::LEASE_SECONDS;
use crate::steps::step;

/// Longest time for which new state waits: a lease, in which each client speaks, and a little more.
const GRACE_NS: u64 = (LEASE_SECONDS as u64 + 10) * 1_000_000_000;

/// Names, and whether each is on the list of clients from now on.
pub type ListChange = BTreeMap<u64, bool>;

/// Persists the names of clients for a later server.
pub trait ClientList: Send + Sync + 'static {
    /// Changes the list of the earlier server, in the order of these calls: each name is on it from now on, or no
    /// more. The result is true once the list is durable with this change. The implementation reports an error; it
    /// tries again with the next change, which may have no names.
    fn change(&self, names: ListChange) -> BoxFuture<'static, bool>;
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
    /// The present clients that the durable list has.
    durable: BTreeSet<u64>,
    /// The number of clients with each of these names.
    of_names: BTreeMap<u64, usize>,
    /// Clients of the earlier server may have had opens that deny uses.
    are_denials_missing: bool,
    /// Clients of this server may have such opens.
    has_denials: bool,
    /// The list is durable with this.
    are_denials_durable: bool,
    /// The names that came on the list or left it since the last [`Grace::take_change`].
    change: ListChange,
}

impl Grace {
    /// With these names inherited from an earlier server.
    pub(super) fn new(left: Vec<u64>, now_ns: u64) -> Self {
        let mut missing: BTreeSet<u64> = left.iter().copied().collect();
        let mut new = Self {
            are_denials_missing: missing.remove(&DENIALS) && !missing.is_empty(),
            missing_runs: missing.iter().map(|name| (*name as u32, *name)).collect(),
            missing,
            until_ns: now_ns.saturating_add(GRACE_NS),
            present: BTreeMap::new(),
            durable: BTreeSet::new(),
            of_names: BTreeMap::new(),
            has_denials: false,
            are_denials_durable: false,
            change: ListChange::new(),
        };
        new.drop_unlisted(&left);
        new
    }

    /// Names on the list of an earlier server of which nothing is left go off the list with its next change.
    pub(super) fn drop_unlisted(&mut self, earlier: &[u64]) {
        let gone: Vec<u64> = earlier.iter().copied().filter(|name| !self.is_listed(*name)).collect();
        self.change.extend(gone.into_iter().map(|name| (name, false)));
    }

    /// The change of the list since the last call; none without a change.
    pub(super) fn take_change(&mut self) -> Option<ListChange> {
        (!self.change.is_empty()).then(|| std::mem::take(&mut self.change))
    }

    /// Makes a change, and notes which of these names come on the list by it, or leave it.
    fn changing(&mut self, names: &[u64], change: impl FnOnce(&mut Self)) {
        let names = || names.iter().chain(&[DENIALS]).inspect(|_| step());
        let before: Vec<bool> = names().map(|name| self.is_listed(*name)).collect();
        change(self);
        for (name, was_listed) in names().zip(before) {
            if self.is_listed(*name) != was_listed {
                self.change.insert(*name, !was_listed);
            }
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

    /// Clients may have opens that deny uses from now on.
    pub(super) fn add_denials(&mut self) {
        self.changing(&[], |grace| grace.has_denials = true);
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

    /// Whether the list is durable with a client. With `denies`, also with opens that deny uses.
    pub(super) fn is_durable(&self, clientid: u64, denies: bool) -> bool {
        self.durable.contains(&clientid) && (!denies || self.are_denials_durable)
    }

    /// The list has become durable as it was when this client was added, and as [`Grace::add_denials`] left it if it
    /// `denies`.
    pub(super) fn confirm(&mut self, clientid: u64, name: u64, denies: bool) {
        if self.present.get(&clientid) == Some(&name) {
            self.durable.insert(clientid);
        }
        self.are_denials_durable |= denies;
    }

    /// A client may have state from now on.
    pub(super) fn add(&mut self, clientid: u64, name: u64) {
        let before = self.present.get(&clientid).copied();
        self.changing(&[name, before.unwrap_or(name)], |grace| {
            grace.present.insert(clientid, name);
            if before != Some(name) {
                grace.durable.remove(&clientid);
            }
            *grace.of_names.entry(name).or_default() += 1;
            before.into_iter().for_each(|before| grace.forget_name(before));
        });
    }

    /// A client has asked for all that it had.
    pub(super) fn complete(&mut self, name: u64) {
        let back: Vec<u64> = self.missing_of(name).collect();
        self.changing(&back, |grace| {
            for name in &back {
                grace.missing.remove(name);
                grace.missing_runs.remove(&(*name as u32, *name));
            }
        });
    }

    /// Clients have ended.
    pub(super) fn remove(&mut self, clients: &[u64]) {
        let gone: Vec<u64> = clients.iter().filter_map(|clientid| self.present.remove(clientid)).collect();
        clients.iter().for_each(|clientid| _ = self.durable.remove(clientid));
        self.changing(&gone, |grace| gone.iter().for_each(|name| grace.forget_name(*name)));
    }

    /// Stops waiting for clients that are missing for too long.
    pub(super) fn expire(&mut self, now_ns: u64) {
        if now_ns < self.until_ns {
            return;
        }
        let gone: Vec<u64> = self.missing.iter().copied().collect();
        self.changing(&gone, |grace| {
            grace.missing.clear();
            grace.missing_runs.clear();
        });
    }

    fn is_listed(&self, name: u64) -> bool {
        match name {
            DENIALS => self.has_denials || self.are_denials_missing(),
            name => self.missing.contains(&name) || self.of_names.contains_key(&name),
        }
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
}

#[cfg(test)]
mod tests;
