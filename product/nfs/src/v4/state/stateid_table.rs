//! The table that stateids lead to: an entry for each state, known by its id.
//!
//! Owns: the entries of one kind of state, their generations, the check of a stateid's `other`.
//! Does not own: the state (`opens`, `lock_states`), the layout of stateids (`stateids`).
//! Invariants: an entry has one state at a time. The stateid of a state that is gone names nothing, though its entry is
//! in use again, also by a later server that goes on with the memory.

use super::persisted::ServerMemory;
use super::stateids::{Stateid, StateidOther};
use crate::status::NfsStatus;

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
