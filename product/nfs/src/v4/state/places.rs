//! Numbered places for state, each with a stateid.
//!
//! Owns: the places of one kind of state, their generations, the check of a stateid's place.
//! Does not own: the state (`opens`, `lock_states`), the layout of stateids (`stateids`).
//! Invariants: a place has one thing at a time. The stateid of a thing that is gone names nothing, though its place is
//! in use again, also by a later server that goes on with the memory.

use super::kept::ServerMemory;
use super::stateids::{StatePlace, Stateid};
use crate::status::NfsStatus;

/// Uses of a place that each server has numbers for.
const USES_BITS: u32 = 20;

/// Places of one kind of state.
pub(crate) struct StatePlaces<T> {
    memory: u32,
    /// The generation of a place that nothing was in: no earlier server had it.
    unused: u32,
    /// The number of the first place: kinds of state have numbers of their own.
    first: u32,
    /// A generation and a thing for each.
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> StatePlaces<T> {
    /// No places yet. `memory` marks their stateids.
    pub(crate) fn new(memory: &ServerMemory, first: u32) -> Self {
        let unused = memory.run << USES_BITS;
        Self { memory: memory.number, unused, first, places: Vec::new(), free: Vec::new() }
    }

    /// Puts a thing of an earlier server in its place. False if the place has one, or cannot be. To be followed by
    /// [`StatePlaces::restored`].
    pub(crate) fn try_restore(&mut self, place: u32, generation: u32, thing: T, most: usize) -> bool {
        let (index, unused) = (self.index(place), self.unused);
        if index >= most {
            return false;
        }
        if self.places.len() <= index {
            self.places.resize_with(index + 1, || (unused, None));
        }
        let is_free = self.places[index].1.is_none();
        self.places[index] = (generation, Some(thing));
        is_free
    }

    /// All things of an earlier server are in their places.
    pub(crate) fn restored(&mut self) {
        let free = self.places.iter().enumerate().filter(|(_, place)| place.1.is_none());
        self.free = free.map(|(index, _)| self.first + index as u32).collect();
    }

    /// How often a place had been used.
    pub(crate) fn generation(&self, place: u32) -> u32 {
        self.places.get(self.index(place)).map_or(self.unused, |place| place.0)
    }

    /// Number of things.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    fn index(&self, place: u32) -> usize {
        place.wrapping_sub(self.first) as usize
    }

    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.places.get(self.index(place))?.1.as_ref()
    }

    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        let index = self.index(place);
        self.places.get_mut(index)?.1.as_mut()
    }

    /// The place that the next thing gets.
    pub(crate) fn next(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.first + self.places.len() as u32)
    }

    /// Adds a thing.
    pub(crate) fn insert(&mut self, thing: T) -> u32 {
        let place = self.next();
        match self.free.pop() {
            Some(place) => {
                let index = self.index(place);
                self.places[index].1 = Some(thing);
            }
            None => self.places.push((self.unused, Some(thing))),
        }
        place
    }

    /// Removes a thing.
    pub(crate) fn take(&mut self, place: u32) -> Option<T> {
        let index = self.index(place);
        let entry = self.places.get_mut(index)?;
        let thing = entry.1.take()?;
        entry.0 = entry.0.wrapping_add(1);
        self.free.push(place);
        Some(thing)
    }

    /// The stateid of a place.
    pub(crate) fn stateid(&self, place: u32, seqid: u32) -> Stateid {
        let generation = self.generation(place);
        Stateid::of(StatePlace { memory: self.memory, place, generation }, seqid)
    }

    /// The thing that a stateid means.
    pub(crate) fn named(&self, at: StatePlace) -> Result<&T, NfsStatus> {
        if at.memory != self.memory {
            // In a session of 4.1 no stateid is stale.
            return Err(NfsStatus::BadStateid);
        }
        let place = self.places.get(self.index(at.place)).filter(|place| place.0 == at.generation);
        place.and_then(|place| place.1.as_ref()).ok_or(NfsStatus::BadStateid)
    }
}
