//! Client owners (`client_owner4`): the client IDs of each `co_ownerid` of a party.
//!
//! Owns: the search for an owner, the numbers of parties' client IDs.
//! Does not own: clients (`clients`).
//! Invariants: an owner has at most one confirmed client ID and one unconfirmed one. A party without clients takes no
//! memory. No search goes over all clients.

use std::collections::BTreeMap;
use std::sync::Arc;

use afflux_frontend::Party;

use super::quota::PartyCounts;

/// The client IDs of one owner.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct OwnerClientids {
    pub(super) confirmed: Option<u64>,
    pub(super) unconfirmed: Option<u64>,
}

#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct ClientOwners {
    of: BTreeMap<Party, BTreeMap<Arc<[u8]>, OwnerClientids>>,
    counts: PartyCounts,
}

impl ClientOwners {
    /// The client IDs of a party's owner.
    pub(super) fn find(&self, party: Party, ownerid: &[u8]) -> OwnerClientids {
        self.of.get(&party).and_then(|own| own.get(ownerid)).copied().unwrap_or_default()
    }

    /// The number of each party's clients.
    pub(super) fn counts(&self) -> &PartyCounts {
        &self.counts
    }

    /// Adds a client.
    pub(super) fn add(&mut self, party: Party, ownerid: &Arc<[u8]>, clientid: u64, is_confirmed: bool) {
        self.counts.add(party, 1);
        let clientids = self.of.entry(party).or_default().entry(Arc::clone(ownerid)).or_default();
        let of_kind = if is_confirmed { &mut clientids.confirmed } else { &mut clientids.unconfirmed };
        *of_kind = Some(clientid);
    }

    pub(super) fn remove(&mut self, party: Party, ownerid: &[u8], clientid: u64) {
        let Some(own) = self.of.get_mut(&party) else { return };
        let Some(clientids) = own.get_mut(ownerid) else { return };
        if clientids.confirmed == Some(clientid) {
            clientids.confirmed = None;
        } else if clientids.unconfirmed == Some(clientid) {
            clientids.unconfirmed = None;
        } else {
            return;
        }
        self.counts.remove(party, 1);
        if *clientids == OwnerClientids::default() {
            own.remove(ownerid);
        }
        if own.is_empty() {
            self.of.remove(&party);
        }
    }
}
