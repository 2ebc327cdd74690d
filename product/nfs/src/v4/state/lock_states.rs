//! The stateids of lock owners: a program's name for its locks of one file.
//!
//! Owns: the table of lock owners with locks of a file, their stateids, their bounds.
//! Does not own: the locks (the volume), opens (`opens`).
//! Invariants: a lock owner has one stateid for a file. It works for its own client alone, and ends with the open that it was
//! begun with. There are at most [`LOCK_STATES_MAX`], and [`PARTY_LOCK_STATES_MAX`] of one party.

use std::collections::{BTreeMap, BTreeSet};

use afflux_frontend::Party;

use super::places::Places;
use super::stateids::{StatePlace, Stateid, check_sequence, next_sequence};
use crate::status::Status;

/// Most lock owners of files.
pub(crate) const LOCK_STATES_MAX: usize = 65_536;
/// Most lock owners of files of one party.
pub(crate) const PARTY_LOCK_STATES_MAX: usize = LOCK_STATES_MAX / 2;
/// The number of the first place: those of opens are below.
const FIRST_PLACE: u32 = 1 << 31;

/// A lock owner of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LockState {
    pub(crate) client: u64,
    pub(crate) party: Party,
    pub(crate) file: u64,
    /// The place of the open that it was begun with.
    pub(crate) open: u32,
    /// The client's name for it.
    pub(crate) owner: Box<[u8]>,
    /// The number that the volume has for it.
    pub(crate) number: u64,
    pub(crate) sequence: u32,
}

/// All lock owners of files.
pub(crate) struct LockStates {
    places: Places<LockState>,
    /// By file and the volume's number.
    of_file: BTreeMap<(u64, u64), u32>,
    of_open: BTreeMap<u32, BTreeSet<u32>>,
    of_party: BTreeMap<Party, usize>,
}

impl StatePlace {
    /// Whether it is a lock owner's.
    pub(crate) fn is_of_locks(self) -> bool {
        self.place >= FIRST_PLACE
    }
}

impl LockStates {
    /// None yet. `memory` marks their stateids.
    pub(crate) fn new(memory: u32) -> Self {
        let places = Places::new(memory, FIRST_PLACE);
        Self { places, of_file: BTreeMap::new(), of_open: BTreeMap::new(), of_party: BTreeMap::new() }
    }

    /// Number of lock owners of files.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The lock owner of a file with this number.
    pub(crate) fn of_owner(&self, file: u64, number: u64) -> Option<&LockState> {
        self.of_file.get(&(file, number)).and_then(|place| self.places.get(*place))
    }

    /// A client's lock owner with this stateid.
    pub(crate) fn find(&self, client: u64, at: StatePlace, sequence: u32) -> Result<&LockState, Status> {
        let state = self.places.named(at)?;
        if state.client != client {
            return Err(Status::BadStateid);
        }
        check_sequence(sequence, state.sequence)?;
        Ok(state)
    }

    /// Whether there is room for one more of a party.
    pub(crate) fn has_room(&self, party: Party) -> bool {
        let of_party = self.of_party.get(&party).copied().unwrap_or_default();
        self.len() < LOCK_STATES_MAX && of_party < PARTY_LOCK_STATES_MAX
    }

    /// An owner has got a lock of a file: its stateid goes on, or begins. The caller has checked that there is room.
    pub(crate) fn locked(&mut self, state: LockState) -> Stateid {
        if let Some(place) = self.of_file.get(&(state.file, state.number)).copied() {
            return self.changed(place);
        }
        let (file, number, open, party) = (state.file, state.number, state.open, state.party);
        let place = self.places.insert(LockState { sequence: 1, ..state });
        self.of_file.insert((file, number), place);
        self.of_open.entry(open).or_default().insert(place);
        *self.of_party.entry(party).or_default() += 1;
        self.places.stateid(place, 1)
    }

    /// An owner's locks have changed, which counts as one step of its stateid.
    pub(crate) fn changed(&mut self, place: u32) -> Stateid {
        let sequence = self.places.get_mut(place).map_or(1, |state| {
            state.sequence = next_sequence(state.sequence);
            state.sequence
        });
        self.places.stateid(place, sequence)
    }

    /// Ends an owner's stateid.
    pub(crate) fn end(&mut self, place: u32) -> Option<LockState> {
        let state = self.places.take(place)?;
        self.of_file.remove(&(state.file, state.number));
        if let Some(places) = self.of_open.get_mut(&state.open) {
            places.remove(&place);
            if places.is_empty() {
                self.of_open.remove(&state.open);
            }
        }
        if let Some(count) = self.of_party.get_mut(&state.party) {
            *count -= 1;
            if *count == 0 {
                self.of_party.remove(&state.party);
            }
        }
        Some(state)
    }

    /// Ends those that were begun with an open.
    pub(crate) fn end_of(&mut self, open: u32) -> Vec<LockState> {
        let places = self.of_open.get(&open).cloned().unwrap_or_default();
        places.into_iter().filter_map(|place| self.end(place)).collect()
    }
}

#[cfg(test)]
mod tests;
