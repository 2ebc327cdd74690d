//! Stateids: the names by which clients mention what they have opened, and the table that they lead to.
//!
//! Owns: the layout of a stateid, the special ones, the order of its sequence numbers (seqid); the entries of one kind
//! of state, their generations, the check of a stateid's `other`; the ids of an owner's, a group's and a party's
//! states.
//! Does not own: the states (`opens`, `lock_states`).
//! Invariants: a stateid of an earlier memory of the server is known as such without a search. An entry has one state
//! at a time. The stateid of a state that is gone names nothing, though its entry is in use again, also by a later
//! server that goes on with the memory. An owner, a group or a party without states takes no memory.

use std::collections::{BTreeMap, BTreeSet};

use afflux_frontend::Party;

use crate::status::NfsStatus;
use crate::steps::step;
use crate::v4::state::persisted::ServerMemory;
use crate::v4::state::quota::PartyCounts;

/// Bytes of a stateid behind its sequence number.
pub(crate) const OTHER_BYTES: usize = 12;

/// A stateid as a client sends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stateid {
    /// How often the state changed; 0 means the present.
    pub(crate) seqid: u32,
    pub(crate) other: [u8; OTHER_BYTES],
}

/// `other` of a stateid: where the state is in its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StateidOther {
    /// Which memory of the server has the table.
    pub(crate) memory: u32,
    pub(crate) id: u32,
    /// How often the entry had been used.
    pub(crate) generation: u32,
}

/// The meaning of a stateid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StateidKind {
    /// No state: a READ or WRITE of nobody's open.
    Anonymous,
    /// As anonymous; a READ need not mind others' locks.
    Bypass,
    /// The stateid that an earlier operation of the compound has set.
    Current,
    /// State in the table.
    State(StateidOther),
}

impl Stateid {
    pub(crate) const ANONYMOUS: Self = Self { seqid: 0, other: [0; OTHER_BYTES] };

    /// The name of an entry. Ids begin with 1 on the wire, so that no name is a special one.
    pub(crate) fn of(id: StateidOther, seqid: u32) -> Self {
        let mut other = [0; OTHER_BYTES];
        let words = [id.memory, id.id.wrapping_add(1), id.generation];
        for (bytes, word) in other.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        Self { seqid, other }
    }

    /// Its meaning, if it has the form of a stateid.
    pub(crate) fn meaning(self) -> Result<StateidKind, NfsStatus> {
        let word = |at: usize| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&self.other[at..at + 4]);
            u32::from_be_bytes(bytes)
        };
        let (memory, id, generation) = (word(0), word(4), word(8));
        match (self.seqid, [memory, id, generation]) {
            (0, [0, 0, 0]) => Ok(StateidKind::Anonymous),
            (1, [0, 0, 0]) => Ok(StateidKind::Current),
            (u32::MAX, [u32::MAX, u32::MAX, u32::MAX]) => Ok(StateidKind::Bypass),
            (_, [_, 0, _] | [u32::MAX, u32::MAX, u32::MAX]) => Err(NfsStatus::BadStateid),
            _ => Ok(StateidKind::State(StateidOther { memory, id: id - 1, generation })),
        }
    }
}

/// The sequence number after this one: 0 has a meaning of its own.
pub(crate) fn next_seqid(seqid: u32) -> u32 {
    seqid.checked_add(1).unwrap_or(1)
}

/// Whether a sequence number comes after another. The numbers wrap.
pub(crate) fn is_later(seqid: u32, than: u32) -> bool {
    (1..u32::MAX / 2).contains(&seqid.wrapping_sub(than))
}

/// Compares a client's sequence number with the state's.
pub(crate) fn check_seqid(sent: u32, present: u32) -> Result<(), NfsStatus> {
    match sent {
        0 => Ok(()),
        _ if sent == present => Ok(()),
        // The numbers wrap: the half behind the present one is old.
        _ if present.wrapping_sub(sent) < u32::MAX / 2 => Err(NfsStatus::OldStateid),
        _ => Err(NfsStatus::BadStateid),
    }
}

/// Uses of an entry that each server has numbers for.
const USES_BITS: u32 = 20;

