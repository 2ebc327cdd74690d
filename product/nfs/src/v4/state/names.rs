//! Clients by their parties and names.
//!
//! Owns: the search for a name, the numbers of parties' clients, the order in which unconfirmed ones were heard.
//! Does not own: clients (`clients`).
//! Invariants: a name has at most one confirmed client and one unconfirmed one. A party without clients takes no
//! memory. No search goes over all clients.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use afflux_frontend::Party;

use super::room::PartyCounts;

/// The clients of one name: the unconfirmed one with the time at which it was heard.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Namesakes {
    pub(super) confirmed: Option<u64>,
    pub(super) unconfirmed: Option<(u64, u64)>,
}

#[derive(Default, PartialEq, Eq, Debug)]
struct OfParty {
    by_name: BTreeMap<Arc<[u8]>, Namesakes>,
    /// Its clients that are not confirmed, by the time at which they were heard.
    unconfirmed: BTreeSet<(u64, u64)>,
}

/// All clients.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Names {
    of: BTreeMap<Party, OfParty>,
    counts: PartyCounts,
}

impl Names {
    /// The clients of a party with this name.
    pub(super) fn find(&self, party: Party, name: &[u8]) -> Namesakes {
        self.of.get(&party).and_then(|own| own.by_name.get(name)).copied().unwrap_or_default()
    }

    /// The number of each party's clients.
    pub(super) fn counts(&self) -> &PartyCounts {
        &self.counts
    }

    /// Of a party, or of each, the unconfirmed client that was silent for longest: its party, the time at which it was
    /// heard, and its number.
    pub(super) fn longest_unconfirmed(&self, of: Option<Party>) -> impl Iterator<Item = (Party, u64, u64)> {
        let (one, all) = match of {
            Some(party) => (self.of.get_key_value(&party), None),
            None => (None, Some(self.of.iter())),
        };
        let parties = one.into_iter().chain(all.into_iter().flatten());
        parties.filter_map(|(party, own)| own.unconfirmed.first().map(|(heard_ns, id)| (*party, *heard_ns, *id)))
    }

    /// Adds a client. An unconfirmed client has the time at which the server heard it.
    pub(super) fn add(&mut self, party: Party, name: &Arc<[u8]>, id: u64, unconfirmed_ns: Option<u64>) {
        self.counts.add(party, 1);
        let own = self.of.entry(party).or_default();
        let namesakes = own.by_name.entry(Arc::clone(name)).or_default();
        match unconfirmed_ns {
            None => namesakes.confirmed = Some(id),
            Some(heard_ns) => {
                namesakes.unconfirmed = Some((id, heard_ns));
                own.unconfirmed.insert((heard_ns, id));
            }
        }
    }

    /// Removes one.
    pub(super) fn remove(&mut self, party: Party, name: &[u8], id: u64) {
        let Some(own) = self.of.get_mut(&party) else { return };
        let Some(namesakes) = own.by_name.get_mut(name) else { return };
        match *namesakes {
            Namesakes { confirmed: Some(known), .. } if known == id => namesakes.confirmed = None,
            Namesakes { unconfirmed: Some((known, heard_ns)), .. } if known == id => {
                namesakes.unconfirmed = None;
                own.unconfirmed.remove(&(heard_ns, id));
            }
            _ => return,
        }
        self.counts.remove(party, 1);
        if *namesakes == Namesakes::default() {
            own.by_name.remove(name);
        }
        if own.by_name.is_empty() {
            self.of.remove(&party);
        }
    }
}
