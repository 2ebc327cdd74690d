//! The stateids of lock owners: a program's name for its locks of one file.
//!
//! Owns: the table of lock owners with locks of a file, their stateids, their bounds; the moments at which a lock owner is kept
//! with its locks for a later server.
//! Does not own: the locks (the volume), opens (`opens`), the form of what is kept (`kept`).
//! Invariants: a lock owner has one stateid for a file. It works for its own client alone, and ends with the open that it was
//! begun with. There are at most [`LOCK_STATES_MAX`], and [`PARTY_LOCK_STATES_MAX`] of one party.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use afflux_frontend::{KeptItem, Party};

use super::kept::{LockedRange, Memory, Record, locks_bytes};
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
    /// The operation that changed it last.
    pub(crate) by: u64,
}

/// All lock owners of files.
pub(crate) struct LockStates {
    memory: Memory,
    places: Places<(LockState, KeptItem)>,
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
    /// None yet.
    pub(crate) fn new(memory: &Memory) -> Self {
        let (places, memory) = (Places::new(memory, FIRST_PLACE), Memory::clone(memory));
        Self { memory, places, of_file: BTreeMap::new(), of_open: BTreeMap::new(), of_party: BTreeMap::new() }
    }

    /// Number of lock owners of files.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The lock owner of a file with this number.
    pub(crate) fn of_owner(&self, file: u64, number: u64) -> Option<&LockState> {
        self.of_file.get(&(file, number)).and_then(|place| self.places.get(*place)).map(|it| &it.0)
    }

    /// A client's lock owner with this stateid.
    pub(crate) fn find(&self, client: u64, at: StatePlace, sequence: u32) -> Result<&LockState, Status> {
        let state = &self.places.named(at)?.0;
        if state.client != client {
            return Err(Status::BadStateid);
        }
        check_sequence(sequence, state.sequence)?;
        Ok(state)
    }

    /// Refuses a lock owner without room for it or for so many ranges.
    pub(crate) fn check_room(&self, state: &LockState, ranges: usize) -> Result<(), Status> {
        let (none, known) = (KeptItem::default(), self.of_file.get(&(state.file, state.number)));
        let item = known.and_then(|place| self.places.get(*place)).map(|it| &it.1);
        let of_party = self.of_party.get(&state.party).copied().unwrap_or_default();
        if item.is_none() && (self.len() >= LOCK_STATES_MAX || of_party >= PARTY_LOCK_STATES_MAX) {
            return Err(Status::Jukebox);
        }
        self.memory.check_room(item.unwrap_or(&none), state.party, locks_bytes(&state.owner, ranges))
    }

    /// An owner has got a lock of a file, and has these ranges now: its stateid goes on, or begins. The caller has checked that
    /// there is room.
    pub(crate) fn locked(&mut self, state: LockState, ranges: &[LockedRange]) -> Stateid {
        if let Some(place) = self.of_file.get(&(state.file, state.number)).copied() {
            return self.changed(place, state.by, ranges);
        }
        let place = self.places.insert((LockState { sequence: 1, ..state }, KeptItem::default()));
        self.list(place);
        self.keep(place, ranges);
        self.places.stateid(place, 1)
    }

    /// Lists a lock owner under its file, its open and its party.
    fn list(&mut self, place: u32) {
        let Some((state, _)) = self.places.get(place) else { return };
        self.of_file.insert((state.file, state.number), place);
        self.of_open.entry(state.open).or_default().insert(place);
        *self.of_party.entry(state.party).or_default() += 1;
    }

    /// An owner's locks have changed to these ranges, which counts as one step of its stateid.
    pub(crate) fn changed(&mut self, place: u32, by: u64, ranges: &[LockedRange]) -> Stateid {
        let sequence = self.places.get_mut(place).map_or(1, |(state, _)| {
            state.sequence = next_sequence(state.sequence);
            state.by = by;
            state.sequence
        });
        self.keep(place, ranges);
        self.places.stateid(place, sequence)
    }

    fn keep(&mut self, place: u32, ranges: &[LockedRange]) {
        let generation = self.places.generation(place);
        let Some((state, item)) = self.places.get_mut(place) else { return };
        let record = Record::Locks {
            client: state.client,
            file: state.file,
            generation,
            sequence: state.sequence,
            open: state.open,
            by: state.by,
            owner: &state.owner,
            ranges: Cow::Borrowed(ranges),
        };
        self.memory.put(place, item, state.party, &record);
    }

    /// Puts a lock owner of an earlier server in its place, with the number that the volume has for it now. False if it cannot be
    /// there. To be followed by [`LockStates::restored`].
    pub(crate) fn restore(
        &mut self,
        place: u32,
        (party, number): (Party, u64),
        record: &Record<'_>,
        item: KeptItem,
    ) -> bool {
        let Record::Locks { client, file, generation, sequence, open, by, owner, .. } = *record else { return false };
        self.memory.found(&item, party);
        let state = LockState { client, party, file, open, owner: owner.into(), number, sequence, by };
        let is_one = self.places.restore(place, generation, (state, item), LOCK_STATES_MAX);
        if is_one {
            self.list(place);
        }
        is_one
    }

    /// All lock owners of an earlier server are in their places.
    pub(crate) fn restored(&mut self) {
        self.places.restored();
    }

    /// The stateid of the lock owner that an operation has changed last.
    pub(crate) fn changed_by(&self, mark: u64) -> Option<Stateid> {
        let (place, (state, _)) = self.places.all().find(|(_, (state, _))| state.by == mark)?;
        Some(self.places.stateid(place, state.sequence))
    }

    /// Ends an owner's stateid.
    pub(crate) fn end(&mut self, place: u32) -> Option<LockState> {
        let (state, mut item) = self.places.take(place)?;
        self.memory.remove(&mut item, state.party);
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