/// The states of one kind.
pub(crate) struct StateidTable<T> {
    memory: u32,
    /// The generation of an entry that nothing was in: no earlier server had it.
    unused: u32,
    /// The first id: kinds of state have ids of their own.
    first: u32,
    /// A generation and a state for each id.
    entries: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> StateidTable<T> {
    /// No entries yet. `memory` marks their stateids.
    pub(crate) fn new(memory: &ServerMemory, first: u32) -> Self {
        let unused = memory.run << USES_BITS;
        Self { memory: memory.number, unused, first, entries: Vec::new(), free: Vec::new() }
    }

    /// Puts a state of an earlier server in its entry. False if the entry has one, or cannot be. To be followed by
    /// [`StateidTable::restored`].
    pub(crate) fn try_restore(&mut self, id: u32, generation: u32, state: T, most: usize) -> bool {
        let (index, unused) = (self.index(id), self.unused);
        if index >= most {
            return false;
        }
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || (unused, None));
        }
        let is_free = self.entries[index].1.is_none();
        self.entries[index] = (generation, Some(state));
        is_free
    }

    /// All states of an earlier server are in their entries.
    pub(crate) fn restored(&mut self) {
        let free = self.entries.iter().enumerate().filter(|(_, id)| id.1.is_none());
        self.free = free.map(|(index, _)| self.first + index as u32).collect();
    }

    /// All states.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().filter_map(|entry| entry.1.as_ref())
    }

    /// How often an entry had been used.
    pub(crate) fn generation(&self, id: u32) -> u32 {
        self.entries.get(self.index(id)).map_or(self.unused, |id| id.0)
    }

    /// Number of states.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    fn index(&self, id: u32) -> usize {
        id.wrapping_sub(self.first) as usize
    }

    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        self.entries.get(self.index(id))?.1.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        let index = self.index(id);
        self.entries.get_mut(index)?.1.as_mut()
    }

    /// The id that the next state gets.
    pub(crate) fn next(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.first + self.entries.len() as u32)
    }

    /// Adds a state.
    pub(crate) fn insert(&mut self, state: T) -> u32 {
        let id = self.next();
        match self.free.pop() {
            Some(id) => {
                let index = self.index(id);
                self.entries[index].1 = Some(state);
            }
            None => self.entries.push((self.unused, Some(state))),
        }
        id
    }

    /// Removes a state.
    pub(crate) fn take(&mut self, id: u32) -> Option<T> {
        let index = self.index(id);
        let entry = self.entries.get_mut(index)?;
        let state = entry.1.take()?;
        entry.0 = entry.0.wrapping_add(1);
        self.free.push(id);
        Some(state)
    }

    /// The stateid of an entry.
    pub(crate) fn stateid(&self, id: u32, seqid: u32) -> Stateid {
        let generation = self.generation(id);
        Stateid::of(StateidOther { memory: self.memory, id, generation }, seqid)
    }

    /// The state that a stateid means.
    pub(crate) fn named(&self, at: StateidOther) -> Result<&T, NfsStatus> {
        if at.memory != self.memory {
            // In a session of 4.1 no stateid is stale.
            return Err(NfsStatus::BadStateid);
        }
        let id = self.entries.get(self.index(at.id)).filter(|id| id.0 == at.generation);
        id.and_then(|id| id.1.as_ref()).ok_or(NfsStatus::BadStateid)
    }
}

/// The keys of a state.
#[derive(Clone, Copy)]
pub(crate) struct StateKeys {
    /// A file, and its owner's number there.
    pub(crate) owner: (u64, u64),
    /// The client or the open with which the state ends.
    pub(crate) group: u64,
    pub(crate) party: Party,
}

/// Ids by the keys of their states.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct StateIndex {
    of_owner: BTreeMap<(u64, u64), u32>,
    of_group: BTreeMap<u64, BTreeSet<u32>>,
    /// The groups of a party that have states.
    of_party: BTreeMap<Party, BTreeSet<u64>>,
    counts: PartyCounts,
}

impl StateIndex {
    pub(crate) fn insert(&mut self, id: u32, keys: StateKeys) {
        self.of_owner.insert(keys.owner, id);
        let group = self.of_group.entry(keys.group).or_default();
        if group.is_empty() {
            self.of_party.entry(keys.party).or_default().insert(keys.group);
        }
        group.insert(id);
        self.counts.add(keys.party, 1);
    }

    pub(crate) fn remove(&mut self, id: u32, keys: StateKeys) {
        self.of_owner.remove(&keys.owner);
        if let Some(states) = self.of_group.get_mut(&keys.group) {
            states.remove(&id);
            if states.is_empty() {
                self.of_group.remove(&keys.group);
                self.forget_group(keys);
            }
        }
        self.counts.remove(keys.party, 1);
    }

    /// A group of a party has no states any more.
    fn forget_group(&mut self, keys: StateKeys) {
        if let Some(groups) = self.of_party.get_mut(&keys.party) {
            groups.remove(&keys.group);
            if groups.is_empty() {
                self.of_party.remove(&keys.party);
            }
        }
    }

    /// The id of the state of a file's owner.
    pub(crate) fn of_owner(&self, file: u64, number: u64) -> Option<u32> {
        self.of_owner.get(&(file, number)).copied()
    }

    /// The ids of a file's states, by their owners' numbers.
    pub(crate) fn of_file(&self, file: u64) -> impl Iterator<Item = u32> {
        self.of_owner.range((file, 0)..=(file, u64::MAX)).inspect(|_| step()).map(|(_, id)| *id)
    }

    /// The ids of a group's states.
    pub(crate) fn of_group(&self, group: u64) -> impl Iterator<Item = u32> {
        self.of_group.get(&group).into_iter().flatten().inspect(|_| step()).copied()
    }

    /// The number of a group's states.
    pub(crate) fn count_of(&self, group: u64) -> usize {
        self.of_group.get(&group).map_or(0, BTreeSet::len)
    }

    /// Whether a group has any.
    pub(crate) fn has_group(&self, group: u64) -> bool {
        self.of_group.contains_key(&group)
    }

    /// The number of each party's states.
    pub(crate) fn counts(&self) -> &PartyCounts {
        &self.counts
    }

    /// The id of one of a party's states.
    pub(crate) fn one_of_party(&self, party: Party) -> Option<u32> {
        self.of_group.get(self.of_party.get(&party)?.first()?)?.first().copied()
    }
}

#[cfg(test)]
mod tests;
