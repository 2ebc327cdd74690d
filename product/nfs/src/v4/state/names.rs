//! Clients by their parties and names.
//!
//! Owns: the search for a name, the numbers of parties' clients.
//! Does not own: clients (`clients`).
//! Invariants: a name has at most one confirmed client and one unconfirmed one. A party without clients takes no
//! memory. No search goes over all clients.

use std::collections::BTreeMap;
use std::sync::Arc;

use afflux_frontend::Party;

use super::room::PartyCounts;

/// The clients of one name.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Namesakes {
    pub(super) confirmed: Option<u64>,
    pub(super) unconfirmed: Option<u64>,
}

#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Names {
    of: BTreeMap<Party, BTreeMap<Arc<[u8]>, Namesakes>>,
    counts: PartyCounts,
}

impl Names {
    /// The clients of a party with this name.
    pub(super) fn find(&self, party: Party, name: &[u8]) -> Namesakes {
        self.of.get(&party).and_then(|own| own.get(name)).copied().unwrap_or_default()
    }

    /// The number of each party's clients.
    pub(super) fn counts(&self) -> &PartyCounts {
        &self.counts
    }

    /// Adds a client.
    pub(super) fn add(&mut self, party: Party, name: &Arc<[u8]>, id: u64, is_confirmed: bool) {
        self.counts.add(party, 1);
        let namesakes = self.of.entry(party).or_default().entry(Arc::clone(name)).or_default();
        let of_kind = if is_confirmed { &mut namesakes.confirmed } else { &mut namesakes.unconfirmed };
        *of_kind = Some(id);
    }

    pub(super) fn remove(&mut self, party: Party, name: &[u8], id: u64) {
        let Some(own) = self.of.get_mut(&party) else { return };
        let Some(namesakes) = own.get_mut(name) else { return };
        if namesakes.confirmed == Some(id) {
            namesakes.confirmed = None;
        } else if namesakes.unconfirmed == Some(id) {
            namesakes.unconfirmed = None;
        } else {
            return;
        }
        self.counts.remove(party, 1);
        if *namesakes == Namesakes::default() {
            own.remove(name);
        }
        if own.is_empty() {
            self.of.remove(&party);
        }
    }
}
